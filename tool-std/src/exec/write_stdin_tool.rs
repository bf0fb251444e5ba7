//! `write_stdin`: types into a background command, or waits for more of its output.
//!
//! Typed text is checked by the program that reads it. For bash it is analysed as a script. Any
//! other program may interpret the text in an unknown way, so typing needs approval, and deny
//! rules are still matched against the text as a script. An interpreter, such as `python3`, can be
//! approved for the rest of the session.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tool_sdk::process::{BackgroundProcess, BackgroundProcesses, PtyInputError};
use tool_sdk::{Context, Output, Pattern, Resource, RiskClass, ToolError, tool};
use tool_shell_analysis::{OpaqueReason, ScriptAnalysis, internal::bare_name};

use super::analysis::CommandAnalysis;
use super::effects::base_folder::BaseFolder;
use super::output::SessionOutput;
use super::output_wait::wait_for_output;
use super::sandbox::{self, SandboxReport};
use super::{incomplete_input, suffixes, terminal_shells};

/// Builtins that change how the shell interprets text that is typed later.
const REBINDING_BUILTINS: &[&str] = &["alias", "bind", "enable", "hash", "shopt"];

/// Builtins that read the text that is typed next.
const READING_BUILTINS: &[&str] = &["mapfile", "read", "readarray", "select"];

/// How often the prompt of a shell is checked, and the delay between checks.
const PROMPT_CHECKS: usize = 20;
const PROMPT_CHECK_DELAY: Duration = Duration::from_millis(2);

/// Words of `stty` that set keys or several settings at once.
const STTY_KEYS: &[&str] = &[
    "discard", "eof", "eol", "eol2", "erase", "igncr", "intr", "istrip", "iuclc", "kill", "lcase",
    "lnext", "quit", "rprnt", "start", "stop", "susp", "swtch", "werase",
];

/// How many bytes of unterminated input are kept; this is more than can be analysed.
const MAX_PENDING_BYTES: usize = 256 << 10;

/// With how many pending lines the new text is analysed.
const MAX_PENDING_LINES: usize = 8;

/// The characters of Ctrl-C and Ctrl-D.
const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

/// The limits of `yield_time_ms` after typing.
const YIELD_AFTER_TYPING_MS: std::ops::RangeInclusive<u64> = 250..=30_000;

/// The limits of `yield_time_ms` without typing.
const YIELD_EMPTY_MS: std::ops::RangeInclusive<u64> = 5_000..=300_000;

/// Type into a running command, or wait for more of its output.
///
/// Without `chars` it only waits, and returns early when the command ends. `\u0003` alone
/// interrupts the command. Any other text needs a command that was started with `tty`; end a
/// line with a newline. After the command has ended, the rest of its output is returned once.
#[tool(
    execute,
    category = "shell",
    permission = "exec_command",
    display(name = "Type", primary = chars, show(session_id, chars), summary = "Typing into session {session_id}", preview = approval_preview),
    approval(resources = call_resources, suggest = suggest_rules, dangerous = is_dangerous),
    parallel = by(session_id),
    timeout = "310s",
    task = optional,
    truncate = middle,
    streaming
)]
pub async fn write_stdin(
    /// The session ID of the command.
    session_id: u32,
    /// What to type; leave it empty to only wait.
    #[arg(default = "")]
    chars: String,
    /// How long to wait for output, in milliseconds: at most 30000 after typing, and between
    /// 5000 and 300000 without.
    #[arg(default = 250)]
    yield_time_ms: u32,
    /// Return as soon as this text is in the output, such as a prompt. A terminal echoes what
    /// is typed.
    #[arg(length = 1..=1024)]
    wait_for: Option<String>,
    /// The maximum number of tokens of output to return.
    #[arg(default = 10_000)]
    max_output_tokens: u32,
    cx: &Context,
) -> Result<Output, ToolError> {
    let processes = cx.session().extension::<BackgroundProcesses>();
    let process = processes.get(session_id).ok_or_else(|| unknown_session(session_id))?;
    let started = Instant::now();
    // A process that has exited reads nothing; only the rest of its output is returned.
    if process.exit().is_none() && !chars.is_empty() {
        type_in(&process, &chars, cx).await?;
    }
    let range = if chars.is_empty() { YIELD_EMPTY_MS } else { YIELD_AFTER_TYPING_MS };
    let within =
        Duration::from_millis(u64::from(yield_time_ms).clamp(*range.start(), *range.end()));
    let (snapshot, is_text_found) =
        wait_for_output(&process, within, wait_for.as_deref(), cx).await;
    if snapshot.exit.is_some() {
        processes.remove(session_id);
    }
    let chunk = SessionOutput {
        title: process.title(),
        session: session_id,
        wall: started.elapsed(),
        snapshot: &snapshot,
        is_text_found,
        sandbox: SandboxReport::from_process(&process, cx).await,
        max_tokens: max_output_tokens as usize,
    };
    Ok(chunk.to_output())
}

async fn type_in(process: &BackgroundProcess, chars: &str, cx: &Context) -> Result<(), ToolError> {
    if !process.has_terminal() {
        if chars != CTRL_C {
            return Err(stdin_closed());
        }
        process.interrupt();
        return Ok(());
    }
    if chars == CTRL_C {
        return finish_typing(process.type_checked(chars, None, find_pending_start).await);
    }
    let hides = if edits_line(chars) {
        Some("keys that edit a line hide the text that the shell receives")
    } else if process.alters_input(chars) {
        Some("the terminal treats some of the characters as keys that edit a line")
    } else {
        // Keys that are set now take effect for text that is typed later.
        sets_keys(CommandAnalysis::from_script(normalize_line_ends(chars)).script_analysis())
            .then_some("changing the keys that edit a line would hide what is typed later")
    };
    if let Some(why) = hides.filter(|_| terminal_shells::may_read_input(process)) {
        return Err(ToolError::denied(why).hint(
            "type whole lines, or Ctrl-C or Ctrl-D alone; `stty sane` makes all other keys plain",
        ));
    }
    let typed = process.pending_input();
    let open = continued_part(&typed[find_pending_start(&typed)..], process);
    let whole = normalize_line_ends(&format!("{open}{chars}"));
    CommandAnalysis::from_script(&*whole).check_complete()?;
    if !open.is_empty() {
        check_file_names(&whole, open, chars)?;
    }
    if may_be_split(process, chars).await {
        process.mark_input_shared(&cx.call_id().to_string(), find_pending_start);
    }
    finish_typing(
        process.type_checked(chars, Some(&cx.call_id().to_string()), find_pending_start).await,
    )
}

/// Whether bash may get only a part of the typed text and so be left inside a quote.
async fn may_be_split(process: &BackgroundProcess, chars: &str) -> bool {
    let text = normalize_line_ends(chars);
    let is_read = || {
        let analysis = CommandAnalysis::from_script(&*text);
        named_programs(analysis.script_analysis())
            .any(|(name, _)| READING_BUILTINS.contains(&&*name))
    };
    if is_read()
        || incomplete_input::may_leave_open(&text)
            && incomplete_input::may_consume_later_lines(&text)
    {
        return terminal_shells::has_bash(process);
    }
    if !incomplete_input::may_leave_open(&text) {
        return false;
    }
    for _ in 0..PROMPT_CHECKS {
        if terminal_shells::is_bash_at_prompt(process) {
            return false;
        }
        if !terminal_shells::is_bash(process) {
            break;
        }
        // The output that shows the end of a command may come just before the prompt.
        tokio::time::sleep(PROMPT_CHECK_DELAY).await;
    }
    terminal_shells::has_bash(process)
}

fn finish_typing(typed: Result<(), PtyInputError>) -> Result<(), ToolError> {
    match typed {
        // The process has just exited; its output says why.
        Ok(()) | Err(PtyInputError::Exited(_)) => Ok(()),
        Err(error @ PtyInputError::NotReading) => Err(ToolError::failed(error)),
        Err(error @ PtyInputError::InputChanged) => Err(ToolError::conflict(error)),
        Err(_) => Err(stdin_closed()),
    }
}

/// Fails if a file name was typed in parts, so that no single call named the file.
fn check_file_names(whole: &str, before: &str, last: &str) -> Result<(), ToolError> {
    let [whole, before, last] =
        [whole, before, last].map(|text| CommandAnalysis::from_script(normalize_line_ends(text)));
    let [whole, before, last] = [&whole, &before, &last].map(CommandAnalysis::script_analysis);
    let is_in = |path, one: &[String], other: &[String]| one.contains(path) || other.contains(path);
    let is_named = whole.writes.iter().all(|path| is_in(path, &before.writes, &last.writes))
        && whole.reads.iter().all(|path| is_in(path, &before.reads, &last.reads));
    match is_named {
        true => Ok(()),
        false => Err(ToolError::denied("the name of a file was typed in parts")
            .hint("interrupt with `\\u0003`, and type the whole line at once")),
    }
}

/// Returns the offset of the unterminated part of the typed text.
fn find_pending_start(typed: &str) -> usize {
    // Longer input is rejected anyway.
    let most =
        (typed.len().saturating_sub(MAX_PENDING_BYTES)..).find(|at| typed.is_char_boundary(*at));
    incomplete_input::find_open_start(&normalize_line_ends(typed)).max(most.unwrap_or_default())
}

/// Returns the pending text that the current reader continues: a shell continues unterminated
/// syntax, any other program only an unterminated line.
fn continued_part<'t>(open: &'t str, process: &BackgroundProcess) -> &'t str {
    let line = open.rfind(['\n', '\r']).map_or(0, |at| at + 1);
    if line > 0 && terminal_shells::is_other_program(process) { &open[line..] } else { open }
}

/// Replaces `\r` by `\n`: a terminal treats both as a line end.
fn normalize_line_ends(text: &str) -> String {
    text.replace('\r', "\n")
}

/// Whether the text contains keys that edit earlier input.
fn edits_line(chars: &str) -> bool {
    let is_key = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    chars != CTRL_C && chars != CTRL_D && chars.contains(is_key)
}

pub(super) fn unknown_session(session: u32) -> ToolError {
    ToolError::not_found(format_args!("Unknown process id {session}"))
        .hint("`list_sessions` lists the current ones; an ended session is removed once its output was read")
}

fn stdin_closed() -> ToolError {
    ToolError::failed(
        "stdin is closed for this session; rerun exec_command with tty=true to keep stdin open",
    )
}

/// Whether the call needs no check: the conversation that started a session may read and
/// interrupt it.
fn only_waits(args: &WriteStdinArgs) -> bool {
    args.chars.is_empty() || args.chars == CTRL_C
}

/// Analyses the typed text as a script of its own.
fn analyze_args(args: &WriteStdinArgs) -> Option<CommandAnalysis<'static>> {
    (!only_waits(args)).then(|| analyze_input(normalize_line_ends(&args.chars)))
}

fn analyze_input(text: String) -> CommandAnalysis<'static> {
    // The rest of an unfinished line is unknown, and so are history expansion and completion in
    // an interactive shell.
    let recalls = text.contains(['!', '\t']) || text.lines().any(|line| line.starts_with('^'));
    let is_ended = text.ends_with('\n');
    let is_mixed = incomplete_input::may_consume_later_lines(&text);
    let analysis = CommandAnalysis::from_script(text);
    let why = if !is_ended {
        Some(OpaqueReason::Unclosed)
    } else if recalls {
        Some(OpaqueReason::Expansion)
    } else if changes_later_input(analysis.script_analysis()) {
        Some(OpaqueReason::Redefines)
    } else {
        is_mixed.then_some(OpaqueReason::MixedInput)
    };
    analysis.with_reason(why)
}

/// Whether the script changes the meaning of text that is typed later.
fn changes_later_input(analysis: &ScriptAnalysis) -> bool {
    let renames = |(name, words): (Cow<'_, str>, &[String])| {
        REBINDING_BUILTINS.contains(&&*name) && !words.is_empty()
    };
    named_programs(analysis).any(renames) || sets_keys(analysis)
}

/// Whether the script sets keys of the terminal.
fn sets_keys(analysis: &ScriptAnalysis) -> bool {
    named_programs(analysis)
        .any(|(name, words)| name == "stty" && words.iter().any(|word| is_key_setting(word)))
}

/// Returns the program names of the script with their arguments.
fn named_programs(analysis: &ScriptAnalysis) -> impl Iterator<Item = (Cow<'_, str>, &[String])> {
    analysis.commands.iter().filter_map(|command| {
        let (program, words) = command.argv.split_first()?;
        Some((bare_name(program), words))
    })
}

fn is_key_setting(word: &str) -> bool {
    STTY_KEYS.contains(&word.trim_start_matches('-'))
        || word.contains([':', '=', '$', '`', '*', '?', '['])
}

fn call_resources(args: &WriteStdinArgs, cx: &Context) -> Vec<Resource> {
    if only_waits(args) {
        return vec![Resource::new("*").with_class(RiskClass::Read)];
    }
    let process = find_session(args.session_id, cx);
    match &process {
        None => {
            let error = unknown_session(args.session_id);
            return vec![Resource::new("*").with_refusal(&error)];
        }
        // Nothing is typed, and the rest of the output is read.
        Some(process) if process.exit().is_some() => {
            return vec![Resource::new("*").with_class(RiskClass::Read)];
        }
        Some(process) if !process.has_terminal() => {
            return vec![Resource::new("*").with_refusal(&stdin_closed())];
        }
        Some(_) => {}
    }
    let is_bash =
        process.as_ref().is_some_and(|process| terminal_shells::is_bash_at_prompt(process));
    let program = process.as_ref().filter(|_| !is_bash);
    let program = program.and_then(|it| Some((it, terminal_shells::other_program(it)?)));
    let folder = process.as_ref().filter(|_| is_bash).and_then(|process| process.foreground_dir());
    let is_shell =
        process.as_ref().is_some_and(|process| terminal_shells::is_foreign_shell(process));
    let reader = if is_shell { OpaqueReason::OtherShell } else { OpaqueReason::OtherReader };
    let open = process.as_ref();
    let open = open.map(|it| {
        normalize_line_ends(continued_part(
            &it.pending_input_for(&cx.call_id().to_string(), find_pending_start),
            it,
        ))
    });
    let open = open.unwrap_or_default();
    // Checked after reading the pending text: if the process is marked as mixed up meanwhile,
    // nothing is typed.
    let is_mixed = process.as_ref().is_some_and(|process| process.is_input_shared());
    let base = BaseFolder::for_shell(cx, folder);
    let mut subjects: Vec<Resource> = Vec::new();
    for before in possible_starts(&open) {
        let why = if !is_bash {
            Some(reader)
        } else if is_mixed {
            Some(OpaqueReason::MixedInput)
        } else {
            (before.lines().count() > MAX_PENDING_LINES).then_some(OpaqueReason::Unclosed)
        };
        // The running shell may have other aliases and functions, and be in another directory.
        let text = format!("{before}{}", normalize_line_ends(&args.chars));
        // Ctrl-D makes the terminal pass on a partial line and is not a part of the text.
        let parts = text.contains(CTRL_D).then(|| text.replace(CTRL_D, ""));
        for text in [Some(text), parts].into_iter().flatten() {
            for subject in
                analyze_input(text).with_reason(why).without_safe_commands().call_resources(&base)
            {
                let is_told = before.is_empty() || !subject.is_opaque();
                let subject = if is_told { subject } else { subject.with_reason(CONTINUES_INPUT) };
                if !subjects.contains(&subject) {
                    subjects.push(subject);
                }
            }
        }
    }
    let whole = format!("{open}{}", normalize_line_ends(&args.chars));
    if is_bash && (is_mixed || incomplete_input::may_consume_later_lines(&whole)) {
        let ends = suffixes::command_suffixes(&whole).into_iter();
        subjects.extend(ends.map(|end| Resource::new(end).deny_rules_only()));
    }
    if let Some((process, program)) = program {
        // No shell reads it, so that the commands in it are words that only rules which deny or ask
        // apply to. What is approved is the input of this process.
        let parts = subjects.into_iter().map(Resource::deny_rules_only);
        return std::iter::once(input_resource(process, &program)).chain(parts).collect();
    }
    subjects
}

/// Returns the resource of input that a single program reads which is no shell: the process. An
/// interpreter can be approved for the rest of the session, because approving one line of it is
/// to trust it with anything already. Of any other program, which may start a shell or be connected
/// to one elsewhere, each input is approved.
fn input_resource(process: &BackgroundProcess, program: &str) -> Resource {
    let text = format!("input to session {} ({})", process.id(), process.title());
    let pattern = Pattern::exact(&text).map(String::from);
    let resource = Resource::new(text)
        .asks_by_default()
        // Any command that a rule denies may be started.
        .with_known_prefixes([""])
        .with_reason(format!(
            "`{program}` reads it, which is no shell, so what it does is unknown"
        ));
    match pattern.filter(|_| terminal_shells::is_interpreter(program)) {
        Some(pattern) => resource.with_suggestions([pattern]),
        None => resource.with_unknown_effect(),
    }
}

/// Why the meaning of a text is unknown.
const CONTINUES_INPUT: &str =
    "it continues earlier input that is not complete (`\\u0003` discards that)";

/// Returns the possible prefixes of the new text: after a syntax error, or if another program
/// read a line, bash starts again with the next line.
fn possible_starts(open: &str) -> impl Iterator<Item = &str> {
    let ends = open.match_indices('\n').map(|(at, _)| at + 1);
    let starts = std::iter::once(0).chain(ends).filter(|at| *at < open.len());
    starts.take(MAX_PENDING_LINES).chain([open.len()]).map(|at| &open[at..])
}

/// Returns the process without marking it as used.
fn find_session(session: u32, cx: &Context) -> Option<Arc<BackgroundProcess>> {
    let processes = cx.session().extension::<BackgroundProcesses>();
    processes.list().into_iter().find(|process| process.id() == session)
}

fn approval_preview(args: &WriteStdinArgs, cx: &Context) -> Result<Option<Value>, ToolError> {
    Ok(find_session(args.session_id, cx).map(|process| sandbox::typing_preview(&process, cx)))
}

fn suggest_rules(args: &WriteStdinArgs) -> Vec<String> {
    analyze_args(args).map(|analysis| analysis.suggest_rules()).unwrap_or_default()
}

fn is_dangerous(args: &WriteStdinArgs) -> bool {
    analyze_args(args).is_some_and(|analysis| analysis.script_analysis().is_dangerous())
}
