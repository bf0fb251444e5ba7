//! What a schema says must not be shown: `writeOnly`, which is said of values that are given and
//! never given back, such as passwords.

use serde_json::{Map, Value};

use super::{Schema, walk};

/// How far what a parameter holds is looked into.
const MAX_DEPTH: usize = 32;

/// Whether a schema says it of the value itself.
pub(crate) fn is_secret(schema: &Map<String, Value>) -> bool {
    walk::get(schema, "writeOnly") == Some(&Value::Bool(true))
}

impl Schema {
    /// The parameters that are not to be shown: those that say so, and those that hold something
    /// that says so.
    pub(crate) fn secrets(&self) -> Vec<String> {
        if !self.as_str().contains("\"writeOnly\"") {
            return Vec::new();
        }
        let mut names = Vec::new();
        parameters(self.as_map(), self.as_map(), 0, &mut names);
        names
    }
}

/// Adds the names of the secret parameters of an object, which may have several forms.
fn parameters(
    schema: &Map<String, Value>,
    root: &Map<String, Value>,
    depth: usize,
    names: &mut Vec<String>,
) {
    if depth > MAX_DEPTH {
        return;
    }
    if let Some(reference) = walk::get(schema, "$ref").and_then(Value::as_str)
        && let Some(target) = walk::resolve(root, reference)
    {
        parameters(&target, root, depth + 1, names);
    }
    walk::each(schema, &mut |keyword, step, inner| {
        let Value::Object(inner) = inner else { return };
        if keyword != "properties" {
            if matches!(keyword, "allOf" | "anyOf" | "oneOf") {
                parameters(inner, root, depth + 1, names);
            }
            return;
        }
        let name = walk::unescape(step.trim_start_matches("/properties/"));
        if holds_secret(inner, root, depth) && !names.iter().any(|known| *known == name) {
            names.push(name.into_owned());
        }
    });
}

fn holds_secret(schema: &Map<String, Value>, root: &Map<String, Value>, depth: usize) -> bool {
    if depth > MAX_DEPTH || is_secret(schema) {
        return is_secret(schema);
    }
    let target = walk::get(schema, "$ref").and_then(Value::as_str);
    let target = target.and_then(|reference| walk::resolve(root, reference));
    let mut found = target.is_some_and(|target| holds_secret(&target, root, depth + 1));
    walk::each(schema, &mut |keyword, _, inner| {
        if let Value::Object(inner) = inner
            && keyword != "$defs"
            && !found
        {
            found = holds_secret(inner, root, depth + 1);
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_holds_a_secret_is_one() {
        let schema = Schema::from_value(json!({
            "type": "object",
            "properties": {
                "a": { "type": "string", "writeOnly": true },
                "b": { "type": "array", "items": { "$ref": "#/$defs/login" } },
                "c": { "type": "string", "writeOnly": false },
                "writeOnly": { "type": "string" },
            },
            "oneOf": [{ "properties": { "d/e": { "writeOnly": true } } }],
            "$defs": { "login": {
                "type": "object",
                "properties": { "key": { "writeOnly": true }, "next": { "$ref": "#/$defs/login" } },
            } },
        }))
        .unwrap();
        assert_eq!(schema.secrets(), ["a", "b", "d/e"]);
    }
}
