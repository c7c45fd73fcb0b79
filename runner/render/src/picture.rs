//! Looking at a picture that came out of a room, under limits.

use std::io::Cursor;

use image::codecs::png::PngDecoder;
use image::{ImageDecoder as _, ImageError, Limits};

/// Most bytes of a PNG file.
pub(crate) const MAX_PNG_BYTES: usize = 64 << 20;
/// Most pixels of a picture: decoded it takes four bytes for each, sixteen bits per channel eight.
pub(crate) const MAX_PIXELS: u64 = 80_000_000;
/// Longest side of a picture.
pub(crate) const MAX_SIDE: u32 = 65_536;

/// A picture that could be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// All pixels have one colour on white paper.
    pub(crate) blank: bool,
}

/// Why bytes are no picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// There is no byte.
    Missing,
    /// There are too many bytes or pixels.
    TooLarge(String),
    /// They cannot be decoded.
    Broken(String),
}

/// Decodes `png` completely: a header proves nothing.
pub(crate) fn examine(png: &[u8]) -> Result<Picture, Fault> {
    if png.is_empty() {
        return Err(Fault::Missing);
    }
    if png.len() > MAX_PNG_BYTES {
        return Err(Fault::TooLarge(format!("the picture has {} bytes", png.len())));
    }
    let broken = |error: ImageError| Fault::Broken(error.to_string());
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_PIXELS * 8);
    let decoder = match PngDecoder::with_limits(Cursor::new(png), limits) {
        Err(ImageError::Limits(error)) => return Err(Fault::TooLarge(error.to_string())),
        other => other.map_err(broken)?,
    };
    let (width, height) = decoder.dimensions();
    if width == 0 || height == 0 {
        return Err(Fault::Broken("the picture has no pixels".to_owned()));
    }
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(Fault::TooLarge(format!("the picture has {width} × {height} pixels")));
    }
    let color = decoder.color_type();
    let size = usize::from(color.bytes_per_pixel());
    let mut pixels = vec![0; usize::try_from(decoder.total_bytes()).unwrap_or(0)];
    decoder.read_image(&mut pixels).map_err(broken)?;
    let blank = if color.has_alpha() {
        let deep = size > usize::from(color.channel_count());
        one_colour(pixels.chunks_exact(size).map(|pixel| with_alpha(pixel, deep)))
    } else {
        // One colour throughout: the buffer equals itself shifted by a pixel.
        pixels.get(size..) == pixels.get(..pixels.len().saturating_sub(size))
    };
    Ok(Picture { width, height, blank })
}

/// Whether pixels (red, green, blue, alpha) all have the same colour once they are on white, as judges see them. A picture that
/// is transparent throughout shows nothing, whatever colours it hides.
pub(crate) fn one_colour(pixels: impl IntoIterator<Item = [u8; 4]>) -> bool {
    let mut colours = pixels.into_iter().map(on_white);
    let first = colours.next();
    colours.all(|it| Some(it) == first)
}

fn on_white([red, green, blue, alpha]: [u8; 4]) -> [u8; 3] {
    let alpha = u32::from(alpha);
    [red, green, blue].map(|it| {
        let sum = u32::from(it) * alpha + 255 * (255 - alpha);
        // At most 255.
        u8::try_from((sum + 127) / 255).unwrap_or(u8::MAX)
    })
}

/// A decoded pixel that has an alpha channel; of 16 bits the upper 8.
fn with_alpha(pixel: &[u8], deep: bool) -> [u8; 4] {
    let channel = |at: usize| {
        if deep {
            let pair = [pixel.get(2 * at), pixel.get(2 * at + 1)].map(|it| it.copied().unwrap_or(0));
            u16::from_ne_bytes(pair).to_be_bytes()[0]
        } else {
            pixel.get(at).copied().unwrap_or(0)
        }
    };
    let channels = if deep { pixel.len() / 2 } else { pixel.len() };
    if channels == 2 {
        let grey = channel(0);
        [grey, grey, grey, channel(1)]
    } else {
        [channel(0), channel(1), channel(2), channel(3)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{ExtendedColorType, ImageEncoder as _, codecs::png::PngEncoder};

    fn png(width: u32, height: u32, pixels: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        PngEncoder::new(&mut bytes).write_image(pixels, width, height, ExtendedColorType::Rgb8).unwrap();
        bytes
    }

    #[test]
    fn one_colour_is_blank_and_one_other_pixel_is_not() {
        let mut pixels = vec![7; 4 * 3 * 3];
        let blank = Picture { width: 4, height: 3, blank: true };
        assert_eq!(examine(&png(4, 3, &pixels)), Ok(blank));
        *pixels.last_mut().unwrap() = 8;
        assert_eq!(examine(&png(4, 3, &pixels)), Ok(Picture { blank: false, ..blank }));
        assert_eq!(examine(&png(1, 1, &[1, 2, 3])), Ok(Picture { width: 1, height: 1, blank: true }));
    }

    #[test]
    fn what_is_transparent_throughout_is_blank_whatever_it_hides() {
        let blank = |kind: ExtendedColorType, pixels: &[u8]| {
            let mut bytes = Vec::new();
            PngEncoder::new(&mut bytes).write_image(pixels, 2, 1, kind).unwrap();
            examine(&bytes).unwrap().blank
        };
        assert!(blank(ExtendedColorType::Rgba8, &[1, 2, 3, 0, 200, 100, 50, 0]));
        assert!(blank(ExtendedColorType::Rgba8, &[255, 255, 255, 255, 0, 0, 0, 0]));
        assert!(!blank(ExtendedColorType::Rgba8, &[1, 2, 3, 0, 200, 100, 50, 9]));
        assert!(!blank(ExtendedColorType::Rgba8, &[0, 0, 0, 255, 0, 0, 0, 90]));
        assert!(blank(ExtendedColorType::La8, &[1, 0, 200, 0]));
        assert!(!blank(ExtendedColorType::La8, &[1, 255, 200, 255]));
        let deep = |values: [u16; 8]| values.map(u16::to_ne_bytes).concat();
        assert!(blank(ExtendedColorType::Rgba16, &deep([1, 2, 3, 0, 60_000, 9, 9, 0])));
        assert!(!blank(ExtendedColorType::Rgba16, &deep([1, 2, 3, 0, 60_000, 9, 9, 60_000])));
    }

    #[test]
    fn nothing_rubbish_and_halves_are_no_pictures() {
        assert_eq!(examine(b""), Err(Fault::Missing));
        assert!(matches!(examine(b"<!doctype html>"), Err(Fault::Broken(_))));
        let noise: Vec<u8> =
            (0..64 * 64 * 3_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let whole = png(64, 64, &noise);
        assert!(examine(&whole).is_ok());
        assert!(matches!(examine(&whole[..whole.len() / 2]), Err(Fault::Broken(_))));
    }

    #[test]
    fn a_header_that_claims_too_much_is_refused_before_anything_is_allocated() {
        for (width, height) in [(60_000_u32, 60_000_u32), (2_000_000_000, 1)] {
            let mut bytes = png(1, 1, &[1, 2, 3]);
            bytes[16..20].copy_from_slice(&width.to_be_bytes());
            bytes[20..24].copy_from_slice(&height.to_be_bytes());
            let crc = crc(&bytes[12..29]);
            bytes[29..33].copy_from_slice(&crc.to_be_bytes());
            assert!(matches!(examine(&bytes), Err(Fault::TooLarge(_))), "{width} × {height}");
        }
    }

    fn crc(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(u32::MAX, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
                (crc >> 1) ^ (0xEDB8_8320 & 0u32.wrapping_sub(crc & 1))
            })
        })
    }
}
