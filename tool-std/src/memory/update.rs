//! The tool `memory_update`: changes a note that has not changed since it was read.

use tool_sdk::{Context, MemoryHandle, NoteChanges, Output, Resource, State, ToolError, tool};

use super::{normalize_tags, written_note};

/// Change a note of the memory. What is left out stays as it is.
///
/// Name the version that you have read. If the note was changed since then, nothing is changed, and
/// you read it again.
#[tool(
    write,
    category = "memory",
    permission = "memory",
    approval(resources = approval_resources, suggest = suggest_rules),
    display(
        name = "Update note",
        primary = id,
        show(id, title, content, category, tags),
        summary = "Changing the note {id}"
    ),
    parallel = by(id)
)]
#[expect(clippy::too_many_arguments, reason = "each is a parameter of the tool")]
pub async fn memory_update(
    /// The id of the note.
    #[arg(pattern = "^[A-Za-z0-9_-]{1,64}$", alias("memory_id"), alias("source_id"))]
    id: String,
    /// The version of the note that you have read.
    #[arg(range = 1..)]
    version: u64,
    /// The whole new text.
    #[arg(length = 1..=32_768)]
    content: Option<String>,
    /// The new title, one line.
    #[arg(length = ..=200, pattern = r"^[^\r\n]*$")]
    title: Option<String>,
    /// The new category.
    #[arg(choices("preference", "fact", "decision", "entity"))]
    category: Option<String>,
    /// All tags that the note shall have.
    #[arg(length = ..=16)]
    tags: Option<Vec<String>>,
    memory: State<MemoryHandle>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let changes = NoteChanges {
        title: title.map(|title| title.trim().to_owned()),
        content,
        category: category.and_then(|category| category.parse().ok()),
        tags: tags.map(normalize_tags).transpose()?,
    };
    if changes == NoteChanges::default() {
        return Err(ToolError::invalid_args("nothing is changed")
            .hint("name a new `content`, `title`, `category` or `tags`"));
    }
    let owner = memory.owner_for(cx.session());
    let note = written_note(memory.update_note(&owner, &id, version, changes).await?, &id)?;
    let text = format!("Changed `{}`; it is at version {} now.", note.id, note.version);
    Ok(Output::text(text).metadata("id", note.id).metadata("version", note.version))
}

fn approval_resources(args: &MemoryUpdateArgs, _: &Context) -> Vec<Resource> {
    vec![Resource::new(format!("update/{}", args.id))]
}

fn suggest_rules(_: &MemoryUpdateArgs) -> Vec<String> {
    vec!["update/*".to_owned()]
}
