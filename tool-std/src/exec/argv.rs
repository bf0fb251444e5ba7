//! `shell`: a program with its arguments, which no shell reads.

use serde_json::Value;
use tool_sdk::process::Spawn;
use tool_sdk::{Context, Output, Subject, ToolError, WorkspacePath, tool};

use super::facts::Facts;
use super::judged::Judged;
use super::program::{base, environment, folder};
use super::{confined, once, patch};
use crate::shell::without_login;

/// Run a program with its arguments and give back what it wrote.
///
/// No shell reads the arguments: for pipes, redirections and lists of commands, run
/// `["bash", "-c", "..."]`. The program has nothing to read, and ends with the call.
#[tool(
    execute,
    category = "shell",
    permission = "exec_command",
    display(name = "Run", primary = command, show(command, workdir, justification), summary = "Running {command}", preview = preview),
    approval(subjects = subjects, suggest = suggestions, dangerous = is_dangerous, facts = facts),
    timeout = "620s",
    truncate = middle,
    example = r#"{"command": ["git", "status"]}"#
)]
pub async fn shell(
    /// The program, and then each of its arguments.
    #[arg(length = 1..)]
    command: Vec<String>,
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
    let started = without_login(&command);
    let [program, args @ ..] = &*started else {
        return Err(ToolError::invalid("command", "there is no program"));
    };
    patch::refuse(&command.join(" "))?;
    Judged::argv(&command).whole()?;
    let spawn = Spawn::exec(program, args)
        .env(environment(&[])?)
        .folder(folder(cx, workdir.as_str())?)
        .sandbox(confined::policy(cx))
        .title(command.join(" "));
    once::run(spawn, timeout_ms, cx).await
}

fn subjects(args: &ShellArgs, cx: &Context) -> Vec<Subject> {
    let judged = || Judged::argv(&args.command).subjects(&base(cx, args.workdir.as_str()));
    patch::subjects(&args.command.join(" "), judged)
}

fn facts(args: &ShellArgs, cx: &Context) -> Vec<(&'static str, String)> {
    with_facts(args, cx, |facts| facts.list(cx)).unwrap_or_default()
}

fn with_facts<T>(args: &ShellArgs, cx: &Context, look: impl FnOnce(Facts<'_>) -> T) -> Option<T> {
    let (judged, env) = (Judged::argv(&args.command), environment(&[]).ok()?);
    let folder = folder(cx, args.workdir.as_str()).ok();
    Some(look(Facts { judged: &judged, shell: None, folder, env }))
}

fn preview(args: &ShellArgs, cx: &Context) -> Result<Option<Value>, ToolError> {
    let shown = with_facts(args, cx, |facts| facts.shown()).flatten();
    confined::preview(shown, &facts(args, cx), cx)
}

fn suggestions(args: &ShellArgs) -> Vec<String> {
    Judged::argv(&args.command).suggestions()
}

fn is_dangerous(args: &ShellArgs) -> bool {
    Judged::argv(&args.command).understood().is_dangerous()
}
