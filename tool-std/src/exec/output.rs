//! Formats the output of a process for the model and for screens.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use tool_sdk::process::{CapturedOutput, ExitOutcome, ProcessOutput, RunError};
use tool_sdk::{Budget, Context, Output, ToolError, Truncate};

use super::sandbox::SandboxReport;
use super::strip_ansi::strip_ansi;

/// Bytes per estimated token.
const BYTES_PER_TOKEN: usize = 4;

/// How many bytes of the output of a call are streamed while it runs.
const MAX_STREAMED_BYTES: usize = 1 << 20;

/// How many tokens of output are in the display data for screens.
const MAX_DISPLAY_TOKENS: usize = 4096;

/// The note if another process still holds the output open (CH7).
const OUTPUT_HELD: &str = "A process that the command started still runs and holds its output open; what it \
                    writes from now on is lost. Redirect its output, or run it as a command of its own.";

/// The exit code of a timeout.
pub(super) const TIMED_OUT: i32 = 124;

/// The output of a command that may still run.
pub(super) struct SessionOutput<'a> {
    pub(super) title: &'a str,
    pub(super) session: u32,
    pub(super) wall: Duration,
    pub(super) snapshot: &'a ProcessOutput,
    /// Whether the awaited text was found, if there was one.
    pub(super) is_text_found: Option<bool>,
    pub(super) sandbox: SandboxReport,
    pub(super) max_tokens: usize,
}

impl SessionOutput<'_> {
    pub(super) fn to_output(&self) -> Output {
        let text = strip_ansi(&self.snapshot.output.to_text());
        let mut report = format!("Chunk ID: {}\n", chunk_id());
        let _ = writeln!(report, "Wall time: {} seconds", format_seconds(self.wall));
        let _ = match self.snapshot.exit {
            Some(exit) => writeln!(report, "Process exited with {}", describe_exit(exit)),
            None => writeln!(report, "Process running with session ID {}", self.session),
        };
        if let Some(is_found) = self.is_text_found {
            let has = if is_found { "has" } else { "has not" };
            let _ = writeln!(report, "Awaited text {has} been found");
        }
        let _ = writeln!(report, "Original token count: {}", token_count(&self.snapshot.output));
        write_output_header(&mut report, &self.sandbox);
        let session = self.snapshot.exit.is_none().then_some(self.session);
        let exit = self.snapshot.exit.and_then(exit_code);
        let Self { title, snapshot, wall, sandbox, .. } = self;
        let ran = CommandResult { title, snapshot, exit, wall: *wall, sandbox, empty_text: "" };
        ran.to_output(report, &text)
            .metadata("session_id", session)
            .limit(Budget::tokens(self.max_tokens).max_bytes())
    }
}

/// Formats the output of a command that ran to its end or its timeout.
pub(super) fn oneshot_output(
    title: &str,
    wall: Duration,
    snapshot: &ProcessOutput,
    timed_out: Option<u64>,
    sandbox: &SandboxReport,
) -> Output {
    let text = strip_ansi(&snapshot.output.to_text());
    let mut report = String::new();
    let exit = match (timed_out, snapshot.exit) {
        (Some(limit), _) => {
            let _ = writeln!(report, "command timed out after {limit} milliseconds");
            let _ = writeln!(report, "Exit code: {TIMED_OUT}");
            Some(TIMED_OUT)
        }
        (None, exit) => {
            let exit = exit.unwrap_or(ExitOutcome::Unknown);
            let words = describe_exit(exit);
            let _ = writeln!(report, "Exit code: {}", words.trim_start_matches("code "));
            exit_code(exit)
        }
    };
    let _ = writeln!(report, "Wall time: {} seconds", format_seconds(wall));
    // The output will be truncated unless the host sets other limits.
    if !snapshot.output.is_whole() || !Budget::default().admits(&text) {
        let lines = snapshot.output.omitted_lines as usize + text.lines().count();
        let lines = lines - snapshot.output.omission_note().matches('\n').count();
        let _ = writeln!(report, "Total output lines: {lines}");
    }
    write_output_header(&mut report, sandbox);
    CommandResult { title, snapshot, exit, wall, sandbox, empty_text: "(no output)" }
        .to_output(report, &text)
}

/// Ends the header. The sandbox line is a part of the header, which the command cannot write to.
fn write_output_header(report: &mut String, sandbox: &SandboxReport) {
    if let Some(line) = sandbox.summary_line() {
        let _ = writeln!(report, "{line}");
    }
    report.push_str("Output:\n");
}

/// Writes the notes below the output.
fn write_remarks(
    report: &mut String,
    sandbox: &SandboxReport,
    snapshot: &ProcessOutput,
    output: &str,
) {
    let held_note = snapshot.output_left_open.then(|| OUTPUT_HELD.to_owned());
    let remarks =
        [held_note, sandbox.denial_hint(snapshot.exit, output), sandbox.new_files_warning()];
    for remark in remarks.into_iter().flatten() {
        // The output ends with a line of its own.
        let _ = write!(report, "{}{remark}", if report.ends_with('\n') { "" } else { "\n" });
    }
}

/// The data of a command besides its output.
struct CommandResult<'a> {
    title: &'a str,
    snapshot: &'a ProcessOutput,
    exit: Option<i32>,
    wall: Duration,
    sandbox: &'a SandboxReport,
    /// The text for an empty output.
    empty_text: &'a str,
}

impl CommandResult<'_> {
    /// Builds the result that begins with `report`; `text` is the plain output.
    fn to_output(&self, mut report: String, text: &str) -> Output {
        let captured = &self.snapshot.output;
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let heading = report.len();
        report.push_str(text);
        let whole = report.len();
        report.push_str(if text.is_empty() { self.empty_text } else { "" });
        write_remarks(&mut report, self.sandbox, self.snapshot, text);
        let footing = report.len() - whole;
        let display = json!({
            "type": "shell",
            "command": self.title,
            "exit_code": self.exit,
            "stdout": fit_middle(text, MAX_DISPLAY_TOKENS),
            // Both streams share one pipe, which keeps their order.
            "stderr": "",
            "duration_ms": u64::try_from(self.wall.as_millis()).unwrap_or(u64::MAX),
            "is_background": self.snapshot.exit.is_none(),
            "sandbox": self.sandbox.to_json(),
        });
        Output::text(report)
            .title(self.title)
            .metadata("exit_code", self.exit)
            .display(display)
            .report_dropped(count(captured.omitted_lines), count(captured.omitted_bytes))
            .dropped_marker(captured.omission_note())
            .original_bytes(count(written_bytes(captured)))
            .heading(heading)
            .footing(footing)
    }
}

/// Returns how many bytes the process wrote, including omitted ones.
fn written_bytes(captured: &CapturedOutput) -> u64 {
    (captured.head.len() + captured.tail.len()) as u64 + captured.omitted_bytes
}

/// Adds the record of the started program to the metadata.
pub(super) fn with_record(output: Output, what: [(&'static str, Value); 3]) -> Output {
    what.into_iter().fold(output, |output, (name, value)| output.metadata(name, value))
}

/// Formats a duration in seconds with four decimals. Integer arithmetic, because float formatting
/// measurably slowed down commands.
fn format_seconds(time: Duration) -> String {
    let places = (time.as_nanos() + 50_000) / 100_000;
    format!("{}.{:04}", places / 10_000, places % 10_000)
}

/// Returns the exit code as shells count it, if there is one.
fn exit_code(exit: ExitOutcome) -> Option<i32> {
    match exit {
        ExitOutcome::Code(code) => Some(code),
        ExitOutcome::Signal(signal) => Some(128 + signal),
        ExitOutcome::TimedOut => Some(TIMED_OUT),
        _ => None,
    }
}

fn describe_exit(exit: ExitOutcome) -> String {
    let Some(code) = exit_code(exit) else { return "code unknown".to_owned() };
    match exit {
        ExitOutcome::Signal(signal) => format!("code {code} (ended by signal {signal})"),
        _ => format!("code {code}"),
    }
}

/// Returns how many tokens the process wrote, including omitted ones.
fn token_count(captured: &CapturedOutput) -> u64 {
    written_bytes(captured).div_ceil(BYTES_PER_TOKEN as u64)
}

/// Truncates the middle of a text that is too long for a screen.
fn fit_middle(text: &str, max_tokens: usize) -> String {
    match Budget::tokens(max_tokens).fit(text, Truncate::Middle) {
        None => text.to_owned(),
        Some(fitted) => format!(
            "{}\n... {} bytes omitted ...\n{}",
            fitted.head, fitted.omitted_bytes, fitted.tail
        ),
    }
}

/// Returns six digits that identify one chunk of a long output.
fn chunk_id() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    format!("{:06x}", RandomState::new().hash_one(()) & 0x00ff_ffff)
}

/// A callback that receives all output as plain text.
pub(super) type OutputCallback = Box<dyn FnMut(&str) + Send>;

/// Streams output to the subscribers of the call, and passes all of it to `hears`.
pub(super) fn stream_output(
    cx: &Context,
    mut callback: Option<OutputCallback>,
) -> impl FnMut(&[u8]) + Send + 'static {
    let cx = cx.clone();
    let mut bytes_left = MAX_STREAMED_BYTES;
    move |bytes| {
        let is_streamed = bytes_left > 0;
        bytes_left = bytes_left.saturating_sub(bytes.len());
        if !is_streamed && callback.is_none() {
            return;
        }
        let text = strip_ansi(&String::from_utf8_lossy(bytes));
        if let Some(callback) = &mut callback {
            callback(&text);
        }
        if is_streamed && !text.is_empty() {
            cx.emit_output(text);
        }
    }
}

/// Converts the error of a program that could not be started.
pub(super) fn start_error(error: RunError) -> ToolError {
    if let RunError::Sandbox(_) = &error {
        return ToolError::config(&error)
            .hint("no command can run here; the user can run `doctor` to see why")
            .source(error);
    }
    ToolError::failed(&error)
        .hint("check that the program is installed and its name is spelled correctly")
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
            assert_eq!(format_seconds(Duration::from_nanos(nanos)), expected);
        }
    }

    #[test]
    fn an_end_by_a_signal_says_its_cause() {
        assert_eq!(describe_exit(ExitOutcome::Code(0)), "code 0");
        assert_eq!(describe_exit(ExitOutcome::Signal(15)), "code 143 (ended by signal 15)");
        assert_eq!(describe_exit(ExitOutcome::Unknown), "code unknown");
        assert_eq!(exit_code(ExitOutcome::Unknown), None);
    }
}
