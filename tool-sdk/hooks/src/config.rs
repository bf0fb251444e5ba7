//! Parses the configuration of external hooks, in the format of Claude Code.
//!
//! **Invariant:** an error only disables its own entry and is returned with its path; it is fatal
//! if the entry could have denied a call or withheld a result.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;
use tool_sdk_core::OnError;
use tool_sdk_process::Command;

use super::event::{FOREIGN_EVENTS, HookEvent, is_similar};
use super::matcher::ToolMatcher;

/// The keys of a group of commands.
const GROUP_KEYS: &[&str] = &["matcher", "hooks"];

/// Keys that change when a command runs or what its failure means, so that a misspelled or
/// misplaced one is an error.
const MISPLACED_KEYS: &[&str] = &["matcher", "on_error"];

/// One configured command.
#[derive(Clone, Debug)]
pub(super) struct HookEntry {
    /// Its path in the configuration.
    pub(super) place: String,
    pub(super) event: HookEvent,
    pub(super) matcher: ToolMatcher,
    pub(super) command: HookCommand,
    pub(super) timeout: Duration,
    /// Whether it is `async`, so that no call waits for it.
    pub(super) background: bool,
    pub(super) on_error: OnError,
    pub(super) may_allow: bool,
}

impl HookEntry {
    /// Returns its name in events: the program and the configuration path.
    pub(super) fn name(&self) -> String {
        format!("{} ({})", self.command.program_label(), self.place)
    }
}

/// The command to run.
#[derive(Clone, Debug)]
pub(super) enum HookCommand {
    /// A line for the shell.
    Shell(String),
    /// A program and its arguments.
    Exec(String, Vec<String>),
}

impl HookCommand {
    pub(super) fn to_run(&self) -> Command {
        match self {
            Self::Shell(line) => Command::shell(line),
            Self::Exec(program, args) => Command::new(program, args.iter().map(OsString::from)),
        }
    }

    /// Returns the name of the program. The arguments may contain secrets and must not be shown to
    /// models.
    pub(super) fn program_label(&self) -> &str {
        let program = match self {
            Self::Shell(line) => line.split_whitespace().find(|word| !word.contains('=')),
            Self::Exec(program, _) => Some(program.as_str()),
        };
        let name = program.and_then(|program| program.rsplit(['/', '\\']).next());
        let name = name.unwrap_or_default().trim_matches(|c: char| !c.is_ascii_alphanumeric());
        if name.is_empty() { "command" } else { name }
    }
}

/// An error in the configuration of hooks. Valid entries are used anyway.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{path}: {message}")]
#[non_exhaustive]
pub struct HookConfigError {
    /// The path of the value, such as `PreToolUse[0].hooks[1].timeout`.
    pub path: String,
    /// The error message.
    pub message: String,
    /// Whether the error disables a hook that could have denied a call or withheld a result.
    pub fatal: bool,
}

/// Parses a configuration: the hooks by event, or a settings file that has them under `hooks`.
pub(super) fn parse_config(config: &Value) -> (Vec<HookEntry>, Vec<HookConfigError>) {
    let mut reader = ConfigReader { entries: Vec::new(), errors: Vec::new() };
    let events = config.get("hooks").unwrap_or(config);
    for name in config.as_object().into_iter().flat_map(Map::keys) {
        let is_event = HookEvent::from_name(name).is_some() || HookEvent::may_be_deciding(name);
        let is_beside = config.get("hooks").is_some() && name != "hooks";
        if is_beside && (is_event || contains_commands(&config[name])) {
            let message = "it is next to `hooks` and ignored; move it into `hooks`";
            reader.push_error(is_guard(name, &config[name]), name, message);
        }
    }
    match events.as_object() {
        None => reader.push_error(true, "hooks", "expected an object of events"),
        Some(events) => events.iter().for_each(|(event, groups)| reader.read_event(event, groups)),
    }
    (reader.entries, reader.errors)
}

/// Whether the commands of an event could deny a call or withhold a result.
fn is_guard(name: &str, written: &Value) -> bool {
    match HookEvent::from_name(name) {
        Some(event) => event.is_deciding() || denies_on_error(written),
        None if FOREIGN_EVENTS.contains(&name) => false,
        None => HookEvent::may_be_deciding(name) || denies_on_error(written),
    }
}

/// Whether a command in it has an `on_error` other than `ignore`.
fn denies_on_error(written: &Value) -> bool {
    contains_key(written, &|key, value| is_similar(key, "on_error") && value != "ignore")
}

/// Whether it contains commands, in groups or directly.
fn contains_commands(written: &Value) -> bool {
    let is_one = |item: &Value| item.get("command").is_some();
    written.as_array().is_some_and(|items| items.iter().any(is_one))
        || contains_key(written, &|key, _| GROUP_KEYS.contains(&key))
}

/// Whether `value` contains such a key at any depth.
fn contains_key(value: &Value, is_such: &dyn Fn(&str, &Value) -> bool) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| contains_key(item, is_such)),
        Value::Object(members) => {
            members.iter().any(|(key, value)| is_such(key, value) || contains_key(value, is_such))
        }
        _ => false,
    }
}

struct ConfigReader {
    entries: Vec<HookEntry>,
    errors: Vec<HookConfigError>,
}

impl ConfigReader {
    /// Records an error in `written`, which is disabled; it is fatal if `written` could decide.
    fn report_error(
        &mut self,
        event: HookEvent,
        written: &Value,
        path: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.push_error(is_guard(event.as_str(), written), path, message);
    }

    fn push_error(&mut self, fatal: bool, path: impl Into<String>, message: impl Into<String>) {
        self.errors.push(HookConfigError { path: path.into(), message: message.into(), fatal });
    }

    fn read_event(&mut self, name: &str, groups: &Value) {
        let Some(event) = HookEvent::from_name(name) else {
            let message = match HookEvent::closest_to(name) {
                Some(close) => format!("unknown event; did you mean `{}`?", close.as_str()),
                None => {
                    let known = HookEvent::ALL.map(HookEvent::as_str).join(", ");
                    format!("unknown event; expected one of {known}")
                }
            };
            return self.push_error(is_guard(name, groups), name, message);
        };
        let Some(list) = groups.as_array() else {
            return self.report_error(event, groups, name, "expected a list");
        };
        for (at, group) in list.iter().enumerate() {
            self.read_group(event, &format!("{name}[{at}]"), group);
        }
    }

    fn read_group(&mut self, event: HookEvent, path: &str, group: &Value) {
        let keys = group.as_object().into_iter().flat_map(Map::keys);
        let strangers: Vec<_> = keys.filter(|key| !GROUP_KEYS.contains(&key.as_str())).collect();
        for key in &strangers {
            let message = "unknown key, so the group is disabled; a group has the keys `matcher` \
                and `hooks`, and the keys of a command belong into `hooks`";
            self.report_error(event, group, format!("{path}.{key}"), message);
        }
        if !strangers.is_empty() {
            return;
        }
        let matcher = match group.get("matcher") {
            None | Some(Value::Null) => Ok(ToolMatcher::All),
            Some(Value::String(pattern)) => ToolMatcher::parse(pattern),
            Some(_) => Err("expected a string".to_owned()),
        };
        if let Err(message) = &matcher {
            self.report_error(event, group, format!("{path}.matcher"), message);
        }
        let Some(hooks) = group.get("hooks").and_then(Value::as_array) else {
            return self.report_error(event, group, format!("{path}.hooks"), "expected a list");
        };
        for (at, hook) in hooks.iter().enumerate() {
            let path = format!("{path}.hooks[{at}]");
            // Without a valid matcher the hook is dropped, but its errors are still reported.
            match (self.read_hook(event, &path, hook), &matcher) {
                (Ok(entry), Ok(matcher)) => {
                    self.entries.push(HookEntry { matcher: matcher.clone(), place: path, ..entry });
                }
                (Ok(_), Err(_)) => {}
                (Err((key, message)), _) => self.report_error(event, hook, path + key, message),
            }
        }
    }

    fn read_hook(
        &mut self,
        event: HookEvent,
        path: &str,
        hook: &Value,
    ) -> Result<HookEntry, KeyError> {
        let kind = hook.get("type").and_then(Value::as_str);
        if kind != Some("command") {
            let found = kind.map_or_else(|| "nothing".to_owned(), |kind| format!("`{kind}`"));
            return Err((".type", format!("expected `command`, found {found}")));
        }
        let RawHook { command, args, timeout, background, on_error, may_allow, rest, .. } =
            RawHook::deserialize(hook).map_err(|error| ("", error.to_string()))?;
        let command = match (command, args) {
            (Some(line), None) if !line.trim().is_empty() => HookCommand::Shell(line),
            (Some(program), Some(args)) if !program.is_empty() => HookCommand::Exec(program, args),
            (None, Some(mut args)) if args.first().is_some_and(|program| !program.is_empty()) => {
                HookCommand::Exec(args.remove(0), args)
            }
            _ => return Err((".command", "expected a command, or a program in `args`".to_owned())),
        };
        let timeout = match timeout {
            // No call waits for an async hook, so it gets the longer timeout.
            None if background => HookEvent::PostToolUse.default_timeout(),
            None => event.default_timeout(),
            Some(seconds) => Duration::try_from_secs_f64(seconds)
                .ok()
                .filter(|timeout| !timeout.is_zero())
                .ok_or((".timeout", "expected a number of seconds above zero".to_owned()))?,
        };
        for key in rest.keys() {
            if let Some(meant) = MISPLACED_KEYS.iter().find(|known| is_similar(key, known)) {
                let place = if *meant == "matcher" { ", which belongs one level up" } else { "" };
                let message = format!("unknown key `{key}`; did you mean `{meant}`{place}?");
                return Err(("", message));
            }
            self.push_error(false, format!("{path}.{key}"), "unknown key, which is ignored");
        }
        if background && matches!(on_error, Some(RawOnError::Deny)) {
            let message =
                "`async` and `on_error = \"deny\"` exclude each other: no call waits for it";
            return Err(("", message.to_owned()));
        }
        let on_error = match on_error {
            None => event.default_on_error(),
            Some(RawOnError::Deny) => OnError::Deny,
            Some(RawOnError::Ignore) => OnError::Ignore,
        };
        let (place, matcher) = (String::new(), ToolMatcher::All);
        Ok(HookEntry { place, event, matcher, command, timeout, background, on_error, may_allow })
    }
}

/// The key and the error message.
type KeyError = (&'static str, String);

/// The JSON form of a command.
#[derive(Deserialize)]
struct RawHook {
    #[serde(rename = "type")]
    _kind: String,
    command: Option<String>,
    args: Option<Vec<String>>,
    timeout: Option<f64>,
    #[serde(default, rename = "async")]
    background: bool,
    on_error: Option<RawOnError>,
    #[serde(default)]
    may_allow: bool,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawOnError {
    Deny,
    Ignore,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error_paths(config: &Value) -> (usize, Vec<String>) {
        let (entries, errors) = parse_config(config);
        (entries.len(), errors.iter().map(|error| error.path.clone()).collect())
    }

    // Valid entries stay in force.
    #[test]
    fn an_error_only_disables_its_own_entry() {
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
        assert_eq!(error_paths(&config), (3, expected.map(str::to_owned).to_vec()));
    }

    // F71
    #[test]
    fn reports_events_next_to_hooks() {
        let group = json!([{ "hooks": [{ "type": "command", "command": "true" }] }]);
        for (event, fatal) in
            [("PreToolUse", true), ("PermissionRequest", true), ("PostToolUse", false)]
        {
            let config = json!({ "model": "x", "hooks": { "PostToolUse": group }, event: group });
            let (entries, errors) = parse_config(&config);
            let told: Vec<_> = errors.iter().map(|error| (&*error.path, error.fatal)).collect();
            assert_eq!((entries.len(), told), (1, vec![(event, fatal)]));
        }
    }

    // F71: other errors are warnings.
    #[test]
    fn an_error_is_fatal_if_it_disables_a_deciding_hook() {
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
            // In every spelling of the event.
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
            // An unknown event alone is a warning.
            (json!({ "Foo": group(&good) }), false),
            (json!({ "Foo": group(&binding) }), true),
            (json!({ "PostToolUze": group(&good) }), false),
            (json!({ "PostToolUze": group(&binding) }), true),
            (json!({ "model": "x" }), false),
            // A hook that would remove secrets from a result.
            (json!({ "PostToolUse": group(&strips) }), true),
            (json!({ "PostToolUse": { "hooks": [binding] } }), true),
            (json!({ "PostToolUse": [{ "matcher": "[", "hooks": [binding] }] }), true),
            (json!({ "PostToolUse": [{ "hooks": [good], "on_error": "deny" }] }), true),
            (json!({ "PostToolUse": [{ "hooks": [good], "on_error": "ignore" }] }), false),
            // Misspelled matchers.
            (json!({ "PreToolUse": [{ "matchers": "a", "hooks": [good] }] }), true),
            (json!({ "PreToolUse": [{ "Matcher": "a", "hooks": [good] }] }), true),
            (json!({ "PreToolUse": [{ "hooks": [inside] }] }), true),
            (json!({ "PostToolUse": [{ "match": "a", "hooks": [good] }] }), false),
            (json!({ "PostToolUse": group(&misspelt) }), true),
            // An async hook cannot deny.
            (json!({ "PreToolUse": group(&unheard) }), true),
        ] {
            let (entries, errors) = parse_config(&config);
            assert_eq!(errors.iter().map(|it| it.fatal).collect::<Vec<_>>(), [fatal], "{config}");
            assert_eq!(entries.is_empty(), config["PreToolUse"] != group(&strange), "{config}");
        }
    }

    #[test]
    fn suggests_the_name_of_a_mistyped_event() {
        for (name, expected) in [
            ("preToolUse", "unknown event; did you mean `PreToolUse`?"),
            ("PostToolUze", "unknown event; did you mean `PostToolUse`?"),
            (
                "Foo",
                "unknown event; expected one of PreToolUse, PostToolUse, PostToolUseFailure, \
                 PermissionRequest",
            ),
        ] {
            let (_, errors) = parse_config(&json!({ name: [] }));
            assert_eq!(errors[0].message, expected);
        }
    }

    #[test]
    fn deciding_hooks_are_short_and_fail_closed_unless_told_otherwise() {
        let of = |event: &str, mut hook: Value| {
            hook["type"] = "command".into();
            hook["command"] = "true".into();
            let (mut entries, errors) = parse_config(&json!({ event: [{ "hooks": [hook] }] }));
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
        let (entries, errors) = parse_config(
            &json!({ "model": "x", "hooks": { "PreToolUse": [{ "hooks": [hook] }] } }),
        );
        assert_eq!(errors, []);
        assert_eq!(entries[0].place, "PreToolUse[0].hooks[0]");
        assert_eq!(error_paths(&json!([])).1, ["hooks"]);
    }

    // Arguments may contain secrets.
    #[test]
    fn a_label_is_the_program_alone() {
        let line = |line: &str| HookCommand::Shell(line.to_owned()).program_label().to_owned();
        assert_eq!(
            line("KEY=hunter2 \"$CLAUDE_PROJECT_DIR\"/hooks/guard.sh --token x"),
            "guard.sh"
        );
        assert_eq!(line("curl -H 'Authorization: x' https://ada:pw@example.com"), "curl");
        assert_eq!(line("KEY=hunter2"), "command");
        let exec = HookCommand::Exec("/opt/guard".to_owned(), vec!["hunter2".to_owned()]);
        assert_eq!(exec.program_label(), "guard");
    }
}
