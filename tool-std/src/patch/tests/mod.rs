//! The patch engine: fixtures of other implementations, own cases, and properties.

mod choices;
mod fixtures;
mod laws;

use std::collections::BTreeMap;

use super::apply::PatchedText;
use super::{
    ApplyError, MatchBudget, MatchPass, ParsedPatch, PatchHunk, UpdateChunk, parse, parse_hunk,
};
use crate::diff::LineChange;
use crate::text::lines::{count_lines, split_bom};

/// Parses a patch with all its sections. A valid section can be parsed alone.
#[track_caller]
fn hunks<'p>(patch: &ParsedPatch<'p>) -> Vec<PatchHunk<'p>> {
    patch.sections.iter().map(|section| parse_hunk(section.source).unwrap()).collect()
}

/// Parses the chunks of a patch that changes one file.
#[track_caller]
fn chunks(body: &str) -> Vec<UpdateChunk<'_>> {
    match hunks(&parse(body).expect("the patch can be read")).pop() {
        Some(PatchHunk::Update { chunks, .. }) => chunks,
        other => panic!("expected an update, found {other:?}"),
    }
}

/// A patch of the file `f` with these chunks.
fn patch(body: &str) -> String {
    format!("*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch")
}

/// Applies `chunks` with the budget of a whole patch.
fn update(old: &str, chunks: &[UpdateChunk<'_>], path: &str) -> Result<PatchedText, ApplyError> {
    let updated = super::apply_chunks(old, chunks, path, &MatchBudget::default())?;
    check_changes(old, &updated);
    Ok(updated)
}

/// Checks that the recorded changes are complete, and cover whole lines.
#[track_caller]
fn check_changes(old: &str, PatchedText { text, changes, .. }: &PatchedText) {
    let (old, new) = (split_bom(old).1, split_bom(text).1);
    let (mut kept, mut at) = (String::new(), 0);
    for LineChange { old: from, new: to, lines } in changes {
        assert_eq!(*lines, [count_lines(&old[from.clone()]), count_lines(&new[to.clone()])]);
        kept.extend([&old[at..from.start], &new[to.clone()]]);
        at = from.end;
        for (text, place) in [(old, from), (new, to)] {
            let starts = |at| at == 0 || text.len() == at || text[..at].ends_with(['\n', '\r']);
            assert!(starts(place.start) && starts(place.end), "{text:?} {place:?}");
        }
    }
    assert_eq!(kept + &old[at..], new);
}

/// Applies the chunks of `body`; returns the text and the pass.
fn apply(old: &str, body: &str) -> Result<(String, MatchPass), ApplyError> {
    let PatchedText { text, pass, .. } = update(old, &chunks(&patch(body)), "f")?;
    Ok((text, pass))
}

#[track_caller]
fn check(old: &str, body: &str, expected: &str) {
    assert_eq!(apply(old, body).map(|(text, _)| text).as_deref(), Ok(expected), "{body}");
}

/// The texts of files, by their paths.
type Files = BTreeMap<String, String>;

/// Applies a patch to files that are texts, as the tool does.
fn run(mut files: Files, text: &str) -> Result<Files, String> {
    let patch = parse(text).map_err(|error| error.to_string())?;
    patch.verify().map_err(|error| error.to_string())?;
    for hunk in &hunks(&patch) {
        match hunk {
            PatchHunk::Add { path, content } => {
                drop(files.insert((*path).to_owned(), content.clone()))
            }
            PatchHunk::Delete { path } => drop(files.remove(*path).ok_or("no file")?),
            PatchHunk::Update { path, move_to, chunks } => {
                let old = files.remove(*path).ok_or("no file")?;
                let new = update(&old, chunks, path).map_err(|error| error.to_string())?;
                files.insert(move_to.unwrap_or(path).to_owned(), new.text);
            }
        }
    }
    Ok(files)
}
