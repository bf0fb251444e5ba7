//! The configuration of command hooks, in the shape that Claude Code made common.
//!
//! A mistake costs the entry that it stands in and no other: what can be read is used, and
//! each mistake comes back with its place.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

use super::event::{ELSEWHERE, Event, is_like};
use super::matcher::Matcher;
use crate::hook::OnError;
use crate::process::Run;

/// The keys of a group of commands.
const GROUP: &[&str] = &["matcher", "hooks"];

/// The keys of a command that say for which calls it runs, and what its failure means: without
/// them it would be another one.
const TELLING: &[&str] = &["matcher", "on_error"];

/// One command of the configuration.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Where it stands in the configuration.
    pub(super) place: String,
    pub(super) event: Event,
    pub(super) matcher: Matcher,
    pub(super) command: Command,
    pub(super) timeout: Duration,
    /// Whether nobody waits for it.
    pub(super) background: bool,
    pub(super) on_error: OnError,
    pub(super) may_allow: bool,
}

impl Entry {
    /// Its name in events: the program, and where it stands.
    pub(super) fn name(&self) -> String {
        format!("{} ({})", self.command.label(), self.place)
    }
}

/// What is run.
#[derive(Clone, Debug)]
pub(super) enum Command {
    /// A line for the shell.
    Line(String),
    /// A program and its arguments.
    Exec(String, Vec<String>),
}

impl Command {
    pub(super) fn to_run(&self) -> Run {
        match self {
            Self::Line(line) => Run::shell(line),
            Self::Exec(program, args) => Run::exec(program, args.iter().map(OsString::from)),
        }
    }

    /// The name of its program. The rest of the command may hold secrets, and what is said
    /// of a hook is read by models.
    pub(super) fn label(&self) -> &str {
        let program = match self {
            Self::Line(line) => line.split_whitespace().find(|word| !word.contains('=')),
            Self::Exec(program, _) => Some(program.as_str()),
        };
        let name = program.and_then(|program| program.rsplit(['/', '\\']).next());
        let name = name.unwrap_or_default().trim_matches(|c: char| !c.is_ascii_alphanumeric());
        if name.is_empty() { "command" } else { name }
    }
}

/// A mistake in the configuration of hooks. Everything else in it is used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{path}: {message}")]
#[non_exhaustive]
pub struct HookConfigError {
    /// Where it is, such as `PreToolUse[0].hooks[1].timeout`.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// Whether a command is not in force because of it that was to decide about calls, or whether
    /// a result is shown.
    pub fatal: bool,
}

/// Reads a configuration: the hooks by event, or a settings file that has them under `hooks`.
pub(super) fn read(config: &Value) -> (Vec<Entry>, Vec<HookConfigError>) {
    let mut reader = Reader { entries: Vec::new(), errors: Vec::new() };
    let events = config.get("hooks").unwrap_or(config);
    for name in config.as_object().into_iter().flat_map(Map::keys) {
        let is_event = Event::named(name).is_some() || Event::is_meant(name);
        let is_beside = config.get("hooks").is_some() && name != "hooks";
        if is_beside && (is_event || has_commands(&config[name])) {
            let message = "it stands beside `hooks`, and what is read stands below";
            reader.add(is_guard(name, &config[name]), name, message);
        }
    }
    match events.as_object() {
        None => reader.add(true, "hooks", "expected an object of events"),
        Some(events) => events.iter().for_each(|(event, groups)| reader.event(event, groups)),
    }
    (reader.entries, reader.errors)
}

/// Whether commands that stand under the name of an event were to decide: about calls, or whether
/// a result is shown.
fn is_guard(name: &str, written: &Value) -> bool {
    match Event::named(name) {
        Some(event) => event.decides() || is_bound(written),
        None if ELSEWHERE.contains(&name) => false,
        None => Event::is_meant(name) || is_bound(written),
    }
}

/// Whether some command in it says that nothing is shown that it could not look at.
fn is_bound(written: &Value) -> bool {
    holds(written, &|key, value| is_like(key, "on_error") && value != "ignore")
}

/// Whether commands stand in it, in groups or without.
fn has_commands(written: &Value) -> bool {
    let is_one = |item: &Value| item.get("command").is_some();
    written.as_array().is_some_and(|items| items.iter().any(is_one))
        || holds(written, &|key, _| GROUP.contains(&key))
}

/// Whether there is such a key anywhere in `value`.
fn holds(value: &Value, is_such: &dyn Fn(&str, &Value) -> bool) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| holds(item, is_such)),
        Value::Object(members) => {
            members.iter().any(|(key, value)| is_such(key, value) || holds(value, is_such))
        }
        _ => false,
    }
}

struct Reader {
    entries: Vec<Entry>,
    errors: Vec<HookConfigError>,
}

impl Reader {
    /// Something in what is `written` for `event`, none of which is in force.
    fn wrong(
        &mut self,
        event: Event,
        written: &Value,
        path: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.add(is_guard(event.as_str(), written), path, message);
    }

    fn add(&mut self, fatal: bool, path: impl Into<String>, message: impl Into<String>) {
        self.errors.push(HookConfigError { path: path.into(), message: message.into(), fatal });
    }

    fn event(&mut self, name: &str, groups: &Value) {
        let Some(event) = Event::named(name) else {
            let message = match Event::close_to(name) {
                Some(close) => format!("unknown event; did you mean `{}`?", close.as_str()),
                None => {
                    let known = Event::ALL.map(Event::as_str).join(", ");
                    format!("unknown event; expected one of {known}")
                }
            };
            return self.add(is_guard(name, groups), name, message);
        };
        let Some(list) = groups.as_array() else {
            return self.wrong(event, groups, name, "expected a list");
        };
        for (at, group) in list.iter().enumerate() {
            self.group(event, &format!("{name}[{at}]"), group);
        }
    }

    fn group(&mut self, event: Event, path: &str, group: &Value) {
        let keys = group.as_object().into_iter().flat_map(Map::keys);
        let strangers: Vec<_> = keys.filter(|key| !GROUP.contains(&key.as_str())).collect();
        for key in &strangers {
            let message = "is not known here, and what stands beside it is not in force; the keys \
                of a group are `matcher` and `hooks`, and those of a command stand below";
            self.wrong(event, group, format!("{path}.{key}"), message);
        }
        if !strangers.is_empty() {
            return;
        }
        let matcher = match group.get("matcher") {
            None | Some(Value::Null) => Ok(Matcher::All),
            Some(Value::String(pattern)) => Matcher::parse(pattern),
            Some(_) => Err("expected a text".to_owned()),
        };
        if let Err(message) = &matcher {
            self.wrong(event, group, format!("{path}.matcher"), message);
        }
        let Some(hooks) = group.get("hooks").and_then(Value::as_array) else {
            return self.wrong(event, group, format!("{path}.hooks"), "expected a list");
        };
        for (at, hook) in hooks.iter().enumerate() {
            let path = format!("{path}.hooks[{at}]");
            // Without a matcher a hook runs for nothing, but its mistakes are still told.
            match (self.hook(event, &path, hook), &matcher) {
                (Ok(entry), Ok(matcher)) => {
                    self.entries.push(Entry { matcher: matcher.clone(), place: path, ..entry });
                }
                (Ok(_), Err(_)) => {}
                (Err((key, message)), _) => self.wrong(event, hook, path + key, message),
            }
        }
    }

    fn hook(&mut self, event: Event, path: &str, hook: &Value) -> Result<Entry, Mistake> {
        let kind = hook.get("type").and_then(Value::as_str);
        if kind != Some("command") {
            let found = kind.map_or_else(|| "nothing".to_owned(), |kind| format!("`{kind}`"));
            return Err((".type", format!("expected `command`, found {found}")));
        }
        let Written { command, args, timeout, background, on_error, may_allow, rest, .. } =
            Written::deserialize(hook).map_err(|error| ("", error.to_string()))?;
        let command = match (command, args) {
            (Some(line), None) if !line.trim().is_empty() => Command::Line(line),
            (Some(program), Some(args)) if !program.is_empty() => Command::Exec(program, args),
            (None, Some(mut args)) if args.first().is_some_and(|program| !program.is_empty()) => {
                Command::Exec(args.remove(0), args)
            }
            _ => return Err((".command", "expected a command, or a program in `args`".to_owned())),
        };
        let timeout = match timeout {
            // Nobody waits for it, so it may take as long as one that only looks on.
            None if background => Event::PostToolUse.timeout(),
            None => event.timeout(),
            Some(seconds) => Duration::try_from_secs_f64(seconds)
                .ok()
                .filter(|timeout| !timeout.is_zero())
                .ok_or((".timeout", "expected a number of seconds above zero".to_owned()))?,
        };
        for key in rest.keys() {
            if let Some(meant) = TELLING.iter().find(|known| is_like(key, known)) {
                let place = if *meant == "matcher" { ", which stands one level up" } else { "" };
                let message = format!("unknown key `{key}`; did you mean `{meant}`{place}?");
                return Err(("", message));
            }
            self.add(false, format!("{path}.{key}"), "is not known here and has no effect");
        }
        if background && matches!(on_error, Some(WhenBroken::Deny)) {
            let message =
                "`async` and an `on_error` of `deny` exclude each other: nobody waits for it";
            return Err(("", message.to_owned()));
        }
        let on_error = match on_error {
            None => event.on_error(),
            Some(WhenBroken::Deny) => OnError::Deny,
            Some(WhenBroken::Ignore) => OnError::Ignore,
        };
        let (place, matcher) = (String::new(), Matcher::All);
        Ok(Entry { place, event, matcher, command, timeout, background, on_error, may_allow })
    }
}

/// The key and what is wrong with it.
type Mistake = (&'static str, String);

/// One command as it is written.
#[derive(Deserialize)]
struct Written {
    #[serde(rename = "type")]
    _kind: String,
    command: Option<String>,
    args: Option<Vec<String>>,
    timeout: Option<f64>,
    #[serde(default, rename = "async")]
    background: bool,
    on_error: Option<WhenBroken>,
    #[serde(default)]
    may_allow: bool,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum WhenBroken {
    Deny,
    Ignore,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mistakes(config: &Value) -> (usize, Vec<String>) {
        let (entries, errors) = read(config);
        (entries.len(), errors.iter().map(|error| error.path.clone()).collect())
    }

    // A bad entry or an unknown event leaves the rest in force.
    #[test]
    fn a_mistake_costs_its_own_entry_only() {
        let good = json!({ "type": "command", "command": "true" });
        let config = json!({
            "Stop": [{ "hooks": [good] }],
            "PostToolUse": "all",
            "PreToolUse": [
                "what",
                { "matcher": "[", "hooks": [good, { "type": "prompt" }] },
                { "matcher": 3, "hooks": [good] },
                { "matcher": "a", "hooks": [
                    good,
                    7,
                    { "type": "command" },
                    { "type": "command", "command": "true", "timeout": -1 },
                    { "type": "command", "command": "true", "timeout": 1e300 },
                    { "type": "command", "command": "true", "on_error": "allow" },
                    { "type": "command", "args": [] },
                    { "type": "command", "command": "true", "if": "x" },
                ] },
            ],
            "PermissionRequest": [{ "hooks": [good] }],
        });
        let expected = [
            "Stop",
            "PostToolUse",
            "PreToolUse[0].hooks",
            "PreToolUse[1].matcher",
            "PreToolUse[1].hooks[1].type",
            "PreToolUse[2].matcher",
            "PreToolUse[3].hooks[1].type",
            "PreToolUse[3].hooks[2].command",
            "PreToolUse[3].hooks[3].timeout",
            "PreToolUse[3].hooks[4].timeout",
            "PreToolUse[3].hooks[5]",
            "PreToolUse[3].hooks[6].command",
            "PreToolUse[3].hooks[7].if",
        ];
        assert_eq!(mistakes(&config), (3, expected.map(str::to_owned).to_vec()));
    }

    // F71: a settings file has its events in one place.
    #[test]
    fn events_beside_those_that_are_read_are_told() {
        let group = json!([{ "hooks": [{ "type": "command", "command": "true" }] }]);
        for (event, fatal) in
            [("PreToolUse", true), ("PermissionRequest", true), ("PostToolUse", false)]
        {
            let config = json!({ "model": "x", "hooks": { "PostToolUse": group }, event: group });
            let (entries, errors) = read(&config);
            let told: Vec<_> = errors.iter().map(|error| (&*error.path, error.fatal)).collect();
            assert_eq!((entries.len(), told), (1, vec![(event, fatal)]));
        }
    }

    // F71: what costs no guard is told, and nothing more.
    #[test]
    fn a_mistake_is_fatal_where_a_hook_was_to_decide() {
        let good = json!({ "type": "command", "command": "true" });
        let strange = json!({ "type": "command", "command": "true", "if": "x" });
        let bad = json!({ "type": "prompt" });
        let strips = json!({ "type": "prompt", "on_error": "deny" });
        let command =
            |key: &str, value: &str| json!({ "type": "command", "command": "true", key: value });
        let binding = command("on_error", "deny");
        let misspelt = command("onError", "deny");
        let inside = command("matcher", "a");
        let mut unheard = binding.clone();
        unheard["async"] = true.into();
        let group = |hook: &Value| json!([{ "hooks": [hook] }]);
        for (config, fatal) in [
            (json!({ "Stop": group(&good) }), false),
            (json!({ "SessionStart": "x" }), false),
            (json!({ "preToolUse": group(&good) }), true),
            (json!({ "PreToolUsed": group(&good) }), true),
            (json!({ "PreToolUse": group(&strange) }), false),
            (json!({ "PreToolUse": group(&bad) }), true),
            (json!({ "PermissionRequest": "x" }), true),
            (json!({ "PostToolUse": group(&bad) }), false),
            (json!({ "PreToolUse": [{ "matcher": "[", "hooks": [good] }] }), true),
            (json!({ "PostToolUse": [{ "matcher": "[", "hooks": [good] }] }), false),
            // However the event is spelt.
            (json!({ "pre_tool_use": group(&good) }), true),
            (json!({ "pre-tool-use": "x" }), true),
            (json!({ "PreTool": group(&good) }), true),
            (json!({ "BeforeTool": [good] }), true),
            (json!({ "BeforeTool": "x" }), true),
            (json!({ "ToolPermission": group(&good) }), true),
            (json!({ "beforeShellExecution": group(&good) }), true),
            (json!({ "pre_run_command": group(&good) }), true),
            (json!({ "UserApproval": group(&good) }), true),
            (json!({ "AfterCommand": group(&good) }), false),
            // One that nobody knows costs none that is known.
            (json!({ "Foo": group(&good) }), false),
            (json!({ "Foo": group(&binding) }), true),
            (json!({ "PostToolUze": group(&good) }), false),
            (json!({ "PostToolUze": group(&binding) }), true),
            (json!({ "model": "x" }), false),
            // What was to be taken out of a result is shown.
            (json!({ "PostToolUse": group(&strips) }), true),
            (json!({ "PostToolUse": { "hooks": [binding] } }), true),
            (json!({ "PostToolUse": [{ "matcher": "[", "hooks": [binding] }] }), true),
            (json!({ "PostToolUse": [{ "hooks": [good], "on_error": "deny" }] }), true),
            (json!({ "PostToolUse": [{ "hooks": [good], "on_error": "ignore" }] }), false),
            // What says for which calls it is.
            (json!({ "PreToolUse": [{ "matchers": "a", "hooks": [good] }] }), true),
            (json!({ "PreToolUse": [{ "Matcher": "a", "hooks": [good] }] }), true),
            (json!({ "PreToolUse": [{ "hooks": [inside] }] }), true),
            (json!({ "PostToolUse": [{ "match": "a", "hooks": [good] }] }), false),
            (json!({ "PostToolUse": group(&misspelt) }), true),
            // Nobody waits for what it says.
            (json!({ "PreToolUse": group(&unheard) }), true),
        ] {
            let (entries, errors) = read(&config);
            assert_eq!(errors.iter().map(|it| it.fatal).collect::<Vec<_>>(), [fatal], "{config}");
            assert_eq!(entries.is_empty(), config["PreToolUse"] != group(&strange), "{config}");
        }
    }

    #[test]
    fn an_event_that_is_mistyped_is_told_its_name() {
        for (name, expected) in [
            ("preToolUse", "unknown event; did you mean `PreToolUse`?"),
            ("PostToolUze", "unknown event; did you mean `PostToolUse`?"),
            (
                "Foo",
                "unknown event; expected one of PreToolUse, PostToolUse, PostToolUseFailure, \
                 PermissionRequest",
            ),
        ] {
            let (_, errors) = read(&json!({ name: [] }));
            assert_eq!(errors[0].message, expected);
        }
    }

    #[test]
    fn deciding_hooks_are_short_and_fail_closed_unless_told_otherwise() {
        let of = |event: &str, mut hook: Value| {
            hook["type"] = "command".into();
            hook["command"] = "true".into();
            let (mut entries, errors) = read(&json!({ event: [{ "hooks": [hook] }] }));
            assert_eq!(errors, []);
            let entry = entries.remove(0);
            (entry.timeout.as_secs(), entry.on_error, entry.may_allow)
        };
        assert_eq!(of("PreToolUse", json!({})), (10, OnError::Deny, false));
        assert_eq!(of("PermissionRequest", json!({})), (10, OnError::Deny, false));
        assert_eq!(of("PostToolUse", json!({})), (60, OnError::Ignore, false));
        assert_eq!(of("PostToolUseFailure", json!({})), (60, OnError::Ignore, false));
        let set = json!({ "timeout": 3, "on_error": "ignore", "may_allow": true });
        assert_eq!(of("PreToolUse", set), (3, OnError::Ignore, true));
    }

    #[test]
    fn a_settings_file_has_the_events_one_level_down() {
        let hook = json!({ "type": "command", "args": ["guard", "--strict"] });
        let (entries, errors) =
            read(&json!({ "model": "x", "hooks": { "PreToolUse": [{ "hooks": [hook] }] } }));
        assert_eq!(errors, []);
        assert_eq!(entries[0].place, "PreToolUse[0].hooks[0]");
        assert_eq!(mistakes(&json!([])).1, ["hooks"]);
    }

    // What follows the program may be a secret.
    #[test]
    fn a_label_is_the_program_alone() {
        let line = |line: &str| Command::Line(line.to_owned()).label().to_owned();
        assert_eq!(
            line("KEY=hunter2 \"$CLAUDE_PROJECT_DIR\"/hooks/guard.sh --token x"),
            "guard.sh"
        );
        assert_eq!(line("curl -H 'Authorization: x' https://ada:pw@example.com"), "curl");
        assert_eq!(line("KEY=hunter2"), "command");
        let exec = Command::Exec("/opt/guard".to_owned(), vec!["hunter2".to_owned()]);
        assert_eq!(exec.label(), "guard");
    }
}
