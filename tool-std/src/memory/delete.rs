//! The tool `memory_delete`: deletes a note.

use tool_sdk::{Context, MemoryHandle, Output, Resource, State, ToolError, tool};

use super::written_note;

/// Delete a note of the memory that is wrong or no longer needed. It cannot be restored.
#[tool(
    write,
    destructive,
    category = "memory",
    permission = "memory",
    approval(resources = approval_resources, suggest = suggest_rules),
    display(name = "Forget", primary = id, show(id), summary = "Deleting the note {id}"),
    parallel = by(id)
)]
pub async fn memory_delete(
    /// The id of the note.
    #[arg(pattern = "^[A-Za-z0-9_-]{1,64}$", alias("memory_id"), alias("source_id"))]
    id: String,
    /// The version that you have read; the note stays if it was changed since then.
    #[arg(range = 1..)]
    version: Option<u64>,
    memory: State<MemoryHandle>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let owner = memory.owner_for(cx.session());
    let note = written_note(memory.delete_note(&owner, &id, version).await?, &id)?;
    Ok(Output::text(format!("Deleted `{}`: {}", note.id, note.summary())).metadata("id", note.id))
}

fn approval_resources(args: &MemoryDeleteArgs, _: &Context) -> Vec<Resource> {
    vec![Resource::new(format!("delete/{}", args.id))]
}

fn suggest_rules(_: &MemoryDeleteArgs) -> Vec<String> {
    vec!["delete/*".to_owned()]
}
