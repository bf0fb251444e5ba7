//! Formats one numbered line, and truncates it to a maximum length.
//!
//! **Invariant:** a line takes a bounded amount of memory.

use std::io::{Read, Write as _};

use memchr::memchr;

use super::PageBytes;
use super::block_reader::{BlockReader, PageError};

/// The maximum number of characters of one line.
pub(super) const MAX_CHARS: usize = 2000;

/// The maximum number of bytes of a line that are kept: `MAX_CHARS` characters of any size and a
/// byte order mark.
const MAX_KEPT_BYTES: usize = 4 * MAX_CHARS + 8;

/// The fast path: writes the next line, if it is short and completely buffered.
pub(super) fn write_short_line<R: Read, S: Fn() -> bool>(
    blocks: &mut BlockReader<R, S>,
    number: u64,
    out: &mut PageBytes,
) -> bool {
    let rest = blocks.buffered();
    let Some(end) = memchr(b'\n', &rest[..rest.len().min(MAX_CHARS)]) else { return false };
    // A byte order mark is not part of the first line.
    if number == 1 && rest[0] == 0xef {
        return false;
    }
    let line = &rest[..end];
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    write_line_number(number, &mut out.bytes);
    match line.is_ascii() {
        true => out.bytes.extend_from_slice(line),
        false => out.push_line(line),
    }
    out.bytes.push(b'\n');
    blocks.consume(end + 1);
    true
}

/// Writes the number without `format!`, which would take most of the time of a line.
fn write_line_number(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
    out.extend_from_slice(b": ");
}

/// The start of a line, and its total length.
#[derive(Default)]
pub(super) struct NumberedLine {
    kept: Vec<u8>,
    bytes: u64,
    chars: u64,
    last: u8,
}

impl NumberedLine {
    /// Reads the next line; returns `false` at the end of the source.
    pub(super) fn read_next<R: Read, S: Fn() -> bool>(
        &mut self,
        blocks: &mut BlockReader<R, S>,
        very_first: bool,
    ) -> Result<bool, PageError> {
        *self = Self { kept: std::mem::take(&mut self.kept), ..Self::default() };
        self.kept.clear();
        if !blocks.fill_buffer()? {
            return Ok(false);
        }
        if very_first && blocks.buffered().starts_with("\u{feff}".as_bytes()) {
            blocks.consume("\u{feff}".len());
        }
        while blocks.fill_buffer()? {
            let rest = blocks.buffered();
            let end = memchr(b'\n', rest);
            self.append(&rest[..end.unwrap_or(rest.len())]);
            match end {
                Some(end) => {
                    blocks.consume(end + 1);
                    break;
                }
                None => blocks.consume_all(),
            }
        }
        self.drop_carriage_return();
        Ok(true)
    }

    fn append(&mut self, part: &[u8]) {
        let room = MAX_KEPT_BYTES - self.kept.len();
        self.kept.extend_from_slice(&part[..part.len().min(room)]);
        self.bytes += part.len() as u64;
        if self.bytes > MAX_CHARS as u64 {
            // Characters are only counted in a line that may be truncated. The first parts are
            // still in `kept` when the count starts.
            if self.chars == 0 {
                let before = self.bytes - part.len() as u64;
                self.chars = count_chars(&self.kept[..self.kept.len().min(before as usize)]);
            }
            self.chars += count_chars(part);
        }
        self.last = part.last().copied().unwrap_or(self.last);
    }

    fn drop_carriage_return(&mut self) {
        if self.last == b'\r' && self.bytes > 0 {
            if self.bytes == self.kept.len() as u64 {
                self.kept.pop();
            }
            self.bytes -= 1;
            self.chars = self.chars.saturating_sub(1);
        }
    }

    /// Appends the line with its number.
    pub(super) fn write_numbered(&self, number: u64, out: &mut PageBytes) {
        write_line_number(number, &mut out.bytes);
        let text = String::from_utf8_lossy(&self.kept);
        let cut = match self.bytes > MAX_CHARS as u64 {
            true => text.char_indices().nth(MAX_CHARS).map(|(cut, _)| cut),
            false => None,
        };
        match cut {
            Some(cut) => {
                // What is kept may end within a character, behind the cut.
                out.is_lossy |= text[..cut].contains('\u{fffd}') && !is_text_to(&self.kept, cut);
                out.bytes.extend_from_slice(&text.as_bytes()[..cut]);
                let _ = write!(
                    out.bytes,
                    "… (line cut at {MAX_CHARS} characters, {} in all)",
                    self.chars.max(MAX_CHARS as u64 + 1)
                );
            }
            None => out.push_line(&self.kept),
        }
        out.bytes.push(b'\n');
    }
}

/// Whether the first bytes are UTF-8 text.
fn is_text_to(bytes: &[u8], end: usize) -> bool {
    std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to() >= end, |_| true)
}

/// Counts the characters that start in these bytes.
fn count_chars(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() as u64
}
