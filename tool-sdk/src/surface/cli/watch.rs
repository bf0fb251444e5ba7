//! Prints the events of running calls on standard error: as JSON lines, as a progress line, or
//! only warnings.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write;

use serde_json::Value;

use super::style;
use super::terminal::Floor;
use crate::call::CallId;
use crate::event::{EventKind, Events, ToolEvent};
use crate::permission::spelt;

/// A subscription to events, and the format in which they are printed.
pub(super) struct Watch {
    pub(super) events: Events,
    pub(super) view: View,
}

/// The format of printed events.
pub(super) enum View {
    /// One JSON line per event.
    Lines,
    /// A progress line on a terminal.
    Live(Live),
    /// Only warnings.
    Warnings,
}

impl Watch {
    /// Prints only warnings.
    pub(super) fn quiet(events: Events) -> Self {
        Self { events, view: View::Warnings }
    }

    /// Prints every event as a JSON line.
    pub(super) fn lines(events: Events) -> Self {
        Self { events, view: View::Lines }
    }

    /// Shows a progress line on a terminal.
    pub(super) fn live(events: Events, floor: Floor, columns: Option<u16>) -> Self {
        Self { events, view: View::Live(Live::new(floor, columns)) }
    }

    /// Prints the remaining events.
    pub(super) fn finish(mut self, stderr: &mut dyn Write) {
        while let Some(event) = self.events.try_recv() {
            self.view.tell(&event, stderr);
        }
        if let View::Live(live) = self.view {
            live.finish(stderr);
        }
    }
}

impl View {
    /// That nobody reads it is no reason to end a call.
    pub(super) fn tell(&mut self, event: &ToolEvent, stderr: &mut dyn Write) {
        match self {
            Self::Live(live) => live.tell(event, stderr),
            Self::Lines => {
                if let Ok(line) = serde_json::to_string(event) {
                    let _ = writeln!(stderr, "{line}");
                }
            }
            Self::Warnings => {
                if let EventKind::Warned { message } = &event.kind {
                    let _ = writeln!(stderr, "{}", warning(message));
                }
            }
        }
    }
}

/// Formats a warning on one line.
fn warning(message: &str) -> String {
    style::plain(&format!("warning: {message}")).replace(['\n', '\t'], " ")
}

/// A line about the running call that is overwritten, below one line for every finished call.
pub(super) struct Live {
    floor: Floor,
    headlines: HashMap<CallId, String>,
    /// The call with the latest event, and its line.
    now: Option<(CallId, String)>,
    /// Lines of finished calls, to be written when no prompt is shown.
    ended: String,
    drawn: bool,
    /// The limit of the overwritten line in columns, so that it does not wrap.
    width: usize,
}

impl Live {
    fn new(floor: Floor, columns: Option<u16>) -> Self {
        // Two columns less, for the ellipsis and a free column.
        let width = columns.map_or(MAX_LINE, |all| usize::from(all).saturating_sub(2));
        let (headlines, ended) = (HashMap::new(), String::new());
        Self { floor, headlines, now: None, ended, drawn: false, width: width.min(MAX_LINE) }
    }

    fn tell(&mut self, event: &ToolEvent, stderr: &mut dyn Write) {
        match &event.kind {
            EventKind::Pending { arguments, .. } => return self.head(event, arguments),
            // The prompt shows the arguments after the hooks changed them.
            EventKind::PermissionAsked(ask) => return self.head(event, &ask.arguments),
            EventKind::Started { arguments } => {
                // A hook changed the arguments.
                if let Some(changed) = arguments {
                    self.head(event, changed);
                }
                self.show(event, "");
            }
            EventKind::Progress { message, .. } => self.show(event, message),
            EventKind::Completed { elapsed_ms, .. } => self.end(event, '✓', "", *elapsed_ms),
            EventKind::Failed(ending)
            | EventKind::Aborted(ending)
            | EventKind::TimedOut(ending) => {
                self.end(event, '✗', ending.error.as_str(), ending.elapsed_ms);
            }
            EventKind::Warned { message } => {
                let _ = writeln!(self.ended, "{}", warning(message));
            }
            _ => return,
        }
        self.draw(stderr);
    }

    fn head(&mut self, event: &ToolEvent, arguments: &Value) {
        let headline = event.tool.display.headline(event.tool.name.as_str(), arguments);
        self.headlines.insert(event.call.clone(), headline);
    }

    /// Returns the headline of a call; the tool's name if its arguments could not be parsed.
    fn headline(&self, event: &ToolEvent) -> String {
        let known = self.headlines.get(&event.call).cloned();
        known.unwrap_or_else(|| event.tool.name.to_string())
    }

    fn show(&mut self, event: &ToolEvent, message: &str) {
        let line = format!("… {}  {message}", self.headline(event));
        self.now = Some((event.call.clone(), one_line(line.trim_end(), self.width)));
    }

    fn end(&mut self, event: &ToolEvent, mark: char, why: &str, elapsed_ms: u64) {
        let between = if why.is_empty() { "" } else { "  " };
        let line = format!("{mark} {}{between}{why}", self.headline(event));
        let _ = writeln!(self.ended, "{}  {}", one_line(&line, MAX_LINE), time(elapsed_ms));
        self.headlines.remove(&event.call);
        if self.now.as_ref().is_some_and(|(call, _)| *call == event.call) {
            self.now = None;
        }
    }

    /// Prints the last lines. All calls have ended, so a prompt that is still shown is abandoned.
    fn finish(mut self, stderr: &mut dyn Write) {
        self.now = None;
        if self.floor.try_take().is_none() {
            self.ended.insert(0, '\n');
            self.floor = Floor::default();
        }
        self.draw(stderr);
    }

    /// Writes finished lines and the current line, unless a prompt holds the terminal.
    fn draw(&mut self, stderr: &mut dyn Write) {
        let Some(_quiet) = self.floor.try_take() else { return };
        let mut text = String::from(if self.drawn { "\r\x1b[2K" } else { "" });
        text += &std::mem::take(&mut self.ended);
        self.drawn = self.now.is_some();
        if let Some((_, line)) = &self.now {
            text += line;
        }
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }
}

/// The limit of a line in columns; with the elapsed time it fits into 80.
const MAX_LINE: usize = 70;

/// Truncates the first line of a text to `width` columns and escapes control characters.
fn one_line(text: &str, width: usize) -> String {
    let line = spelt(text.lines().next().unwrap_or_default()).replace('\t', " ");
    let end_of = |(at, c): (usize, char)| (at + c.len_utf8(), columns_of(c));
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
fn columns_of(c: char) -> usize {
    if matches!(c, '\u{1100}'..='\u{115f}' | '\u{2300}'..) { 2 } else { 1 }
}

fn time(elapsed_ms: u64) -> String {
    match elapsed_ms {
        0..1000 => format!("{elapsed_ms} ms"),
        _ => format!("{}.{} s", elapsed_ms / 1000, elapsed_ms % 1000 / 100),
    }
}

#[cfg(test)]
mod tests {
    use super::super::toy::Setting;

    /// Returns the terminal output of a command.
    fn watched(args: &[&str]) -> String {
        let setting = Setting { live: true, ..Setting::default() };
        setting.run(args).err
    }

    /// Returns the lines of finished calls, without the elapsed times.
    fn kept(screen: &str) -> Vec<&str> {
        let lines = screen.lines().filter_map(|line| line.rsplit("\x1b[2K").next());
        lines.filter_map(|line| line.rsplit_once("  ")).map(|(line, _)| line).collect()
    }

    // F167, F173
    #[test]
    fn a_call_is_one_line_that_is_overwritten() {
        let screen = watched(&["call", "echo", "--text", "hi"]);
        assert!(
            screen.starts_with("… echo(text: hi)\r\x1b[2K… echo(text: hi)  saying it\r\x1b[2K✓")
        );
        assert!(screen.ends_with(" ms\n"), "{screen:?}");
        assert_eq!(kept(&screen), ["✓ echo(text: hi)"]);
    }

    #[test]
    fn a_failure_says_its_kind() {
        let screen = watched(&["call", "fail", "--kind", "conflict", "--yes"]);
        assert!(screen.contains("✗ fail(kind: conflict)  conflict  "), "{screen:?}");
        let screen = watched(&["call", "kinds", "{}"]);
        assert!(screen.contains("✗ kinds()  denied  "), "{screen:?}");
        let screen = watched(&["call", "echo", "{"]);
        assert!(screen.contains("✗ echo  invalid_args  "), "{screen:?}");
    }

    // The progress line shows the arguments after hooks changed them.
    #[cfg(all(unix, feature = "hooks"))]
    #[test]
    fn a_call_that_a_hook_changed_is_shown_as_it_runs() {
        let mut setting = Setting { live: true, ..Setting::default() };
        let answer = r#"{ "hookSpecificOutput": { "updatedInput": { "text": "ho" } } }"#;
        let hook = format!("[{{ type = 'command', command = '''echo '{answer}' ''' }}]");
        let config = format!("[[hooks.PreToolUse]]\nmatcher = '*'\nhooks = {hook}\n");
        let config = setting.file("config.toml", &config);
        let call = ["call", "echo", "--text", "hi", "--config", &config];
        assert_eq!(kept(&setting.run(&call).err), ["✓ echo(text: ho)"]);
        let asked = [&call[..], &["--ask", "echo"]].concat();
        setting.terminal = true;
        setting.types(&["n"]);
        assert_eq!(kept(&setting.run(&asked).err), ["✗ echo(text: ho)  denied"]);
    }

    #[test]
    fn nothing_in_a_headline_moves_the_cursor() {
        let screen = watched(&["call", "echo", "--text", "\x1b[2J\u{7}a\u{3164}\u{a0}b"]);
        assert_eq!(kept(&screen), [r"✓ echo(text: \x1b[2J\x07a\u{3164}\u{a0}b)"]);
    }

    // A line that wraps could not be overwritten.
    #[test]
    fn the_line_that_changes_fits_into_a_narrow_terminal() {
        for (text, shown) in [
            ("0123456789abcdef", "… echo(text: 01234…"),
            ("漢字漢字漢字漢字", "… echo(text: 漢字…"),
        ] {
            let setting = Setting { live: true, columns: Some(20), ..Setting::default() };
            let screen = setting.run(&["call", "echo", "--text", text]).err;
            assert!(screen.starts_with(&format!("{shown}\r\x1b[2K")), "{screen:?}");
            assert!(screen.contains(&format!("✓ echo(text: {text})  ")), "{screen:?}");
        }
    }

    #[test]
    fn progress_is_only_shown_on_a_terminal() {
        assert_eq!(Setting::default().run(&["call", "echo", "--text", "hi"]).err, "");
        assert!(!watched(&["call", "echo", "--events", "--text", "hi"]).contains('✓'));
        let env = vec![("TERM", "dumb".to_owned())];
        let dumb = Setting { live: true, env, ..Setting::default() };
        assert_eq!(dumb.run(&["call", "echo", "--text", "hi"]).err, "");
    }
}
