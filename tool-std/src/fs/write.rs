//! The tool `write_file`: creates a file or replaces its content.

use serde_json::Value;
use tool_sdk::{
    Context, FileTransaction, Output, Resource, RiskClass, State, ToolError, WorkStop, Workspace,
    WorkspacePath, tool,
};

use super::edit_target::{
    EditTarget, RequestedFile, check_file_path, diff_display, format_counts, preview_or_error,
};
use crate::cancel;
use crate::diff::DiffDetail;

/// Write a file as a whole: make it, or replace all that it says.
///
/// Missing folders are made. To change a part of a file, edit it instead. A file that is
/// replaced keeps its line ends and its byte order mark, and may have 64 MiB and two million
/// lines. The new text is UTF-8.
#[tool(
    write,
    destructive,
    idempotent,
    category = "filesystem",
    permission = "edit",
    approval(resources = approval_resources),
    display(
        name = "Write",
        primary = path,
        show(path),
        summary = "Writing {path}",
        preview = approval_preview,
    ),
    aliases("write"),
    parallel = by(path),
    example = r##"{"path": "notes/plan.md", "content": "# Plan\n"}"##
)]
pub async fn write_file(
    /// Path of the file, relative to the workspace or absolute inside it.
    #[arg(alias("file_path"))]
    path: WorkspacePath,
    /// The whole new text.
    content: String,
    workspace: State<Workspace>,
    cx: &Context,
) -> Result<Output, ToolError> {
    check_file_path(path.as_str())?;
    let place = path.locate(&workspace)?;
    let locks = workspace.lock_files([&place]).await;
    let sight = cx.visible_files("read");
    cx.run_blocking(move |stop| {
        let _locks = locks;
        cancel::check_cancelled(stop)?;
        let target = RequestedFile::new(&path, place, &workspace, &sight).previewed_or_read()?;
        let text = target.match_line_endings(content);
        replace_file(target, text, stop)
    })
    .await
}

fn replace_file(target: EditTarget, text: String, stop: &WorkStop) -> Result<Output, ToolError> {
    let diff = target.diff(Some(&text), DiffDetail::Full);
    let (did, operation) = match (target.exists(), diff.diff.unified.is_empty()) {
        (false, _) => ("Created", "create"),
        (true, false) => ("Overwrote", "write"),
        (true, true) => ("Rewrote", "write"),
    };
    let (path, spelling, created) = (target.display_path(), target.spelling(), !target.exists());
    let note = target.encoding_note();
    stop.hold()?;
    target.add_change(FileTransaction::new(), Some(text)).commit(|| stop.is_stopped())?;
    let output = Output::text(format!(
        "{did} `{path}`{}.{}",
        format_counts(&diff),
        note.map(|was| format!("\nNote: the file {was}.")).unwrap_or_default()
    ))
    .metadata("path", spelling)
    .metadata("created", created)
    .display(diff_display(operation, &diff));
    Ok(match diff.line_counts() {
        None => output,
        Some((added, removed)) => output.metadata("added", added).metadata("removed", removed),
    })
}

fn approval_resources(args: &WriteFileArgs, cx: &Context) -> Vec<Resource> {
    match check_file_path(args.path.as_str()) {
        Ok(()) => args.path.write_resources(cx),
        // An invalid path touches nothing; the call fails with the reason.
        Err(_) => vec![Resource::new(args.path.as_str()).with_class(RiskClass::Read)],
    }
}

fn approval_preview(args: &WriteFileArgs, cx: &Context) -> Result<Option<Value>, ToolError> {
    let diff = || {
        check_file_path(args.path.as_str())?;
        let target = RequestedFile::resolve(&args.path, cx)?.read_for_preview()?;
        let text = target.match_line_endings(args.content.clone());
        Ok(target.diff(Some(&text), DiffDetail::Full).to_json())
    };
    preview_or_error(diff(), [&args.path], cx)
}
