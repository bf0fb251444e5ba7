//! `write_stdin`: types into a command that runs on, or waits for more of its output.
//!
//! What is typed is judged by the program that reads it. For bash it is a script. Of every
//! other program nobody knows what it makes of it: an interpreter runs it, a question takes it
//! for an answer. So somebody is asked, and rules that forbid see it as a script all the same.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tool_sdk::process::{Process, Processes, TypeError};
use tool_sdk::{Context, Output, RiskClass, Subject, ToolError, tool};

use super::confined::{self, Confinement};
use super::files::Base;
use super::judged::Judged;
use super::report::Chunk;
use super::wait::wait;
use crate::shell::Why;

/// Where the shell lies whose scripts are understood.
const SHELLS: &[&str] =
    &["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash"];

/// Programs that read lines, which the terminal or they themselves let people edit.
const READERS: &[&str] =
    &["ash", "bash", "busybox", "csh", "dash", "fish", "ksh", "sh", "tcsh", "zsh"];

/// What Ctrl-C types, and what Ctrl-D types.
const INTERRUPT: &str = "\u{3}";
const END: &str = "\u{4}";

/// How long a call waits after something was typed, in milliseconds.
const AFTER_TYPING: std::ops::RangeInclusive<u64> = 250..=30_000;

/// How long a call waits that types nothing.
const EMPTY: std::ops::RangeInclusive<u64> = 5_000..=300_000;

/// Type into a running command, or wait for more of its output.
///
/// Without `chars` it only waits, and returns early when the command ends. `\u0003` alone
/// interrupts it. Anything else needs a command that was started with `tty`; end a line with
/// a newline. When the command has ended, the rest of its output comes once.
#[tool(
    execute,
    category = "shell",
    permission = "exec_command",
    display(name = "Type", primary = chars, show(session_id, chars), summary = "Typing into session {session_id}", preview = preview),
    approval(subjects = subjects, suggest = suggestions, dangerous = is_dangerous),
    parallel = by(session_id),
    timeout = "310s",
    truncate = middle
)]
pub async fn write_stdin(
    /// The session ID of the command.
    session_id: u32,
    /// What to type; nothing to only wait.
    #[arg(default = "")]
    chars: String,
    /// How long to wait for output, in milliseconds: at most 30000 after typing, and between
    /// 5000 and 300000 without.
    #[arg(default = 250)]
    yield_time_ms: u32,
    /// Come back as soon as this text is in the output, such as a prompt. A terminal echoes
    /// what is typed.
    #[arg(length = 1..=1024)]
    wait_for: Option<String>,
    /// How many tokens of output to give back at most.
    #[arg(default = 10_000)]
    max_output_tokens: u32,
    cx: &Context,
) -> Result<Output, ToolError> {
    let processes = Processes::of(cx.session());
    let process = processes.get(session_id).ok_or_else(|| unknown(session_id))?;
    let started = Instant::now();
    // What has ended reads nothing; the rest of its output is still to be had.
    if process.exit().is_none() && !chars.is_empty() {
        Judged::script(&*chars).whole()?;
        type_in(&process, &chars, cx).await?;
    }
    let range = if chars.is_empty() { EMPTY } else { AFTER_TYPING };
    let within =
        Duration::from_millis(u64::from(yield_time_ms).clamp(*range.start(), *range.end()));
    let (look, came) = wait(&process, within, wait_for.as_deref(), cx).await;
    if look.exit.is_some() {
        processes.forget(session_id);
    }
    let chunk = Chunk {
        title: process.title(),
        session: session_id,
        wall: started.elapsed(),
        look: &look,
        came,
        confinement: Confinement::of(&process, cx).await,
        max_tokens: max_output_tokens as usize,
    };
    Ok(chunk.output())
}

async fn type_in(process: &Process, chars: &str, cx: &Context) -> Result<(), ToolError> {
    if !process.has_terminal() {
        if chars != INTERRUPT {
            return Err(closed());
        }
        process.interrupt();
        return Ok(());
    }
    if edits(chars) && may_be_shell(process) {
        return Err(ToolError::denied("keys that edit a line hide what a shell gets in the end")
            .hint("type whole lines, or Ctrl-C or Ctrl-D alone"));
    }
    let line = process.typed() + chars;
    if line.len() > chars.len() && chars != INTERRUPT {
        continued(&line, chars, cx).await?;
    }
    match process.type_in(chars).await {
        // It has just ended: what it wrote says why.
        Ok(()) | Err(TypeError::Gone(_)) => Ok(()),
        Err(error @ TypeError::Stuck) => Err(ToolError::failed(error)),
        Err(_) => Err(closed()),
    }
}

/// Judges a line of which a part was typed before: only together they say what is run.
async fn continued(line: &str, last: &str, cx: &Context) -> Result<(), ToolError> {
    let (whole, part) = (Judged::script(line), Judged::script(last));
    let (whole, part) = (whole.understood(), part.understood());
    if whole.writes != part.writes || whole.reads != part.reads {
        return Err(ToolError::denied("the name of a file was typed in parts")
            .hint("interrupt with `\\u0003`, and type the whole line at once"));
    }
    for command in &whole.commands {
        for text in std::iter::once(command.text.clone()).chain(command.bare()) {
            if !cx.ask("exec_command", text).await {
                return Err(ToolError::denied(format_args!("`{line}` may not be typed")));
            }
        }
    }
    Ok(())
}

/// Whether some of it changes what was typed before it.
fn edits(chars: &str) -> bool {
    let is_key = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    chars != INTERRUPT && chars != END && chars.contains(is_key)
}

/// Whether a shell reads what is typed, or nobody knows what does.
fn may_be_shell(process: &Process) -> bool {
    let name = process.reader().and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    name.is_none_or(|name| READERS.contains(&&*name))
}

pub(super) fn unknown(session: u32) -> ToolError {
    ToolError::not_found(format_args!("Unknown process id {session}"))
        .hint("`list_sessions` lists those that there are; ended ones are forgotten once read")
}

fn closed() -> ToolError {
    ToolError::failed(
        "stdin is closed for this session; rerun exec_command with tty=true to keep stdin open",
    )
}

fn judged(args: &WriteStdinArgs) -> Option<Judged<'_>> {
    let chars = args.chars.as_str();
    if chars.is_empty() || chars == INTERRUPT {
        return None;
    }
    // How a line goes on that is not ended yet nobody knows, nor what an interactive shell
    // makes of a part of an earlier one, or completes a word to.
    let recalls =
        chars.contains(['!', '\t']) || chars.split(['\n', '\r']).any(|line| line.starts_with('^'));
    let why = match chars.ends_with(['\n', '\r']) {
        false => Some(Why::Unclosed),
        true => recalls.then_some(Why::Expansion),
    };
    Some(Judged::script(chars.replace('\r', "\n")).doubted(why))
}

fn subjects(args: &WriteStdinArgs, cx: &Context) -> Vec<Subject> {
    match judged(args) {
        // Whoever started it may look at it and stop it.
        None => vec![Subject::new("*").class(RiskClass::Read)],
        Some(judged) => {
            let why = (!is_read_by_bash(args.session_id, cx)).then_some(Why::OtherShell);
            // What a name stands for may have been changed in that very shell, and so may its
            // folder have been.
            judged.doubted(why).unsure().subjects(&Base::new(cx, None))
        }
    }
}

/// Whether a bash of the system reads what is typed into the session now.
fn is_read_by_bash(session: u32, cx: &Context) -> bool {
    let reader = session_of(session, cx).and_then(|process| process.reader());
    reader.is_some_and(|reader| SHELLS.iter().any(|shell| reader == Path::new(shell)))
}

/// The process, without counting as a use of it.
fn session_of(session: u32, cx: &Context) -> Option<Arc<Process>> {
    let processes = Processes::of(cx.session());
    processes.list().into_iter().find(|process| process.id() == session)
}

fn preview(args: &WriteStdinArgs, cx: &Context) -> Option<Value> {
    session_of(args.session_id, cx).map(|process| confined::preview_of(&process, cx))
}

fn suggestions(args: &WriteStdinArgs) -> Vec<String> {
    judged(args).map(|judged| judged.suggestions()).unwrap_or_default()
}

fn is_dangerous(args: &WriteStdinArgs) -> bool {
    judged(args).is_some_and(|judged| judged.understood().is_dangerous())
}
