//! Applies the chunks of an update to the text of a file.
//!
//! The fast path ([`apply_exact`]) finds exact quotes in one walk over the bytes. The slow path
//! splits the file into lines and compares them with increasingly tolerant passes.

use std::borrow::Cow;
use std::fmt;

use super::exact::exactly;
use super::seek::{Effort, Haystack, Pass};
use super::writer::Writer;
use super::{Chunk, ChunkLine};
use crate::diff::Change;
use crate::text::lines::{all_lines, split_bom};

/// A file after the update.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Updated {
    /// The new text.
    pub(crate) text: String,
    /// The most tolerant pass that was needed.
    pub(crate) pass: Pass,
    /// The changed lines.
    pub(crate) changes: Vec<Change>,
}

/// The error of a chunk that does not match.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ApplyError {
    /// The context line of the `@@` marker was not found.
    Context {
        /// The line.
        context: String,
        /// The file.
        path: String,
    },
    /// The quoted lines were not found.
    Lines {
        /// The lines.
        lines: String,
        /// The file.
        path: String,
    },
    /// The comparison budget was used up.
    Effort {
        /// The file.
        path: String,
    },
}

/// Applies `chunks` to the text `old` of the file `path`.
pub(crate) fn update(
    old: &str,
    chunks: &[Chunk<'_>],
    path: &str,
    effort: &Effort,
) -> Result<Updated, ApplyError> {
    if let Some(updated) = exactly(old, chunks) {
        return Ok(updated);
    }
    in_lines(old, chunks, path, effort).or_else(|error| match unmarked(chunks) {
        Some(chunks) => in_lines(old, &chunks, path, effort),
        None => Err(error),
    })
}

/// Returns the chunks without the byte order mark that the first quoted line has; `None` when it
/// has none. The mark is not part of the first line of a file.
fn unmarked<'p>(chunks: &[Chunk<'p>]) -> Option<Vec<Chunk<'p>>> {
    let first = chunks.first()?;
    let without = |text: &mut &'p str| {
        let (bom, rest) = split_bom(text);
        *text = rest;
        !bom.is_empty()
    };
    let mut first = first.clone();
    let mut is_marked = first.contexts.first_mut().is_some_and(without);
    let (mut old, mut new) = (true, true);
    for line in &mut first.lines {
        let (is_old, is_new) = (line.before().is_some(), line.after().is_some());
        let (ChunkLine::Keep(text) | ChunkLine::Remove(text) | ChunkLine::Add(text)) = line;
        if is_old && old || is_new && new {
            is_marked |= without(text) && is_old;
        }
        (old, new) = (old && !is_old, new && !is_new);
    }
    let others = chunks[1..].iter().cloned();
    is_marked.then(|| std::iter::once(first).chain(others).collect())
}

/// The slow path: applies the chunks to any text, with every pass.
pub(super) fn in_lines(
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
    Ok(out.finish(pass))
}

/// The position of a chunk, and its lines.
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
            // A chunk that only adds lines goes to the end of the file.
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
    // Only a chunk for the end of the file can precede one above it.
    places.sort_by_key(|place| place.at);
    Ok(places)
}

fn old_lines<'p>(lines: &[ChunkLine<'p>]) -> Vec<&'p str> {
    lines.iter().filter_map(|line| line.before()).collect()
}

/// Returns the chunk without the empty line at its end, which models write at the end of a file.
fn without_last_blank<'p>(lines: &[ChunkLine<'p>]) -> Option<Vec<ChunkLine<'p>>> {
    let last_old = lines.iter().rposition(|line| line.before().is_some())?;
    let mut kept = lines.to_vec();
    match kept[last_old] {
        // With new lines after it, the empty line is one of them.
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
