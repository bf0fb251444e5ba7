//! One table of the keywords that hold subschemas.
//!
//! A property named `title` is not the keyword `title`. Everything that walks a schema uses this
//! module, so that properties are not mistaken for keywords.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

/// How a keyword holds subschemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "each crate of the SDK handles every variant")]
pub enum SubschemaKind {
    /// As its value.
    One,
    /// As the items of a list.
    List,
    /// As the values of a map with arbitrary keys.
    Map,
}

/// Returns how `keyword` holds subschemas, if it does.
pub fn subschema_kind(keyword: &str) -> Option<SubschemaKind> {
    match keyword {
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
            Some(SubschemaKind::Map)
        }
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Some(SubschemaKind::List),
        "items"
        | "additionalProperties"
        | "not"
        | "if"
        | "then"
        | "else"
        | "contains"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "contentSchema" => Some(SubschemaKind::One),
        _ => None,
    }
}

/// Returns the value of `keyword`. A schema has few keywords, so a linear search is faster than
/// hashing.
pub(crate) fn get_keyword<'a>(schema: &'a Map<String, Value>, keyword: &str) -> Option<&'a Value> {
    schema.iter().find(|(known, _)| *known == keyword).map(|(_, value)| value)
}

/// Returns the mutable value of `keyword`.
pub(crate) fn get_keyword_mut<'a>(
    schema: &'a mut Map<String, Value>,
    keyword: &str,
) -> Option<&'a mut Value> {
    schema.iter_mut().find(|(known, _)| *known == keyword).map(|(_, value)| value)
}

/// Whether `schema` has one of `keywords`.
pub fn has_any_keyword(schema: &Map<String, Value>, keywords: &[&str]) -> bool {
    schema.keys().any(|keyword| keywords.contains(&keyword.as_str()))
}

/// Whether `schema` allows the type `name`.
pub(crate) fn is_type(schema: &Map<String, Value>, name: &str) -> bool {
    match get_keyword(schema, "type") {
        Some(Value::Array(types)) => types.iter().any(|ty| ty == name),
        Some(ty) => ty == name,
        None => false,
    }
}

/// Returns how a keyword with this value holds subschemas.
type SubschemaKindFn = fn(&str, &Value) -> Option<SubschemaKind>;

/// Like [`subschema_kind`], for an unknown draft: earlier ones have subschemas in more keywords.
pub(super) fn subschema_kind_in_any_draft(keyword: &str, value: &Value) -> Option<SubschemaKind> {
    match (keyword, value) {
        ("items", Value::Array(_)) => Some(SubschemaKind::List),
        ("additionalItems", _) => Some(SubschemaKind::One),
        // The other entries are lists of names.
        ("dependencies", _) => Some(SubschemaKind::Map),
        _ => subschema_kind(keyword),
    }
}

/// Calls `visit` for each direct subschema, with its keyword and relative JSON pointer.
pub fn for_each_subschema<'a>(
    schema: &'a Map<String, Value>,
    visit: &mut dyn FnMut(&str, String, &'a Value),
) {
    for (keyword, value) in schema {
        match (subschema_kind(keyword), value) {
            (Some(SubschemaKind::One), value) => visit(keyword, format!("/{keyword}"), value),
            (Some(SubschemaKind::List), Value::Array(list)) => {
                for (at, value) in list.iter().enumerate() {
                    visit(keyword, format!("/{keyword}/{at}"), value);
                }
            }
            (Some(SubschemaKind::Map), Value::Object(map)) => {
                for (name, value) in map {
                    visit(keyword, format!("/{keyword}/{}", escape_pointer_step(name)), value);
                }
            }
            _ => {}
        }
    }
}

/// Calls `visit` for each direct subschema, with its keyword.
pub fn for_each_subschema_mut(
    schema: &mut Map<String, Value>,
    visit: &mut dyn FnMut(&str, &mut Value),
) {
    for_each_of_kind_mut(schema, |keyword, _| subschema_kind(keyword), visit);
}

/// Calls `visit` for each direct subschema, in any draft.
pub fn for_each_in_any_draft<'a>(schema: &'a Map<String, Value>, visit: &mut dyn FnMut(&'a Value)) {
    for (keyword, value) in schema {
        match (subschema_kind_in_any_draft(keyword, value), value) {
            (Some(SubschemaKind::One), value) => visit(value),
            (Some(SubschemaKind::List), Value::Array(list)) => list.iter().for_each(&mut *visit),
            (Some(SubschemaKind::Map), Value::Object(map)) => map.values().for_each(&mut *visit),
            _ => {}
        }
    }
}

/// Calls `visit` for each direct subschema, in any draft.
pub fn for_each_in_any_draft_mut(
    schema: &mut Map<String, Value>,
    visit: &mut dyn FnMut(&mut Value),
) {
    for_each_of_kind_mut(schema, subschema_kind_in_any_draft, &mut |_, inner| visit(inner));
}

fn for_each_of_kind_mut(
    schema: &mut Map<String, Value>,
    held: SubschemaKindFn,
    visit: &mut dyn FnMut(&str, &mut Value),
) {
    for (keyword, value) in schema {
        match (held(keyword, value), value) {
            (Some(SubschemaKind::One), value) => visit(keyword, value),
            (Some(SubschemaKind::List), Value::Array(list)) => {
                list.iter_mut().for_each(|value| visit(keyword, value));
            }
            (Some(SubschemaKind::Map), Value::Object(map)) => {
                map.values_mut().for_each(|value| visit(keyword, value));
            }
            _ => {}
        }
    }
}

/// Escapes a name as one step of a JSON pointer.
pub(crate) fn escape_pointer_step(name: &str) -> Cow<'_, str> {
    if name.contains(['~', '/']) {
        Cow::Owned(name.replace('~', "~0").replace('/', "~1"))
    } else {
        Cow::Borrowed(name)
    }
}

/// Unescapes one step of a JSON pointer, which may also be percent-encoded.
pub(super) fn unescape_pointer_step(step: &str) -> Cow<'_, str> {
    let step = percent_decode(step);
    match step.contains('~') {
        true => Cow::Owned(step.replace("~1", "/").replace("~0", "~")),
        false => step,
    }
}

/// Returns the value at a JSON pointer, which may be percent-encoded.
pub fn resolve_pointer<'a>(root: &'a Map<String, Value>, pointer: &str) -> Option<&'a Value> {
    let pointer = percent_decode(pointer);
    let steps = pointer.strip_prefix('/')?;
    let (first, rest) = match steps.split_once('/') {
        Some((first, rest)) => (first, format!("/{rest}")),
        None => (steps, String::new()),
    };
    root.get(&first.replace("~1", "/").replace("~0", "~"))?.pointer(&rest)
}

/// Resolves a local `$ref`.
pub fn resolve_ref<'a>(
    root: &'a Map<String, Value>,
    reference: &str,
) -> Option<Cow<'a, Map<String, Value>>> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.is_empty() {
        return Some(Cow::Borrowed(root));
    }
    as_object_schema(resolve_pointer(root, pointer)?)
}

/// Renames definitions so that their names consist of `A-Z a-z 0-9 _ . -`.
///
/// Other characters must be escaped in a `$ref`, once for the pointer and once for the URI, and
/// programs disagree on how.
pub(crate) fn sanitize_definition_names(root: &mut Map<String, Value>) {
    let Some(Value::Object(defs)) = get_keyword(root, "$defs") else { return };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let mut renamed: Vec<(String, String)> = Vec::new();
    for name in defs.keys().filter(|name| name.is_empty() || !name.chars().all(plain)) {
        let base: String = name.chars().map(|c| if plain(c) { c } else { '_' }).collect();
        let taken = |new: &str| {
            new.is_empty()
                || defs.contains_key(new)
                || renamed.iter().any(|(_, known)| known == new)
        };
        let new = std::iter::once(base.clone())
            .chain((2..).map(|number| format!("{base}_{number}")))
            .find(|new| !taken(new));
        renamed.extend(new.map(|new| (name.clone(), new)));
    }
    if let Some(Value::Object(defs)) = root.get_mut("$defs")
        && !renamed.is_empty()
    {
        *defs = std::mem::take(defs)
            .into_iter()
            .map(|(name, schema)| match renamed.iter().find(|(old, _)| *old == name) {
                Some((_, new)) => (new.clone(), schema),
                None => (name, schema),
            })
            .collect();
    }
    rename_refs(root, &renamed);
}

fn rename_refs(schema: &mut Map<String, Value>, renamed: &[(String, String)]) {
    if let Some(Value::String(reference)) = schema.get_mut("$ref")
        && let Some(pointer) = reference.strip_prefix('#').map(percent_decode)
    {
        let new = pointer.strip_prefix("/$defs/").and_then(|path| {
            let (name, rest) = path.split_once('/').unwrap_or((path, ""));
            let name = name.replace("~1", "/").replace("~0", "~");
            let new = &renamed.iter().find(|(old, _)| *old == name)?.1;
            let slash = if rest.is_empty() { "" } else { "/" };
            Some(format!("#/$defs/{new}{slash}{rest}"))
        });
        *reference = new.unwrap_or_else(|| format!("#{pointer}"));
    }
    for_each_subschema_mut(schema, &mut |_, inner| {
        if let Value::Object(inner) = inner {
            rename_refs(inner, renamed);
        }
    });
}

/// Returns a schema as an object: `true` allows everything and `false` nothing.
pub(crate) fn as_object_schema(schema: &Value) -> Option<Cow<'_, Map<String, Value>>> {
    match schema {
        Value::Object(map) => Some(Cow::Borrowed(map)),
        Value::Bool(true) => Some(Cow::Owned(Map::new())),
        Value::Bool(false) => Some(Cow::Owned(never_schema())),
        _ => None,
    }
}

/// Returns the schema that allows nothing.
pub(crate) fn never_schema() -> Map<String, Value> {
    Map::from_iter([("not".to_owned(), json!({}))])
}

/// Returns the names in `required_names`.
pub(crate) fn required_names(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Decodes percent-encoding, which a `$ref` may contain.
fn percent_decode(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let pair = match tail {
            [high, low, ..] if *first == b'%' => hex_digit(*high).zip(hex_digit(*low)),
            _ => None,
        };
        match pair {
            Some((high, low)) => {
                bytes.push(high * 16 + low);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

fn hex_digit(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_escaped_references() {
        let root = json!({"$defs": {"a/b": {"type": "string"}, "c d": true, "e~f": {"x": [1]}}});
        let root = root.as_object().unwrap();
        assert!(resolve_ref(root, "#").is_some());
        assert_eq!(resolve_ref(root, "#/$defs/a~1b").unwrap()["type"], "string");
        assert!(resolve_ref(root, "#/$defs/c%20d").unwrap().is_empty());
        assert!(resolve_ref(root, "#/$defs/e~0f").is_some());
        assert!(resolve_ref(root, "#/$defs/nope").is_none());
        assert!(resolve_ref(root, "other.json#/x").is_none());
        assert!(resolve_ref(root, "#anchor").is_none());
    }

    #[test]
    fn sanitizes_definition_names() {
        let mut root = json!({
            "properties": { "a": { "$ref": "#/$defs/List%3CA~1b%3E/items" }, "b": { "$ref": "#/$defs/x" } },
            "$defs": { "List<A/b>": { "items": {} }, "List_A_b_": {}, "x": {} },
        });
        sanitize_definition_names(root.as_object_mut().unwrap());
        assert_eq!(
            root,
            json!({
                "properties": {
                    "a": { "$ref": "#/$defs/List_A_b__2/items" }, "b": { "$ref": "#/$defs/x" },
                },
                "$defs": { "List_A_b__2": { "items": {} }, "List_A_b_": {}, "x": {} },
            })
        );
    }
}
