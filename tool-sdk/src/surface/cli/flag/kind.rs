//! What the text of a value stands for, as its schema says, and the JSON that it becomes.

use serde_json::{Map, Value};

/// What the text of a value stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Boolean,
    Integer,
    Number,
    Text,
    /// An object, or one of several types.
    Json,
    /// One item per occurrence.
    List(Box<Kind>),
}

impl Kind {
    /// The kind of a schema, whose definitions are those of `root`.
    pub(super) fn of(schema: &Value, root: &Map<String, Value>, depth: usize) -> Self {
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

    /// The JSON text of a value. What is not of the kind is sent as a string, so that the
    /// tool says in its own words what it expects.
    pub(super) fn encode(&self, text: &str) -> String {
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
        if is_json { text.to_owned() } else { Value::from(text).to_string() }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
}
