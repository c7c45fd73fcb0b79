//! Pixels as every measure sees them: RGB, 8 bits, transparency composited on white.

use std::io::{Cursor, Read as _};
use std::path::{Path, PathBuf};

use image::codecs::png::{PngDecoder, PngEncoder};
use image::{
    DynamicImage, ExtendedColorType, ImageDecoder as _, ImageEncoder as _, ImageError, Limits, Rgba,
};
use proctor_traces::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::index;

/// Most bytes of a PNG file that are read.
pub const MAX_PICTURE_BYTES: u64 = 64 << 20;
/// Most pixels of a picture.
const MAX_PIXELS: u64 = 80_000_000;
/// Longest side of a picture.
const MAX_SIDE: u32 = 65_536;

/// Width and height in pixels, neither of them 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Size {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Size {
    /// Pixels.
    pub fn pixels(self) -> usize {
        index(self.width) * index(self.height)
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}×{}", self.width, self.height)
    }
}

/// An opaque RGB picture, 8 bits per channel.
#[derive(Clone, PartialEq, Eq)]
pub struct Picture {
    size: Size,
    /// Row by row, three bytes a pixel.
    rgb: Vec<u8>,
}

impl std::fmt::Debug for Picture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Picture({})", self.size)
    }
}

/// Why something is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// The file cannot be read.
    #[error("reading {path}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// There are more bytes or pixels than are accepted.
    #[error("the picture is too large: {0}")]
    TooLarge(String),
    /// It cannot be decoded as PNG.
    #[error("the picture cannot be decoded: {0}")]
    Broken(String),
    /// It cannot be encoded.
    #[error("the picture cannot be encoded: {0}")]
    Encode(String),
}

impl Picture {
    /// A picture of one colour. Both sides must be at least 1.
    pub fn filled(size: Size, colour: [u8; 3]) -> Self {
        Self { size, rgb: colour.repeat(size.pixels()) }
    }

    /// A picture of these bytes, three a pixel, row by row; none if their number does not fit, or a side is 0.
    pub fn from_rgb(size: Size, rgb: Vec<u8>) -> Option<Self> {
        (size.pixels() > 0 && rgb.len() == size.pixels() * 3).then_some(Self { size, rgb })
    }

    /// Decodes a PNG: palettes and grey become RGB, of 16 bits the upper 8 are kept, transparency is composited on white
    /// (VAO-Bench, C.2) with the rounding of Pillow's `alpha_composite`. Gamma and colour profiles are not applied.
    pub fn from_png(bytes: &[u8]) -> Result<Self, PictureError> {
        if bytes.len() as u64 > MAX_PICTURE_BYTES {
            return Err(PictureError::TooLarge(format!("{} bytes", bytes.len())));
        }
        let broken = |error: ImageError| match error {
            ImageError::Limits(error) => PictureError::TooLarge(error.to_string()),
            error => PictureError::Broken(error.to_string()),
        };
        let mut limits = Limits::default();
        limits.max_image_width = Some(MAX_SIDE);
        limits.max_image_height = Some(MAX_SIDE);
        limits.max_alloc = Some(MAX_PIXELS * 8);
        let decoder = PngDecoder::with_limits(Cursor::new(bytes), limits).map_err(broken)?;
        let (width, height) = decoder.dimensions();
        if u64::from(width) * u64::from(height) > MAX_PIXELS {
            return Err(PictureError::TooLarge(format!("{width}×{height} pixels")));
        }
        let decoded = DynamicImage::from_decoder(decoder).map_err(broken)?;
        let mut rgb = Vec::with_capacity(Size { width, height }.pixels() * 3);
        if decoded.color().bits_per_pixel() / u16::from(decoded.color().channel_count()) > 8 {
            for Rgba(pixel) in decoded.to_rgba16().pixels() {
                rgb.extend(on_white(pixel.map(|value| value.to_be_bytes()[0])));
            }
        } else if decoded.color().has_alpha() {
            for Rgba(pixel) in decoded.to_rgba8().pixels() {
                rgb.extend(on_white(*pixel));
            }
        } else {
            rgb = decoded.into_rgb8().into_raw();
        }
        let nothing = || PictureError::Broken("it has no pixels".to_owned());
        Self::from_rgb(Size { width, height }, rgb).ok_or_else(nothing)
    }

    /// Reads a PNG file; returns the digest of its bytes too.
    pub fn read(path: &Path) -> Result<(Self, Digest), PictureError> {
        let failed = |source| PictureError::Io { path: path.to_owned(), source };
        let file = std::fs::File::open(path).map_err(failed)?;
        let mut bytes = Vec::new();
        file.take(MAX_PICTURE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        Ok((Self::from_png(&bytes)?, Digest::of(&bytes)))
    }

    /// The picture as a PNG.
    pub fn to_png(&self) -> Result<Vec<u8>, PictureError> {
        let mut bytes = Vec::new();
        PngEncoder::new(&mut bytes)
            .write_image(&self.rgb, self.size.width, self.size.height, ExtendedColorType::Rgb8)
            .map_err(|error| PictureError::Encode(error.to_string()))?;
        Ok(bytes)
    }

    /// Its size.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Its bytes: three a pixel, row by row from the top.
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    /// Its pixels, row by row from the top.
    pub fn pixels(&self) -> &[[u8; 3]] {
        self.rgb.as_chunks().0
    }

    /// Its pixels, to be changed.
    pub(crate) fn pixels_mut(&mut self) -> &mut [[u8; 3]] {
        self.rgb.as_chunks_mut().0
    }

    /// Its rows from the top.
    pub(crate) fn rows(&self) -> std::slice::ChunksExact<'_, [u8; 3]> {
        self.pixels().chunks_exact(index(self.size.width))
    }
}

/// A pixel over white, in the integers of Pillow's `alpha_composite`.
fn on_white([red, green, blue, alpha]: [u8; 4]) -> [u8; 3] {
    let alpha = u32::from(alpha);
    [red, green, blue].map(|value| {
        let sum = 128 * (u32::from(value) * alpha + 255 * (255 - alpha) + 128);
        let [byte, ..] = ((((sum >> 8) + sum) >> 8) >> 7).min(255).to_le_bytes();
        byte
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(pixels: &[u8], width: u32, height: u32, colour: ExtendedColorType) -> Vec<u8> {
        let mut bytes = Vec::new();
        PngEncoder::new(&mut bytes).write_image(pixels, width, height, colour).unwrap();
        bytes
    }

    #[test]
    fn nothing_shines_through_what_is_opaque_and_all_is_white_where_nothing_is() {
        for value in 0..=255 {
            assert_eq!(on_white([value, 0, 255, 255]), [value, 0, 255]);
            assert_eq!(on_white([value, 0, 255, 0]), [255; 3]);
        }
        assert_eq!(on_white([0, 100, 200, 128]), [127, 177, 227]);
    }

    #[test]
    fn of_sixteen_bits_the_upper_eight_are_kept() {
        let words: Vec<u8> = [0x12ff_u16, 0x0080, 0xff00].iter().flat_map(|it| it.to_ne_bytes()).collect();
        let picture = Picture::from_png(&png(&words, 1, 1, ExtendedColorType::Rgb16)).unwrap();
        assert_eq!(picture.rgb(), [0x12, 0x00, 0xff]);
        let grey = Picture::from_png(&png(&0x7fff_u16.to_ne_bytes(), 1, 1, ExtendedColorType::L16)).unwrap();
        assert_eq!(grey.rgb(), [0x7f; 3]);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let picture = Picture::from_rgb(Size { width: 2, height: 1 }, vec![1, 2, 3, 4, 5, 6]).unwrap();
        assert_eq!(Picture::from_png(&picture.to_png().unwrap()).unwrap(), picture);
        assert_eq!(picture.pixels(), [[1, 2, 3], [4, 5, 6]]);
    }

    #[test]
    fn rubbish_halves_and_false_headers_are_errors() {
        let noise: Vec<u8> =
            (0..64 * 64 * 3_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let whole = png(&noise, 64, 64, ExtendedColorType::Rgb8);
        for bytes in [b"".as_slice(), b"<!doctype html>", &whole[..whole.len() / 2], &whole[..40]] {
            assert!(matches!(Picture::from_png(bytes), Err(PictureError::Broken(_))), "{}", bytes.len());
        }
        let mut claims = whole;
        claims[16..20].copy_from_slice(&2_000_000_000_u32.to_be_bytes());
        assert!(Picture::from_png(&claims).is_err());
        assert!(Picture::from_rgb(Size { width: 0, height: 4 }, Vec::new()).is_none());
    }
}
