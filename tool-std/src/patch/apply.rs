//! The new text of a file: finds the place of each chunk, then writes all of them.
//!
//! What a patch does not touch keeps its bytes, line ends and byte order mark included. That
//! holds for lines that a chunk quotes and keeps, too, however loosely they were matched.
//! New lines end as the first lines of the file do. A missing end of the last line stays
//! missing until the patch removes that line or puts another one after it.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr;

use super::seek::{Effort, Haystack, Pass};
use super::{Chunk, ChunkLine};
use crate::diff::Change;
use crate::text::lines::{Line, all_lines, count, new_line_end, split_bom};

/// A file after its patch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Updated {
    /// The new text.
    pub(crate) text: String,
    /// How the least clear of the places was found.
    pub(crate) pass: Pass,
    /// Where it differs from the old one.
    pub(crate) changes: Vec<Change>,
}

/// Why a chunk has no place in a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ApplyError {
    /// The line above the place is not there.
    Context {
        /// The line.
        context: String,
        /// The file.
        path: String,
    },
    /// The lines themselves are not there.
    Lines {
        /// The lines.
        lines: String,
        /// The file.
        path: String,
    },
    /// Nobody waits until it is known where they are.
    Effort {
        /// The file.
        path: String,
    },
}

/// The text `old` of the file `path` after `chunks`.
pub(crate) fn update(
    old: &str,
    chunks: &[Chunk<'_>],
    path: &str,
    effort: &Effort,
) -> Result<Updated, ApplyError> {
    let (bom, body) = split_bom(old);
    let lines = all_lines(body);
    let haystack = Haystack::new(&lines, effort);
    let places = places(&haystack, chunks, path).map_err(|error| match effort.is_spent() {
        true => ApplyError::Effort { path: path.to_owned() },
        false => error,
    })?;

    let mut out = Writer::new(bom, body, places.len());
    let mut next = 0;
    for place in &places {
        out.copy(&lines[next..place.at]);
        next = place.at;
        for line in place.lines.iter() {
            match line {
                ChunkLine::Keep(_) => out.copy(&lines[next..=next]),
                ChunkLine::Remove(_) => out.skip(&lines[next]),
                ChunkLine::Add(text) => out.add(text),
            }
            next += usize::from(line.before().is_some());
        }
    }
    out.copy(&lines[next..]);
    let pass = places.iter().map(|place| place.pass).max().unwrap_or_default();
    Ok(Updated { text: out.text, pass, changes: out.changes })
}

/// Where a chunk goes, and what of it.
struct Place<'c, 'p> {
    at: usize,
    pass: Pass,
    lines: Cow<'c, [ChunkLine<'p>]>,
}

impl<'c, 'p> Place<'c, 'p> {
    fn find(
        haystack: &Haystack<'_, '_>,
        lines: Cow<'c, [ChunkLine<'p>]>,
        from: usize,
        at_end: bool,
    ) -> Option<Self> {
        let old = old_lines(&lines);
        let (at, pass) = match old[..] {
            // Lines that are only added go to the end of the file.
            [] => (haystack.len(), Pass::Exact),
            _ => haystack.find(&old, from, at_end)?,
        };
        Some(Self { at, pass, lines })
    }
}

fn places<'c, 'p>(
    haystack: &Haystack<'_, '_>,
    chunks: &'c [Chunk<'p>],
    path: &str,
) -> Result<Vec<Place<'c, 'p>>, ApplyError> {
    let mut places = Vec::with_capacity(chunks.len());
    let mut cursor = 0;
    for chunk in chunks {
        let mut pass = Pass::Exact;
        for &context in &chunk.contexts {
            let (at, how) = haystack.find(&[context], cursor, false).ok_or_else(|| {
                ApplyError::Context { context: context.to_owned(), path: path.to_owned() }
            })?;
            (cursor, pass) = (at + 1, pass.max(how));
        }
        let find = |lines| Place::find(haystack, lines, cursor, chunk.end_of_file);
        let mut place = find(Cow::Borrowed(&chunk.lines[..]))
            .or_else(|| find(Cow::Owned(without_last_blank(&chunk.lines)?)))
            .ok_or_else(|| ApplyError::Lines {
                lines: old_lines(&chunk.lines).join("\n"),
                path: path.to_owned(),
            })?;
        place.pass = place.pass.max(pass);
        let old = place.lines.iter().filter(|line| line.before().is_some()).count();
        if old > 0 {
            cursor = place.at + old;
        }
        places.push(place);
    }
    // Only what goes to the end can stand before what goes above it.
    places.sort_by_key(|place| place.at);
    Ok(places)
}

fn old_lines<'p>(lines: &[ChunkLine<'p>]) -> Vec<&'p str> {
    lines.iter().filter_map(|line| line.before()).collect()
}

/// The chunk without the empty line at its end, which models write where the file ends.
fn without_last_blank<'p>(lines: &[ChunkLine<'p>]) -> Option<Vec<ChunkLine<'p>>> {
    let last_old = lines.iter().rposition(|line| line.before().is_some())?;
    let mut kept = lines.to_vec();
    match kept[last_old] {
        // With new lines after it, it is one of them.
        ChunkLine::Keep("") => kept[last_old] = ChunkLine::Add(""),
        ChunkLine::Remove("") => drop(kept.remove(last_old)),
        _ => return None,
    }
    let last_new = kept.iter().rposition(|line| line.after().is_some());
    if let Some(at) = last_new.filter(|&at| kept[at] == ChunkLine::Add("")) {
        kept.remove(at);
    }
    Some(kept)
}

/// A text that grows line by line, while an old one is read.
struct Writer<'t> {
    /// The old text, and how much of it is read.
    old: &'t str,
    read: usize,
    text: String,
    /// Where the text begins, behind a byte order mark.
    start: usize,
    /// How new lines end.
    end: &'static str,
    /// The length of the last line when it has no end.
    open: Option<usize>,
    changes: Vec<Change>,
}

impl<'t> Writer<'t> {
    fn new(bom: &str, old: &'t str, places: usize) -> Self {
        let mut text = String::with_capacity(bom.len() + old.len() + old.len() / 8);
        text.push_str(bom);
        let (end, changes) = (new_line_end(old), Vec::with_capacity(places));
        Self { old, read: 0, text, start: bom.len(), end, open: None, changes }
    }

    /// The next lines of the old text stay.
    fn copy(&mut self, lines: &[Line<'_>]) {
        let Some(last) = lines.last() else { return };
        let end = self.read + lines.iter().map(|line| line.whole.len()).sum::<usize>();
        self.text.push_str(&self.old[self.read..end]);
        self.read = end;
        self.open = last.end().is_empty().then_some(last.text.len());
    }

    /// The next line of the old text goes.
    fn skip(&mut self, line: &Line<'_>) {
        self.read += line.whole.len();
        self.changed(line.whole.len(), 0, [1, 0]);
    }

    fn add(&mut self, line: &str) {
        if let Some(open) = self.open.take() {
            self.text.push_str(self.end);
            self.changed(open, open + self.end.len(), [1, 1]);
        }
        let start = self.text.len();
        self.text.push_str(line);
        self.text.push_str(self.end);
        // A patch ends its lines with LF, and a file perhaps not only.
        let lines = memchr(b'\r', line.as_bytes()).map_or(1, |_| count(&self.text[start..]));
        self.changed(0, self.text.len() - start, [0, lines]);
    }

    /// What was just read and written is not the same; how many lines of both that is.
    fn changed(&mut self, read: usize, written: usize, lines: [usize; 2]) {
        let (old, new) = (self.read, self.text.len() - self.start);
        match self.changes.last_mut() {
            Some(last) if (last.old.end, last.new.end) == (old - read, new - written) => {
                (last.old.end, last.new.end) = (old, new);
                last.lines = [last.lines[0] + lines[0], last.lines[1] + lines[1]];
            }
            _ => {
                let (old, new) = (old - read..old, new - written..new);
                self.changes.push(Change { old, new, lines });
            }
        }
    }
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApplyError::Context { context, path } => {
                write!(f, "Failed to find context '{context}' in {path}")
            }
            ApplyError::Lines { lines, path } => {
                write!(f, "Failed to find expected lines in {path}:\n{lines}")
            }
            ApplyError::Effort { path } => write!(
                f,
                "The quoted lines repeat too often in {path} to find their places; quote fewer \
                 lines, and such that are there once"
            ),
        }
    }
}

impl std::error::Error for ApplyError {}
