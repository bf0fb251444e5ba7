//! The tool `vault_write`: writes a note, or adds to it.

use serde_json::{Value, json};
use tool_sdk::{
    Context, FileTransaction, Output, ResolvedPath, Snapshot, State, ToolError, Workspace,
    WorkspacePath, tool,
};

use crate::notes::{MAX_NOTE, check_note_path, check_note_size, decode_note, locate_note};

/// Write a note: make it, replace it, or add to its end. Link to other notes as `[[name]]`, and tag as
/// `#tag`.
#[tool(
    write,
    category = "vault",
    permission = "edit",
    approval(resources = |args, cx| args.note.write_resources(cx)),
    display(
        name = "Write note",
        primary = note,
        show(note, mode),
        summary = "Writing {note}",
        preview = preview_write
    ),
    parallel = by(note),
    example = r##"{"note": "ideas/tea.md", "content": "# Tea\n\nSee [[Pot]]. #drinks\n"}"##
)]
pub async fn vault_write(
    /// Path of the note, such as `ideas/tea.md`. Missing folders are made.
    note: WorkspacePath,
    /// The text in Markdown.
    #[arg(length = 0..=1_000_000)]
    content: String,
    /// `create` fails when the note exists, `replace` writes it anew, `append` adds to its end.
    #[arg(default = "create", choices("create", "replace", "append"))]
    mode: String,
    workspace: State<Workspace>,
    cx: &Context,
) -> Result<Output, ToolError> {
    check_note_path("note", note.as_str())?;
    let place = locate_note("note", &note, &workspace)?;
    let locks = workspace.lock_files([&place]).await;
    cx.run_blocking(move |stop| {
        let _locks = locks;
        let (before, after) = planned_text(&place, &content, &mode)?;
        check_note_size(&after)?;
        let is_new = before.content().is_none();
        stop.hold()?;
        FileTransaction::new().write(place.clone(), before, after).commit(|| stop.is_stopped())?;
        let did = match (is_new, &*mode) {
            (true, _) => "Created",
            (false, "append") => "Added to",
            (false, _) => "Replaced",
        };
        Ok(Output::text(format!("{did} `{}`.", place.display())).metadata("created", is_new))
    })
    .await
}

/// Returns the note as it is, and the text that it will have.
fn planned_text(
    place: &ResolvedPath,
    content: &str,
    mode: &str,
) -> Result<(Snapshot, String), ToolError> {
    let before = place.snapshot(MAX_NOTE)?;
    let Some(old) = before.content() else { return Ok((before, content.to_owned())) };
    let after = match mode {
        "create" => {
            let message = format_args!("the note `{}` exists already", place.display());
            return Err(ToolError::conflict(message).hint("use the mode `replace` or `append`"));
        }
        "append" => {
            let old = decode_note(place, old)?;
            let gap = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
            format!("{old}{gap}{content}")
        }
        _ => content.to_owned(),
    };
    Ok((before, after))
}

/// Shows the text that is written. The old text may need another approval, so it is not shown.
fn preview_write(args: &VaultWriteArgs, _: &Context) -> Result<Option<Value>, ToolError> {
    check_note_path("note", args.note.as_str())?;
    Ok(Some(json!({
        "type": "note_write",
        "note": args.note.as_str(),
        "mode": args.mode,
        "content": args.content,
    })))
}
