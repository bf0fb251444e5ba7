//! Detects binary files and media types, and attaches images and PDF files.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use tool_sdk::{Attachment, Output, ResolvedPath, ToolError};

use super::read_display;
use crate::read_task::ReadTask;

/// The number of bytes that are inspected to detect binary files.
const SNIFF_LEN: usize = 4096;

/// The largest image or PDF that is attached.
const MAX_ATTACHMENT: u64 = 10 * 1024 * 1024;

/// Extensions of binary formats, which may start like text.
const BINARY_EXTENSIONS: &[&str] = &[
    "7z", "avi", "bmp", "bz2", "class", "dll", "doc", "docx", "dylib", "exe", "flac", "gz", "ico",
    "jar", "mkv", "mov", "mp3", "mp4", "odp", "ods", "odt", "ogg", "otf", "ppt", "pptx", "pyc",
    "rar", "so", "sqlite", "tar", "tgz", "tif", "tiff", "ttf", "wasm", "wav", "webm", "woff",
    "woff2", "xls", "xlsx", "xz", "zip", "zst",
];

/// Returns the media type of an image or PDF, by its first bytes.
pub(super) fn media_type(start: &[u8]) -> Option<&'static str> {
    match start {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [b'%', b'P', b'D', b'F', b'-', ..] => Some("application/pdf"),
        _ => None,
    }
}

/// Attaches a file of which `bytes` were read already.
pub(super) fn attach_media(
    look: &ReadTask<'_>,
    mime: &'static str,
    mut bytes: Vec<u8>,
    file: &File,
) -> Result<Output, ToolError> {
    let path = look.place.display();
    // The size is measured by reading, because the metadata may be out of date.
    let room = (MAX_ATTACHMENT + 1).saturating_sub(bytes.len() as u64);
    file.take(room).read_to_end(&mut bytes).map_err(|error| look.read_error(error))?;
    if bytes.len() as u64 > MAX_ATTACHMENT {
        return Err(ToolError::failed(format_args!("`{path}` ({mime}) is larger than 10 MiB"))
            .hint("make a smaller version of it"));
    }
    let what = if mime == "application/pdf" { "PDF" } else { "Image" };
    let text = format!("{what} `{path}` ({mime}, {} bytes) is attached.", bytes.len());
    let name = look.place.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let spelling = look.place.rule_path();
    Ok(Output::text(text)
        .metadata("path", spelling.as_str())
        .metadata("truncated", false)
        .display(read_display(&spelling, 0))
        .attach(Attachment::bytes(mime, bytes).with_name(name)))
}

/// Whether a file with these first bytes is binary.
pub(super) fn is_binary(place: &ResolvedPath, start: &[u8]) -> bool {
    looks_binary(start) || (!start.is_empty() && has_binary_name(place))
}

/// Whether there is a NUL byte, or more than 30% are control characters or no UTF-8 text.
fn looks_binary(start: &[u8]) -> bool {
    let start = &start[..start.len().min(SNIFF_LEN)];
    // Sums of one byte, which compile to vector instructions.
    let is_unprintable = |&byte: &u8| u8::from(matches!(byte, 0..=8 | 14..=31));
    let sums = start.chunks(usize::from(u8::MAX));
    let control: usize =
        sums.map(|some| usize::from(some.iter().map(is_unprintable).sum::<u8>())).sum();
    // Texts in Western encodings have few bytes that are no UTF-8 text.
    let is_text = std::str::from_utf8(start).is_ok();
    let invalid: usize = match is_text {
        true => 0,
        false => start.utf8_chunks().map(|chunk| chunk.invalid().len()).sum(),
    };
    start.contains(&0) || (control + invalid) * 10 > start.len() * 3
}

fn has_binary_name(place: &ResolvedPath) -> bool {
    let extension = place.file_name().and_then(|name| Path::new(name).extension());
    extension.is_some_and(|extension| {
        BINARY_EXTENSIONS.iter().any(|binary| extension.eq_ignore_ascii_case(binary))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // F141
    #[test]
    fn ansi_colors_do_not_make_a_text_binary() {
        assert!(!looks_binary(b"\x1b[31mred\x1b[0m and plain\n"));
        assert!(!looks_binary(b""));
        assert!(looks_binary(b"\x01\x02text"));
    }

    // F141
    #[test]
    fn detects_media_types_by_content() {
        assert_eq!(media_type(b"\xff\xd8\xff\xe0rest"), Some("image/jpeg"));
        assert_eq!(media_type(b"GIF89a..."), Some("image/gif"));
        assert_eq!(media_type(b"RIFF\x01\x02\x03\x04WEBPVP8 "), Some("image/webp"));
        assert_eq!(media_type(b"%PDF-1.4"), Some("application/pdf"));
        assert_eq!(media_type(b"GIF of the day"), None);
    }
}
