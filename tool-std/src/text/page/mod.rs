//! Reads one page of numbered lines from a source of any size.
//!
//! Lines before the page are only counted, block by block; bytes after it are not read. A line of
//! any length takes a bounded amount of memory.
//!
//! **Invariant:** nothing here depends on where the bytes come from.

mod block_reader;
mod numbered_line;
#[cfg(test)]
mod tests;

use std::io::Read;

use memchr::memchr_iter;

use self::block_reader::BLOCK;
pub(crate) use self::block_reader::{BlockReader, PageError};
use self::numbered_line::{MAX_CHARS, NumberedLine, write_short_line};
use super::MAX_BYTES;
use super::line_index::{Checkpoint, LineIndex};

/// A page of numbered lines.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TextPage {
    /// The numbered lines, each with its line ending.
    pub(crate) text: String,
    /// The number of lines.
    pub(crate) lines: u64,
    /// Whether some bytes of the page are no UTF-8 text; `text` has U+FFFD for them.
    pub(crate) is_lossy: bool,
    /// Why the page ends.
    pub(crate) end: PageEnd,
}

/// The bytes of a page that is being written.
struct PageBytes {
    bytes: Vec<u8>,
    is_lossy: bool,
}

impl PageBytes {
    /// Appends bytes of the source, with U+FFFD for what is no UTF-8 text.
    fn push_line(&mut self, line: &[u8]) {
        match std::str::from_utf8(line) {
            Ok(_) => self.bytes.extend_from_slice(line),
            Err(_) => {
                self.is_lossy = true;
                self.bytes.extend_from_slice(String::from_utf8_lossy(line).as_bytes());
            }
        }
    }
}

/// Why a page ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PageEnd {
    /// The end of the source.
    Source,
    /// The requested number of lines.
    Lines {
        /// The total number of lines of the source, where it was cheap to count.
        total: Option<u64>,
    },
    /// The maximum size of a page.
    Bytes,
}

/// Reads `limit` lines from line `first`, counting from 1.
///
/// `len` is the size of the source in bytes according to its metadata; it is only a hint.
/// Checkpoints are added to `marks` on the way to the page.
pub(crate) fn read_page<R: Read, S: Fn() -> bool>(
    blocks: &mut BlockReader<R, S>,
    first: u64,
    limit: u64,
    len: u64,
    marks: &mut LineIndex,
) -> Result<TextPage, PageError> {
    skip_to_line(blocks, first, marks)?;
    let room = blocks.buffered().len().min(MAX_BYTES) + MAX_CHARS;
    // One UTF-8 check for all lines is faster than one for each.
    let mut out = PageBytes { bytes: Vec::with_capacity(room), is_lossy: false };
    let (lines, end) = write_lines(blocks, first, limit, len, &mut out)?;
    let text = String::from_utf8(out.bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    Ok(TextPage { text, lines, is_lossy: out.is_lossy, end })
}

/// Writes lines from the current position; returns their number and why there are no more.
fn write_lines<R: Read, S: Fn() -> bool>(
    blocks: &mut BlockReader<R, S>,
    first: u64,
    limit: u64,
    len: u64,
    out: &mut PageBytes,
) -> Result<(u64, PageEnd), PageError> {
    let mut lines = 0;
    let mut line = NumberedLine::default();
    while lines < limit {
        let (number, before) = (first + lines, out.bytes.len());
        if !write_short_line(blocks, number, out) {
            if !line.read_next(blocks, number == 1)? {
                return Ok((lines, PageEnd::Source));
            }
            line.write_numbered(number, out);
        }
        if out.bytes.len() > MAX_BYTES && lines > 0 {
            out.bytes.truncate(before);
            return Ok((lines, PageEnd::Bytes));
        }
        lines += 1;
    }
    if !blocks.fill_buffer()? {
        return Ok((lines, PageEnd::Source));
    }
    let total = count_rest_if_cheap(blocks, len)?.map(|rest| first - 1 + lines + rest);
    Ok((lines, PageEnd::Lines { total }))
}

/// Skips to the start of line `first`. Fails when the source has fewer lines.
fn skip_to_line<R: Read, S: Fn() -> bool>(
    blocks: &mut BlockReader<R, S>,
    first: u64,
    marks: &mut LineIndex,
) -> Result<(), PageError> {
    let mut missing = first - 1 - blocks.lines;
    let mut open_line = false;
    while missing > 0 {
        if !blocks.fill_buffer()? {
            return Err(PageError::PastEnd { lines: first - 1 - missing + u64::from(open_line) });
        }
        let rest = blocks.buffered();
        let ends = memchr_iter(b'\n', rest).count() as u64;
        if ends < missing {
            missing -= ends;
            open_line = rest.last() != Some(&b'\n');
            blocks.consume_all();
            marks
                .add_checkpoint(Checkpoint { offset: blocks.position, lines: first - 1 - missing });
        } else {
            // The cast is lossless: `missing` is at most the number of bytes in a block.
            let last = memchr_iter(b'\n', rest).nth(missing as usize - 1).unwrap_or_default();
            blocks.consume(last + 1);
            missing = 0;
        }
    }
    if first > 1 && !blocks.fill_buffer()? {
        return Err(PageError::PastEnd { lines: first - 1 });
    }
    Ok(())
}

/// Counts the remaining lines, if one more block suffices.
fn count_rest_if_cheap<R: Read, S: Fn() -> bool>(
    blocks: &mut BlockReader<R, S>,
    len: u64,
) -> Result<Option<u64>, PageError> {
    if len.saturating_sub(blocks.position) > BLOCK as u64 {
        return Ok(None);
    }
    let mut lines = 0;
    let mut open_line = false;
    // The current block, the last one, and the end of the source.
    for _ in 0..3 {
        if !blocks.fill_buffer()? {
            return Ok(Some(lines + u64::from(open_line)));
        }
        let rest = blocks.buffered();
        lines += memchr_iter(b'\n', rest).count() as u64;
        open_line = rest.last() != Some(&b'\n');
        blocks.consume_all();
    }
    Ok(None)
}
