//! `exec_command`: runs a command that may continue in the background after the call.

use std::time::{Duration, Instant};

use serde_json::Value;
use tool_sdk::process::{BackgroundProcesses, MAX_ATTENDED};
use tool_sdk::{Context, Output, Resource, ToolError, ToolSettings, WorkspacePath, tool};

use super::command_line::{CommandLine, base_folder, enter_working_folder};
use super::oneshot::session_processes;
use super::output::{SessionOutput, start_error, with_record};
use super::output_wait::wait_for_output;
use super::patch_command;
use super::sandbox::{self, SandboxReport};

/// The limits of `yield_time_ms`.
const YIELD_RANGE_MS: std::ops::RangeInclusive<u64> = 250..=30_000;

/// Run a command and return its output.
///
/// A command that still runs after `yield_time_ms` continues in the background: the result
/// then has a session ID. Use it with `write_stdin` to wait for more output, to type into the
/// command or to interrupt it. Bash runs the command without start-up files. Prefer plain
/// words joined by `&&`, `||`, `;` and `|`: such commands need the fewest approvals. Long
/// output is truncated in the middle.
#[tool(
    execute,
    category = "shell",
    aliases("bash"),
    display(name = "Run", primary = cmd, show(cmd, workdir, shell, login, env, justification), summary = "Running {cmd}", preview = approval_preview),
    approval(resources = call_resources, suggest = suggest_rules, dangerous = is_dangerous, facts = approval_facts),
    timeout = "60s",
    task = optional,
    truncate = middle,
    streaming,
    example = r#"{"cmd": "git status"}"#
)]
#[expect(clippy::too_many_arguments, reason = "each is a parameter of the tool")]
pub async fn exec_command(
    /// The command line.
    #[arg(alias("command"))]
    cmd: String,
    /// The folder to run it in, relative to the workspace or absolute inside it.
    #[arg(default = ".")]
    workdir: WorkspacePath,
    /// A shell to run it instead of bash.
    shell: Option<String>,
    /// Whether the shell reads its start-up files.
    #[arg(default = false)]
    login: bool,
    /// Variables for the command, each as `NAME=value`.
    #[arg(default = vec![])]
    env: Vec<String>,
    /// Whether to run it in a terminal, so that `write_stdin` can type into it.
    #[arg(default = false)]
    tty: bool,
    /// How long to wait for it, in milliseconds: at least 250, at most 30000.
    #[arg(default = 10_000)]
    yield_time_ms: u32,
    /// Return as soon as this text is in the output, such as a prompt or `listening on`.
    #[arg(length = 1..=1024)]
    wait_for: Option<String>,
    /// The maximum number of tokens of output to return.
    #[arg(default = 10_000)]
    max_output_tokens: u32,
    /// Why it should run, in one sentence for the user who is asked.
    #[arg(length = ..=1024)]
    justification: Option<String>,
    cx: &Context,
) -> Result<Output, ToolError> {
    // The approver has read it; it does not affect the command.
    drop(justification);
    let line = CommandLine { script: &cmd, shell: shell.as_deref(), login, env: &env, tty };
    let spawn = enter_working_folder(line.build_spawn()?, &workdir, cx)?;
    let spawn = spawn.terminal(tty).cancel_on(cx.shutdown_token());
    let record = spawn.to_record();
    let processes = session_processes(cx);
    let within = Duration::from_millis(
        u64::from(yield_time_ms).clamp(*YIELD_RANGE_MS.start(), *YIELD_RANGE_MS.end()),
    );
    let _slot = tokio::time::timeout(within, processes.acquire_attended_slot())
        .await
        .map_err(|_| too_many_commands())?;
    let spawn = spawn.sandbox(sandbox::start_policy(cx).await?);
    let started = Instant::now();
    let process = processes.spawn(&spawn).map_err(start_error)?;
    let mut unreported = UnreportedSession { processes: &processes, id: Some(process.id()) };
    // Without a background, the command has until the call times out.
    let (within, wait_for) = match ToolSettings::from_session(cx.session()).background_processes {
        true => (within, wait_for.as_deref()),
        false => (Duration::MAX, None),
    };
    let (snapshot, is_text_found) = wait_for_output(&process, within, wait_for, cx).await;
    let confinement = SandboxReport::from_process(&process, cx).await;
    if snapshot.exit.is_none() {
        unreported.id = None;
    }
    let chunk = SessionOutput {
        title: process.title(),
        session: process.id(),
        wall: started.elapsed(),
        snapshot: &snapshot,
        is_text_found,
        sandbox: confinement,
        max_tokens: max_output_tokens as usize,
    };
    Ok(with_record(chunk.to_output(), record))
}

/// Returns the error of a command for which there is no slot in time.
fn too_many_commands() -> ToolError {
    ToolError::unavailable(format_args!("{MAX_ATTENDED} commands already run at once"))
        .hint("run it again when one of them has ended, or wait longer with `yield_time_ms`")
}

/// A session whose ID was not reported yet. Dropping it ends the command, also when the call is
/// cancelled.
struct UnreportedSession<'a> {
    processes: &'a BackgroundProcesses,
    id: Option<u32>,
}

impl Drop for UnreportedSession<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.processes.remove(id);
        }
    }
}

fn command_line(args: &ExecCommandArgs) -> CommandLine<'_> {
    let ExecCommandArgs { cmd, shell, login, env, tty, .. } = args;
    CommandLine { script: cmd, shell: shell.as_deref(), login: *login, env, tty: *tty }
}

fn call_resources(args: &ExecCommandArgs, cx: &Context) -> Vec<Resource> {
    patch_command::patch_resources(&args.cmd, || {
        command_line(args).call_resources(&base_folder(cx, &args.workdir))
    })
}

fn approval_facts(args: &ExecCommandArgs, cx: &Context) -> Vec<(&'static str, String)> {
    command_line(args).approval_facts(&args.workdir, cx)
}

fn approval_preview(args: &ExecCommandArgs, cx: &Context) -> Result<Option<Value>, ToolError> {
    let shown = command_line(args).approval_preview(&args.workdir, cx);
    sandbox::approval_preview(shown, &approval_facts(args, cx), cx)
}

fn suggest_rules(args: &ExecCommandArgs) -> Vec<String> {
    command_line(args).analyze().suggest_rules()
}

fn is_dangerous(args: &ExecCommandArgs) -> bool {
    command_line(args).analyze().script_analysis().is_dangerous()
}
