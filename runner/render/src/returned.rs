//! A picture that a model returned instead of a program: looked at under limits, and made a PNG.
//!
//! There is nothing to render, so no room is needed; but the bytes are as hostile as any artifact's. What comes out is a PNG
//! of our own making: pixels and size are the model's, and nothing else of its file is left.

use std::io::{Cursor, Read as _};
use std::time::Instant;

use image::codecs::png::PngEncoder;
use image::{
    DynamicImage, ExtendedColorType, ImageEncoder as _, ImageError, ImageFormat, ImageReader, Limits,
};
use proctor_traces::{Digest, ImageIdentity};

use crate::picture::{MAX_PIXELS, MAX_PNG_BYTES, MAX_SIDE, one_colour};
use crate::{RenderError, RenderJob, RenderRecord, RenderStatus, Rendering};

/// Takes over the picture that `job` names, as if it had been rendered in `image`.
pub fn take_over(job: &RenderJob, image: &ImageIdentity) -> Result<Rendering, RenderError> {
    let start = Instant::now();
    let bytes = read(job)?;
    let (status, message, size, png) = match decode(&bytes).and_then(|it| Ok((encode(&it)?, it))) {
        Ok((png, picture)) => {
            let size = Some((picture.width(), picture.height()));
            if is_blank(&picture) {
                (RenderStatus::Blank, None, size, None)
            } else {
                (RenderStatus::Rendered, None, size, Some(png))
            }
        }
        Err(Fault::TooLarge(message)) => (RenderStatus::TooLarge, Some(message), None, None),
        Err(Fault::Broken(message)) => (RenderStatus::ArtifactError, Some(message), None, None),
    };
    let record = RenderRecord {
        status,
        width: size.map(|(width, _)| width),
        height: size.map(|(_, height)| height),
        digest: png.as_ref().map(|png| Digest::of(png)),
        bytes: png.as_ref().map(|png| png.len() as u64),
        source: Digest::of(&bytes),
        mode: job.mode,
        settings: job.settings.clone(),
        image: image.clone(),
        duration_ms: u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
        message,
        line: None,
        external_requests: Vec::new(),
        dialogs: 0,
        log: String::new(),
    };
    Ok(Rendering { status, png, record })
}

/// Why bytes are no picture.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    TooLarge(String),
    Broken(String),
}

fn read(job: &RenderJob) -> Result<Vec<u8>, RenderError> {
    let failed = |source| RenderError::Io { action: "reading", path: job.source.clone(), source };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(&job.source).map_err(failed)?;
    file.take(MAX_PNG_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

fn decode(bytes: &[u8]) -> Result<DynamicImage, Fault> {
    if bytes.len() > MAX_PNG_BYTES {
        return Err(Fault::TooLarge(format!("the picture has more than {MAX_PNG_BYTES} bytes")));
    }
    let fault = |error: ImageError| match error {
        ImageError::Limits(error) => Fault::TooLarge(error.to_string()),
        other => Fault::Broken(other.to_string()),
    };
    let mut reader = ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .map_err(|error| Fault::Broken(error.to_string()))?;
    match reader.format() {
        Some(ImageFormat::Jpeg) if !is_ended_jpeg(bytes) => {
            return Err(Fault::Broken("the JPEG ends before its picture does".to_owned()));
        }
        Some(ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::WebP) => {}
        _ => return Err(Fault::Broken("it is neither PNG nor JPEG nor WebP".to_owned())),
    }
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_PIXELS * 8);
    reader.limits(limits);
    // The size is told before a pixel is: what unpacks into too many of them is never unpacked.
    let (width, height) = ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .map_err(|error| Fault::Broken(error.to_string()))?
        .into_dimensions()
        .map_err(fault)?;
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(Fault::TooLarge(format!("the picture has {width} × {height} pixels")));
    }
    let picture = reader.decode().map_err(fault)?;
    if picture.width() == 0 || picture.height() == 0 {
        return Err(Fault::Broken("the picture has no pixels".to_owned()));
    }
    Ok(picture)
}

/// As PNG with eight bits per channel; transparency stays, grey becomes RGB.
fn encode(picture: &DynamicImage) -> Result<Vec<u8>, Fault> {
    let mut png = Vec::new();
    let (width, height) = (picture.width(), picture.height());
    let encoder = PngEncoder::new(&mut png);
    let written = if picture.color().has_alpha() {
        encoder.write_image(&picture.to_rgba8(), width, height, ExtendedColorType::Rgba8)
    } else {
        encoder.write_image(&picture.to_rgb8(), width, height, ExtendedColorType::Rgb8)
    };
    written.map_err(|error| Fault::Broken(error.to_string()))?;
    Ok(png)
}

/// Whether all pixels have one colour on white.
fn is_blank(picture: &DynamicImage) -> bool {
    one_colour(picture.to_rgba8().pixels().map(|it| it.0))
}

/// Whether a JPEG has its end marker (ITU-T T.81, B.1.1.2): the decoder fills up what a torn file lacks, and says nothing. The
/// segments are walked, since a thumbnail in one of them has an end of its own.
fn is_ended_jpeg(bytes: &[u8]) -> bool {
    let mut at = 2;
    while let Some(pair) = bytes.get(at..at + 2) {
        at += match pair {
            [0xff, 0xd9] => return true,
            // A stuffed byte, a restart or another marker that stands alone.
            [0xff, 0x00 | 0x01 | 0xd0..=0xd8] => 2,
            [0xff, 0xff] => 1,
            [0xff, _] => match bytes.get(at + 2..at + 4) {
                Some([high, low]) => 2 + usize::from(u16::from_be_bytes([*high, *low])),
                _ => return false,
            },
            // Coded data of a scan.
            _ => 1,
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use image::{RgbImage, RgbaImage};

    use super::*;

    fn byte(number: u32) -> u8 {
        number.to_le_bytes()[0]
    }

    fn png(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Vec::new();
        picture.write_to(&mut Cursor::new(&mut bytes), format).unwrap();
        bytes
    }

    #[test]
    fn pixels_and_transparency_are_kept_whatever_the_format() {
        let opaque: DynamicImage = RgbImage::from_fn(5, 3, |x, y| image::Rgb([byte(x), byte(y), 9])).into();
        let clear: DynamicImage =
            RgbaImage::from_fn(5, 3, |x, y| image::Rgba([byte(x), 1, 2, byte(y)])).into();
        for (picture, format) in [
            (&opaque, ImageFormat::Png),
            (&opaque, ImageFormat::WebP),
            (&clear, ImageFormat::Png),
            (&clear, ImageFormat::WebP),
        ] {
            let read = decode(&png(picture, format)).unwrap();
            let again =
                image::load_from_memory_with_format(&encode(&read).unwrap(), ImageFormat::Png).unwrap();
            assert_eq!((&again, is_blank(&again)), (picture, false));
        }
        let grey: DynamicImage = image::GrayImage::from_pixel(4, 4, image::Luma([7])).into();
        let read = decode(&png(&grey, ImageFormat::Jpeg)).unwrap();
        assert!(
            is_blank(&read) && decode(&encode(&read).unwrap()).unwrap().color() == image::ColorType::Rgb8
        );
    }

    #[test]
    fn a_picture_that_is_transparent_throughout_is_blank() {
        let hidden = |alpha: u8| {
            let picture = RgbaImage::from_fn(5, 3, |x, y| image::Rgba([byte(x), 1, byte(y), alpha]));
            is_blank(&picture.into())
        };
        assert!(hidden(0) && !hidden(255));
    }

    #[test]
    fn a_torn_jpeg_is_none_and_one_with_something_behind_it_is_one() {
        let picture = RgbImage::from_fn(64, 64, |x, y| image::Rgb([byte(x * y), byte(x), byte(y)])).into();
        let mut jpeg = png(&picture, ImageFormat::Jpeg);
        // A thumbnail's end in a segment of its own, right after the start.
        jpeg.splice(2..2, [0xff, 0xe1, 0, 4, 0xff, 0xd9]);
        for length in [jpeg.len() - 1, jpeg.len() - 2, jpeg.len() / 2, jpeg.len() * 9 / 10, 12] {
            assert!(matches!(decode(&jpeg[..length]), Err(Fault::Broken(_))), "{length}");
        }
        jpeg.extend(b"what a camera adds");
        assert!(decode(&jpeg).is_ok());
    }

    #[test]
    fn what_is_no_picture_is_told_from_what_is_too_large() {
        let whole = png(
            &RgbImage::from_fn(64, 64, |x, y| image::Rgb([byte(x * y), byte(x), byte(y)])).into(),
            ImageFormat::Png,
        );
        for bytes in [
            &b""[..],
            b"GIF89a\x01\x00\x01\x00\x00\x00\x00;",
            b"<svg/>",
            &whole[..whole.len() / 2],
            b"RIFF\x04\x00\x00\x00WEBP",
        ] {
            assert!(matches!(decode(bytes), Err(Fault::Broken(_))), "{bytes:?}");
        }
        // A WebP whose head promises 16,384 by 16,384 pixels (VP8X, 24 bits each, less one).
        let mut webp = b"RIFF\x16\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00".to_vec();
        webp.extend([0xff, 0x3f, 0, 0xff, 0x3f, 0]);
        assert!(decode(&webp).is_err());
        let mut huge = whole;
        huge.resize(MAX_PNG_BYTES + 1, 0);
        assert!(matches!(decode(&huge), Err(Fault::TooLarge(_))));
    }
}
