//! One page of numbered lines out of a source of any size.
//!
//! Lines before the page are only counted, block by block; what comes after it is not
//! read. A line of any length takes a bounded amount of memory.
//!
//! **Invariant:** nothing here reads line by line, or knows where the bytes come from.

use std::io::{self, Read, Write as _};

use memchr::{memchr, memchr_iter};

use super::MAX_BYTES;
use super::index::{Mark, Marks};

/// The first block: enough for a whole page, so that the start of a file costs one read.
const FIRST_BLOCK: usize = 56 * 1024;

/// Further blocks, at the speed of memory.
const BLOCK: usize = 256 * 1024;

/// The most characters of one line.
const MAX_CHARS: usize = 2000;

/// Bytes of a line that are kept: `MAX_CHARS` characters of any size, and a mark.
const KEPT: usize = 4 * MAX_CHARS + 8;

/// Why there is no page.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The source cannot be read.
    Read(io::Error),
    /// Nobody waits for the page any more.
    Stopped,
    /// The source ends before the page starts.
    PastEnd {
        /// Lines in all.
        lines: u64,
    },
}

/// A page of lines.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// The numbered lines, each with its line end.
    pub(crate) text: String,
    /// How many lines it has.
    pub(crate) lines: u64,
    /// Why it ends.
    pub(crate) end: End,
}

/// Why a page ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The source has no more.
    Source,
    /// It has as many lines as were wanted.
    Lines {
        /// Lines of the source in all, where that was cheap to know.
        total: Option<u64>,
    },
    /// It has as many bytes as a page may have.
    Bytes,
}

/// A source in blocks.
pub(crate) struct Blocks<R, S> {
    source: R,
    stopped: S,
    block: Vec<u8>,
    used: usize,
    filled: usize,
    /// Behind what was read so far.
    position: u64,
    /// Lines that end before the first byte that is read.
    lines: u64,
}

impl<R: Read, S: Fn() -> bool> Blocks<R, S> {
    /// Nothing is read yet. `stopped` is asked before each read.
    pub(crate) fn new(source: R, stopped: S) -> Self {
        Self::at(source, stopped, Mark::default())
    }

    /// A source that stands at `mark`.
    pub(crate) fn at(source: R, stopped: S, Mark { offset, lines }: Mark) -> Self {
        let block = Vec::new();
        Self { source, stopped, block, used: 0, filled: 0, position: offset, lines }
    }

    /// What was read and not used.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.block[self.used..self.filled]
    }

    /// Makes sure that there is a rest; says no at the end of the source.
    pub(crate) fn more(&mut self) -> Result<bool, Fault> {
        if self.used < self.filled {
            return Ok(true);
        }
        if (self.stopped)() {
            return Err(Fault::Stopped);
        }
        let size = if self.position == 0 { FIRST_BLOCK } else { BLOCK };
        if self.block.len() < size {
            self.block = vec![0; size];
        }
        self.used = 0;
        self.filled = loop {
            match self.source.read(&mut self.block) {
                Ok(filled) => break filled,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Fault::Read(error)),
            }
        };
        self.position += self.filled as u64;
        Ok(self.filled > 0)
    }

    fn use_up(&mut self, bytes: usize) {
        self.used += bytes;
    }

    fn use_all(&mut self) {
        self.used = self.filled;
    }
}

/// The page of `limit` lines from line `first`, counting from 1.
///
/// `len` is what the source claims to have in bytes; it is only a hint. On the way to the
/// page `marks` are set.
pub(crate) fn page<R: Read, S: Fn() -> bool>(
    blocks: &mut Blocks<R, S>,
    first: u64,
    limit: u64,
    len: u64,
    marks: &mut Marks,
) -> Result<Page, Fault> {
    skip_to(blocks, first, marks)?;
    let room = blocks.rest().len().min(MAX_BYTES) + MAX_CHARS;
    // Whether bytes are text is found out faster for all lines together than for each.
    let mut text = Vec::with_capacity(room);
    let (lines, end) = show_lines(blocks, first, limit, len, &mut text)?;
    let text = String::from_utf8(text)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    Ok(Page { text, lines, end })
}

/// Shows lines from where the blocks stand; says how many, and why no more.
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

/// Leaves the blocks at the start of line `first`, which exists or is the very first.
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
            // The cast holds: `missing` is at most the number of bytes in a block.
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

/// How many lines are left, when at most one more block says it.
fn cheap_rest<R: Read, S: Fn() -> bool>(
    blocks: &mut Blocks<R, S>,
    len: u64,
) -> Result<Option<u64>, Fault> {
    if len.saturating_sub(blocks.position) > BLOCK as u64 {
        return Ok(None);
    }
    let mut lines = 0;
    let mut open_line = false;
    // The block at hand, the last one, and the end that follows it.
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

/// Shows the next line when nothing about it is special, as most are: it lies in the block
/// at hand as a whole and is short.
fn show_short<R: Read, S: Fn() -> bool>(
    blocks: &mut Blocks<R, S>,
    number: u64,
    out: &mut Vec<u8>,
) -> bool {
    let rest = blocks.rest();
    let Some(end) = memchr(b'\n', &rest[..rest.len().min(MAX_CHARS)]) else { return false };
    // The mark before a text belongs to no line.
    if number == 1 && rest[0] == 0xef {
        return false;
    }
    let line = &rest[..end];
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    show_number(number, out);
    match line.is_ascii() {
        true => out.extend_from_slice(line),
        false => out.extend_from_slice(String::from_utf8_lossy(line).as_bytes()),
    }
    out.push(b'\n');
    blocks.use_up(end + 1);
    true
}

/// Formatting takes longer than all else that is done for a line.
fn show_number(mut number: u64, out: &mut Vec<u8>) {
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

/// The line at hand: its start, and how much there is in all.
#[derive(Default)]
struct Line {
    kept: Vec<u8>,
    bytes: u64,
    chars: u64,
    last: u8,
}

impl Line {
    /// Takes the next line out of the blocks; says no when there is none.
    fn take<R: Read, S: Fn() -> bool>(
        &mut self,
        blocks: &mut Blocks<R, S>,
        very_first: bool,
    ) -> Result<bool, Fault> {
        *self = Self { kept: std::mem::take(&mut self.kept), ..Self::default() };
        self.kept.clear();
        if !blocks.more()? {
            return Ok(false);
        }
        if very_first && blocks.rest().starts_with("\u{feff}".as_bytes()) {
            blocks.use_up("\u{feff}".len());
        }
        while blocks.more()? {
            let rest = blocks.rest();
            let end = memchr(b'\n', rest);
            self.add(&rest[..end.unwrap_or(rest.len())]);
            match end {
                Some(end) => {
                    blocks.use_up(end + 1);
                    break;
                }
                None => blocks.use_all(),
            }
        }
        self.drop_carriage_return();
        Ok(true)
    }

    fn add(&mut self, part: &[u8]) {
        let room = KEPT - self.kept.len();
        self.kept.extend_from_slice(&part[..part.len().min(room)]);
        self.bytes += part.len() as u64;
        if self.bytes > MAX_CHARS as u64 {
            // Only a line that may be cut has its characters counted. The first parts are
            // still in `kept` when the count starts.
            if self.chars == 0 {
                let before = self.bytes - part.len() as u64;
                self.chars = chars(&self.kept[..self.kept.len().min(before as usize)]);
            }
            self.chars += chars(part);
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
    fn show(&self, number: u64, out: &mut Vec<u8>) {
        let text = String::from_utf8_lossy(&self.kept);
        show_number(number, out);
        let cut = match self.bytes > MAX_CHARS as u64 {
            true => text.char_indices().nth(MAX_CHARS).map(|(cut, _)| cut),
            false => None,
        };
        match cut {
            Some(cut) => {
                out.extend_from_slice(&text.as_bytes()[..cut]);
                let _ = write!(
                    out,
                    "… (line cut at {MAX_CHARS} characters, {} in all)",
                    self.chars.max(MAX_CHARS as u64 + 1)
                );
            }
            None => out.extend_from_slice(text.as_bytes()),
        }
        out.push(b'\n');
    }
}

/// How many characters start in these bytes.
fn chars(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, first: u64, limit: u64) -> Result<Page, Fault> {
        let mut blocks = Blocks::new(text.as_bytes(), || false);
        page(&mut blocks, first, limit, text.len() as u64, &mut Marks::default())
    }

    #[track_caller]
    fn check(text: &str, first: u64, limit: u64, expected: &str, end: End) {
        let page = read(text, first, limit).unwrap();
        assert_eq!((page.text.as_str(), page.end), (expected, end));
        assert_eq!(page.lines, expected.lines().count() as u64);
    }

    #[track_caller]
    fn check_past_end(text: &str, first: u64, expected: u64) {
        match read(text, first, 1) {
            Err(Fault::PastEnd { lines }) => assert_eq!(lines, expected),
            other => panic!("{other:?}"),
        }
    }

    // F141
    #[test]
    fn the_last_line_may_be_open() {
        check("a\nb\n", 1, 9, "1: a\n2: b\n", End::Source);
        check("a\nb", 1, 9, "1: a\n2: b\n", End::Source);
        check("a\n\n", 1, 9, "1: a\n2: \n", End::Source);
    }

    // F141
    #[test]
    fn a_page_says_what_follows() {
        check("a\nb\nc", 1, 2, "1: a\n2: b\n", End::Lines { total: Some(3) });
        check("a\nb\nc\n", 2, 1, "2: b\n", End::Lines { total: Some(3) });
        check("a\nb\n", 1, 2, "1: a\n2: b\n", End::Source);
        check("a\nb\n", 2, 2, "2: b\n", End::Source);
    }

    // F141
    #[test]
    fn nothing_is_an_empty_page() {
        check("", 1, 5, "", End::Source);
    }

    // F141
    #[test]
    fn past_the_end_says_how_many_lines_there_are() {
        check_past_end("", 2, 0);
        check_past_end("a", 2, 1);
        check_past_end("a\n", 2, 1);
        check_past_end("a\nb", 3, 2);
        check_past_end("a\nb", u64::MAX, 2);
    }

    // F141
    #[test]
    fn line_ends_and_marks_are_not_text() {
        check("\u{feff}a\r\nb\r\n", 1, 5, "1: a\n2: b\n", End::Source);
        check("a\rb\n", 1, 5, "1: a\rb\n", End::Source);
        check("a\u{feff}\n", 1, 5, "1: a\u{feff}\n", End::Source);
    }

    // F141
    #[test]
    fn long_lines_are_cut_between_characters() {
        let fits = "ä".repeat(2000);
        check(&format!("{fits}\r\n"), 1, 1, &format!("1: {fits}\n"), End::Source);
        for chars in [2001, 300_000] {
            let expected =
                format!("1: {fits}… (line cut at 2000 characters, {chars} in all)\n2: b\n");
            check(&format!("{}\r\nb", "ä".repeat(chars)), 1, 5, &expected, End::Source);
        }
    }

    // F141
    #[test]
    fn a_page_has_a_limit_in_bytes() {
        let text = format!("{}\n", "x".repeat(999)).repeat(100);
        let page = read(&text, 1, 1000).unwrap();
        assert_eq!(page.end, End::Bytes);
        assert!(page.text.len() <= MAX_BYTES && page.text.len() > MAX_BYTES - 1010);
        assert!(page.text.ends_with("x\n"));
        let next = read(&text, page.lines + 1, 1000).unwrap();
        assert!(next.text.starts_with(&format!("{}: xxx", page.lines + 1)));
    }

    /// Gives a few bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let step = self.1.min(into.len());
            self.0.read(&mut into[..step])
        }
    }

    // F141
    #[test]
    fn where_blocks_end_does_not_matter() {
        let text = "first\r\n\r\nthird ä\nfourth";
        for step in 1..text.len() {
            for first in 1..=4 {
                let mut blocks = Blocks::new(Slow(text.as_bytes(), step), || false);
                let page = page(&mut blocks, first, 2, 0, &mut Marks::default()).unwrap();
                assert_eq!(page.text, read(text, first, 2).unwrap().text, "{step} {first}");
            }
        }
    }

    // F141
    #[test]
    fn what_follows_the_page_is_not_read() {
        let mut endless = Blocks::new(io::repeat(b'\n'), || false);
        let page = page(&mut endless, 1_000_000, 10, u64::MAX, &mut Marks::default()).unwrap();
        assert_eq!((page.lines, page.end), (10, End::Lines { total: None }));
        assert!(endless.position < 1_000_000 + 2 * BLOCK as u64);
    }

    // S2
    #[test]
    fn a_page_is_the_same_from_every_mark() {
        let text: String = (1..=60_000).map(|n| format!("line {n:>60}\n")).collect();
        let mut marks = Marks::default();
        let len = text.len() as u64;
        let mut from_start = |first| {
            let mut blocks = Blocks::new(text.as_bytes(), || false);
            page(&mut blocks, first, 3, len, &mut marks).unwrap()
        };
        let wanted = [59_999, 60_000, 1, 2, 5_000, 30_000];
        let expected = wanted.map(&mut from_start);
        for (first, expected) in wanted.into_iter().zip(expected) {
            let Some(mark) = marks.before(first) else {
                assert!(first <= 5_000);
                continue;
            };
            assert!(mark.offset > 0 && len - mark.offset < len);
            let rest = &text.as_bytes()[mark.offset as usize..];
            let mut blocks = Blocks::at(rest, || false, mark);
            let found = page(&mut blocks, first, 3, len, &mut Marks::default()).unwrap();
            assert_eq!(found, expected, "{first}");
        }
        let mark = marks.before(u64::MAX).unwrap();
        let mut blocks = Blocks::at(&text.as_bytes()[mark.offset as usize..], || false, mark);
        match page(&mut blocks, 70_000, 3, len, &mut Marks::default()) {
            Err(Fault::PastEnd { lines }) => assert_eq!(lines, 60_000),
            other => panic!("{other:?}"),
        }
    }

    // F141
    #[test]
    fn a_hint_may_be_wrong() {
        let mut endless = Blocks::new(io::repeat(b'\n'), || false);
        let page = page(&mut endless, 1, 10, 0, &mut Marks::default()).unwrap();
        assert_eq!(page.end, End::Lines { total: None });
    }

    // F141
    #[test]
    fn reading_stops_when_nobody_waits() {
        let mut blocks = Blocks::new(io::repeat(b'x'), || true);
        assert!(matches!(page(&mut blocks, 2, 1, 0, &mut Marks::default()), Err(Fault::Stopped)));
    }
}
