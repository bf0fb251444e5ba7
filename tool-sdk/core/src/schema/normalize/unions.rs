//! Simplifies unions that have an equivalent without a union.

use serde_json::{Map, Value, json};

use super::object_context::has_object_keywords;
use crate::schema::walk;

/// Removes `null` from an optional property, which is left out instead.
pub(super) fn remove_null(map: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = walk::get_keyword_mut(map, "type")
        && types.iter().any(|ty| ty != "null")
    {
        types.retain(|ty| ty != "null");
    }
    if let Some(Value::Array(values)) = walk::get_keyword_mut(map, "enum")
        && values.iter().any(|value| !value.is_null())
    {
        values.retain(|value| !value.is_null());
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = walk::get_keyword_mut(map, keyword)
            && !branches.iter().all(is_null)
        {
            branches.retain(|branch| !is_null(branch));
            for branch in branches {
                if let Value::Object(branch) = branch {
                    remove_null(branch);
                }
            }
        }
    }
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").is_some_and(|ty| ty == "null" || *ty == json!(["null"]))
        || schema.get("const").is_some_and(Value::is_null)
        || schema.get("enum").is_some_and(|values| *values == json!([null]))
}

/// Merges a union of one branch into its parent; the keywords of the parent win.
pub(super) fn merge_single_branch(map: &mut Map<String, Value>) {
    for keyword in ["anyOf", "oneOf", "allOf", "anyOf"] {
        let Some([Value::Object(only)]) =
            walk::get_keyword(map, keyword).and_then(Value::as_array).map(Vec::as_slice)
        else {
            continue;
        };
        let annotation = |key: &str| matches!(key, "description" | "title" | "default");
        let fits = |(key, value): (&String, &Value)| {
            annotation(key) || key != keyword && map.get(key).is_none_or(|here| here == value)
        };
        if only.iter().all(fits) && !(has_object_keywords(map) && has_object_keywords(only)) {
            let only = only.clone();
            map.shift_remove(keyword);
            for (key, value) in only {
                if key != "title" {
                    map.entry(key).or_insert(value);
                }
            }
        }
    }
}

/// Folds documented variants without data into one string with an `enum`; their docs go into the
/// description.
pub(super) fn fold_string_variants(map: &mut Map<String, Value>) {
    for keyword in ["oneOf", "anyOf"] {
        let Some(Value::Array(branches)) = walk::get_keyword(map, keyword) else { continue };
        let free = !map.contains_key("enum") && !map.contains_key("const");
        let string = map.get("type").is_none_or(|ty| ty == "string");
        let Some(variants) = branches.iter().map(string_variant).collect::<Option<Vec<_>>>() else {
            continue;
        };
        if !free || !string || variants.is_empty() {
            continue;
        }
        let mut values: Vec<Value> = Vec::new();
        let mut lines: Vec<String> = Vec::new();
        lines.extend(map.get("description").and_then(Value::as_str).map(str::to_owned));
        for (names, doc) in variants {
            for name in names {
                if let Some(doc) = &doc {
                    lines.push(format!("- `{name}`: {doc}"));
                }
                if !values.iter().any(|value| value == name) {
                    values.push(name.into());
                }
            }
        }
        map.shift_remove(keyword);
        map.insert("type".to_owned(), "string".into());
        map.insert("enum".to_owned(), Value::Array(values));
        if !lines.is_empty() {
            map.insert("description".to_owned(), lines.join("\n").into());
        }
    }
}

/// Returns the names and the docs of a branch of strings.
fn string_variant(branch: &Value) -> Option<(Vec<&str>, Option<String>)> {
    let branch = branch.as_object()?;
    let only = |key: &String| {
        matches!(key.as_str(), "type" | "const" | "enum" | "description" | "title" | "deprecated")
    };
    if !branch.keys().all(only) || branch.get("type").is_some_and(|ty| ty != "string") {
        return None;
    }
    let names = match (branch.get("const"), branch.get("enum")) {
        (Some(Value::String(name)), None) => vec![name.as_str()],
        (None, Some(Value::Array(names))) => {
            names.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?
        }
        _ => return None,
    };
    let doc = branch
        .get("description")
        .and_then(Value::as_str)
        .map(|doc| doc.split_whitespace().collect::<Vec<_>>().join(" "));
    Some((names, doc))
}
