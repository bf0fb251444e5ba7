//! Prints the events of running calls on standard error: as JSON lines, as a progress line, or
//! only warnings.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write;

use serde_json::Value;
use tool_sdk_core::{
    CallId, EventKind, Subscription, ToolEvent,
    internal::{frame_text, spell_hidden, wrap_rows},
};

use super::style::{self, TextStyle};
use super::terminal::TerminalLock;

/// A subscription to events, and the format in which they are printed.
pub(super) struct EventPrinter {
    pub(super) events: Subscription,
    pub(super) format: EventFormat,
}

/// The format of printed events.
pub(super) enum EventFormat {
    /// One JSON line per event.
    Json,
    /// A progress line on a terminal.
    Progress(Box<ProgressLine>),
    /// Only warnings.
    Warnings,
}

impl EventPrinter {
    /// Prints only warnings.
    pub(super) fn warnings_only(events: Subscription) -> Self {
        Self { events, format: EventFormat::Warnings }
    }

    /// Prints every event as a JSON line.
    pub(super) fn json_lines(events: Subscription) -> Self {
        Self { events, format: EventFormat::Json }
    }

    /// Shows a progress line on a terminal.
    pub(super) fn progress_line(
        events: Subscription,
        lock: TerminalLock,
        columns: Option<u16>,
        style: TextStyle,
    ) -> Self {
        Self {
            events,
            format: EventFormat::Progress(Box::new(ProgressLine::new(lock, columns, style))),
        }
    }

    /// Prints the remaining events, and returns the output of tools that was shown.
    pub(super) fn finish(mut self, stderr: &mut dyn Write) -> String {
        while let Some(event) = self.events.try_recv() {
            self.format.print_event(&event, stderr);
        }
        match self.format {
            EventFormat::Progress(live) => live.finish(stderr),
            EventFormat::Json | EventFormat::Warnings => String::new(),
        }
    }
}

impl EventFormat {
    /// Prints an event. Write errors are ignored, so that they do not end a call.
    pub(super) fn print_event(&mut self, event: &ToolEvent, stderr: &mut dyn Write) {
        match self {
            Self::Progress(live) => live.handle_event(event, stderr),
            Self::Json => {
                if let Ok(line) = serde_json::to_string(event) {
                    let _ = writeln!(stderr, "{line}");
                }
            }
            Self::Warnings => {
                if let EventKind::Warned { message } = &event.kind {
                    let _ = writeln!(stderr, "{}", warning_line(message));
                }
            }
        }
    }
}

/// Formats a warning on one line.
fn warning_line(message: &str) -> String {
    style::sanitize_text(&format!("warning: {message}")).replace(['\n', '\t'], " ")
}

/// A line about the running call that is overwritten, below one line for every finished call.
pub(super) struct ProgressLine {
    terminal_lock: TerminalLock,
    headlines: HashMap<CallId, String>,
    /// The call with the latest event, and its line.
    current: Option<(CallId, String)>,
    /// Lines of finished calls and of their output, to be written when no prompt is shown.
    ended: String,
    /// The output of each running call after its last line end.
    unfinished_lines: HashMap<CallId, String>,
    /// The output of calls that was shown, up to a limit.
    live_output: String,
    style: TextStyle,
    is_drawn: bool,
    /// The width of the terminal, to which warnings are wrapped.
    columns: u16,
    /// The limit of the overwritten line in columns, so that it does not wrap.
    width: usize,
}

impl ProgressLine {
    fn new(terminal_lock: TerminalLock, columns: Option<u16>, style: TextStyle) -> Self {
        // Two columns less, for the ellipsis and a free column.
        let width = columns.map_or(MAX_LINE, |all| usize::from(all).saturating_sub(2));
        let (headlines, ended) = (HashMap::new(), String::new());
        Self {
            terminal_lock,
            headlines,
            current: None,
            ended,
            unfinished_lines: HashMap::new(),
            live_output: String::new(),
            style,
            is_drawn: false,
            columns: columns.unwrap_or(80),
            width: width.min(MAX_LINE),
        }
    }

    fn handle_event(&mut self, event: &ToolEvent, stderr: &mut dyn Write) {
        match &event.kind {
            EventKind::Pending { arguments, .. } => return self.set_headline(event, arguments),
            // The prompt shows the arguments after the hooks changed them.
            EventKind::PermissionAsked(ask) => return self.set_headline(event, &ask.arguments),
            EventKind::Started { arguments } => {
                // A hook changed the arguments.
                if let Some(changed) = arguments {
                    self.set_headline(event, changed);
                }
                self.set_current(event, "");
            }
            EventKind::Progress { done, total, message } => {
                let counts = progress_counts(*done, *total, self.width);
                self.set_current_with(event, &counts, message);
            }
            EventKind::Output { text } => self.push_output(event, text),
            EventKind::Completed { elapsed_ms, .. } => self.push_ended(event, '✓', "", *elapsed_ms),
            EventKind::Failed(ending)
            | EventKind::Aborted(ending)
            | EventKind::TimedOut(ending) => {
                self.push_ended(event, '✗', ending.error.as_str(), ending.elapsed_ms);
            }
            EventKind::Warned { message } => return self.print_warning(message, stderr),
            _ => return,
        }
        self.redraw(stderr);
    }

    /// Prints a warning at once, also below a prompt: the user may be answering many of them, and
    /// must know before the next answer that the last one was not stored.
    fn print_warning(&mut self, message: &str, stderr: &mut dyn Write) {
        let warning = wrap_rows(&format!("{}\n", warning_line(message)), self.columns);
        if self.terminal_lock.try_acquire().is_some() {
            self.ended += &warning;
            return self.redraw(stderr);
        }
        // Every prompt ends in this sign.
        let text = format!("\n{warning}> ");
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }

    fn set_headline(&mut self, event: &ToolEvent, arguments: &Value) {
        let headline = event.tool.display.headline(event.tool.name.as_str(), arguments);
        self.headlines.insert(event.call.clone(), headline);
    }

    /// Returns the headline of a call; the tool's name if its arguments could not be parsed.
    fn headline_for(&self, event: &ToolEvent) -> String {
        let known = self.headlines.get(&event.call).cloned();
        known.unwrap_or_else(|| event.tool.name.to_string())
    }

    fn set_current(&mut self, event: &ToolEvent, message: &str) {
        self.set_current_with(event, "", message);
    }

    /// Sets the current line. The counts are in front, so that a narrow terminal shows them.
    fn set_current_with(&mut self, event: &ToolEvent, counts: &str, message: &str) {
        let line = format!("… {counts}{}  {message}", self.headline_for(event));
        self.current = Some((event.call.clone(), fit_line(line.trim_end(), self.width)));
    }

    /// Shows the whole lines of a tool's output, in the frame of foreign text.
    fn push_output(&mut self, event: &ToolEvent, text: &str) {
        let line = self.unfinished_lines.entry(event.call.clone()).or_default();
        line.push_str(text);
        let end = match line.rfind('\n') {
            Some(end) => end + 1,
            None if line.len() > MAX_UNFINISHED => line.len(),
            None => return,
        };
        let whole: String = line.drain(..end).collect();
        self.show_output(&whole);
    }

    /// Shows a part of the output. While a question is open it waits, up to a limit: what comes
    /// after that is only in the result.
    fn show_output(&mut self, text: &str) {
        if self.ended.len() > MAX_LIVE_OUTPUT {
            self.live_output = "\0".to_owned();
            return;
        }
        for line in text.lines() {
            let rows = wrap_rows(&frame_text(line), self.columns);
            let rows = rows.lines().map(|row| format!("{}\n", self.style.dim(row)));
            self.ended.extend(rows);
        }
        if self.live_output.len() + text.len() <= MAX_LIVE_OUTPUT {
            self.live_output.push_str(text);
        } else {
            // No longer the whole output, so that nothing is left out of the result.
            self.live_output.clear();
            self.live_output.push('\0');
        }
    }

    fn push_ended(&mut self, event: &ToolEvent, mark: char, why: &str, elapsed_ms: u64) {
        if let Some(rest) = self.unfinished_lines.remove(&event.call) {
            self.show_output(&rest);
        }
        let between = if why.is_empty() { "" } else { "  " };
        let line = format!("{mark} {}{between}{why}", self.headline_for(event));
        let _ =
            writeln!(self.ended, "{}  {}", fit_line(&line, MAX_LINE), format_elapsed(elapsed_ms));
        self.headlines.remove(&event.call);
        if self.current.as_ref().is_some_and(|(call, _)| *call == event.call) {
            self.current = None;
        }
    }

    /// Prints the last lines. All calls have ended, so a prompt that is still shown is abandoned.
    fn finish(mut self, stderr: &mut dyn Write) -> String {
        self.current = None;
        if self.terminal_lock.try_acquire().is_none() {
            self.ended.insert(0, '\n');
            self.terminal_lock = TerminalLock::default();
        }
        self.redraw(stderr);
        self.live_output
    }

    /// Writes finished lines and the current line, unless a prompt holds the terminal.
    fn redraw(&mut self, stderr: &mut dyn Write) {
        let Some(_quiet) = self.terminal_lock.try_acquire() else { return };
        let mut text = String::from(if self.is_drawn { "\r\x1b[2K" } else { "" });
        text += &std::mem::take(&mut self.ended);
        self.is_drawn = self.current.is_some();
        if let Some((_, line)) = &self.current {
            text += line;
        }
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }
}

/// The limit of a line in columns; with the elapsed time it fits into 80.
const MAX_LINE: usize = 70;
/// The length in bytes from which an output without a line end is shown.
const MAX_UNFINISHED: usize = 4 << 10;
/// The length in bytes up to which shown output is kept, to be left out of the printed result.
const MAX_LIVE_OUTPUT: usize = 1 << 20;

/// Formats how far a call is: a bar with both counts, the counts alone on a narrow terminal, or
/// the steps done if the total is unknown.
fn progress_counts(done: u64, total: Option<u64>, width: usize) -> String {
    const BAR: u64 = 10;
    const NARROW: usize = 40;
    match total.filter(|total| *total > 0) {
        None if done == 0 => String::new(),
        None => format!("{done}  "),
        Some(total) if width < NARROW => format!("{done}/{total}  "),
        Some(total) => {
            let full = (u128::from(done.min(total)) * u128::from(BAR) / u128::from(total)) as usize;
            let (full, rest) = ("#".repeat(full), "-".repeat(BAR as usize - full));
            format!("[{full}{rest}] {done}/{total}  ")
        }
    }
}

/// Truncates the first line of a text to `width` columns and escapes control characters.
fn fit_line(text: &str, width: usize) -> String {
    let line = spell_hidden(text.lines().next().unwrap_or_default()).replace('\t', " ");
    let end_of = |(at, c): (usize, char)| (at + c.len_utf8(), char_columns(c));
    let mut used = 0;
    let fits = |&(_, columns): &(usize, usize)| {
        used += columns;
        used <= width
    };
    match line.char_indices().map(end_of).take_while(fits).last().map_or(0, |(end, _)| end) {
        end if end < line.len() => format!("{}…", &line[..end]),
        _ => line,
    }
}

/// Returns the columns that a character may take: 2 for Hangul Jamo and from U+2300 on.
fn char_columns(c: char) -> usize {
    if matches!(c, '\u{1100}'..='\u{115f}' | '\u{2300}'..) { 2 } else { 1 }
}

fn format_elapsed(elapsed_ms: u64) -> String {
    match elapsed_ms {
        0..1000 => format!("{elapsed_ms} ms"),
        _ => format!("{}.{} s", elapsed_ms / 1000, elapsed_ms % 1000 / 100),
    }
}

#[cfg(test)]
mod tests {
    use super::{ProgressLine, TerminalLock, TextStyle, progress_counts};
    use crate::test_support::TestCli;

    /// Returns the terminal output of a command.
    fn screen_of(args: &[&str]) -> String {
        let setting = TestCli { stderr_is_terminal: true, ..TestCli::default() };
        setting.run(args).err
    }

    /// Returns the lines of finished calls, without the elapsed times.
    fn final_lines(screen: &str) -> Vec<&str> {
        let lines = screen.lines().filter_map(|line| line.rsplit("\x1b[2K").next());
        lines.filter_map(|line| line.rsplit_once("  ")).map(|(line, _)| line).collect()
    }

    #[test]
    fn progress_counts_fit_the_terminal() {
        assert_eq!(progress_counts(3, Some(10), 78), "[###-------] 3/10  ");
        assert_eq!(progress_counts(30, Some(10), 78), "[##########] 30/10  ");
        assert_eq!(progress_counts(u64::MAX, Some(u64::MAX), 20).len(), 43);
        assert_eq!(progress_counts(3, Some(10), 20), "3/10  ");
        assert_eq!(progress_counts(3, None, 78), "3  ");
        assert_eq!(progress_counts(0, None, 78), "");
        assert_eq!(progress_counts(1, Some(0), 78), "1  ");
    }

    // F167, F173
    #[test]
    fn a_call_is_one_line_that_is_overwritten() {
        let screen = screen_of(&["call", "echo", "--text", "hi"]);
        assert!(screen.starts_with(
            "… echo(text: hi)\r\x1b[2K… [##########] 1/1  echo(text: hi)  saying it\r\x1b[2K✓"
        ));
        assert!(screen.ends_with(" ms\n"), "{screen:?}");
        assert_eq!(final_lines(&screen), ["✓ echo(text: hi)"]);
    }

    #[test]
    fn a_failure_says_its_kind() {
        let screen = screen_of(&["call", "fail", "--kind", "conflict", "--yes"]);
        assert!(screen.contains("✗ fail(kind: conflict)  conflict  "), "{screen:?}");
        let screen = screen_of(&["call", "kinds", "{}"]);
        assert!(screen.contains("✗ kinds()  denied  "), "{screen:?}");
        let screen = screen_of(&["call", "echo", "{"]);
        assert!(screen.contains("✗ echo  invalid_args  "), "{screen:?}");
    }

    // The progress line shows the arguments after hooks changed them.
    #[cfg(unix)]
    #[test]
    fn a_call_that_a_hook_changed_is_shown_as_it_runs() {
        let mut setting = TestCli { stderr_is_terminal: true, ..TestCli::default() };
        let answer = r#"{ "hookSpecificOutput": { "updatedInput": { "text": "ho" } } }"#;
        let hook = format!("[{{ type = 'command', command = '''echo '{answer}' ''' }}]");
        let config = format!("[[hooks.PreToolUse]]\nmatcher = '*'\nhooks = {hook}\n");
        let config = setting.write_text("config.toml", &config);
        let call = ["call", "echo", "--text", "hi", "--config", &config];
        assert_eq!(final_lines(&setting.run(&call).err), ["✓ echo(text: ho)"]);
        let asked = [&call[..], &["--ask", "echo"]].concat();
        setting.stdout_is_terminal = true;
        setting.type_lines(&["n"]);
        assert_eq!(final_lines(&setting.run(&asked).err), ["✗ echo(text: ho)  denied"]);
    }

    #[test]
    fn nothing_in_a_headline_moves_the_cursor() {
        let screen = screen_of(&["call", "echo", "--text", "\x1b[2J\u{7}a\u{3164}\u{a0}b"]);
        assert_eq!(final_lines(&screen), [r"✓ echo(text: \x1b[2J\x07a\u{3164}\u{a0}b)"]);
    }

    // A line that wraps could not be overwritten.
    #[test]
    fn the_line_that_changes_fits_into_a_narrow_terminal() {
        for (text, shown) in [
            ("0123456789abcdef", "… echo(text: 01234…"),
            ("漢字漢字漢字漢字", "… echo(text: 漢字…"),
        ] {
            let setting =
                TestCli { stderr_is_terminal: true, columns: Some(20), ..TestCli::default() };
            let screen = setting.run(&["call", "echo", "--text", text]).err;
            assert!(screen.starts_with(&format!("{shown}\r\x1b[2K")), "{screen:?}");
            assert!(screen.contains(&format!("✓ echo(text: {text})  ")), "{screen:?}");
        }
    }

    // A warning does not wait until the user has answered every prompt.
    #[test]
    fn warning_is_shown_below_an_open_prompt() {
        let lock = TerminalLock::default();
        let mut line = ProgressLine::new(lock.clone(), Some(40), TextStyle::plain());
        let mut screen = Vec::new();
        let prompt = lock.try_acquire();
        line.print_warning(&format!("not stored {}", "x".repeat(30)), &mut screen);
        let expected = "\nwarning: not stored xxxxxxxxxxxxxxxxxxx\n  | xxxxxxxxxxx\n> ";
        assert_eq!(String::from_utf8(std::mem::take(&mut screen)).unwrap(), expected);
        drop(prompt);
        line.print_warning("not stored", &mut screen);
        assert_eq!(String::from_utf8(screen).unwrap(), "warning: not stored\n");
    }

    #[test]
    fn progress_is_only_shown_on_a_terminal() {
        assert_eq!(TestCli::default().run(&["call", "echo", "--text", "hi"]).err, "");
        assert!(!screen_of(&["call", "echo", "--events", "--text", "hi"]).contains('✓'));
        let env = vec![("TERM", "dumb".to_owned())];
        let dumb = TestCli { stderr_is_terminal: true, env, ..TestCli::default() };
        assert_eq!(dumb.run(&["call", "echo", "--text", "hi"]).err, "");
    }
}
