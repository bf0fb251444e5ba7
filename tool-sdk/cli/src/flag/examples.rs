//! Renders the examples of a tool as shell commands.

use serde_json::{Map, Value};
use tool_sdk_core::Definition;

use super::value_kind::{ValueKind, json_list_items};
use super::{ParamFlag, tool_flags};
use crate::style;

/// Returns the examples of a tool as commands that can be pasted into a shell.
pub(crate) fn example_commands(program: &str, definition: &Definition) -> Vec<String> {
    let flags = tool_flags(definition);
    let command = |example: &str| {
        let words = to_flag_words(&flags, example);
        let words = words.unwrap_or_else(|| vec![format!(" {}", style::shell_quote(example))]);
        wrap_command(format!("{program} call {}", definition.name), &words)
    };
    definition.examples.iter().map(|example| command(example)).collect()
}

/// Converts JSON arguments into flags; `None` when they can only be passed as JSON.
fn to_flag_words(flags: &[ParamFlag<'_>], example: &str) -> Option<Vec<String>> {
    let arguments: Map<String, Value> = serde_json::from_str(example).ok()?;
    let words = |(name, value): (&String, &Value)| {
        flags.iter().find(|flag| flag.name == name)?.value_words(value)
    };
    arguments.iter().map(words).collect()
}

/// Joins a command and its words, wrapped with backslashes at 76 columns.
fn wrap_command(mut command: String, words: &[String]) -> String {
    const WIDTH: usize = 76;
    let mut width = command.len();
    for word in words {
        if width + word.len() > WIDTH {
            command.push_str(" \\\n   ");
            width = 3;
        }
        command.push_str(word);
        width += word.len();
    }
    command
}

impl ParamFlag<'_> {
    /// Returns the words that pass `value`; `None` when it can only be passed as JSON.
    fn value_words(&self, value: &Value) -> Option<String> {
        match (&self.kind, value) {
            (ValueKind::List(_), Value::Array(items)) if items.is_empty() => None,
            (ValueKind::List(kind), Value::Array(items)) => {
                items.iter().map(|item| self.item_words(kind, item)).collect()
            }
            (kind, value) => self.item_words(kind, value),
        }
    }

    fn item_words(&self, kind: &ValueKind, value: &Value) -> Option<String> {
        let long = &self.long;
        match (kind, value) {
            (ValueKind::Boolean, Value::Bool(true)) if self.kind == ValueKind::Boolean => {
                Some(format!(" --{long}"))
            }
            (ValueKind::Boolean, Value::Bool(value)) => Some(format!(" --{long}={value}")),
            (ValueKind::Integer | ValueKind::Number, Value::Number(number)) => {
                Some(format!(" --{long} {number}"))
            }
            // The flag would take it as a whole list.
            (kind, Value::String(text))
                if self.is_list() && json_list_items(kind, text).is_some() =>
            {
                None
            }
            (ValueKind::Text, Value::String(text)) if !text.contains(char::is_control) => {
                let between = if text.starts_with('-') { '=' } else { ' ' };
                Some(format!(" --{long}{between}{}", style::shell_quote(text)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support;

    #[track_caller]
    fn check_example(example: &str, expected: &str) {
        let mut definition = test_support::kinds_tool();
        definition.examples = vec![example.to_owned().into()];
        assert_eq!(example_commands("toy", &definition), [format!("toy call kinds{expected}")]);
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
        check_example(r#"{"tags": ["[1]"]}"#, r#" '{"tags": ["[1]"]}'"#);
        check_example(r#"{"where": {"line": 1}}"#, r#" '{"where": {"line": 1}}'"#);
        let long =
            format!(r#"{{"text": "{0}", "mode": "fast", "tags": ["{0}", "b"]}}"#, "a".repeat(30));
        let a = "a".repeat(30);
        check_example(&long, &format!(" --text {a} --arg-mode fast \\\n    --tags {a} --tags b"));
        check_example(r#"{"text": "a\nb"}"#, r#" '{"text": "a\nb"}'"#);
    }
}
