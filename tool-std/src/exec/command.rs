//! `exec_command`: a command that may run on after the call.

use std::time::{Duration, Instant};

use serde_json::Value;
use tool_sdk::process::Processes;
use tool_sdk::{Context, Output, Subject, ToolError, WorkspacePath, tool};

use super::confined::{self, Confinement};
use super::patch;
use super::program::{Line, base, folder};
use super::report::{Chunk, not_started, recorded};
use super::wait::wait;

/// How long a call waits for the command, in milliseconds.
const YIELD: std::ops::RangeInclusive<u64> = 250..=30_000;

/// Run a command and give back what it wrote.
///
/// A command that still runs after `yield_time_ms` goes on in the background: the result
/// then has a session ID, with which `write_stdin` waits for more output, types into it or
/// interrupts it. The command is read by bash, without start-up files. Commands that are
/// plain words, joined by `&&`, `||`, `;` and `|`, are the ones that need the fewest
/// questions. Long output loses its middle.
#[tool(
    execute,
    category = "shell",
    aliases("bash"),
    display(name = "Run", primary = cmd, show(cmd, workdir, shell, login, env, justification), summary = "Running {cmd}", preview = preview),
    approval(subjects = subjects, suggest = suggestions, dangerous = is_dangerous, facts = facts),
    parallel = shared,
    timeout = "60s",
    truncate = middle,
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
    /// Another shell than bash to read it.
    shell: Option<String>,
    /// Whether the shell reads its start-up files.
    #[arg(default = false)]
    login: bool,
    /// Variables for the command, each as `NAME=value`.
    #[arg(default = vec![])]
    env: Vec<String>,
    /// Whether it gets a terminal, so that `write_stdin` can type into it.
    #[arg(default = false)]
    tty: bool,
    /// How long to wait for it, in milliseconds: at least 250, at most 30000.
    #[arg(default = 10_000)]
    yield_time_ms: u32,
    /// Come back as soon as this text is in the output, such as a prompt or `listening on`.
    #[arg(length = 1..=1024)]
    wait_for: Option<String>,
    /// How many tokens of output to give back at most.
    #[arg(default = 10_000)]
    max_output_tokens: u32,
    /// Why it should run, in a sentence for whoever is asked.
    #[arg(length = ..=1024)]
    justification: Option<String>,
    cx: &Context,
) -> Result<Output, ToolError> {
    // Those who decide have read it; it says nothing of what runs.
    drop(justification);
    let line = Line { script: &cmd, shell: shell.as_deref(), login, env: &env, tty };
    let spawn = line.spawn()?.folder(folder(cx, workdir.as_str())?);
    let spawn = spawn.terminal(tty).until(cx.closed()).sandbox(confined::policy(cx));
    let record = spawn.record();
    let processes = Processes::of(cx.session());
    let started = Instant::now();
    let process = processes.start(&spawn).map_err(not_started)?;
    let mut unheard = Unheard { processes: &processes, id: Some(process.id()) };
    let within =
        Duration::from_millis(u64::from(yield_time_ms).clamp(*YIELD.start(), *YIELD.end()));
    let (look, came) = wait(&process, within, wait_for.as_deref(), cx).await;
    let confinement = Confinement::of(&process, cx).await;
    if look.exit.is_none() {
        unheard.id = None;
    }
    let chunk = Chunk {
        title: process.title(),
        session: process.id(),
        wall: started.elapsed(),
        look: &look,
        came,
        confinement,
        max_tokens: max_output_tokens as usize,
    };
    Ok(recorded(chunk.output(), record))
}

/// A command whose session nobody was told of: it ends with the call, also with one that is
/// cancelled.
struct Unheard<'a> {
    processes: &'a Processes,
    id: Option<u32>,
}

impl Drop for Unheard<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.processes.forget(id);
        }
    }
}

fn line(args: &ExecCommandArgs) -> Line<'_> {
    let ExecCommandArgs { cmd, shell, login, env, tty, .. } = args;
    Line { script: cmd, shell: shell.as_deref(), login: *login, env, tty: *tty }
}

fn subjects(args: &ExecCommandArgs, cx: &Context) -> Vec<Subject> {
    patch::subjects(&args.cmd, || line(args).subjects(&base(cx, args.workdir.as_str())))
}

fn facts(args: &ExecCommandArgs, cx: &Context) -> Vec<(&'static str, String)> {
    line(args).facts(args.workdir.as_str(), cx)
}

fn preview(args: &ExecCommandArgs, cx: &Context) -> Result<Option<Value>, ToolError> {
    let shown = line(args).shown(args.workdir.as_str(), cx);
    confined::preview(shown, &facts(args, cx), cx)
}

fn suggestions(args: &ExecCommandArgs) -> Vec<String> {
    line(args).judged().suggestions()
}

fn is_dangerous(args: &ExecCommandArgs) -> bool {
    line(args).judged().understood().is_dangerous()
}
