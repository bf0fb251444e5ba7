//! Splits a text into lines that keep their line endings.
//!
//! LF, CRLF and a single CR end a line. The lines joined are the text, byte for byte.

use std::borrow::Cow;
use std::iter;
use std::ops::Range;

use memchr::{memchr, memchr_iter, memchr2};

/// The maximum number of lines of a text that is edited; the tool descriptions name it.
const MAX_LINES: usize = 2_000_000;

/// The UTF-8 byte order mark.
const BOM: &str = "\u{feff}";

/// One line of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourceLine<'t> {
    /// The text without the line ending.
    pub(crate) text: &'t str,
    /// The text with the line ending.
    pub(crate) whole: &'t str,
}

impl<'t> SourceLine<'t> {
    /// Returns the line ending; only the last line of a text may have none.
    pub(crate) fn line_ending(&self) -> &'t str {
        &self.whole[self.text.len()..]
    }
}

/// Splits `text` into lines; text after the last line ending is a line, unless it is empty.
pub(crate) fn split_lines(text: &str) -> impl Iterator<Item = SourceLine<'_>> {
    let mut rest = text;
    iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (text, end) = match memchr2(b'\n', b'\r', rest.as_bytes()) {
            Some(at) if rest[at..].starts_with("\r\n") => (at, at + 2),
            Some(at) => (at, at + 1),
            None => (rest.len(), rest.len()),
        };
        let line = SourceLine { text: &rest[..text], whole: &rest[..end] };
        rest = &rest[end..];
        Some(line)
    })
}

/// Collects all lines of `text`, with one allocation.
pub(crate) fn collect_lines(text: &str) -> Vec<SourceLine<'_>> {
    let mut all = Vec::with_capacity(memchr_iter(b'\n', text.as_bytes()).count() + 1);
    let mut rest = text;
    // The fast path for texts that have only LF.
    if memchr(b'\r', text.as_bytes()).is_none() {
        let mut start = 0;
        for end in memchr_iter(b'\n', text.as_bytes()) {
            all.push(SourceLine { text: &text[start..end], whole: &text[start..=end] });
            start = end + 1;
        }
        rest = &text[start..];
    }
    all.extend(split_lines(rest));
    all
}

/// Finds the first LF. Most lines are short, and for those a loop over words is faster than a call
/// of `memchr`.
#[inline]
pub(crate) fn find_lf(text: &[u8]) -> Option<usize> {
    const SHORT: usize = 64;
    const WORD: usize = size_of::<u64>();
    const EACH: u64 = u64::MAX / 0xff;
    let (words, _) = text[..text.len().min(SHORT)].as_chunks::<WORD>();
    for (at, word) in words.iter().enumerate() {
        // An LF byte becomes zero, and the lowest zero byte keeps its highest bit.
        let word = u64::from_le_bytes(*word) ^ (EACH * u64::from(b'\n'));
        let zeros = word.wrapping_sub(EACH) & !word & (EACH << 7);
        if zeros != 0 {
            return Some(WORD * at + zeros.trailing_zeros() as usize / 8);
        }
    }
    let seen = words.as_flattened().len();
    memchr(b'\n', &text[seen..]).map(|at| seen + at)
}

/// Counts the lines of a text.
pub(crate) fn count_lines(text: &str) -> usize {
    match memchr(b'\r', text.as_bytes()) {
        Some(_) => split_lines(text).count(),
        None => {
            let ends = memchr_iter(b'\n', text.as_bytes()).count();
            ends + usize::from(!text.is_empty() && !text.ends_with('\n'))
        }
    }
}

/// Whether a text is exactly one line.
pub(crate) fn is_single_line(text: &str) -> bool {
    split_lines(text).next().is_some_and(|line| line.whole.len() == text.len())
}

impl AsRef<str> for SourceLine<'_> {
    fn as_ref(&self) -> &str {
        self.text
    }
}

/// Returns the range of a part of a text, which must be a subslice of it.
pub(crate) fn subslice_range(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}

/// Returns the line ending of the first line that ends with LF.
pub(crate) fn detect_line_ending(text: &str) -> Option<&'static str> {
    let at = memchr(b'\n', text.as_bytes())?;
    Some(if text[..at].ends_with('\r') { "\r\n" } else { "\n" })
}

/// Returns the line ending for new lines of a file with this text. Where other lines end with LF, a
/// single CR is a part of the line and does not count.
pub(crate) fn default_line_ending(text: &str) -> &'static str {
    detect_line_ending(text).unwrap_or_else(|| if text.contains('\r') { "\r" } else { "\n" })
}

/// Returns `text` with the line ending `end`. Lines at the start and the end that `old` has as well
/// keep the line ending that they have there. A single CR is a part of its line.
pub(crate) fn with_line_endings_of<'t>(text: &'t str, old: &str, end: &str) -> Cow<'t, str> {
    if split_lf_lines(old).all(|line| line.line_ending() == end || line.line_ending().is_empty()) {
        return with_line_endings(text, end);
    }
    let (there, new): (Vec<_>, Vec<_>) =
        (split_lf_lines(old).collect(), split_lf_lines(text).collect());
    let same = |(there, new): &(&SourceLine<'_>, &SourceLine<'_>)| there.text == new.text;
    let first = there.iter().zip(&new).take_while(same).count();
    let rest = (&there[first..], &new[first..]);
    let last = rest.0.iter().rev().zip(rest.1.iter().rev()).take_while(same).count();
    let kept = |at: usize| match at {
        at if at < first => there.get(at),
        at if at + last >= new.len() => there.get(there.len() + at - new.len()),
        _ => None,
    };
    let mut out = String::with_capacity(text.len() + new.len());
    for (at, line) in new.iter().enumerate() {
        out.push_str(line.text);
        if !line.line_ending().is_empty() {
            let kept = kept(at).map(SourceLine::line_ending).filter(|end| !end.is_empty());
            out.push_str(kept.unwrap_or(end));
        }
    }
    out.into()
}

/// Splits `text` into lines that end with LF; a single CR ends none.
fn split_lf_lines(text: &str) -> impl Iterator<Item = SourceLine<'_>> {
    text.split_inclusive('\n').map(|whole| {
        let without = whole.strip_suffix('\n').map(|it| it.strip_suffix('\r').unwrap_or(it));
        SourceLine { text: without.unwrap_or(whole), whole }
    })
}

/// Returns `text` with the line ending `end`.
pub(crate) fn with_line_endings<'t>(text: &'t str, end: &str) -> Cow<'t, str> {
    if !text.contains('\n') {
        return text.into();
    }
    let text = text.replace("\r\n", "\n");
    if end == "\n" { text.into() } else { text.replace('\n', end).into() }
}

/// Whether a text has more lines than the tools process, because the index of a line takes more
/// memory than a short line.
pub(crate) fn has_too_many_lines(text: &[u8]) -> bool {
    let ends = |end| memchr_iter(end, text).count();
    text.len() > MAX_LINES && (ends(b'\n') > MAX_LINES || ends(b'\r') > MAX_LINES)
}

/// Splits off the byte order mark, which is empty when there is none.
pub(crate) fn split_bom(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with(BOM) { BOM.len() } else { 0 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)]) {
        let found: Vec<_> = split_lines(text).map(|line| (line.text, line.line_ending())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn splits_lines_with_their_endings() {
        check("", &[]);
        check("a", &[("a", "")]);
        check("a\r\n\nb\rc", &[("a", "\r\n"), ("", "\n"), ("b", "\r"), ("c", "")]);
        check("a\r\r\n", &[("a", "\r"), ("", "\r\n")]);
    }

    #[test]
    fn detects_the_default_line_ending() {
        assert_eq!(default_line_ending("a\r\nb\n"), "\r\n");
        assert_eq!(default_line_ending("\nb\r\n"), "\n");
        assert_eq!(default_line_ending("50%\r100%\nb"), "\n");
        assert_eq!(default_line_ending("a\rb\r"), "\r");
        assert_eq!(default_line_ending("a"), "\n");
    }

    // F142, F143: the written text is what the call sent, except for line endings.
    #[test]
    fn keeps_a_single_cr() {
        for (old, text, expected) in [
            ("a\rb\nc\n", "a\nb\nc\n", "a\nb\nc\n"),
            ("10%\r20%\r100%\ndone\n", "10%\n20%\n100%\ndone\n", "10%\n20%\n100%\ndone\n"),
            ("a\r\nb\rc\r\n", "a\r\nb\r\nc\r\n", "a\r\nb\r\nc\r\n"),
            ("a\r\r\nb\r\r\nc\r\r\n", "a\nb\nc\n", "a\r\nb\r\nc\r\n"),
            ("a\r\r\nb\r\r\n", "a\r\r\nb\r\r\n", "a\r\r\nb\r\r\n"),
            ("a\r\nb\rc\nd", "a\nb\rc\nx", "a\r\nb\rc\nx"),
            ("a\nb\r\n", "a\r\r\nb\n", "a\r\nb\r\n"),
            ("a\rb\r", "a\nc\n", "a\rc\r"),
        ] {
            assert_eq!(
                with_line_endings_of(text, old, default_line_ending(old)),
                expected,
                "{old:?} {text:?}"
            );
        }
    }

    #[test]
    fn splits_off_the_byte_order_mark() {
        assert_eq!(split_bom("\u{feff}a"), ("\u{feff}", "a"));
        assert_eq!(split_bom("a\u{feff}"), ("", "a\u{feff}"));
    }

    proptest! {
        #[test]
        fn changes_only_line_endings(old in "[ab\r\n]{0,12}", text in "[ab\r\n]{0,12}") {
            let folded = |text: &str| text.replace("\r\n", "\n");
            let end = default_line_ending(&old);
            let made = with_line_endings_of(&text, &old, end);
            if end == "\r" {
                prop_assert_eq!(&made, &folded(&text).replace('\n', "\r"));
            } else if !text.contains("\r\r") {
                prop_assert_eq!(folded(&made), folded(&text));
            }
            prop_assert_eq!(with_line_endings_of(&old, &old, end), old.as_str());
        }

        #[test]
        fn finds_the_first_lf(text in "[\n\u{b}\u{8a}a]{0,5}a{0,80}[\n\u{b}a]{0,20}") {
            prop_assert_eq!(find_lf(text.as_bytes()), text.find('\n'));
        }

        #[test]
        fn lines_joined_are_the_text(text in prop_oneof!["[a\r\n]{0,20}", "[a\n]{0,20}"]) {
            prop_assert_eq!(collect_lines(&text), split_lines(&text).collect::<Vec<_>>());
            prop_assert_eq!(is_single_line(&text), split_lines(&text).count() == 1);
            prop_assert_eq!(split_lines(&text).map(|line| line.whole).collect::<String>(), text);
        }
    }
}
