//! Applies the chunks of an update to the text of a file.
//!
//! The file is split into lines, which are compared with the quoted ones in increasingly tolerant
//! passes ([`LineMatcher`]).

use std::borrow::Cow;
use std::fmt;

use super::line_matcher::{LineMatcher, MatchBudget, MatchPass};
use super::writer::PatchWriter;
use super::{ChunkLine, UpdateChunk};
use crate::diff::LineChange;
use crate::text::lines::{collect_lines, split_bom};

/// A file after the update.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PatchedText {
    /// The new text.
    pub(crate) text: String,
    /// The most tolerant pass that was needed.
    pub(crate) pass: MatchPass,
    /// The changed lines.
    pub(crate) changes: Vec<LineChange>,
}

/// The error of a chunk that does not match.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ApplyError {
    /// The context line of the `@@` marker was not found.
    ContextNotFound {
        /// The line.
        context: String,
        /// The file.
        path: String,
    },
    /// The quoted lines were not found.
    LinesNotFound {
        /// The lines.
        lines: String,
        /// The file.
        path: String,
    },
    /// The comparison budget was used up.
    BudgetExhausted {
        /// The file.
        path: String,
    },
}

/// Applies `chunks` to the text `old` of the file `path`.
pub(crate) fn apply_chunks(
    old: &str,
    chunks: &[UpdateChunk<'_>],
    path: &str,
    effort: &MatchBudget,
) -> Result<PatchedText, ApplyError> {
    apply_by_lines(old, chunks, path, effort).or_else(|error| match without_quoted_bom(chunks) {
        Some(chunks) => apply_by_lines(old, &chunks, path, effort),
        None => Err(error),
    })
}

/// Returns the chunks without the byte order mark that the first quoted line has; `None` when it
/// has none. The mark is not part of the first line of a file.
fn without_quoted_bom<'p>(chunks: &[UpdateChunk<'p>]) -> Option<Vec<UpdateChunk<'p>>> {
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
        let (is_old, is_new) = (line.old_text().is_some(), line.new_text().is_some());
        let (ChunkLine::Keep(text) | ChunkLine::Remove(text) | ChunkLine::Add(text)) = line;
        if is_old && old || is_new && new {
            is_marked |= without(text) && is_old;
        }
        (old, new) = (old && !is_old, new && !is_new);
    }
    let others = chunks[1..].iter().cloned();
    is_marked.then(|| std::iter::once(first).chain(others).collect())
}

/// Finds the place of every chunk and writes the new text.
fn apply_by_lines(
    old: &str,
    chunks: &[UpdateChunk<'_>],
    path: &str,
    effort: &MatchBudget,
) -> Result<PatchedText, ApplyError> {
    let (bom, body) = split_bom(old);
    let lines = collect_lines(body);
    let haystack = LineMatcher::new(&lines, effort);
    let places =
        place_chunks(&haystack, chunks, path).map_err(|error| match effort.is_exhausted() {
            true => ApplyError::BudgetExhausted { path: path.to_owned() },
            false => error,
        })?;

    let mut out = PatchWriter::new(bom, body, places.len());
    let mut next = 0;
    for place in &places {
        out.copy_lines(&lines[next..place.at]);
        next = place.at;
        for line in place.lines.iter() {
            match line {
                ChunkLine::Keep(_) => out.copy_lines(&lines[next..=next]),
                ChunkLine::Remove(_) => out.skip_line(&lines[next]),
                ChunkLine::Add(text) => out.add_line(text),
            }
            next += usize::from(line.old_text().is_some());
        }
    }
    out.copy_lines(&lines[next..]);
    let pass = places.iter().map(|place| place.pass).max().unwrap_or_default();
    Ok(out.finish(pass))
}

/// The position of a chunk, and its lines.
struct ChunkPlacement<'c, 'p> {
    at: usize,
    pass: MatchPass,
    lines: Cow<'c, [ChunkLine<'p>]>,
}

impl<'c, 'p> ChunkPlacement<'c, 'p> {
    fn locate(
        haystack: &LineMatcher<'_, '_>,
        lines: Cow<'c, [ChunkLine<'p>]>,
        from: usize,
        at_end: bool,
    ) -> Option<Self> {
        let old = old_lines(&lines);
        let (at, pass) = match old[..] {
            // A chunk that only adds lines goes to the end of the file.
            [] => (haystack.len(), MatchPass::Exact),
            _ => haystack.find_lines(&old, from, at_end)?,
        };
        Some(Self { at, pass, lines })
    }
}

fn place_chunks<'c, 'p>(
    haystack: &LineMatcher<'_, '_>,
    chunks: &'c [UpdateChunk<'p>],
    path: &str,
) -> Result<Vec<ChunkPlacement<'c, 'p>>, ApplyError> {
    let mut places = Vec::with_capacity(chunks.len());
    let mut cursor = 0;
    for chunk in chunks {
        let mut pass = MatchPass::Exact;
        for &context in &chunk.contexts {
            let (at, how) = haystack.find_lines(&[context], cursor, false).ok_or_else(|| {
                ApplyError::ContextNotFound { context: context.to_owned(), path: path.to_owned() }
            })?;
            (cursor, pass) = (at + 1, pass.max(how));
        }
        let find = |lines| ChunkPlacement::locate(haystack, lines, cursor, chunk.end_of_file);
        let mut place = find(Cow::Borrowed(&chunk.lines[..]))
            .or_else(|| find(Cow::Owned(without_last_blank(&chunk.lines)?)))
            .ok_or_else(|| ApplyError::LinesNotFound {
                lines: old_lines(&chunk.lines).join("\n"),
                path: path.to_owned(),
            })?;
        place.pass = place.pass.max(pass);
        let old = place.lines.iter().filter(|line| line.old_text().is_some()).count();
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
    lines.iter().filter_map(|line| line.old_text()).collect()
}

/// Returns the chunk without the empty line at its end, which models write at the end of a file.
fn without_last_blank<'p>(lines: &[ChunkLine<'p>]) -> Option<Vec<ChunkLine<'p>>> {
    let last_old = lines.iter().rposition(|line| line.old_text().is_some())?;
    let mut kept = lines.to_vec();
    match kept[last_old] {
        // With new lines after it, the empty line is one of them.
        ChunkLine::Keep("") => kept[last_old] = ChunkLine::Add(""),
        ChunkLine::Remove("") => drop(kept.remove(last_old)),
        _ => return None,
    }
    let last_new = kept.iter().rposition(|line| line.new_text().is_some());
    if let Some(at) = last_new.filter(|&at| kept[at] == ChunkLine::Add("")) {
        kept.remove(at);
    }
    Some(kept)
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApplyError::ContextNotFound { context, path } => {
                write!(f, "Failed to find context '{context}' in {path}")
            }
            ApplyError::LinesNotFound { lines, path } => {
                write!(f, "Failed to find expected lines in {path}:\n{lines}")
            }
            ApplyError::BudgetExhausted { path } => write!(
                f,
                "The quoted lines repeat too often in {path} to find their places; quote fewer \
                 lines, and such that are there once"
            ),
        }
    }
}

impl std::error::Error for ApplyError {}
