//! The tool `memory_get`: shows a whole note.

use tool_sdk::{Context, Json, MemoryHandle, State, ToolError, tool};

use super::{NoteContent, unknown_note};

/// Show a note of the memory whole, with its version. `memory_search` finds its id.
#[tool(
    read,
    category = "memory",
    aliases("get_memory"),
    display(name = "Note", primary = id, summary = "Reading the note {id}")
)]
pub async fn memory_get(
    /// The id of the note.
    #[arg(pattern = "^[A-Za-z0-9_-]{1,64}$", alias("memory_id"), alias("source_id"))]
    id: String,
    memory: State<MemoryHandle>,
    cx: &Context,
) -> Result<Json<NoteContent>, ToolError> {
    let found = memory.find_note(&memory.owner_for(cx.session()), &id).await?;
    found.map(NoteContent::from_note).map(Json).ok_or_else(|| unknown_note(&id))
}
