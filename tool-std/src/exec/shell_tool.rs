//! `shell`: runs a program with its arguments, without a shell.

use serde_json::Value;
use tool_sdk::process::BackgroundCommand;
use tool_sdk::{Context, Output, Resource, ToolError, WorkspacePath, tool};
use tool_shell_analysis::internal::strip_login_option;

use super::analysis::CommandAnalysis;
use super::approval_binding::ApprovalBinding;
use super::command_line::{base_folder, child_environment, enter_working_folder, working_folder};
use super::{oneshot, patch_command, sandbox};

/// Run a program with its arguments and return its output.
///
/// No shell parses the arguments: for pipes, redirections and several commands, run
/// `["bash", "-c", "..."]`. Standard input is empty, and the program ends with the call.
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
    example = r#"{"command": ["git", "status"]}"#
)]
pub async fn shell(
    /// The program, followed by its arguments.
    #[arg(length = 1..)]
    command: Vec<String>,
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
    let started = strip_login_option(&command);
    let [program, args @ ..] = &*started else {
        return Err(ToolError::invalid("command", "there is no program"));
    };
    patch_command::reject_patch(&command.join(" "))?;
    CommandAnalysis::from_argv(&command).check_complete()?;
    let spawn =
        BackgroundCommand::new(program, args).env(child_environment(&[])?).title(command.join(" "));
    oneshot::run_to_end(enter_working_folder(spawn, &workdir, cx)?, timeout_ms, cx).await
}

fn call_resources(args: &ShellArgs, cx: &Context) -> Vec<Resource> {
    let resources = || {
        CommandAnalysis::from_argv(&args.command).call_resources(&base_folder(cx, &args.workdir))
    };
    patch_command::patch_resources(&args.command.join(" "), resources)
}

fn approval_facts(args: &ShellArgs, cx: &Context) -> Vec<(&'static str, String)> {
    with_binding(args, cx, |facts| facts.collect_facts(cx)).unwrap_or_default()
}

fn with_binding<T>(
    args: &ShellArgs,
    cx: &Context,
    inspect: impl FnOnce(ApprovalBinding<'_>) -> T,
) -> Option<T> {
    let (analysis, env) = (CommandAnalysis::from_argv(&args.command), child_environment(&[]).ok()?);
    let folder = working_folder(cx, &args.workdir).ok().map(|folder| folder.absolute_path());
    Some(inspect(ApprovalBinding { analysis: &analysis, shell: None, folder, env }))
}

fn approval_preview(args: &ShellArgs, cx: &Context) -> Result<Option<Value>, ToolError> {
    let shown = with_binding(args, cx, |facts| facts.to_preview()).flatten();
    sandbox::approval_preview(shown, &approval_facts(args, cx), cx)
}

fn suggest_rules(args: &ShellArgs) -> Vec<String> {
    CommandAnalysis::from_argv(&args.command).suggest_rules()
}

fn is_dangerous(args: &ShellArgs) -> bool {
    CommandAnalysis::from_argv(&args.command).script_analysis().is_dangerous()
}
