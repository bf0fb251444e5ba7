//! The tool `vault_list`: lists notes.

use serde_json::json;
use tool_sdk::{Context, Output, State, ToolError, Workspace, tool};

use crate::notes::{read_notes, vault_resources};

/// List the notes of the vault, with their titles, tags and numbers of backlinks.
#[tool(
    read,
    category = "vault",
    permission = "read",
    approval(resources = |_, cx| vault_resources(cx)),
    display(name = "List notes", show(folder, tag), summary = "Listing notes"),
    example = r#"{}"#,
    example = r#"{"folder": "ideas", "tag": "tea"}"#
)]
pub async fn vault_list(
    /// Only notes below this folder, such as `ideas`.
    #[arg(length = 1..=1024)]
    folder: Option<String>,
    /// Only notes with this tag, without `#`.
    #[arg(length = 1..=100)]
    tag: Option<String>,
    /// How many notes to list at most.
    #[arg(default = 200, range = 1..=2000)]
    limit: u32,
    workspace: State<Workspace>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let visible = cx.visible_files("read");
    cx.run_blocking(move |stop| {
        let vault = read_notes(&workspace, &visible, stop)?;
        let folder = folder.map(|folder| format!("{}/", folder.trim_matches('/')));
        let tag = tag.map(|tag| tag.trim_start_matches('#').to_lowercase());
        let wanted: Vec<_> = vault
            .notes
            .values()
            .filter(|note| folder.as_ref().is_none_or(|folder| note.path.starts_with(folder)))
            .filter(|note| tag.as_ref().is_none_or(|tag| note.tags.contains(tag)))
            .collect();
        let mut text = String::new();
        for note in wanted.iter().take(limit as usize) {
            text.push_str(&format!("{}: {}", note.path, note.title));
            note.tags.iter().for_each(|tag| text.push_str(&format!(" #{tag}")));
            match vault.backlinks(&note.path).len() {
                0 => {}
                1 => text.push_str(" (1 backlink)"),
                many => text.push_str(&format!(" ({many} backlinks)")),
            }
            text.push('\n');
        }
        match wanted.len() {
            0 => text.push_str("No notes found.\n"),
            all if all > limit as usize => {
                text.push_str(&format!(
                    "(Showing {limit} of {all}. Name a folder or raise `limit`.)\n"
                ));
            }
            _ => {}
        }
        text.pop();
        let paths: Vec<&str> = wanted.iter().map(|note| note.path.as_str()).collect();
        Ok(Output::text(text)
            .metadata("notes", paths.len())
            .display(json!({ "type": "notes", "notes": paths })))
    })
    .await
}
