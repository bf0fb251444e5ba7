//! `shell_command`: runs a command line to its end.

use serde_json::Value;
use tool_sdk::{Context, Output, Resource, ToolError, WorkspacePath, tool};

use super::analysis::CommandAnalysis;
use super::command_line::{CommandLine, base_folder, enter_working_folder};
use super::{oneshot, patch_command, sandbox};

/// Run a command line and return its output.
///
/// Bash runs it without start-up files. Standard input is empty, and the command ends with
/// the call.
#[tool(
    execute,
    category = "shell",
    permission = "exec_command",
    display(name = "Run", primary = command, show(command, workdir, justification), summary = "Running {command}", preview = approval_preview),
    approval(resources = call_resources, suggest = suggest_rules, dangerous = is_dangerous, facts = approval_facts),
    timeout = "620s",
    task = optional,
    truncate = middle,
    streaming,
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
    /// Why it should run, in one sentence for the user who is asked.
    #[arg(length = ..=1024)]
    justification: Option<String>,
    cx: &Context,
) -> Result<Output, ToolError> {
    // The approver has read it; it does not affect the command.
    drop(justification);
    let spawn = enter_working_folder(command_line(&command).build_spawn()?, &workdir, cx)?;
    oneshot::run_to_end(spawn, timeout_ms, cx).await
}

fn command_line(script: &str) -> CommandLine<'_> {
    CommandLine { script, shell: None, login: false, env: &[], tty: false }
}

fn analyze_args(args: &ShellCommandArgs) -> CommandAnalysis<'_> {
    command_line(&args.command).analyze()
}

fn call_resources(args: &ShellCommandArgs, cx: &Context) -> Vec<Resource> {
    patch_command::patch_resources(&args.command, || {
        command_line(&args.command).call_resources(&base_folder(cx, &args.workdir))
    })
}

fn approval_facts(args: &ShellCommandArgs, cx: &Context) -> Vec<(&'static str, String)> {
    command_line(&args.command).approval_facts(&args.workdir, cx)
}

fn approval_preview(args: &ShellCommandArgs, cx: &Context) -> Result<Option<Value>, ToolError> {
    let shown = command_line(&args.command).approval_preview(&args.workdir, cx);
    sandbox::approval_preview(shown, &approval_facts(args, cx), cx)
}

fn suggest_rules(args: &ShellCommandArgs) -> Vec<String> {
    analyze_args(args).suggest_rules()
}

fn is_dangerous(args: &ShellCommandArgs) -> bool {
    analyze_args(args).script_analysis().is_dangerous()
}
