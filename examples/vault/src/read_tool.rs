//! The tool `vault_read`: reads a note.

use serde_json::json;
use tool_sdk::{Context, Output, State, ToolError, Workspace, WorkspacePath, tool};

use crate::notes::{locate_note, read_notes};

/// Read a note, with its tags, links and backlinks.
#[tool(
    read,
    category = "vault",
    permission = "read",
    approval(resources = |args, cx| args.note.read_resources(cx)),
    display(name = "Read note", primary = note, show(note), summary = "Reading {note}")
)]
pub async fn vault_read(
    /// Path of the note, such as `ideas/tea.md`.
    note: WorkspacePath,
    workspace: State<Workspace>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let visible = cx.visible_files("read");
    cx.run_blocking(move |stop| {
        let place = locate_note("note", &note, &workspace)?;
        let vault = read_notes(&workspace, &visible, stop)?;
        let note = vault.get(&place.rule_path())?;
        let (links, missing) = vault.links_of(note);
        let backlinks = vault.backlinks(&note.path);
        let mut text = format!("{}: {}\n", note.path, note.title);
        for (name, list) in [
            ("Tags", note.tags.iter().map(String::as_str).collect::<Vec<_>>()),
            ("Links", links.iter().copied().collect()),
            ("Links to no note", missing.iter().map(String::as_str).collect()),
            ("Backlinks", backlinks.clone()),
        ] {
            if !list.is_empty() {
                text.push_str(&format!("{name}: {}\n", list.join(", ")));
            }
        }
        text.push_str(&format!("---\n{}", note.text));
        Ok(Output::text(text).metadata("path", note.path.as_str()).display(json!({
            "type": "note",
            "path": note.path,
            "title": note.title,
            "tags": note.tags,
            "links": links,
            "backlinks": backlinks,
        })))
    })
    .await
}
