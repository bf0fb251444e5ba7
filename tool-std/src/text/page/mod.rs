//! Reads one page of numbered lines from a source of any size.
//!
//! Lines before the page are only counted, block by block; bytes after it are not read. A line of
//! any length takes a bounded amount of memory.
//!
//! **Invariant:** nothing here depends on where the bytes come from.

mod blocks;
mod line;
#[cfg(test)]
mod tests;

use std::io::Read;

use memchr::memchr_iter;

use self::blocks::BLOCK;
pub(crate) use self::blocks::{Blocks, Fault};
use self::line::{Line, MAX_CHARS, show_short};
use super::MAX_BYTES;
use super::index::{Mark, Marks};

/// A page of numbered lines.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// The numbered lines, each with its line ending.
    pub(crate) text: String,
    /// The number of lines.
    pub(crate) lines: u64,
    /// Why the page ends.
    pub(crate) end: End,
}

/// Why a page ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
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
pub(crate) fn page<R: Read, S: Fn() -> bool>(
    blocks: &mut Blocks<R, S>,
    first: u64,
    limit: u64,
    len: u64,
    marks: &mut Marks,
) -> Result<Page, Fault> {
    skip_to(blocks, first, marks)?;
    let room = blocks.rest().len().min(MAX_BYTES) + MAX_CHARS;
    // One UTF-8 check for all lines is faster than one for each.
    let mut text = Vec::with_capacity(room);
    let (lines, end) = show_lines(blocks, first, limit, len, &mut text)?;
    let text = String::from_utf8(text)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    Ok(Page { text, lines, end })
}

/// Writes lines from the current position; returns their number and why there are no more.
fn show_lines<R: Read, S: Fn() -> bool>(
    blocks: &mut Blocks<R, S>,
    first: u64,
    limit: u64,
    len: u64,
    out: &mut Vec<u8>,
) -> Result<(u64, End), Fault> {
    let mut lines = 0;
    let mut line = Line::default();
    while lines < limit {
        let (number, before) = (first + lines, out.len());
        if !show_short(blocks, number, out) {
            if !line.take(blocks, number == 1)? {
                return Ok((lines, End::Source));
            }
            line.show(number, out);
        }
        if out.len() > MAX_BYTES && lines > 0 {
            out.truncate(before);
            return Ok((lines, End::Bytes));
        }
        lines += 1;
    }
    if !blocks.more()? {
        return Ok((lines, End::Source));
    }
    let total = cheap_rest(blocks, len)?.map(|rest| first - 1 + lines + rest);
    Ok((lines, End::Lines { total }))
}

/// Skips to the start of line `first`. Fails when the source has fewer lines.
fn skip_to<R: Read, S: Fn() -> bool>(
    blocks: &mut Blocks<R, S>,
    first: u64,
    marks: &mut Marks,
) -> Result<(), Fault> {
    let mut missing = first - 1 - blocks.lines;
    let mut open_line = false;
    while missing > 0 {
        if !blocks.more()? {
            return Err(Fault::PastEnd { lines: first - 1 - missing + u64::from(open_line) });
        }
        let rest = blocks.rest();
        let ends = memchr_iter(b'\n', rest).count() as u64;
        if ends < missing {
            missing -= ends;
            open_line = rest.last() != Some(&b'\n');
            blocks.use_all();
            marks.set(Mark { offset: blocks.position, lines: first - 1 - missing });
        } else {
            // The cast is lossless: `missing` is at most the number of bytes in a block.
            let last = memchr_iter(b'\n', rest).nth(missing as usize - 1).unwrap_or_default();
            blocks.use_up(last + 1);
            missing = 0;
        }
    }
    if first > 1 && !blocks.more()? {
        return Err(Fault::PastEnd { lines: first - 1 });
    }
    Ok(())
}

/// Counts the remaining lines, if one more block suffices.
fn cheap_rest<R: Read, S: Fn() -> bool>(
    blocks: &mut Blocks<R, S>,
    len: u64,
) -> Result<Option<u64>, Fault> {
    if len.saturating_sub(blocks.position) > BLOCK as u64 {
        return Ok(None);
    }
    let mut lines = 0;
    let mut open_line = false;
    // The current block, the last one, and the end of the source.
    for _ in 0..3 {
        if !blocks.more()? {
            return Ok(Some(lines + u64::from(open_line)));
        }
        let rest = blocks.rest();
        lines += memchr_iter(b'\n', rest).count() as u64;
        open_line = rest.last() != Some(&b'\n');
        blocks.use_all();
    }
    Ok(None)
}
