//! The tools for notes that outlive a session: `memory_search`, `memory_get`, `memory_create`,
//! `memory_update` and `memory_delete`.
//!
//! The host provides a [`MemoryHandle`](tool_sdk::MemoryHandle). Reading needs no approval. Writing
//! does, under the permission `memory` and the pattern `create/SCOPE`, `update/ID` or `delete/ID`,
//! because later sessions read what is kept.
//!
//! **Invariant:** a tool sees the notes of the session's user, of the session's project and of all
//! projects, and no others.

// The macro defines a type named like the function, so each module needs another name.
mod create;
mod delete;
mod get;
mod search;
#[cfg(test)]
mod tests;
mod update;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use tool_sdk::{MemoryNote, NoteWrite, ToolError};

pub use self::create::memory_create;
pub use self::delete::memory_delete;
pub use self::get::memory_get;
pub use self::search::memory_search;
pub use self::update::memory_update;

/// The longest tag in characters.
const MAX_TAG_CHARS: usize = 50;

/// A whole note.
#[derive(Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct NoteContent {
    /// The id.
    pub id: String,
    /// The title, or else the first line of the text.
    pub summary: String,
    /// The text.
    pub content: String,
    /// What it is about: preference, fact, decision or entity.
    pub category: &'static str,
    /// Where it holds: project or user.
    pub scope: &'static str,
    /// Its tags.
    pub tags: BTreeSet<String>,
    /// The version, which a change has to name.
    pub version: u64,
    /// When it was created, RFC 3339.
    pub created_at: String,
    /// When it was last changed, RFC 3339.
    pub updated_at: String,
}

impl NoteContent {
    fn from_note(note: MemoryNote) -> Self {
        Self {
            summary: note.summary().to_owned(),
            category: note.category.as_str(),
            scope: note.scope.as_str(),
            created_at: note.created_at(),
            updated_at: note.updated_at(),
            id: note.id,
            content: note.content,
            tags: note.tags,
            version: note.version,
        }
    }
}

/// Trims the tags and makes them lower case.
fn normalize_tags(tags: Vec<String>) -> Result<BTreeSet<String>, ToolError> {
    let normalize = |tag: String| {
        let normal = tag.trim().to_lowercase();
        let is_plain = !normal.is_empty() && !normal.contains(|c: char| c.is_control() || c == ',');
        if is_plain && normal.chars().count() <= MAX_TAG_CHARS {
            return Ok(normal);
        }
        let tag: String = tag.chars().take(MAX_TAG_CHARS + 1).collect();
        let why = format!(
            "`{}` is not a tag; a tag is one word or a few, at most {MAX_TAG_CHARS} characters \
             without a comma",
            tag.escape_debug()
        );
        Err(ToolError::invalid("tags", why))
    };
    tags.into_iter().map(normalize).collect()
}

/// The error for an id of no note that the session can see.
fn unknown_note(id: &str) -> ToolError {
    ToolError::not_found(format_args!("there is no note `{id}`"))
        .hint("`memory_search` lists the notes with their ids")
}

/// Returns the note of a change that was made.
fn written_note(write: NoteWrite, id: &str) -> Result<MemoryNote, ToolError> {
    match write {
        NoteWrite::Done(note) => Ok(note),
        NoteWrite::Conflict { current } => {
            let why = format!("the note `{id}` has changed and is at version {current} now");
            let hint = "read it again with `memory_get`, and repeat the change if it still fits";
            Err(ToolError::conflict(why).hint(hint))
        }
        _ => Err(unknown_note(id)),
    }
}
