//! The JSON type of a flag's value, derived from its schema, and the encoding of text as JSON.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The JSON type to which the text of a flag is converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    Boolean,
    Integer,
    Number,
    Text,
    /// An object, or one of several types.
    Json,
    /// One item per occurrence.
    List(Box<ValueKind>),
}

impl ValueKind {
    /// Returns the kind for a schema. `root` holds the `$defs` for its references.
    pub(super) fn from_schema(schema: &Value, root: &Map<String, Value>, depth: usize) -> Self {
        const MAX_DEPTH: usize = 8;
        if depth > MAX_DEPTH {
            return Self::Json;
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let found = target
                .strip_prefix("#/$defs/")
                .and_then(|name| root.get("$defs")?.get(name))
                .map(|target| Self::from_schema(target, root, depth + 1));
            return found.unwrap_or(Self::Json);
        }
        match single_type(schema) {
            Some("boolean") => Self::Boolean,
            Some("integer") => Self::Integer,
            Some("number") => Self::Number,
            Some("string") => Self::Text,
            Some("array") => {
                let item = schema
                    .get("items")
                    .map_or(Self::Json, |i| Self::from_schema(i, root, depth + 1));
                Self::List(Box::new(match item {
                    // A list of lists takes one JSON list per occurrence.
                    Self::List(_) => Self::Json,
                    item => item,
                }))
            }
            _ => Self::Json,
        }
    }

    pub(super) const fn placeholder(&self) -> &'static str {
        match self {
            Self::Boolean => "BOOLEAN",
            Self::Integer => "INTEGER",
            Self::Number => "NUMBER",
            Self::Text => "STRING",
            Self::Json => "JSON",
            Self::List(item) => item.placeholder(),
        }
    }

    /// Whether the text is a value of this kind; any text is one where the tool decides.
    pub(super) fn accepts_text(&self, text: &str) -> bool {
        match self {
            Self::Boolean | Self::Integer | Self::Number => serde_json::from_str::<Value>(text)
                .is_ok_and(|value| match self {
                    Self::Boolean => value.is_boolean(),
                    _ => value.is_number(),
                }),
            Self::Text | Self::Json | Self::List(_) => true,
        }
    }

    /// Returns two items of a list of this kind, for a message.
    pub(super) const fn example_values(&self) -> &'static str {
        match self {
            Self::Boolean => "true, false",
            Self::Integer => "1, 2",
            Self::Number => "0.5, 2",
            Self::Text => "\"a\", \"b\"",
            Self::Json | Self::List(_) => "{}, {}",
        }
    }

    /// Returns the JSON text of a value. Text of another type is encoded as a string, so that
    /// the argument check of the tool reports it.
    pub(super) fn encode_json(&self, text: &str) -> String {
        let is_json = match self {
            Self::Boolean => matches!(text, "true" | "false"),
            Self::Integer | Self::Number => {
                serde_json::from_str::<serde_json::Number>(text).is_ok()
            }
            Self::Text => false,
            // The text is kept, so that the argument check still finds duplicate keys.
            Self::Json | Self::List(_) => {
                serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
            }
        };
        if is_json { text.to_owned() } else { Value::from(text).to_string() }
    }
}

/// Returns the JSON texts of the items if `text` is a JSON list for a list of `item`.
///
/// Items that are lists themselves come one for each flag, so for them a list of other values is
/// one item.
pub(super) fn json_list_items(item: &ValueKind, text: &str) -> Option<Vec<String>> {
    if !text.trim_start().starts_with('[') {
        return None;
    }
    // The texts are kept, so that the argument check still finds duplicate keys.
    let items: Vec<Box<RawValue>> = serde_json::from_str(text).ok()?;
    let is_container = |item: &RawValue| item.get().starts_with(['[', '{']);
    if *item == ValueKind::Json && !items.iter().all(|item| is_container(item)) {
        return None;
    }
    Some(items.into_iter().map(|item| item.get().to_owned()).collect())
}

/// Returns the only type that a schema allows besides null.
fn single_type(schema: &Value) -> Option<&str> {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_kind(schema: Value, expected: ValueKind) {
        let root = json!({"$defs": {
            "Mode": {"type": "string"},
            "Loop": {"$ref": "#/$defs/Loop"},
        }});
        assert_eq!(
            ValueKind::from_schema(&schema, root.as_object().unwrap(), 0),
            expected,
            "{schema}"
        );
    }

    #[test]
    fn the_kind_follows_from_the_schema() {
        check_kind(json!({"type": "boolean"}), ValueKind::Boolean);
        check_kind(json!({"type": ["integer", "null"]}), ValueKind::Integer);
        check_kind(json!({"type": "number"}), ValueKind::Number);
        check_kind(json!({"enum": ["a", "b"]}), ValueKind::Text);
        check_kind(json!({"const": "a"}), ValueKind::Text);
        check_kind(json!({"enum": [1, 2]}), ValueKind::Json);
        check_kind(json!({"type": ["string", "integer"]}), ValueKind::Json);
        check_kind(json!({"type": "object"}), ValueKind::Json);
        check_kind(json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}), ValueKind::Json);
        check_kind(json!(true), ValueKind::Json);
        check_kind(json!({"$ref": "#/$defs/Mode"}), ValueKind::Text);
        check_kind(json!({"$ref": "#/$defs/Loop"}), ValueKind::Json);
        check_kind(json!({"$ref": "#/$defs/none"}), ValueKind::Json);
        check_kind(
            json!({"type": "array", "items": {"type": "integer"}}),
            ValueKind::List(Box::new(ValueKind::Integer)),
        );
        check_kind(
            json!({"type": "array", "items": {"type": "array"}}),
            ValueKind::List(Box::new(ValueKind::Json)),
        );
    }
}
