//! Who is told what happens while calls run: a program, a person, or nobody.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write;

use serde_json::Value;

use super::style;
use super::terminal::Floor;
use crate::call::CallId;
use crate::event::{EventKind, Events, ToolEvent};
use crate::permission::spelt;

/// Whoever is told of events.
pub(super) struct Watch {
    pub(super) events: Events,
    pub(super) view: View,
}

/// How events are told.
pub(super) enum View {
    /// Each is a line of JSON.
    Lines,
    /// A person at a terminal sees how far the calls are.
    Live(Live),
    /// Nothing but what somebody has to know.
    Warnings,
}

impl Watch {
    /// Nothing is told but what somebody has to know.
    pub(super) fn quiet(events: Events) -> Self {
        Self { events, view: View::Warnings }
    }

    /// Every event is one line of JSON.
    pub(super) fn lines(events: Events) -> Self {
        Self { events, view: View::Lines }
    }

    /// A person at a terminal sees how far the calls are.
    pub(super) fn live(events: Events, floor: Floor, columns: Option<u16>) -> Self {
        Self { events, view: View::Live(Live::new(floor, columns)) }
    }

    /// Tells what is left to tell.
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

/// What somebody has to know, on one line, however long.
fn warning(message: &str) -> String {
    style::plain(&format!("warning: {message}")).replace(['\n', '\t'], " ")
}

/// One line about what runs now, and one above it for every call that has ended.
pub(super) struct Live {
    floor: Floor,
    headlines: HashMap<CallId, String>,
    /// The call that said something last, and its line.
    now: Option<(CallId, String)>,
    /// Lines of calls that have ended, to be written when nobody is asked.
    ended: String,
    drawn: bool,
    /// How long a line may be that is to be drawn over: no longer than the terminal is wide.
    width: usize,
}

impl Live {
    fn new(floor: Floor, columns: Option<u16>) -> Self {
        // A mark of what is cut off, and a column that stays free.
        let width = columns.map_or(MAX_LINE, |all| usize::from(all).saturating_sub(2));
        let (headlines, ended) = (HashMap::new(), String::new());
        Self { floor, headlines, now: None, ended, drawn: false, width: width.min(MAX_LINE) }
    }

    fn tell(&mut self, event: &ToolEvent, stderr: &mut dyn Write) {
        match &event.kind {
            EventKind::Pending { arguments, .. } => return self.head(event, arguments),
            // What somebody is asked about is what runs, whatever hooks made of it.
            EventKind::PermissionAsked(ask) => return self.head(event, &ask.arguments),
            EventKind::Started { arguments } => {
                // A hook changed them: what runs is what is shown.
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

    /// A call whose arguments were not understood has a name and no headline.
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

    /// Everything has ended, so a question that is still open has no answer to come.
    fn finish(mut self, stderr: &mut dyn Write) {
        self.now = None;
        if self.floor.try_take().is_none() {
            self.ended.insert(0, '\n');
            self.floor = Floor::default();
        }
        self.draw(stderr);
    }

    /// Writes what has changed, unless somebody is being asked on this very screen.
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

/// What fits on one line of most terminals with a time behind it.
const MAX_LINE: usize = 70;

/// As much of a text as is `width` wide, on one line that it cannot leave.
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

/// How many columns a character may take: those of Korean, and from signs and ideographs on.
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

    /// What stands on the screen of somebody who watches.
    fn watched(args: &[&str]) -> String {
        let setting = Setting { live: true, ..Setting::default() };
        setting.run(args).err
    }

    /// The lines that stay, without the times at their ends.
    fn kept(screen: &str) -> Vec<&str> {
        let lines = screen.lines().filter_map(|line| line.rsplit("\x1b[2K").next());
        lines.filter_map(|line| line.rsplit_once("  ")).map(|(line, _)| line).collect()
    }

    // F167, F173: the metadata of the tool is all that is needed.
    #[test]
    fn a_call_is_one_line_that_changes_until_it_ends() {
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

    // What was shown while it was decided is not what runs where a hook changed the call.
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

    // A line that is longer than the terminal is wide could not be drawn over.
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
    fn only_those_who_watch_at_a_terminal_see_it() {
        assert_eq!(Setting::default().run(&["call", "echo", "--text", "hi"]).err, "");
        assert!(!watched(&["call", "echo", "--events", "--text", "hi"]).contains('✓'));
        let env = vec![("TERM", "dumb".to_owned())];
        let dumb = Setting { live: true, env, ..Setting::default() };
        assert_eq!(dumb.run(&["call", "echo", "--text", "hi"]).err, "");
    }
}
