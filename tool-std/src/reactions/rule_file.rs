//! Parses a file of rules and collects its errors, each with its line.
//!
//! ```toml
//! [[reaction]]
//! name = "slow-commands"
//! on = ["completed", "timed_out"]
//! when = 'event.tool == "shell" && event.elapsed_ms > 60000'
//! actions = [{ tool = "log", level = "warning", message = "${event.tool} took ${event.elapsed_ms} ms" }]
//! ```
//!
//! **Invariant:** a file with an error has no rules: half of a file may mean something else than the
//! whole.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use tool_sdk::{IntoTools as _, RawArgs, Tool, tools};

use super::actions::{emit_event, inject_context, log, modify_prompt, notify_self, set_state};
use super::expression::EventExpression;
use super::rule::{DEFAULT_PER_MINUTE, EventRule, EventTrigger, RuleAction, RulePlace, RuleScope};
use super::template::ArgumentTemplate;

/// The most rules of a file.
const MAX_RULES: usize = 64;

/// The most actions of a rule.
const MAX_ACTIONS: usize = 8;

/// How often a rule may react in a minute at most.
const MAX_PER_MINUTE: u32 = 10_000_000;

/// The names of the tools that rules call, with the argument whose expressions keep their type.
const ACTIONS: [(&str, &[&str]); 6] = [
    ("notify_self", &[]),
    ("log", &[]),
    ("set_state", &["value"]),
    ("emit_event", &["data"]),
    ("modify_prompt", &[]),
    ("inject_context", &[]),
];

/// The tool whose arguments are fixed, because they become a part of the system prompt.
const PROMPT_ACTION: &str = "modify_prompt";

/// The tools of rules, which check the arguments of actions.
static ACTION_TOOLS: LazyLock<Vec<Arc<dyn Tool>>> = LazyLock::new(|| {
    tools![notify_self, log, set_state, emit_event, modify_prompt, inject_context].into_tools()
});

/// The keys of a rule.
const RULE_KEYS: [&str; 5] = ["name", "on", "when", "max_per_minute", "actions"];

/// A rule as it is written. Keys that it does not have are reported before.
#[derive(Deserialize)]
struct WrittenRule {
    name: Spanned<String>,
    on: Spanned<WrittenTriggers>,
    when: Option<Spanned<String>>,
    max_per_minute: Option<Spanned<u32>>,
    actions: Vec<Spanned<toml::Table>>,
}

/// One kind of events, or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenTriggers {
    One(String),
    Several(Vec<String>),
}

/// Parses the text of a file. Fails with its errors, one `FILE:LINE: PROBLEM` each.
pub(super) fn parse_rules(
    text: &str,
    file: &Path,
    scope: RuleScope,
) -> Result<Vec<EventRule>, Vec<String>> {
    let mut parser = RuleParser { text, file, scope, errors: Vec::new() };
    let rules = parser.parse();
    if parser.errors.is_empty() {
        return Ok(rules);
    }
    parser.errors.sort_by_key(|(byte, _)| *byte);
    Err(parser.errors.iter().map(|(byte, problem)| parser.format_error(*byte, problem)).collect())
}

struct RuleParser<'a> {
    text: &'a str,
    file: &'a Path,
    scope: RuleScope,
    /// The byte offset and the text of each error.
    errors: Vec<(usize, String)>,
}

impl<'a> RuleParser<'a> {
    fn parse(&mut self) -> Vec<EventRule> {
        let written = self.read_tables();
        let count = written.len();
        if count > MAX_RULES {
            self.report(0, &format!("has {count} rules, but may have {MAX_RULES}"));
            return Vec::new();
        }
        let mut names = BTreeSet::new();
        let mut rules = Vec::new();
        for table in written {
            let Some(rule) = self.read_rule(table) else { continue };
            let name = rule.get_ref().name.clone();
            if !names.insert(name.get_ref().clone()) {
                let problem = format!("two rules are named `{}`", name.get_ref().escape_debug());
                self.report(name.span().start, &problem);
            }
            rules.extend(self.parse_rule(rule));
        }
        rules
    }

    /// Returns the tables of the rules.
    fn read_tables(&mut self) -> Vec<Spanned<DeValue<'a>>> {
        let file = match DeTable::parse(self.text) {
            Ok(file) => file.into_inner(),
            Err(error) => {
                self.report_syntax(0, &error);
                return Vec::new();
            }
        };
        let mut tables = Vec::new();
        for (key, value) in file {
            match (key.get_ref().as_ref(), value.into_inner()) {
                ("reaction", DeValue::Array(rules)) => tables.extend(rules),
                ("reaction", _) => {
                    self.report(key.span().start, "each rule must begin with `[[reaction]]`");
                }
                (name, _) => {
                    let problem = format!("unknown key `{}`", name.escape_debug());
                    self.report(key.span().start, &problem);
                }
            }
        }
        tables
    }

    /// Reads a rule. Its unknown keys do not hide what else is wrong.
    fn read_rule(&mut self, table: Spanned<DeValue<'_>>) -> Option<Spanned<WrittenRule>> {
        if let DeValue::Table(table) = table.get_ref() {
            for key in table.keys().filter(|key| !RULE_KEYS.contains(&key.get_ref().as_ref())) {
                let (name, known) = (key.get_ref().escape_debug(), RULE_KEYS.join(", "));
                let problem = format!("unknown key `{name}`; the keys of a rule are {known}");
                self.report(key.span().start, &problem);
            }
        }
        let start = table.span().start;
        match Spanned::<WrittenRule>::deserialize(ValueDeserializer::from(table)) {
            Ok(rule) => Some(rule),
            Err(error) => {
                self.report_syntax(start, &error);
                None
            }
        }
    }

    /// Reports an error of the TOML parser; `start` is its place where it does not say one.
    fn report_syntax(&mut self, start: usize, error: &toml::de::Error) {
        self.report(error.span().map_or(start, |span| span.start), error.message());
    }

    fn parse_rule(&mut self, written: Spanned<WrittenRule>) -> Option<EventRule> {
        let line = self.line_number(written.span().start);
        let WrittenRule { name, on, when, max_per_minute, actions } = written.into_inner();
        self.check_name(&name);
        let triggers = self.parse_triggers(on);
        let (mut condition, mut is_compiled) = (None, true);
        if let Some(when) = when {
            condition = self.compile_condition(&when);
            is_compiled = condition.is_some();
        }
        let max_per_minute = self.parse_rate(max_per_minute);
        let counts = 1..=MAX_ACTIONS;
        if !counts.contains(&actions.len()) {
            let count = actions.len();
            let problem =
                format!("`actions` has {count} actions, but must have 1 to {MAX_ACTIONS}");
            self.report(name.span().start, &problem);
        }
        let actions = actions.into_iter().filter_map(|action| self.parse_action(action)).collect();
        let place = RulePlace { scope: self.scope, file: self.file.to_owned(), line };
        let name = name.into_inner();
        is_compiled.then_some(EventRule {
            name,
            place,
            triggers,
            condition,
            max_per_minute,
            actions,
        })
    }

    fn check_name(&mut self, name: &Spanned<String>) {
        let is_right = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let text = name.get_ref();
        if text.is_empty() || text.len() > 64 || !text.chars().all(is_right) {
            let problem = "`name` must be 1 to 64 letters, digits, `-`, `_` or `.`";
            self.report(name.span().start, problem);
        }
    }

    fn parse_triggers(&mut self, written: Spanned<WrittenTriggers>) -> Vec<EventTrigger> {
        let start = written.span().start;
        let names = match written.into_inner() {
            WrittenTriggers::One(name) => vec![name],
            WrittenTriggers::Several(names) => names,
        };
        if names.is_empty() {
            self.report(start, "`on` names no kind of events");
        }
        let mut triggers = Vec::new();
        for name in names {
            match EventTrigger::parse(&name) {
                Some(trigger) => triggers.push(trigger),
                None => {
                    let kinds = tool_sdk::EventKind::NAMES;
                    let known: Vec<&str> = kinds.into_iter().filter(|it| *it != "lost").collect();
                    let problem = format!(
                        "`on`: there is no kind of events `{}`; the kinds are {}, and emitted:NAME",
                        name.escape_debug(),
                        known.join(", ")
                    );
                    self.report(start, &problem);
                }
            }
        }
        triggers
    }

    fn compile_condition(&mut self, when: &Spanned<String>) -> Option<EventExpression> {
        match EventExpression::compile(when.get_ref()) {
            Ok(condition) => Some(condition),
            Err(problem) => {
                self.report(when.span().start, &format!("`when`: {problem}"));
                None
            }
        }
    }

    fn parse_rate(&mut self, written: Option<Spanned<u32>>) -> u32 {
        let Some(written) = written else { return DEFAULT_PER_MINUTE };
        if !(1..=MAX_PER_MINUTE).contains(written.get_ref()) {
            let rate = written.get_ref();
            let problem =
                format!("`max_per_minute` is {rate}, but must be between 1 and {MAX_PER_MINUTE}");
            self.report(written.span().start, &problem);
        }
        *written.get_ref()
    }

    fn parse_action(&mut self, written: Spanned<toml::Table>) -> Option<RuleAction> {
        let start = written.span().start;
        match compile_action(written.into_inner()) {
            Ok(action) => Some(action),
            Err(problem) => {
                self.report(start, &problem);
                None
            }
        }
    }

    fn report(&mut self, byte: usize, problem: &str) {
        self.errors.push((byte, problem.replace('\n', ", ")));
    }

    /// Returns the line of a byte offset, counted from 1.
    fn line_number(&self, byte: usize) -> usize {
        1 + self.text.bytes().take(byte).filter(|byte| *byte == b'\n').count()
    }

    fn format_error(&self, byte: usize, problem: &str) -> String {
        format!("{}:{}: {problem}", self.file.display(), self.line_number(byte))
    }
}

fn compile_action(mut written: toml::Table) -> Result<RuleAction, String> {
    let known = || ACTIONS.map(|(name, _)| name).join(", ");
    let name = match written.remove("tool") {
        Some(toml::Value::String(name)) => name,
        _ => return Err(format!("the action has no `tool`; the tools are {}", known())),
    };
    let found = ACTIONS.iter().find(|(tool, _)| *tool == name);
    let (tool, typed) = found.ok_or_else(|| {
        format!(
            "`{}` is not a tool that rules can call; expected one of {}",
            name.escape_debug(),
            known()
        )
    })?;
    let arguments = match serde_json::to_value(&written) {
        Ok(Value::Object(arguments)) => arguments,
        _ => return Err(format!("`{tool}`: the arguments cannot be written as JSON")),
    };
    check_arguments(tool, typed, &arguments)?;
    let arguments = ArgumentTemplate::compile(&arguments, typed)
        .map_err(|problem| format!("`{tool}`: {problem}"))?;
    if *tool == PROMPT_ACTION && arguments.has_expressions() {
        return Err(format!(
            "`{tool}`: the arguments must be fixed, because an event may hold text of others, which \
             must not become a part of the system prompt"
        ));
    }
    Ok(RuleAction { tool, arguments })
}

/// Checks the arguments as they are written against the schema of the tool. A typed argument can have
/// any value by then.
fn check_arguments(
    tool: &str,
    typed: &[&str],
    arguments: &Map<String, Value>,
) -> Result<(), String> {
    let mut written = arguments.clone();
    for (name, value) in &mut written {
        if typed.contains(&name.as_str()) && value.is_string() {
            *value = Map::new().into();
        }
    }
    let found = ACTION_TOOLS.iter().find(|known| known.definition().name == tool);
    let Some(found) = found else { return Err(format!("`{tool}` is missing")) };
    let text = Value::Object(written).to_string();
    let prepared = found.prepare(&RawArgs::new(text));
    prepared.map(drop).map_err(|invalid| {
        let faults: Vec<&str> = invalid.faults().iter().map(|fault| &*fault.message).collect();
        format!("`{tool}`: {}", faults.join("; "))
    })
}
