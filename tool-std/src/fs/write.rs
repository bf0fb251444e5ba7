//! The tool `write_file`: creates a file or replaces its content.

use serde_json::Value;
use tool_sdk::{
    Changes, Context, Output, RiskClass, State, Stop, Subject, ToolError, Workspace, WorkspacePath,
    tool,
};

use super::target::{Named, Target, counts, display, is_of_a_file, preview};
use crate::diff::Detail;
use crate::stop;

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
    approval(subjects = subjects),
    display(
        name = "Write",
        primary = path,
        show(path),
        summary = "Writing {path}",
        preview = shown_before,
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
    is_of_a_file(path.as_str())?;
    let place = path.locate(&workspace)?;
    let locks = workspace.lock([&place]).await;
    let sight = cx.sight("read");
    cx.blocking(move |stop| {
        let _locks = locks;
        stop::check(stop)?;
        let target = Named::new(&path, place, &workspace, &sight).shown()?;
        let text = target.fitting(content);
        write(target, text, stop)
    })
    .await
}

fn write(target: Target, text: String, stop: &Stop) -> Result<Output, ToolError> {
    let diff = target.diff(Some(&text), Detail::Shown);
    let (did, operation) = match (target.exists(), diff.diff.unified.is_empty()) {
        (false, _) => ("Created", "create"),
        (true, false) => ("Overwrote", "write"),
        (true, true) => ("Rewrote", "write"),
    };
    let (path, spelling, created) = (target.path(), target.spelling(), !target.exists());
    let note = target.was();
    stop.hold()?;
    target.change(Changes::new(), Some(text)).apply(|| stop.is_stopped())?;
    let output = Output::text(format!(
        "{did} `{path}`{}.{}",
        counts(&diff),
        note.map(|was| format!("\nNote: the file {was}.")).unwrap_or_default()
    ))
    .metadata("path", spelling)
    .metadata("created", created)
    .display(display(operation, &diff));
    Ok(match diff.counts() {
        None => output,
        Some((added, removed)) => output.metadata("added", added).metadata("removed", removed),
    })
}

fn subjects(args: &WriteFileArgs, cx: &Context) -> Vec<Subject> {
    match is_of_a_file(args.path.as_str()) {
        Ok(()) => args.path.written(cx),
        // An invalid path touches nothing; the call fails with the reason.
        Err(_) => vec![Subject::new(args.path.as_str()).class(RiskClass::Read)],
    }
}

fn shown_before(args: &WriteFileArgs, cx: &Context) -> Result<Option<Value>, ToolError> {
    let diff = || {
        is_of_a_file(args.path.as_str())?;
        let target = Named::by(&args.path, cx)?.show()?;
        let text = target.fitting(args.content.clone());
        Ok(target.diff(Some(&text), Detail::Shown).to_json())
    };
    preview(diff(), [&args.path], cx)
}
