//! Finds secret parameters: those marked with `writeOnly`, which the standard defines for values
//! that are sent and never returned, such as passwords.

use serde_json::{Map, Value};

use super::{Schema, walk};

/// The maximum depth of the search in a parameter.
const MAX_DEPTH: usize = 32;

/// Whether the schema marks its own value as secret.
pub(crate) fn is_secret(schema: &Map<String, Value>) -> bool {
    walk::get_keyword(schema, "writeOnly") == Some(&Value::Bool(true))
}

impl Schema {
    /// Returns the names of the parameters that are secret or contain a secret.
    pub(crate) fn secret_parameters(&self) -> Vec<String> {
        if !self.as_str().contains("\"writeOnly\"") {
            return Vec::new();
        }
        let mut names = Vec::new();
        collect_secret_parameters(self.as_map(), self.as_map(), 0, &mut names);
        names
    }
}

/// Collects the names of the secret parameters of an object, including those in union branches.
fn collect_secret_parameters(
    schema: &Map<String, Value>,
    root: &Map<String, Value>,
    depth: usize,
    names: &mut Vec<String>,
) {
    if depth > MAX_DEPTH {
        return;
    }
    if let Some(reference) = walk::get_keyword(schema, "$ref").and_then(Value::as_str)
        && let Some(target) = walk::resolve_ref(root, reference)
    {
        collect_secret_parameters(&target, root, depth + 1, names);
    }
    walk::for_each_subschema(schema, &mut |keyword, step, inner| {
        let Value::Object(inner) = inner else { return };
        if keyword != "properties" {
            if matches!(keyword, "allOf" | "anyOf" | "oneOf") {
                collect_secret_parameters(inner, root, depth + 1, names);
            }
            return;
        }
        let name = walk::unescape_pointer_step(step.trim_start_matches("/properties/"));
        if holds_secret(inner, root, depth) && !names.iter().any(|known| *known == name) {
            names.push(name.into_owned());
        }
    });
}

fn holds_secret(schema: &Map<String, Value>, root: &Map<String, Value>, depth: usize) -> bool {
    if depth > MAX_DEPTH || is_secret(schema) {
        return is_secret(schema);
    }
    let target = walk::get_keyword(schema, "$ref").and_then(Value::as_str);
    let target = target.and_then(|reference| walk::resolve_ref(root, reference));
    let mut found = target.is_some_and(|target| holds_secret(&target, root, depth + 1));
    walk::for_each_subschema(schema, &mut |keyword, _, inner| {
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
    fn finds_parameters_that_contain_secrets() {
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
        assert_eq!(schema.secret_parameters(), ["a", "b", "d/e"]);
    }
}
