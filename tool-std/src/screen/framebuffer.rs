//! Reads the file in which Xvfb keeps its screen, and encodes it as PNG.
//!
//! The file is a window dump of version 7: a header of big-endian words, the name of the window, a
//! table of colours with twelve bytes each, and the pixels line by line (`XWDFile.h` of X.Org).

use std::io;

use png::{BitDepth, ColorType, Encoder};

/// The words of the header that are read.
const HEADER_BYTES: usize = 0;
const WIDTH: usize = 4;
const HEIGHT: usize = 5;
const BYTE_ORDER: usize = 7;
const BITS_PER_PIXEL: usize = 11;
const BYTES_PER_LINE: usize = 12;
const COLOURS: usize = 19;

/// The bytes of a table entry.
const COLOUR_BYTES: usize = 12;

/// Encodes a window dump with four bytes for each pixel as PNG.
///
/// # Errors
///
/// Fails when the file is cut off, or when its pixels have another form.
pub(super) fn encode_png(dump: &[u8]) -> io::Result<Vec<u8>> {
    let word = |number: usize| -> io::Result<usize> {
        let bytes = dump.get(number * 4..number * 4 + 4).ok_or_else(|| broken("cut off"))?;
        let bytes = bytes.try_into().map_err(|_| broken("cut off"))?;
        usize::try_from(u32::from_be_bytes(bytes)).map_err(|_| broken("too large"))
    };
    if word(BITS_PER_PIXEL)? != 32 {
        return Err(broken("not of 32 bits for each pixel"));
    }
    let (width, height, line) = (word(WIDTH)?, word(HEIGHT)?, word(BYTES_PER_LINE)?);
    let start = word(COLOURS)?
        .checked_mul(COLOUR_BYTES)
        .and_then(|table| table.checked_add(word(HEADER_BYTES).ok()?))
        .ok_or_else(|| broken("too large"))?;
    let pixels = dump.get(start..).ok_or_else(|| broken("cut off"))?;
    // Blue is the lowest byte of a pixel.
    let channels = if word(BYTE_ORDER)? == 0 { [2, 1, 0] } else { [1, 2, 3] };
    let mut colours = Vec::new();
    for row in 0..height {
        let row = row.checked_mul(line).and_then(|at| pixels.get(at..)?.get(..width * 4));
        let row = row.ok_or_else(|| broken("cut off"))?;
        colours.extend(row.chunks_exact(4).flat_map(|pixel| channels.map(|at| pixel[at])));
    }
    encode_colours(&colours, width, height)
}

fn encode_colours(colours: &[u8], width: usize, height: usize) -> io::Result<Vec<u8>> {
    let [width, height] = [width, height].map(|size| u32::try_from(size).unwrap_or(u32::MAX));
    let mut png = Vec::new();
    let mut encoder = Encoder::new(&mut png, width, height);
    encoder.set_color(ColorType::Rgb);
    encoder.set_depth(BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(colours)?;
    writer.finish()?;
    Ok(png)
}

fn broken(how: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the screen of the desktop is {how}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A dump of two pixels, red and blue, with the lowest byte first.
    fn two_pixels() -> Vec<u8> {
        let mut words = [0_u32; 25];
        words[HEADER_BYTES] = 100;
        words[WIDTH] = 2;
        words[HEIGHT] = 1;
        words[BITS_PER_PIXEL] = 32;
        words[BYTES_PER_LINE] = 8;
        words[COLOURS] = 1;
        let mut dump: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        dump.extend([0; COLOUR_BYTES]);
        dump.extend([0, 0, 255, 0, 255, 0, 0, 0]);
        dump
    }

    #[test]
    fn pixels_are_encoded_in_their_colours() {
        let png = encode_png(&two_pixels()).expect("a whole dump");
        let mut reader = png::Decoder::new(io::Cursor::new(png)).read_info().expect("a PNG");
        let mut colours = vec![0; 6];
        let info = reader.next_frame(&mut colours).expect("pixels");
        assert_eq!((info.width, info.height), (2, 1));
        assert_eq!(colours, [255, 0, 0, 0, 0, 255]);
    }

    #[test]
    fn a_dump_that_is_cut_off_is_an_error() {
        let whole = two_pixels();
        for length in 0..whole.len() {
            assert!(encode_png(&whole[..length]).is_err(), "{length} bytes");
        }
    }
}
