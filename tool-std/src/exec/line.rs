//! `shell_command`: a command line that ends with the call.

use serde_json::Value;
use tool_sdk::{Context, Output, Subject, ToolError, WorkspacePath, tool};

use super::judged::Judged;
use super::program::{Line, base, folder};
use super::{confined, once, patch};

/// Run a command line and give back what it wrote.
///
/// It is read by bash, without start-up files; it has nothing to read, and ends with the
/// call.
#[tool(
    execute,
    category = "shell",
    permission = "exec_command",
    display(name = "Run", primary = command, show(command, workdir, justification), summary = "Running {command}", preview = preview),
    approval(subjects = subjects, suggest = suggestions, dangerous = is_dangerous, facts = facts),
    timeout = "620s",
    truncate = middle,
    example = r#"{"command": "git status"}"#
)]
pub async fn shell_command(
    /// The command line.
    #[arg(alias("cmd"))]
    command: String,
    /// The folder to run it in, relative to the workspace or absolute inside it.
    #[arg(default = ".")]
    workdir: WorkspacePath,
    /// How long it may run, in milliseconds.
    #[arg(default = 120_000, range = 1..=600_000)]
    timeout_ms: u64,
    /// Why it should run, in a sentence for whoever is asked.
    #[arg(length = ..=1024)]
    justification: Option<String>,
    cx: &Context,
) -> Result<Output, ToolError> {
    // Those who decide have read it; it says nothing of what runs.
    drop(justification);
    let spawn = line(&command).spawn()?.folder(folder(cx, workdir.as_str())?);
    let spawn = spawn.sandbox(confined::policy(cx));
    once::run(spawn, timeout_ms, cx).await
}

fn line(script: &str) -> Line<'_> {
    Line { script, shell: None, login: false, env: &[], tty: false }
}

fn judged(args: &ShellCommandArgs) -> Judged<'_> {
    line(&args.command).judged()
}

fn subjects(args: &ShellCommandArgs, cx: &Context) -> Vec<Subject> {
    patch::subjects(&args.command, || {
        line(&args.command).subjects(&base(cx, args.workdir.as_str()))
    })
}

fn facts(args: &ShellCommandArgs, cx: &Context) -> Vec<(&'static str, String)> {
    line(&args.command).facts(args.workdir.as_str(), cx)
}

fn preview(args: &ShellCommandArgs, cx: &Context) -> Result<Option<Value>, ToolError> {
    let shown = line(&args.command).shown(args.workdir.as_str(), cx);
    confined::preview(shown, &facts(args, cx), cx)
}

fn suggestions(args: &ShellCommandArgs) -> Vec<String> {
    judged(args).suggestions()
}

fn is_dangerous(args: &ShellCommandArgs) -> bool {
    judged(args).understood().is_dangerous()
}
