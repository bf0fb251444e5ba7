//! The parameters of a tool as flags: from a schema to an option, and from a value back
//! to the words that send it.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction};
use serde_json::{Map, Value};

use super::{grammar, style};
use crate::escape::json_string;
use crate::schema::{Schema, type_words};
use crate::tool::Definition;

/// A parameter that can be given as a flag.
#[derive(Debug)]
pub(super) struct Flag<'a> {
    /// The key of the option in clap; apart from those of the program.
    pub(super) id: String,
    /// The name of the parameter.
    pub(super) name: &'a str,
    /// The flag, without `--`.
    long: String,
    /// The flag as the parameter is spelled, where that differs.
    alias: Option<String>,
    kind: Kind,
    schema: &'a Value,
    required: bool,
    sensitive: bool,
}

/// What the text of a value stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Boolean,
    Integer,
    Number,
    Text,
    /// An object, or one of several types.
    Json,
    /// One item per occurrence.
    List(Box<Kind>),
}

/// The flags of a tool, in the order of its parameters.
///
/// A parameter whose name cannot be a flag is left out; it can be sent as JSON.
pub(super) fn flags(definition: &Definition) -> Vec<Flag<'_>> {
    let schema = &definition.parameters;
    let mut flags: Vec<Flag<'_>> = Vec::new();
    for (name, property) in schema.properties().filter(|(name, _)| can_be_a_flag(name)) {
        let long = long_name(schema, name);
        let alias = Some(prefixed(name.to_owned(), &long)).filter(|alias| *alias != long);
        let taken = |wanted: &str| {
            flags.iter().any(|flag| flag.long == wanted || flag.alias.as_deref() == Some(wanted))
        };
        if taken(&long) {
            continue;
        }
        flags.push(Flag {
            id: format!("parameter {name}"),
            name,
            alias: alias.filter(|alias| !taken(alias)),
            long,
            kind: Kind::of(property, schema.as_map(), 0),
            schema: property,
            required: schema.is_required(name),
            sensitive: definition.display.sensitive.iter().any(|secret| secret == name),
        });
    }
    flags
}

fn can_be_a_flag(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}

/// The flag of a parameter: with `-` for `_`, unless another parameter is called just that.
fn long_name(schema: &Schema, name: &str) -> String {
    let dashed = name.trim_start_matches('_').replace('_', "-");
    let long = if dashed.is_empty() || (dashed != name && schema.property(&dashed).is_some()) {
        name.to_owned()
    } else {
        dashed
    };
    if grammar::RESERVED.contains(&long.as_str()) { format!("arg-{long}") } else { long }
}

/// `name` with the prefix that `long` has.
fn prefixed(name: String, long: &str) -> String {
    let reserved = long.strip_prefix("arg-").is_some_and(|rest| grammar::RESERVED.contains(&rest));
    if reserved { format!("arg-{name}") } else { name }
}

impl Flag<'_> {
    /// The option that takes it.
    pub(super) fn arg(&self) -> Arg {
        let arg = Arg::new(self.id.clone())
            .long(self.long.clone())
            .help(self.help())
            .help_heading("Parameters")
            .value_name(self.placeholder());
        let arg = match &self.alias {
            Some(alias) => arg.alias(alias.clone()),
            None => arg,
        };
        match self.kind {
            Kind::Boolean => arg.num_args(0..=1).default_missing_value("true"),
            Kind::List(_) => arg.action(ArgAction::Append).allow_hyphen_values(true),
            _ => arg.allow_hyphen_values(true),
        }
    }

    /// Whether the parameter is given under this name, without `--`.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.long == name || self.alias.as_deref() == Some(name)
    }

    /// The flag, without `--`.
    pub(super) fn long(&self) -> &str {
        &self.long
    }

    /// Whether the tool cannot do without it.
    pub(super) fn is_required(&self) -> bool {
        self.required
    }

    /// Whether it may stand without a value.
    pub(super) fn is_switch(&self) -> bool {
        self.kind == Kind::Boolean
    }

    /// Whether it may come more than once.
    pub(super) fn is_list(&self) -> bool {
        matches!(self.kind, Kind::List(_))
    }

    /// The JSON text of one value.
    pub(super) fn encode(&self, text: &str) -> String {
        match &self.kind {
            Kind::List(item) => item.encode(text),
            kind => kind.encode(text),
        }
    }

    /// The argument, of the JSON texts of its values; nothing where there are none.
    pub(super) fn join(&self, values: &[String]) -> Option<String> {
        match values {
            [] => None,
            values if self.is_list() => Some(format!("[{}]", values.join(","))),
            [value, ..] => Some(value.clone()),
        }
    }

    fn help(&self) -> String {
        let mut facts = facts(self.schema, self.required);
        if matches!(self.kind, Kind::List(_)) {
            facts.push("repeatable".to_owned());
        }
        if self.sensitive {
            facts.push("secret: other users may see it here, so prefer `-` or `@FILE`".to_owned());
        }
        let text = self.schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let between = if text.contains('\n') { '\n' } else { ' ' };
        style::plain(format!("{text}{between}[{}]", facts.join("; ")).trim()).into_owned()
    }

    fn placeholder(&self) -> String {
        match choices(self.schema) {
            Some(choices) if self.kind == Kind::Text => choices,
            _ => self.kind.placeholder().to_owned(),
        }
    }

    /// The words that send `value`; none where JSON says it better.
    fn write(&self, value: &Value) -> Option<String> {
        match (&self.kind, value) {
            (Kind::List(_), Value::Array(items)) if items.is_empty() => None,
            (Kind::List(kind), Value::Array(items)) => {
                items.iter().map(|item| self.write_one(kind, item)).collect()
            }
            (kind, value) => self.write_one(kind, value),
        }
    }

    fn write_one(&self, kind: &Kind, value: &Value) -> Option<String> {
        let long = &self.long;
        match (kind, value) {
            (Kind::Boolean, Value::Bool(true)) if self.kind == Kind::Boolean => {
                Some(format!(" --{long}"))
            }
            (Kind::Boolean, Value::Bool(value)) => Some(format!(" --{long}={value}")),
            (Kind::Integer | Kind::Number, Value::Number(number)) => {
                Some(format!(" --{long} {number}"))
            }
            (Kind::Text, Value::String(text)) if !text.contains(char::is_control) => {
                let between = if text.starts_with('-') { '=' } else { ' ' };
                Some(format!(" --{long}{between}{}", style::shell_quote(text)))
            }
            _ => None,
        }
    }
}

impl Kind {
    fn of(schema: &Value, root: &Map<String, Value>, depth: usize) -> Self {
        const MAX_DEPTH: usize = 8;
        if depth > MAX_DEPTH {
            return Self::Json;
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let found = target
                .strip_prefix("#/$defs/")
                .and_then(|name| root.get("$defs")?.get(name))
                .map(|target| Self::of(target, root, depth + 1));
            return found.unwrap_or(Self::Json);
        }
        match the_type(schema) {
            Some("boolean") => Self::Boolean,
            Some("integer") => Self::Integer,
            Some("number") => Self::Number,
            Some("string") => Self::Text,
            Some("array") => {
                let item = schema.get("items").map_or(Self::Json, |i| Self::of(i, root, depth + 1));
                Self::List(Box::new(match item {
                    // A list of lists: one JSON list per occurrence.
                    Self::List(_) => Self::Json,
                    item => item,
                }))
            }
            _ => Self::Json,
        }
    }

    const fn placeholder(&self) -> &'static str {
        match self {
            Self::Boolean => "BOOLEAN",
            Self::Integer => "INTEGER",
            Self::Number => "NUMBER",
            Self::Text => "STRING",
            Self::Json => "JSON",
            Self::List(item) => item.placeholder(),
        }
    }

    /// The JSON text of a value. What is not of the kind is sent as a string, so that the
    /// tool says in its own words what it expects.
    fn encode(&self, text: &str) -> String {
        let is_json = match self {
            Self::Boolean => matches!(text, "true" | "false"),
            Self::Integer | Self::Number => {
                serde_json::from_str::<serde_json::Number>(text).is_ok()
            }
            Self::Text => false,
            // The text itself is sent, so duplicate keys in it are still seen.
            Self::Json | Self::List(_) => {
                serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
            }
        };
        if is_json { text.to_owned() } else { json_string(text) }
    }
}

/// The one type that a schema allows beside null.
fn the_type(schema: &Value) -> Option<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => Some(one),
        Some(Value::Array(several)) => {
            let mut types = several.iter().filter_map(Value::as_str).filter(|ty| *ty != "null");
            types.next().filter(|_| types.next().is_none())
        }
        _ => {
            let values = match (schema.get("enum"), schema.get("const")) {
                (Some(Value::Array(values)), _) => values.as_slice(),
                (_, Some(value)) => std::slice::from_ref(value),
                _ => return None,
            };
            values.iter().all(Value::is_string).then_some("string")
        }
    }
}

/// `a|b|c`, where it is short.
fn choices(schema: &Value) -> Option<String> {
    const MAX: usize = 40;
    let values = schema.get("enum")?.as_array()?;
    let choices = values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|");
    Some(style::plain(&choices).into_owned()).filter(|text| text.len() <= MAX && !text.is_empty())
}

/// What holds for a value, in words: type, limits, and what happens without it.
pub(super) fn facts(schema: &Value, required: bool) -> Vec<String> {
    let mut facts = vec![type_words(schema)];
    facts.retain(|words| !words.is_empty());
    for (min, max, of) in [
        ("minLength", "maxLength", "characters"),
        ("minItems", "maxItems", "items"),
        ("minProperties", "maxProperties", "entries"),
    ] {
        facts.extend(bounds(schema.get(min), schema.get(max), of));
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        facts.push(format!("matches `{pattern}`"));
    }
    match schema.get("default") {
        Some(default) => facts.push(format!("default: {default}")),
        None if required => facts.push("required".to_owned()),
        None => {}
    }
    facts
}

fn bounds(min: Option<&Value>, max: Option<&Value>, of: &str) -> Option<String> {
    let count = |bound: Option<&Value>| bound.and_then(Value::as_u64);
    match (count(min).filter(|min| *min > 0), count(max)) {
        (None, None) => None,
        (Some(min), None) => Some(format!("at least {min} {of}")),
        (None, Some(max)) => Some(format!("at most {max} {of}")),
        (Some(min), Some(max)) => Some(format!("{min} to {max} {of}")),
    }
}

/// Names the flag of a parameter whose own name belongs to the program.
pub(super) fn explain(mut error: clap::Error, flags: &[Flag<'_>]) -> clap::Error {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let given = given.trim_start_matches('-').split(' ').next().unwrap_or_default();
    let meant = format!("arg-{given}");
    if error.kind() == ErrorKind::InvalidValue
        && let Some(flag) = flags.iter().find(|flag| flag.is_called(&meant))
    {
        let tip = format!("the tool's own parameter is '--{}'", flag.long);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// The examples of a tool as commands that can be pasted into a shell.
pub(super) fn examples(program: &str, definition: &Definition) -> Vec<String> {
    let flags = flags(definition);
    let command = |example: &str| {
        let words = as_flags(&flags, example)
            .unwrap_or_else(|| format!(" {}", style::shell_quote(example)));
        format!("{program} call {}{words}", definition.name)
    };
    definition.examples.iter().map(|example| command(example)).collect()
}

fn as_flags(flags: &[Flag<'_>], example: &str) -> Option<String> {
    let arguments: Map<String, Value> = serde_json::from_str(example).ok()?;
    let word = |(name, value): (&String, &Value)| {
        flags.iter().find(|flag| flag.name == name)?.write(value)
    };
    arguments.iter().map(word).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::toy;
    use super::*;

    #[track_caller]
    fn check_flags(parameters: Value, expected: &[&str]) {
        let definition = toy::definition("t", parameters);
        let flags = flags(&definition);
        let longs: Vec<&str> = flags.iter().map(|flag| flag.long.as_str()).collect();
        assert_eq!(longs, expected);
        grammar::tool("toy", grammar::Verb::Call, &definition, &flags).debug_assert();
    }

    #[test]
    fn underscores_are_dashes_unless_that_is_another_parameter() {
        check_flags(json!({"output_mode": {}, "filePath": {}}), &["output-mode", "filePath"]);
        check_flags(json!({"a_b": {}, "a-b": {}}), &["a_b", "a-b"]);
        check_flags(json!({"_x": {}, "x": {}, "__": {}}), &["_x", "x", "__"]);
    }

    #[test]
    fn the_programs_own_options_are_out_of_reach_for_tools() {
        check_flags(
            json!({"json": {}, "mode": {}, "root": {}, "state_dir": {}, "help": {}}),
            &["arg-json", "arg-mode", "arg-root", "arg-state-dir", "arg-help"],
        );
        check_flags(json!({"arg-mode": {}, "mode": {}}), &["arg-mode"]);
    }

    #[test]
    fn names_that_cannot_be_flags_are_left_to_json() {
        check_flags(json!({"": {}, "a b": {}, "-x": {}, "a=b": {}, "é": {}, "ok": {}}), &["ok"]);
    }

    #[track_caller]
    fn check_kind(schema: Value, expected: Kind) {
        let root = json!({"$defs": {
            "Mode": {"type": "string"},
            "Loop": {"$ref": "#/$defs/Loop"},
        }});
        assert_eq!(Kind::of(&schema, root.as_object().unwrap(), 0), expected, "{schema}");
    }

    #[test]
    fn the_kind_follows_from_the_schema() {
        check_kind(json!({"type": "boolean"}), Kind::Boolean);
        check_kind(json!({"type": ["integer", "null"]}), Kind::Integer);
        check_kind(json!({"type": "number"}), Kind::Number);
        check_kind(json!({"enum": ["a", "b"]}), Kind::Text);
        check_kind(json!({"const": "a"}), Kind::Text);
        check_kind(json!({"enum": [1, 2]}), Kind::Json);
        check_kind(json!({"type": ["string", "integer"]}), Kind::Json);
        check_kind(json!({"type": "object"}), Kind::Json);
        check_kind(json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}), Kind::Json);
        check_kind(json!(true), Kind::Json);
        check_kind(json!({"$ref": "#/$defs/Mode"}), Kind::Text);
        check_kind(json!({"$ref": "#/$defs/Loop"}), Kind::Json);
        check_kind(json!({"$ref": "#/$defs/none"}), Kind::Json);
        check_kind(
            json!({"type": "array", "items": {"type": "integer"}}),
            Kind::List(Box::new(Kind::Integer)),
        );
        check_kind(
            json!({"type": "array", "items": {"type": "array"}}),
            Kind::List(Box::new(Kind::Json)),
        );
    }

    #[track_caller]
    fn check_facts(schema: Value, required: bool, expected: &str) {
        assert_eq!(facts(&schema, required)[1..].join("; "), expected);
    }

    #[test]
    fn limits_and_defaults_are_said_in_words() {
        check_facts(
            json!({"type": "string", "maxLength": 9}),
            true,
            "at most 9 characters; required",
        );
        check_facts(
            json!({"type": "string", "minLength": 1, "maxLength": 9}),
            false,
            "1 to 9 characters",
        );
        check_facts(json!({"type": "array", "minItems": 2}), false, "at least 2 items");
        check_facts(json!({"type": "string", "pattern": "^a"}), false, "matches `^a`");
        check_facts(json!({"type": "string", "default": "x"}), true, "default: \"x\"");
    }

    #[track_caller]
    fn check_example(example: &str, expected: &str) {
        let mut definition = toy::kinds();
        definition.examples = vec![example.to_owned().into()];
        assert_eq!(examples("toy", &definition), [format!("toy call kinds{expected}")]);
    }

    #[test]
    fn examples_are_commands() {
        check_example("{}", "");
        check_example(r#"{"text": "a b", "count": -3}"#, " --text 'a b' --count -3");
        check_example(r#"{"text": "-x"}"#, " --text=-x");
        check_example(r#"{"loud": true}"#, " --loud");
        check_example(r#"{"loud": false}"#, " --loud=false");
        check_example(r#"{"tags": ["a", "b"]}"#, " --tags a --tags b");
        check_example(r#"{"tags": []}"#, r#" '{"tags": []}'"#);
        check_example(r#"{"where": {"line": 1}}"#, r#" '{"where": {"line": 1}}'"#);
        check_example(r#"{"text": "a\nb"}"#, r#" '{"text": "a\nb"}'"#);
    }
}
