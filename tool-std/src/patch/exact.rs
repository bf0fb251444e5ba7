//! The fast path of the patch matcher: finds exact quotes in one walk over the bytes of a file.
//!
//! Nearly all patches take this path. The file is not split into lines.
//!
//! **Invariant:** the result is the same as that of the slow path; in doubt there is none.

use memchr::memchr;

use super::apply::PatchedText;
use super::writer::PatchWriter;
use super::{ChunkLine, MatchPass, UpdateChunk};
use crate::text::lines::{find_lf, split_bom};

/// Applies `chunks` to `old`, if each of them quotes lines that end with LF and all are found;
/// otherwise returns `None`, and the slow path decides.
pub(super) fn apply_exact(old: &str, chunks: &[UpdateChunk<'_>]) -> Option<PatchedText> {
    let (bom, body) = split_bom(old);
    if memchr(b'\r', body.as_bytes()).is_some() {
        return None;
    }
    let mut walk = LineCursor::at_start(body);
    let mut out = PatchWriter::new(bom, body, chunks.len());
    for chunk in chunks.iter() {
        for context in &chunk.contexts {
            walk.seek_lines(&[ChunkLine::Keep(context)])?;
            walk.at += context.len() + 1;
        }
        if chunk.end_of_file {
            return None;
        }
        walk.seek_lines(&chunk.lines)?;
        for line in &chunk.lines {
            match line {
                ChunkLine::Keep(text) => walk.at += text.len() + 1,
                ChunkLine::Remove(text) => {
                    out.copy_to(walk.at);
                    out.skip_bytes(text.len() + 1);
                    walk.at += text.len() + 1;
                }
                ChunkLine::Add(text) => {
                    out.copy_to(walk.at);
                    out.add_line(text);
                }
            }
        }
    }
    out.copy_to(body.len());
    Some(out.finish(MatchPass::Exact))
}

/// A cursor over the lines of a text with LF line endings.
struct LineCursor<'t> {
    text: &'t [u8],
    /// The start of the current line.
    at: usize,
    /// The number of bytes that may be compared in vain. A repetitive text is left to the slow
    /// path, which has a budget.
    compare_budget: usize,
}

impl<'t> LineCursor<'t> {
    fn at_start(text: &'t str) -> Self {
        Self { text: text.as_bytes(), at: 0, compare_budget: 4 * text.len() }
    }

    /// Moves to the first position where the old lines match.
    fn seek_lines(&mut self, lines: &[ChunkLine<'_>]) -> Option<()> {
        let mut old = lines.iter().filter_map(|line| line.old_text()).map(str::as_bytes);
        // A chunk that only adds lines belongs to the end of the file.
        let first = old.next()?;
        loop {
            let rest = &self.text[self.at..];
            if let Some(after) = strip_line(rest, first)
                && self.match_lines(after, old.clone())?
            {
                return Some(());
            }
            self.at += find_lf(rest)? + 1;
        }
    }

    /// Whether the text continues with these lines; `None` when the budget is used up.
    fn match_lines<'l>(
        &mut self,
        mut rest: &[u8],
        lines: impl Iterator<Item = &'l [u8]>,
    ) -> Option<bool> {
        let len = rest.len();
        for line in lines {
            let Some(after) = strip_line(rest, line) else {
                self.compare_budget =
                    self.compare_budget.checked_sub(len - rest.len() + line.len())?;
                return Some(false);
            };
            rest = after;
        }
        Some(true)
    }
}

/// Returns the text after a line, if `text` begins with it.
fn strip_line<'t>(text: &'t [u8], line: &[u8]) -> Option<&'t [u8]> {
    match text.get(line.len()) {
        Some(b'\n') if text.starts_with(line) => Some(&text[line.len() + 1..]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::PatchHunk;
    use crate::patch::parser::parse_hunk;

    #[track_caller]
    fn check(old: &str, body: &str, expected: Option<&str>) {
        let source = format!("*** Update File: f\n{body}");
        let Ok(PatchHunk::Update { chunks, .. }) = parse_hunk(&source) else { panic!("{body}") };
        assert_eq!(apply_exact(old, &chunks).map(|new| new.text).as_deref(), expected);
    }

    #[test]
    fn fast_path_applies_exact_quotes() {
        check("a\nb\nc\nb\nd", "@@ c\n-b\n+x", Some("a\nb\nc\nx\nd"));
        check("a\nb\na\nc\n", "@@\n a\n-c\n+x\n+y", Some("a\nb\na\nx\ny\n"));
        check("\u{feff}a\n\nb\n", "@@\n \n-b", Some("\u{feff}a\n\n"));
    }

    #[test]
    fn fast_path_rejects_inexact_quotes() {
        // CRLF, no line ending, a line that is not in the file, and no quoted line.
        check("a\r\nb\r\n", "@@\n-b", None);
        check("a\nb", "@@\n-b", None);
        check("a \nb\n", "@@\n-a", None);
        check("a\nb\n", "@@\n+c", None);
        check("a\nb\n", "@@\n-b\n*** End of File", None);
        // A text that repeats the quoted lines.
        let (old, quoted) = ("a\n".repeat(10_000), " a\n".repeat(9_000));
        check(&old, &format!("@@\n{quoted}-b"), None);
    }
}
