//! Command line flags for the parameters of a tool.
//!
//! A flag is derived from a schema property and converts its text to JSON. `value_kind` has the
//! types of values, `constraints` describes them for help, and `examples` renders commands.

mod constraints;
mod examples;
mod value_kind;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction};
use serde_json::Value;
use tool_sdk_core::{Definition, Schema, internal::walk};

pub(super) use self::constraints::describe_constraints;
use self::constraints::short_choices;
pub(super) use self::examples::example_commands;
use self::value_kind::ValueKind;
use super::{args, style};

/// A parameter that can be given as a flag.
#[derive(Debug)]
pub(super) struct ParamFlag<'a> {
    /// The clap id, distinct from those of the program options.
    pub(super) id: String,
    /// The name of the parameter.
    pub(super) name: &'a str,
    /// The flag, without `--`.
    long: String,
    /// The spelling of the parameter, if it differs from the flag.
    alias: Option<String>,
    kind: ValueKind,
    schema: &'a Value,
    required: bool,
    sensitive: bool,
}

/// Returns the flags of a tool, in the order of its parameters.
///
/// A parameter whose name cannot be a flag is skipped; it can only be passed as JSON.
pub(super) fn tool_flags(definition: &Definition) -> Vec<ParamFlag<'_>> {
    let schema = &definition.parameters;
    let mut flags: Vec<ParamFlag<'_>> = Vec::new();
    let named = schema.properties().chain(variant_properties(schema));
    for (name, property) in named.filter(|(name, _)| is_flag_name(name)) {
        let kind = ValueKind::from_schema(property, schema.as_map(), 0);
        if let Some(known) = flags.iter_mut().find(|flag| flag.name == name) {
            if known.kind != kind {
                known.kind = ValueKind::Json;
            }
            continue;
        }
        let long = long_name(schema, name);
        let alias =
            Some(add_reserved_prefix(name.to_owned(), &long)).filter(|alias| *alias != long);
        let taken = |wanted: &str| {
            flags.iter().any(|flag| flag.long == wanted || flag.alias.as_deref() == Some(wanted))
        };
        let is_own = |wanted: &str| !taken(wanted) && !args::RESERVED.contains(&wanted);
        let (long, alias) = match (taken(&long), is_own(name)) {
            (false, _) => (long, alias),
            (true, true) => (name.to_owned(), None),
            (true, false) => continue,
        };
        flags.push(ParamFlag {
            id: format!("parameter {name}"),
            name,
            alias: alias.filter(|alias| !taken(alias)),
            long,
            kind,
            schema: property,
            required: schema.is_required(name),
            sensitive: definition.display.sensitive.iter().any(|secret| secret == name),
        });
    }
    flags
}

/// Returns the properties of the top-level `oneOf` and `anyOf` branches.
fn variant_properties(schema: &Schema) -> impl Iterator<Item = (&str, &Value)> {
    let root = schema.as_map();
    let forms = ["oneOf", "anyOf"].into_iter().filter_map(|keyword| root.get(keyword)?.as_array());
    let target = |form: &'_ Value| -> Option<String> {
        Some(form.get("$ref")?.as_str()?.strip_prefix('#')?.to_owned())
    };
    forms
        .flatten()
        .filter_map(move |form| match target(form) {
            Some(pointer) => walk::resolve_pointer(root, &pointer),
            None => Some(form),
        })
        .filter_map(|form| form.get("properties")?.as_object())
        .flatten()
        .map(|(name, property)| (name.as_str(), property))
}

fn is_flag_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}

/// Returns the flag of a parameter: with `-` for `_`, unless another parameter has that name.
fn long_name(schema: &Schema, name: &str) -> String {
    let dashed = name.trim_start_matches('_').replace('_', "-");
    let long = if dashed.is_empty() || (dashed != name && schema.property(&dashed).is_some()) {
        name.to_owned()
    } else {
        dashed
    };
    if args::RESERVED.contains(&long.as_str()) { format!("arg-{long}") } else { long }
}

/// Adds the prefix `arg-` to `name` if `long` has it because of a reserved name.
fn add_reserved_prefix(name: String, long: &str) -> String {
    let reserved = long.strip_prefix("arg-").is_some_and(|rest| args::RESERVED.contains(&rest));
    if reserved { format!("arg-{name}") } else { name }
}

impl ParamFlag<'_> {
    /// Returns the clap argument.
    pub(super) fn to_arg(&self) -> Arg {
        let arg = Arg::new(self.id.clone())
            .long(self.long.clone())
            .help(self.help_text())
            .help_heading("Parameters")
            .value_name(self.value_placeholder());
        let arg = match &self.alias {
            Some(alias) => arg.alias(alias.clone()),
            None => arg,
        };
        match self.kind {
            ValueKind::Boolean => arg.num_args(0..=1).default_missing_value("true"),
            ValueKind::List(_) => arg.action(ArgAction::Append).allow_hyphen_values(true),
            _ => arg.allow_hyphen_values(true),
        }
    }

    /// Whether `name`, without `--`, is the flag or its alias.
    pub(super) fn matches_name(&self, name: &str) -> bool {
        self.long == name || self.alias.as_deref() == Some(name)
    }

    /// Returns the flag, without `--`.
    pub(super) fn long(&self) -> &str {
        &self.long
    }

    /// Whether the parameter is required.
    pub(super) fn is_required(&self) -> bool {
        self.required
    }

    /// Whether the flag may be given without a value.
    pub(super) fn is_switch(&self) -> bool {
        self.kind == ValueKind::Boolean
    }

    /// Whether the flag may be repeated.
    pub(super) fn is_list(&self) -> bool {
        matches!(self.kind, ValueKind::List(_))
    }

    /// Returns the JSON texts of one value: of all items, if it is a JSON list for a list.
    ///
    /// Fails with a message for an item of a list that has another type.
    pub(super) fn encode_value(&self, text: &str) -> Result<Vec<String>, String> {
        let ValueKind::List(item) = &self.kind else {
            return Ok(vec![self.kind.encode_json(text)]);
        };
        if let Some(items) = value_kind::json_list_items(item, text) {
            return Ok(items);
        }
        if item.accepts_text(text) {
            return Ok(vec![item.encode_json(text)]);
        }
        let (long, examples) = (&self.long, item.example_values());
        Err(format!(
            "`{}` is a list of {} values: write `--{long} '[{examples}]'`, or repeat `--{long}` for \
             each item, not `{}`",
            self.name,
            item.placeholder().to_lowercase(),
            text.escape_debug()
        ))
    }

    /// Joins the JSON texts of the values to one argument; `None` if there are none and it is not a list.
    pub(super) fn join_values(&self, values: &[String]) -> Option<String> {
        match values {
            values if self.is_list() => Some(format!("[{}]", values.join(","))),
            values => values.first().cloned(),
        }
    }

    fn help_text(&self) -> String {
        let mut facts = describe_constraints(self.schema, self.required);
        if matches!(self.kind, ValueKind::List(_)) {
            facts.push("repeatable, or a JSON list".to_owned());
        }
        if self.sensitive {
            facts.push(
                "secret: other users can see command lines, so prefer `-` or `@FILE`".to_owned(),
            );
        }
        let text = self.schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let text = style::join_paragraphs(text);
        style::sanitize_text(format!("{text} [{}]", facts.join("; ")).trim()).into_owned()
    }

    fn value_placeholder(&self) -> String {
        match short_choices(self.schema) {
            Some(choices) if self.kind == ValueKind::Text => choices,
            _ => self.kind.placeholder().to_owned(),
        }
    }
}

/// Adds a suggestion to a clap error when the invalid value was meant for the tool's parameter of
/// the same name as a program option.
pub(super) fn explain_reserved_flag(
    mut error: clap::Error,
    flags: &[ParamFlag<'_>],
) -> clap::Error {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let given = given.trim_start_matches('-').split(' ').next().unwrap_or_default();
    let meant = format!("arg-{given}");
    if error.kind() == ErrorKind::InvalidValue
        && let Some(flag) = flags.iter().find(|flag| flag.matches_name(&meant))
    {
        let tip = format!("the tool's own parameter is '--{}'", flag.long);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::test_support;

    #[track_caller]
    fn check_flags(parameters: Value, expected: &[&str]) {
        let definition = test_support::make_definition("t", parameters);
        let flags = tool_flags(&definition);
        let longs: Vec<&str> = flags.iter().map(|flag| flag.long.as_str()).collect();
        assert_eq!(longs, expected);
        args::tool_command("toy", args::ToolVerb::Call, &definition, &flags).debug_assert();
    }

    #[test]
    fn underscores_are_dashes_unless_that_is_another_parameter() {
        check_flags(json!({"output_mode": {}, "filePath": {}}), &["output-mode", "filePath"]);
        check_flags(json!({"a_b": {}, "a-b": {}}), &["a_b", "a-b"]);
        check_flags(json!({"_x": {}, "x": {}, "__": {}}), &["_x", "x", "__"]);
    }

    #[test]
    fn reserved_names_get_a_prefix() {
        check_flags(
            json!({"json": {}, "mode": {}, "root": {}, "state_dir": {}, "help": {}}),
            &["arg-json", "arg-mode", "arg-root", "arg-state-dir", "arg-help"],
        );
        check_flags(json!({"arg-mode": {}, "mode": {}}), &["arg-mode"]);
    }

    #[test]
    fn a_flag_that_is_taken_falls_back_to_the_parameter_name() {
        check_flags(json!({"mode": {}, "arg_mode": {}}), &["arg-mode", "arg_mode"]);
    }

    #[test]
    fn each_form_of_the_arguments_has_its_flags() {
        let form = |kind: &str, field: &str, of: &str| json!({"type": "object", "properties": {"kind": {"const": kind}, field: {"type": of}}});
        let mut definition = test_support::make_definition("t", json!({}));
        definition.parameters = Schema::from_value(json!({
            "type": "object",
            "oneOf": [form("A", "x", "integer"), form("B", "x", "string"), {"$ref": "#/$defs/C"}],
            "$defs": {"C": form("C", "y", "boolean")},
        }))
        .unwrap();
        let flags = tool_flags(&definition);
        let kinds: Vec<_> = flags.iter().map(|flag| (flag.name, flag.kind.clone())).collect();
        assert_eq!(
            kinds,
            [("kind", ValueKind::Text), ("x", ValueKind::Json), ("y", ValueKind::Boolean)]
        );
    }

    #[test]
    fn names_that_cannot_be_flags_are_left_to_json() {
        check_flags(json!({"": {}, "a b": {}, "-x": {}, "a=b": {}, "é": {}, "ok": {}}), &["ok"]);
    }
}
