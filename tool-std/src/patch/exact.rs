//! The fast path of the patch matcher: finds exact quotes in one walk over the bytes of a file.
//!
//! Nearly all patches take this path. The file is not split into lines.
//!
//! **Invariant:** the result is the same as that of the slow path; in doubt there is none.

use memchr::memchr;

use super::apply::Updated;
use super::writer::Writer;
use super::{Chunk, ChunkLine, Pass};
use crate::text::lines::{find_lf, split_bom};

/// Applies `chunks` to `old`, if each of them quotes lines that end with LF and all are found;
/// otherwise returns `None`, and the slow path decides.
pub(super) fn exactly(old: &str, chunks: &[Chunk<'_>]) -> Option<Updated> {
    let (bom, body) = split_bom(old);
    if memchr(b'\r', body.as_bytes()).is_some() {
        return None;
    }
    let mut walk = Walk::over(body);
    let mut out = Writer::new(bom, body, chunks.len());
    for chunk in chunks.iter() {
        for context in &chunk.contexts {
            walk.find(&[ChunkLine::Keep(context)])?;
            walk.at += context.len() + 1;
        }
        if chunk.end_of_file {
            return None;
        }
        walk.find(&chunk.lines)?;
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
                    out.add(text);
                }
            }
        }
    }
    out.copy_to(body.len());
    Some(out.finish(Pass::Exact))
}

/// A cursor over the lines of a text with LF line endings.
struct Walk<'t> {
    text: &'t [u8],
    /// The start of the current line.
    at: usize,
    /// The number of bytes that may be compared in vain. A repetitive text is left to the slow
    /// path, which has a budget.
    spare: usize,
}

impl<'t> Walk<'t> {
    fn over(text: &'t str) -> Self {
        Self { text: text.as_bytes(), at: 0, spare: 4 * text.len() }
    }

    /// Moves to the first position where the old lines match.
    fn find(&mut self, lines: &[ChunkLine<'_>]) -> Option<()> {
        let mut old = lines.iter().filter_map(|line| line.before()).map(str::as_bytes);
        // A chunk that only adds lines belongs to the end of the file.
        let first = old.next()?;
        loop {
            let rest = &self.text[self.at..];
            if let Some(after) = behind(rest, first)
                && self.stand(after, old.clone())?
            {
                return Some(());
            }
            self.at += find_lf(rest)? + 1;
        }
    }

    /// Whether the text continues with these lines; `None` when the budget is used up.
    fn stand<'l>(
        &mut self,
        mut rest: &[u8],
        lines: impl Iterator<Item = &'l [u8]>,
    ) -> Option<bool> {
        let len = rest.len();
        for line in lines {
            let Some(after) = behind(rest, line) else {
                self.spare = self.spare.checked_sub(len - rest.len() + line.len())?;
                return Some(false);
            };
            rest = after;
        }
        Some(true)
    }
}

/// Returns the text after a line, if `text` begins with it.
fn behind<'t>(text: &'t [u8], line: &[u8]) -> Option<&'t [u8]> {
    match text.get(line.len()) {
        Some(b'\n') if text.starts_with(line) => Some(&text[line.len() + 1..]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::Hunk;
    use crate::patch::grammar::hunk;

    #[track_caller]
    fn check(old: &str, body: &str, expected: Option<&str>) {
        let source = format!("*** Update File: f\n{body}");
        let Ok(Hunk::Update { chunks, .. }) = hunk(&source) else { panic!("{body}") };
        assert_eq!(exactly(old, &chunks).map(|new| new.text).as_deref(), expected);
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
