//! Pages of texts and of endless sources.

use std::io;

use super::*;

fn read(text: &str, first: u64, limit: u64) -> Result<TextPage, PageError> {
    let mut blocks = BlockReader::new(text.as_bytes(), || false);
    read_page(&mut blocks, first, limit, text.len() as u64, &mut LineIndex::default())
}

#[track_caller]
fn check(text: &str, first: u64, limit: u64, expected: &str, end: PageEnd) {
    let page = read(text, first, limit).unwrap();
    assert_eq!((page.text.as_str(), page.end), (expected, end));
    assert_eq!(page.lines, expected.lines().count() as u64);
}

#[track_caller]
fn check_past_end(text: &str, first: u64, expected: u64) {
    match read(text, first, 1) {
        Err(PageError::PastEnd { lines }) => assert_eq!(lines, expected),
        other => panic!("{other:?}"),
    }
}

// F141
#[test]
fn reads_a_last_line_without_line_ending() {
    check("a\nb\n", 1, 9, "1: a\n2: b\n", PageEnd::Source);
    check("a\nb", 1, 9, "1: a\n2: b\n", PageEnd::Source);
    check("a\n\n", 1, 9, "1: a\n2: \n", PageEnd::Source);
}

// F141
#[test]
fn reports_why_a_page_ends() {
    check("a\nb\nc", 1, 2, "1: a\n2: b\n", PageEnd::Lines { total: Some(3) });
    check("a\nb\nc\n", 2, 1, "2: b\n", PageEnd::Lines { total: Some(3) });
    check("a\nb\n", 1, 2, "1: a\n2: b\n", PageEnd::Source);
    check("a\nb\n", 2, 2, "2: b\n", PageEnd::Source);
}

// F141
#[test]
fn an_empty_source_is_an_empty_page() {
    check("", 1, 5, "", PageEnd::Source);
}

// F141
#[test]
fn an_offset_past_the_end_reports_the_line_count() {
    check_past_end("", 2, 0);
    check_past_end("a", 2, 1);
    check_past_end("a\n", 2, 1);
    check_past_end("a\nb", 3, 2);
    check_past_end("a\nb", u64::MAX, 2);
}

// F141
#[test]
fn strips_line_endings_and_byte_order_mark() {
    check("\u{feff}a\r\nb\r\n", 1, 5, "1: a\n2: b\n", PageEnd::Source);
    check("a\rb\n", 1, 5, "1: a\rb\n", PageEnd::Source);
    check("a\u{feff}\n", 1, 5, "1: a\u{feff}\n", PageEnd::Source);
}

// F141
#[test]
fn truncates_long_lines_between_characters() {
    let fits = "ä".repeat(2000);
    check(&format!("{fits}\r\n"), 1, 1, &format!("1: {fits}\n"), PageEnd::Source);
    for chars in [2001, 300_000] {
        let expected = format!("1: {fits}… (line cut at 2000 characters, {chars} in all)\n2: b\n");
        check(&format!("{}\r\nb", "ä".repeat(chars)), 1, 5, &expected, PageEnd::Source);
    }
}

// F141
#[test]
fn truncates_a_page_at_max_bytes() {
    let text = format!("{}\n", "x".repeat(999)).repeat(100);
    let page = read(&text, 1, 1000).unwrap();
    assert_eq!(page.end, PageEnd::Bytes);
    assert!(page.text.len() <= MAX_BYTES && page.text.len() > MAX_BYTES - 1010);
    assert!(page.text.ends_with("x\n"));
    let next = read(&text, page.lines + 1, 1000).unwrap();
    assert!(next.text.starts_with(&format!("{}: xxx", page.lines + 1)));
}

/// A source that returns a few bytes at a time.
struct Slow<'a>(&'a [u8], usize);

impl Read for Slow<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let step = self.1.min(into.len());
        self.0.read(&mut into[..step])
    }
}

// F141
#[test]
fn block_boundaries_do_not_matter() {
    let text = "first\r\n\r\nthird ä\nfourth";
    for step in 1..text.len() {
        for first in 1..=4 {
            let mut blocks = BlockReader::new(Slow(text.as_bytes(), step), || false);
            let page = read_page(&mut blocks, first, 2, 0, &mut LineIndex::default()).unwrap();
            assert_eq!(page.text, read(text, first, 2).unwrap().text, "{step} {first}");
        }
    }
}

// F141
#[test]
fn does_not_read_past_the_page() {
    let mut endless = BlockReader::new(io::repeat(b'\n'), || false);
    let page = read_page(&mut endless, 1_000_000, 10, u64::MAX, &mut LineIndex::default()).unwrap();
    assert_eq!((page.lines, page.end), (10, PageEnd::Lines { total: None }));
    assert!(endless.position < 1_000_000 + 2 * BLOCK as u64);
}

// S2
#[test]
fn a_page_is_the_same_from_every_checkpoint() {
    let text: String = (1..=60_000).map(|n| format!("line {n:>60}\n")).collect();
    let mut marks = LineIndex::default();
    let len = text.len() as u64;
    let mut from_start = |first| {
        let mut blocks = BlockReader::new(text.as_bytes(), || false);
        read_page(&mut blocks, first, 3, len, &mut marks).unwrap()
    };
    let wanted = [59_999, 60_000, 1, 2, 5_000, 30_000];
    let expected = wanted.map(&mut from_start);
    for (first, expected) in wanted.into_iter().zip(expected) {
        let Some(mark) = marks.checkpoint_before(first) else {
            assert!(first <= 5_000);
            continue;
        };
        assert!(mark.offset > 0 && len - mark.offset < len);
        let rest = &text.as_bytes()[mark.offset as usize..];
        let mut blocks = BlockReader::from_checkpoint(rest, || false, mark);
        let found = read_page(&mut blocks, first, 3, len, &mut LineIndex::default()).unwrap();
        assert_eq!(found, expected, "{first}");
    }
    let mark = marks.checkpoint_before(u64::MAX).unwrap();
    let mut blocks =
        BlockReader::from_checkpoint(&text.as_bytes()[mark.offset as usize..], || false, mark);
    match read_page(&mut blocks, 70_000, 3, len, &mut LineIndex::default()) {
        Err(PageError::PastEnd { lines }) => assert_eq!(lines, 60_000),
        other => panic!("{other:?}"),
    }
}

// F141
#[test]
fn tolerates_a_wrong_length_hint() {
    let mut endless = BlockReader::new(io::repeat(b'\n'), || false);
    let page = read_page(&mut endless, 1, 10, 0, &mut LineIndex::default()).unwrap();
    assert_eq!(page.end, PageEnd::Lines { total: None });
}

// F141
#[test]
fn reading_stops_on_cancellation() {
    let mut blocks = BlockReader::new(io::repeat(b'x'), || true);
    assert!(matches!(
        read_page(&mut blocks, 2, 1, 0, &mut LineIndex::default()),
        Err(PageError::Cancelled)
    ));
}
