//! What a model reads about a process.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use tool_sdk::process::{Captured, Exit, Look, RunError};
use tool_sdk::{Budget, Context, Output, ToolError, Truncate};

use super::confined::Confinement;
use super::plain::plain;

/// How many bytes count as one token.
const TOKEN: usize = 4;

/// How much of the output of one call is shown while it runs.
const MOST_SHOWN: usize = 1 << 20;

/// How many tokens of the output a screen gets that draws the result.
const MOST_DISPLAYED: usize = 4096;

/// What is said where not all that may be written was waited for (CH7).
const HELD: &str = "Something that the command started still runs and holds its output; what that \
                    writes from now on is lost. Redirect its output, or run it as a command of its own.";

/// The code that says that the time was up.
pub(super) const TIMED_OUT: i32 = 124;

/// A command that may still run.
pub(super) struct Chunk<'a> {
    pub(super) title: &'a str,
    pub(super) session: u32,
    pub(super) wall: Duration,
    pub(super) look: &'a Look,
    /// Whether what was waited for came, where something was.
    pub(super) came: Option<bool>,
    pub(super) confinement: Confinement,
    pub(super) max_tokens: usize,
}

impl Chunk<'_> {
    pub(super) fn output(&self) -> Output {
        let text = plain(&self.look.output.text());
        let mut report = format!("Chunk ID: {}\n", chunk_id());
        let _ = writeln!(report, "Wall time: {} seconds", seconds(self.wall));
        let _ = match self.look.exit {
            Some(exit) => writeln!(report, "Process exited with {}", in_words(exit)),
            None => writeln!(report, "Process running with session ID {}", self.session),
        };
        if let Some(came) = self.came {
            let has = if came { "has" } else { "has not" };
            let _ = writeln!(report, "What was waited for {has} come");
        }
        let _ = writeln!(report, "Original token count: {}", tokens(&self.look.output));
        begin_output(&mut report, &self.confinement);
        let session = self.look.exit.is_none().then_some(self.session);
        let exit = self.look.exit.and_then(code);
        let Self { title, look, wall, confinement, .. } = self;
        let ran = Ran { title, look, exit, wall: *wall, confinement, silence: "" };
        ran.output(report, &text)
            .metadata("session_id", session)
            .limit(Budget::tokens(self.max_tokens).max_bytes())
    }
}

/// A command that ran to its end or its time limit.
pub(super) fn once(
    title: &str,
    wall: Duration,
    look: &Look,
    timed_out: Option<u64>,
    confinement: &Confinement,
) -> Output {
    let text = plain(&look.output.text());
    let mut report = String::new();
    let exit = match (timed_out, look.exit) {
        (Some(limit), _) => {
            let _ = writeln!(report, "command timed out after {limit} milliseconds");
            let _ = writeln!(report, "Exit code: {TIMED_OUT}");
            Some(TIMED_OUT)
        }
        (None, exit) => {
            let exit = exit.unwrap_or(Exit::Unknown);
            let words = in_words(exit);
            let _ = writeln!(report, "Exit code: {}", words.trim_start_matches("code "));
            code(exit)
        }
    };
    let _ = writeln!(report, "Wall time: {} seconds", seconds(wall));
    // What will be cut, where the host says nothing else.
    if !look.output.is_whole() || !Budget::default().admits(&text) {
        let lines = look.output.omitted_lines as usize + text.lines().count();
        let lines = lines - look.output.mark().matches('\n').count();
        let _ = writeln!(report, "Total output lines: {lines}");
    }
    begin_output(&mut report, confinement);
    Ran { title, look, exit, wall, confinement, silence: "(no output)" }.output(report, &text)
}

/// Ends what is said of a command. How far it was confined stands there, where nothing that it
/// writes can stand.
fn begin_output(report: &mut String, confinement: &Confinement) {
    if let Some(line) = confinement.line() {
        let _ = writeln!(report, "{line}");
    }
    report.push_str("Output:\n");
}

/// What stands below the output.
fn remark(report: &mut String, confinement: &Confinement, look: &Look, output: &str) {
    let held = look.held.then(|| HELD.to_owned());
    let remarks = [held, confinement.remark(look.exit, output), confinement.warning()];
    for remark in remarks.into_iter().flatten() {
        // What the command wrote ends with its own line.
        let _ = write!(report, "{}{remark}", if report.ends_with('\n') { "" } else { "\n" });
    }
}

/// What is told of a command beside its output.
struct Ran<'a> {
    title: &'a str,
    look: &'a Look,
    exit: Option<i32>,
    wall: Duration,
    confinement: &'a Confinement,
    /// What stands in place of an output that has nothing.
    silence: &'a str,
}

impl Ran<'_> {
    /// The result that begins with `report`; `text` is the output as it is shown.
    fn output(&self, mut report: String, text: &str) -> Output {
        let captured = &self.look.output;
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let heading = report.len();
        report.push_str(text);
        let whole = report.len();
        report.push_str(if text.is_empty() { self.silence } else { "" });
        remark(&mut report, self.confinement, self.look, text);
        let footing = report.len() - whole;
        let display = json!({
            "type": "shell",
            "command": self.title,
            "exit_code": self.exit,
            "stdout": fitted(text, MOST_DISPLAYED),
            // Both go to one pipe, which keeps their order.
            "stderr": "",
            "duration_ms": u64::try_from(self.wall.as_millis()).unwrap_or(u64::MAX),
            "is_background": self.look.exit.is_none(),
            "sandbox": self.confinement.json(),
        });
        Output::text(report)
            .title(self.title)
            .metadata("exit_code", self.exit)
            .display(display)
            .dropped(count(captured.omitted_lines), count(captured.omitted))
            .marked(captured.mark())
            .made_of(count(written(captured)))
            .heading(heading)
            .footing(footing)
    }
}

/// How many bytes the process wrote, kept or not.
fn written(captured: &Captured) -> u64 {
    (captured.head.len() + captured.tail.len()) as u64 + captured.omitted
}

/// The result with what was started, for records.
pub(super) fn recorded(output: Output, what: [(&'static str, Value); 3]) -> Output {
    what.into_iter().fold(output, |output, (name, value)| output.metadata(name, value))
}

/// A time in seconds, rounded to four places. To write any number with a point takes so much
/// code that commands were slower for it.
fn seconds(time: Duration) -> String {
    let places = (time.as_nanos() + 50_000) / 100_000;
    format!("{}.{:04}", places / 10_000, places % 10_000)
}

/// The exit code as shells count it, where there is one.
fn code(exit: Exit) -> Option<i32> {
    match exit {
        Exit::Code(code) => Some(code),
        Exit::Signal(signal) => Some(128 + signal),
        Exit::TimedOut => Some(TIMED_OUT),
        _ => None,
    }
}

fn in_words(exit: Exit) -> String {
    let Some(code) = code(exit) else { return "code unknown (nobody can tell it)".to_owned() };
    match exit {
        Exit::Signal(signal) => format!("code {code} (ended by signal {signal})"),
        _ => format!("code {code}"),
    }
}

/// How many tokens the process wrote, kept or not.
fn tokens(captured: &Captured) -> u64 {
    written(captured).div_ceil(TOKEN as u64)
}

/// Both ends of a text that is longer than a screen needs.
fn fitted(text: &str, max_tokens: usize) -> String {
    match Budget::tokens(max_tokens).fit(text, Truncate::Middle) {
        None => text.to_owned(),
        Some(fitted) => format!(
            "{}\n... {} bytes omitted ...\n{}",
            fitted.head, fitted.omitted_bytes, fitted.tail
        ),
    }
}

/// Six digits by which people can speak of one part of a long output.
fn chunk_id() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    format!("{:06x}", RandomState::new().hash_one(()) & 0x00ff_ffff)
}

/// Who reads all output as it comes, as plain text.
pub(super) type Hears = Box<dyn FnMut(&str) + Send>;

/// Shows output to whoever watches the call, as it comes, and lets `hears` have all of it.
pub(super) fn showing(
    cx: &Context,
    mut hears: Option<Hears>,
) -> impl FnMut(&[u8]) + Send + 'static {
    let cx = cx.clone();
    let mut left = MOST_SHOWN;
    move |bytes| {
        let shown = left > 0;
        left = left.saturating_sub(bytes.len());
        if !shown && hears.is_none() {
            return;
        }
        let text = plain(&String::from_utf8_lossy(bytes));
        if let Some(hears) = &mut hears {
            hears(&text);
        }
        if shown && !text.is_empty() {
            cx.output(text);
        }
    }
}

/// For `map_err`: the program could not be started.
pub(super) fn not_started(error: RunError) -> ToolError {
    if let RunError::Sandbox(_) = &error {
        return ToolError::config(&error)
            .hint("no command can run here; `doctor` tells whoever runs this program why")
            .source(error);
    }
    ToolError::failed(&error)
        .hint("look whether the program is installed, and how its name is spelled")
        .source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_rounded() {
        for (nanos, expected) in [
            (0, "0.0000"),
            (49_999, "0.0000"),
            (50_000, "0.0001"),
            (1_234_560_000, "1.2346"),
            (59_999_960_000, "60.0000"),
        ] {
            assert_eq!(seconds(Duration::from_nanos(nanos)), expected);
        }
    }

    #[test]
    fn an_end_by_a_signal_says_its_cause() {
        assert_eq!(in_words(Exit::Code(0)), "code 0");
        assert_eq!(in_words(Exit::Signal(15)), "code 143 (ended by signal 15)");
        assert_eq!(in_words(Exit::Unknown), "code unknown (nobody can tell it)");
        assert_eq!(code(Exit::Unknown), None);
    }
}
