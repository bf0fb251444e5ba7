//! The tool `memory_create`: keeps a note.

use tool_sdk::{Context, MemoryHandle, NoteDraft, Output, Resource, State, ToolError, tool};

use super::normalize_tags;

/// Keep a note that later sessions can search: what the user prefers, a fact, a decision with its
/// reason, or who or what something is.
///
/// One thing per note, so that it can be changed alone. Search first, and update a note that is
/// there already. Never keep secrets, and nothing that the files say themselves.
#[tool(
    write,
    category = "memory",
    permission = "memory",
    approval(resources = approval_resources, suggest = suggest_rules),
    display(
        name = "Remember",
        primary = title,
        show(title, content, category, scope, tags),
        summary = "Keeping a note"
    ),
    example = r#"{"content": "Tests run with `make check`, never with cargo alone.", "category": "fact"}"#,
    example = r#"{"title": "Release day", "content": "Releases are made on Tuesdays, because the team meets on Mondays.", "category": "decision", "tags": ["release"]}"#
)]
pub async fn memory_create(
    /// What is to be remembered, so that it is understood without this conversation.
    #[arg(length = 1..=32_768)]
    content: String,
    /// A short title, one line.
    #[arg(default = "", length = ..=200, pattern = r"^[^\r\n]*$")]
    title: String,
    /// What it is about.
    #[arg(default = "fact", choices("preference", "fact", "decision", "entity"))]
    category: String,
    /// Whether it holds in this project, or in all projects of the user.
    #[arg(default = "project", choices("project", "user"))]
    scope: String,
    /// Words by which notes are grouped.
    #[arg(default = vec![], length = ..=16)]
    tags: Vec<String>,
    memory: State<MemoryHandle>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let draft = NoteDraft {
        id: None,
        title: title.trim().to_owned(),
        content,
        category: category.parse().unwrap_or_default(),
        scope: scope.parse().unwrap_or_default(),
        tags: normalize_tags(tags)?,
    };
    let owner = memory.owner_for(cx.session());
    let note = memory.create_note(&owner, draft).await?;
    let text = format!("Kept as `{}` in the scope {}, version 1.", note.id, note.scope);
    Ok(Output::text(text).metadata("id", note.id).metadata("version", note.version))
}

fn approval_resources(args: &MemoryCreateArgs, _: &Context) -> Vec<Resource> {
    vec![Resource::new(format!("create/{}", args.scope))]
}

fn suggest_rules(args: &MemoryCreateArgs) -> Vec<String> {
    vec![format!("create/{}", args.scope)]
}
