//! `write_stdin`: types into a command that runs on, or waits for more of its output.
//!
//! What is typed is judged by the program that reads it. For bash it is a script. Of every
//! other program nobody knows what it makes of it: an interpreter runs it, a question takes it
//! for an answer. So somebody is asked, and rules that forbid see it as a script all the same.

use std::borrow::Cow;
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
use super::{ends, open, shells};
use crate::shell::{Understood, Why, bare_name};

/// Programs that change what the terminal or the shell makes of what is typed later.
const REBINDING: &[&str] = &["alias", "bind", "enable", "hash", "shopt"];

/// Builtins that read what is typed next.
const READING: &[&str] = &["mapfile", "read", "readarray", "select"];

/// How often it is looked whether a shell waits at its prompt again, and how long it takes a
/// moment in between.
const LOOKS: usize = 20;
const MOMENT: Duration = Duration::from_millis(2);

/// Words of `stty` that do so: keys, and whatever says many things at once.
const KEYS: &[&str] = &[
    "discard", "eof", "eol", "eol2", "erase", "igncr", "intr", "istrip", "iuclc", "kill", "lcase",
    "lnext", "quit", "rprnt", "start", "stop", "susp", "swtch", "werase",
];

/// How much is kept of what stands open: more than is judged.
const MOST_KEPT: usize = 256 << 10;

/// With how many lines of what stands open a text is judged.
const MOST_OPEN: usize = 8;

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
    if chars == INTERRUPT {
        return done(process.type_from(chars, None, opened_from).await);
    }
    let hides = if edits(chars) {
        Some("keys that edit a line hide what a shell gets in the end")
    } else if process.alters(chars) {
        Some("the terminal was told to take some of it for keys that edit a line")
    } else {
        // It may do so only when more was typed.
        sets_keys(Judged::script(lines(chars)).understood())
            .then_some("other keys that edit a line would hide what is typed later")
    };
    if let Some(why) = hides.filter(|_| shells::may_read(process)) {
        return Err(ToolError::denied(why).hint(
            "type whole lines, or Ctrl-C or Ctrl-D alone; `stty sane` makes all other keys plain",
        ));
    }
    let typed = process.typed();
    let open = going_on(&typed[opened_from(&typed)..], process);
    let whole = lines(&format!("{open}{chars}"));
    Judged::script(&*whole).whole()?;
    if !open.is_empty() {
        is_named_at_once(&whole, open, chars)?;
    }
    if may_mix(process, chars).await {
        process.mix_up(cx.call(), opened_from);
    }
    done(process.type_from(chars, Some(cx.call()), opened_from).await)
}

/// Whether a bash may get only a part of what is typed, and be left in a quote by it.
async fn may_mix(process: &Process, chars: &str) -> bool {
    let text = lines(chars);
    let is_read = || {
        let judged = Judged::script(&*text);
        named(judged.understood()).any(|(name, _)| READING.contains(&&*name))
    };
    if is_read() || open::may_open(&text) && open::is_mixed(&text) {
        return shells::has_bash(process);
    }
    if !open::may_open(&text) {
        return false;
    }
    for _ in 0..LOOKS {
        if shells::is_bash_at_prompt(process) {
            return false;
        }
        if !shells::is_bash(process) {
            break;
        }
        // What shows that a command has ended may come right before the prompt.
        tokio::time::sleep(MOMENT).await;
    }
    shells::has_bash(process)
}

fn done(typed: Result<(), TypeError>) -> Result<(), ToolError> {
    match typed {
        // It has just ended: what it wrote says why.
        Ok(()) | Err(TypeError::Gone(_)) => Ok(()),
        Err(error @ TypeError::Stuck) => Err(ToolError::failed(error)),
        Err(error @ TypeError::Changed) => Err(ToolError::conflict(error)),
        Err(_) => Err(closed()),
    }
}

/// Fails where the name of a file was typed in parts, none of which names it.
fn is_named_at_once(whole: &str, before: &str, last: &str) -> Result<(), ToolError> {
    let [whole, before, last] = [whole, before, last].map(|text| Judged::script(lines(text)));
    let [whole, before, last] = [&whole, &before, &last].map(Judged::understood);
    let is_in = |path, one: &[String], other: &[String]| one.contains(path) || other.contains(path);
    let is_named = whole.writes.iter().all(|path| is_in(path, &before.writes, &last.writes))
        && whole.reads.iter().all(|path| is_in(path, &before.reads, &last.reads));
    match is_named {
        true => Ok(()),
        false => Err(ToolError::denied("the name of a file was typed in parts")
            .hint("interrupt with `\\u0003`, and type the whole line at once")),
    }
}

/// Where the part of what was typed begins that stands open.
fn opened_from(typed: &str) -> usize {
    // What is longer is refused, wherever it begins.
    let most = (typed.len().saturating_sub(MOST_KEPT)..).find(|at| typed.is_char_boundary(*at));
    open::start(&lines(typed)).max(most.unwrap_or_default())
}

/// The part of it that what reads now may go on with: only a shell waits for the end of what it
/// understands, any other program for that of a line.
fn going_on<'t>(open: &'t str, process: &Process) -> &'t str {
    let line = open.rfind(['\n', '\r']).map_or(0, |at| at + 1);
    if line > 0 && shells::is_none(process) { &open[line..] } else { open }
}

/// A text with the line ends that bash knows: a terminal takes both for one.
fn lines(text: &str) -> String {
    text.replace('\r', "\n")
}

/// Whether some of it changes what was typed before it.
fn edits(chars: &str) -> bool {
    let is_key = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    chars != INTERRUPT && chars != END && chars.contains(is_key)
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

/// Whether nothing has to be judged: whoever started it may look at it and stop it.
fn only_looks(args: &WriteStdinArgs) -> bool {
    args.chars.is_empty() || args.chars == INTERRUPT
}

/// What is typed, as a script of its own.
fn judged(args: &WriteStdinArgs) -> Option<Judged<'static>> {
    (!only_looks(args)).then(|| judge(lines(&args.chars)))
}

fn judge(text: String) -> Judged<'static> {
    // How a line goes on that is not ended yet nobody knows, nor what an interactive shell
    // makes of a part of an earlier one, or completes a word to.
    let recalls = text.contains(['!', '\t']) || text.lines().any(|line| line.starts_with('^'));
    let is_ended = text.ends_with('\n');
    let is_mixed = open::is_mixed(&text);
    let judged = Judged::script(text);
    let why = if !is_ended {
        Some(Why::Unclosed)
    } else if recalls {
        Some(Why::Expansion)
    } else if rebinds(judged.understood()) {
        Some(Why::Declares)
    } else {
        is_mixed.then_some(Why::Mixed)
    };
    judged.doubted(why)
}

/// Whether a text that is typed later may say something else than it does now.
fn rebinds(understood: &Understood) -> bool {
    let renames =
        |(name, words): (Cow<'_, str>, &[String])| REBINDING.contains(&&*name) && !words.is_empty();
    named(understood).any(renames) || sets_keys(understood)
}

/// Whether it tells the terminal what its keys are.
fn sets_keys(understood: &Understood) -> bool {
    named(understood)
        .any(|(name, words)| name == "stty" && words.iter().any(|word| is_of_keys(word)))
}

/// The names of its programs, with their words.
fn named(understood: &Understood) -> impl Iterator<Item = (Cow<'_, str>, &[String])> {
    understood.commands.iter().filter_map(|command| {
        let (program, words) = command.argv.split_first()?;
        Some((bare_name(program), words))
    })
}

fn is_of_keys(word: &str) -> bool {
    KEYS.contains(&word.trim_start_matches('-'))
        || word.contains([':', '=', '$', '`', '*', '?', '['])
}

fn subjects(args: &WriteStdinArgs, cx: &Context) -> Vec<Subject> {
    if only_looks(args) {
        return vec![Subject::new("*").class(RiskClass::Read)];
    }
    let process = session_of(args.session_id, cx);
    let is_bash = process.as_ref().is_some_and(|process| shells::is_bash_at_prompt(process));
    let folder = process.as_ref().filter(|_| is_bash).and_then(|process| process.folder());
    let is_shell = process.as_ref().is_some_and(|process| shells::is_other(process));
    let reader = if is_shell { Why::OtherShell } else { Why::OtherReader };
    let open = process.as_ref();
    let open = open.map(|it| lines(going_on(&it.open_for(cx.call(), opened_from), it)));
    let open = open.unwrap_or_default();
    // Asked behind it: who is mixed up meanwhile types nothing.
    let is_mixed = process.as_ref().is_some_and(|process| process.is_mixed_up());
    let base = Base::of_shell(cx, folder);
    let mut subjects: Vec<Subject> = Vec::new();
    for before in beginnings(&open) {
        let why = if !is_bash {
            Some(reader)
        } else if is_mixed {
            Some(Why::Mixed)
        } else {
            (before.lines().count() > MOST_OPEN).then_some(Why::Unclosed)
        };
        // What a name stands for may have been changed in that very shell, and so may its folder
        // have been.
        let text = format!("{before}{}", lines(&args.chars));
        // Where a terminal hands on a part of a line, that key is no part of it.
        let parts = text.contains(END).then(|| text.replace(END, ""));
        for text in [Some(text), parts].into_iter().flatten() {
            for subject in judge(text).doubted(why).unsure().subjects(&base) {
                let is_told = before.is_empty() || !subject.is_opaque();
                let subject = if is_told { subject } else { subject.because(GOES_ON) };
                if !subjects.contains(&subject) {
                    subjects.push(subject);
                }
            }
        }
    }
    let whole = format!("{open}{}", lines(&args.chars));
    if is_bash && (is_mixed || open::is_mixed(&whole)) {
        let ends = ends::of(&whole).into_iter();
        subjects.extend(ends.map(|end| Subject::new(end).only_forbidden()));
    }
    subjects
}

/// Why nobody knows what a text is.
const GOES_ON: &str =
    "it goes on with what was typed before and has not ended (`\\u0003` drops that)";

/// What may stand before a text of all that stands open: where bash makes a mistake of a line, or
/// another program has read it, it begins anew with the next.
fn beginnings(open: &str) -> impl Iterator<Item = &str> {
    let ends = open.match_indices('\n').map(|(at, _)| at + 1);
    let starts = std::iter::once(0).chain(ends).filter(|at| *at < open.len());
    starts.take(MOST_OPEN).chain([open.len()]).map(|at| &open[at..])
}

/// The process, without counting as a use of it.
fn session_of(session: u32, cx: &Context) -> Option<Arc<Process>> {
    let processes = Processes::of(cx.session());
    processes.list().into_iter().find(|process| process.id() == session)
}

fn preview(args: &WriteStdinArgs, cx: &Context) -> Result<Option<Value>, ToolError> {
    Ok(session_of(args.session_id, cx).map(|process| confined::preview_of(&process, cx)))
}

fn suggestions(args: &WriteStdinArgs) -> Vec<String> {
    judged(args).map(|judged| judged.suggestions()).unwrap_or_default()
}

fn is_dangerous(args: &WriteStdinArgs) -> bool {
    judged(args).is_some_and(|judged| judged.understood().is_dangerous())
}
