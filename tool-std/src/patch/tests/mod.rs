//! The patch engine: cases of other systems, our own choices, and laws.

mod choices;
mod fixtures;
mod laws;

use super::apply::Updated;
use super::{ApplyError, Chunk, Hunk, Pass, parse, update};

/// The chunks of a patch that changes one file.
#[track_caller]
fn chunks(body: &str) -> Vec<Chunk<'_>> {
    match parse(body).expect("the patch can be read").hunks.pop() {
        Some(Hunk::Update { chunks, .. }) => chunks,
        other => panic!("expected an update, found {other:?}"),
    }
}

/// A patch of the file `f` with these chunks.
fn patch(body: &str) -> String {
    format!("*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch")
}

/// The text after the chunks of `body`, and how they were found.
fn apply(old: &str, body: &str) -> Result<(String, Pass), ApplyError> {
    let Updated { text, pass } = update(old, &chunks(&patch(body)), "f")?;
    Ok((text, pass))
}

#[track_caller]
fn check(old: &str, body: &str, expected: &str) {
    assert_eq!(apply(old, body).map(|(text, _)| text).as_deref(), Ok(expected), "{body}");
}
