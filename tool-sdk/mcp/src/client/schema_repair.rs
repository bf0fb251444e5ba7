//! Removes keywords from a server's schema that cannot be used here, instead of rejecting the tool.
//!
//! Servers send `"required": null`, `"type": "int"` or an empty list for an empty object, and
//! patterns in the syntax of another language. They check arguments in their own way, so such a
//! keyword is left to them.
//!
//! **Invariant:** the repaired schema accepts everything that the original was meant to accept.

use serde_json::{Map, Value, json};
use tool_sdk_core::internal::{
    expected_value, is_followed_draft, redirect_refs,
    walk::{self, SubschemaKind},
};

/// Keywords that negate or count the match of a subschema, with those that depend on them. Where
/// such a subschema accepts more, the schema around it accepts less.
const NEGATING_KEYWORDS: &[(&str, &[&str])] = &[
    ("not", &[]),
    ("if", &["then", "else"]),
    ("oneOf", &[]),
    ("contains", &["minContains", "maxContains"]),
];

/// Keywords that apply to what no other keyword evaluated; they reject more when less is evaluated.
const UNEVALUATED_KEYWORDS: &[&str] = &["unevaluatedProperties", "unevaluatedItems"];

/// Keywords that lead to another schema.
const REFERENCE_KEYWORDS: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];

/// Returns the schema without malformed keywords, and their JSON pointers; `None` where it has
/// none.
pub(super) fn without_malformed(schema: &Value) -> Option<(Value, Vec<String>)> {
    let mut repaired = schema.clone();
    let Value::Object(root) = &mut repaired else { return None };
    let mut repair = KeywordRepair { is_wrong: &is_malformed, removed: Vec::new() };
    if root.get("$schema").is_some_and(|draft| !is_followed_draft(draft)) {
        repair.remove_keyword(root, "$schema", "");
    }
    let is_newest = !root.contains_key("$schema");
    if is_newest {
        redirect_refs(root, false);
    }
    normalize_lists(root, is_newest);
    let removed = repair.repair_root(root);
    (repaired != *schema).then_some((repaired, removed))
}

/// Returns the schema without the patterns that are not supported, and those patterns; `None` where
/// it has none.
pub(super) fn without_patterns(
    schema: &Value,
    is_unsupported: &dyn Fn(&str) -> bool,
) -> Option<(Value, Vec<String>)> {
    let mut patterns = collect_patterns(schema);
    patterns.sort_unstable();
    patterns.dedup();
    patterns.retain(|pattern| is_unsupported(pattern));
    if patterns.is_empty() {
        return None;
    }
    let is_wrong = |keyword: &str, value: &Value| {
        keyword == "pattern" && value.as_str().is_some_and(|it| patterns.contains(&it))
    };
    let mut repaired = schema.clone();
    let root = repaired.as_object_mut()?;
    KeywordRepair { is_wrong: &is_wrong, removed: Vec::new() }.repair_root(root);
    Some((repaired, patterns.into_iter().map(str::to_owned).collect()))
}

/// Returns all patterns of a schema, in any draft.
pub(super) fn collect_patterns(schema: &Value) -> Vec<&str> {
    let Value::Object(members) = schema else { return Vec::new() };
    let mut found: Vec<&str> = members.get("pattern").and_then(Value::as_str).into_iter().collect();
    if let Some(Value::Object(named)) = members.get("patternProperties") {
        found.extend(named.keys().map(String::as_str));
    }
    walk::for_each_in_any_draft(members, &mut |inner| found.extend(collect_patterns(inner)));
    found
}

/// Replaces an empty list where an object belongs. Without a `$schema`, a list in `items` is read
/// as `prefixItems`.
fn normalize_lists(schema: &mut Map<String, Value>, is_newest: bool) {
    for (keyword, value) in schema.iter_mut() {
        let holds = walk::subschema_kind(keyword);
        if matches!(holds, Some(SubschemaKind::One | SubschemaKind::Map)) && *value == json!([]) {
            *value = json!({});
        }
    }
    if is_newest
        && schema.get("items").is_some_and(Value::is_array)
        && let Some(items) = schema.shift_remove("items")
    {
        schema.insert("prefixItems".to_owned(), items);
        let rest = schema.shift_remove("additionalItems");
        schema.extend(rest.map(|rest| ("items".to_owned(), rest)));
    }
    walk::for_each_in_any_draft_mut(schema, &mut |inner| {
        if let Value::Object(inner) = inner {
            normalize_lists(inner, is_newest);
        }
    });
}

/// Removes keywords with a wrong value from all schemas of a document.
struct KeywordRepair<'a> {
    is_wrong: &'a dyn Fn(&str, &Value) -> bool,
    /// The JSON pointers of the removed keywords.
    removed: Vec<String>,
}

impl KeywordRepair<'_> {
    fn repair_root(mut self, root: &mut Map<String, Value>) -> Vec<String> {
        self.repair_schema(root, "");
        if !self.removed.is_empty() {
            remove_distant_negations(root);
        }
        self.removed
    }

    fn repair_schema(&mut self, schema: &mut Map<String, Value>, path: &str) {
        let keywords: Vec<String> = schema.keys().cloned().collect();
        for keyword in &keywords {
            if schema.get(keyword).is_some_and(|value| (self.is_wrong)(keyword, value)) {
                self.remove_keyword(schema, keyword, path);
            }
        }
        self.repair_pattern_properties(schema, path);
        for keyword in &keywords {
            let Some(value) = schema.get_mut(keyword) else { continue };
            let before = self.removed.len();
            self.repair_keyword(keyword, value, &format!("{path}/{keyword}"));
            if let Some((_, dependent)) = NEGATING_KEYWORDS.iter().find(|(it, _)| it == keyword)
                && self.removed.len() > before
            {
                schema.shift_remove(keyword);
                dependent.iter().for_each(|it| drop(schema.shift_remove(*it)));
            }
        }
    }

    fn repair_keyword(&mut self, keyword: &str, value: &mut Value, path: &str) {
        match (kind_in_any_draft(keyword, value), value) {
            (Some(SubschemaKind::One), inner) => self.repair_subschema(inner, path),
            (Some(SubschemaKind::List), Value::Array(all)) => {
                all.iter_mut().for_each(|inner| self.repair_subschema(inner, path));
            }
            (Some(SubschemaKind::Map), Value::Object(named)) => {
                for (name, inner) in named {
                    self.repair_subschema(inner, &format!("{path}/{name}"));
                }
            }
            _ => {}
        }
    }

    /// Repairs a subschema; one that is not a schema becomes `true`.
    fn repair_subschema(&mut self, schema: &mut Value, path: &str) {
        match schema {
            Value::Object(schema) => self.repair_schema(schema, path),
            // `dependencies` of earlier drafts has lists of names.
            Value::Bool(_) | Value::Array(_) => {}
            none => {
                self.removed.push(path.to_owned());
                *none = true.into();
            }
        }
    }

    fn repair_pattern_properties(&mut self, schema: &mut Map<String, Value>, path: &str) {
        let Some(Value::Object(named)) = schema.get_mut("patternProperties") else { return };
        let before = named.len();
        named.retain(|pattern, _| !(self.is_wrong)("pattern", &json!(pattern)));
        if named.len() < before {
            schema.shift_remove("additionalProperties");
            self.removed.push(format!("{path}/patternProperties"));
        }
    }

    /// Removes a keyword, and the keywords whose meaning depends on it.
    fn remove_keyword(&mut self, schema: &mut Map<String, Value>, keyword: &str, path: &str) {
        let dependent: &[&str] = match keyword {
            "properties" | "patternProperties" => &["additionalProperties"],
            "prefixItems" => &["items"],
            _ => &[],
        };
        schema.shift_remove(keyword);
        dependent.iter().for_each(|it| drop(schema.shift_remove(*it)));
        self.removed.push(format!("{path}/{keyword}"));
    }
}

/// Removes `unevaluated` keywords, and negations of them and of schemas elsewhere, which may accept
/// more now.
fn remove_distant_negations(schema: &mut Map<String, Value>) {
    for (keyword, dependent) in NEGATING_KEYWORDS {
        if schema.get(*keyword).is_some_and(depends_on_others) {
            schema.shift_remove(*keyword);
            dependent.iter().for_each(|it| drop(schema.shift_remove(*it)));
        }
    }
    UNEVALUATED_KEYWORDS.iter().for_each(|it| drop(schema.shift_remove(*it)));
    walk::for_each_in_any_draft_mut(schema, &mut |inner| {
        if let Value::Object(inner) = inner {
            remove_distant_negations(inner);
        }
    });
}

fn depends_on_others(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(key, one)| {
            [REFERENCE_KEYWORDS, UNEVALUATED_KEYWORDS].iter().any(|it| it.contains(&key.as_str()))
                || depends_on_others(one)
        }),
        Value::Array(items) => items.iter().any(depends_on_others),
        _ => false,
    }
}

fn is_malformed(keyword: &str, value: &Value) -> bool {
    let is_address = |value: &Value| {
        let is_one = |it: &str| it.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
        value.as_str().is_some_and(|it| is_one(it.trim_end_matches('#')))
    };
    let is_valid = match (keyword, walk::subschema_kind(keyword)) {
        ("$id", _) => is_address(value),
        ("items", _) => value.is_object() || value.is_boolean() || value.is_array(),
        (_, Some(SubschemaKind::One)) => value.is_object() || value.is_boolean(),
        (_, Some(SubschemaKind::Map)) => value.is_object(),
        _ => expected_value(keyword, value).is_none(),
    };
    !is_valid
}

/// Returns how a keyword holds subschemas; earlier drafts have them in more keywords.
fn kind_in_any_draft(keyword: &str, value: &Value) -> Option<SubschemaKind> {
    match keyword {
        "items" if value.is_array() => Some(SubschemaKind::List),
        "additionalItems" => Some(SubschemaKind::One),
        "dependencies" => Some(SubschemaKind::Map),
        _ => walk::subschema_kind(keyword),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: &Value, expected: &Value, places: &[&str]) {
        let (rest, left) = without_malformed(schema).unwrap();
        let left: Vec<&str> = left.iter().map(String::as_str).collect();
        assert_eq!((&rest, left.as_slice()), (expected, places));
    }

    #[test]
    fn removes_malformed_keywords_and_keeps_the_rest() {
        check(
            &json!({ "properties": [], "additionalProperties": false }),
            &json!({ "properties": {}, "additionalProperties": false }),
            &[],
        );
        check(
            &json!({ "properties": null, "additionalProperties": false, "required": null }),
            &json!({}),
            &["/properties", "/required"],
        );
        check(
            &json!({ "properties": {
                "a": { "type": "int", "minLength": 1 }, "b": { "type": "string", "title": 5 },
                "c": "string", "required": { "type": "string", "required": true },
            } }),
            &json!({ "properties": {
                "a": { "minLength": 1 }, "b": { "type": "string" },
                "c": true, "required": { "type": "string" },
            } }),
            &[
                "/properties/a/type",
                "/properties/b/title",
                "/properties/c",
                "/properties/required/required",
            ],
        );
        check(
            &json!({ "items": [{ "type": "any" }, {}], "additionalItems": false }),
            &json!({ "prefixItems": [{}, {}], "items": false }),
            &["/prefixItems/type"],
        );
        check(
            &json!({ "$schema": "https://my.org/schema", "$id": "my tool", "type": "object" }),
            &json!({ "type": "object" }),
            &["/$schema", "/$id"],
        );
        assert_eq!(
            without_malformed(&json!({ "type": "object", "properties": { "a": true } })),
            None
        );
    }

    // Below a negation, accepting more would mean rejecting more.
    #[test]
    fn removing_a_keyword_never_rejects_more() {
        let bad = json!({ "type": "int", "minimum": 1 });
        for turn in ["not", "if", "contains"] {
            check(&json!({ turn: bad }), &json!({}), &[&format!("/{turn}/type")]);
        }
        check(
            &json!({ "oneOf": [bad, { "type": "null" }], "anyOf": [bad] }),
            &json!({ "anyOf": [{ "minimum": 1 }] }),
            &["/oneOf/type", "/anyOf/type"],
        );
        check(
            &json!({ "not": { "$ref": "#/$defs/a" }, "$defs": { "a": bad } }),
            &json!({ "$defs": { "a": { "minimum": 1 } } }),
            &["/$defs/a/type"],
        );
    }

    #[track_caller]
    fn check_patterns(schema: &Value, expected: &Value) {
        let (rest, left) = without_patterns(schema, &|pattern| pattern == "bad").unwrap();
        assert_eq!((&rest, left.as_slice()), (expected, &["bad".to_owned()][..]));
    }

    #[test]
    fn removing_a_pattern_never_rejects_more() {
        let bad = json!({ "pattern": "bad", "minLength": 1 });
        check_patterns(
            &json!({ "properties": { "a": bad } }),
            &json!({ "properties": { "a": { "minLength": 1 } } }),
        );
        check_patterns(
            &json!({ "anyOf": [bad, { "pattern": "good" }] }),
            &json!({ "anyOf": [{ "minLength": 1 }, { "pattern": "good" }] }),
        );
        check_patterns(&json!({ "type": "string", "not": bad }), &json!({ "type": "string" }));
        check_patterns(
            &json!({ "oneOf": [bad, { "type": "null" }], "title": "x" }),
            &json!({ "title": "x" }),
        );
        check_patterns(
            &json!({ "if": bad, "then": { "type": "null" }, "else": false, "items": bad }),
            &json!({ "items": { "minLength": 1 } }),
        );
        check_patterns(
            &json!({ "contains": bad, "maxContains": 1, "unevaluatedItems": false }),
            &json!({}),
        );
        check_patterns(
            &json!({ "not": { "$ref": "#/$defs/a" }, "$defs": { "a": bad } }),
            &json!({ "$defs": { "a": { "minLength": 1 } } }),
        );
        check_patterns(
            &json!({ "patternProperties": { "bad": false, "good": true }, "additionalProperties": false }),
            &json!({ "patternProperties": { "good": true } }),
        );
        let tuple = |items: Value| {
            json!({ "items": items, "additionalItems": { "minLength": 1 }, "dependencies": {
                "a": { "minLength": 1 }, "b": ["a"],
            } })
        };
        let mut before = tuple(json!([bad, { "pattern": "good" }]));
        before["additionalItems"] = bad.clone();
        before["dependencies"]["a"] = bad.clone();
        check_patterns(&before, &tuple(json!([{ "minLength": 1 }, { "pattern": "good" }])));
        assert!(
            without_patterns(&json!({ "pattern": "good" }), &|pattern| pattern == "bad").is_none()
        );
    }
}
