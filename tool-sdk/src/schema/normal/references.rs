//! Definitions and their references.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::schema::walk;

/// Replaces a root that only refers to a definition by that definition.
pub(super) fn take_root_reference(root: &mut Map<String, Value>) {
    for _ in 0..16 {
        let Some(Value::String(reference)) = walk::get(root, "$ref") else { return };
        let Some(target) = walk::resolve(root, reference) else { return };
        let mut target = target.into_owned();
        if let Some(defs) = root.shift_remove("$defs") {
            target.entry("$defs").or_insert(defs);
        }
        if let Some(description) = root.shift_remove("description") {
            target.insert("description".to_owned(), description);
        }
        *root = target;
    }
}

/// Keeps the definitions that are used.
pub(super) fn keep_needed(root: &mut Map<String, Value>, mut defs: Map<String, Value>) {
    if defs.is_empty() {
        return;
    }
    let mut needed = BTreeSet::new();
    let mut waiting = Vec::new();
    references(root, &mut waiting);
    while let Some(name) = waiting.pop() {
        if needed.insert(name.clone())
            && let Some(Value::Object(schema)) = defs.get(&name)
        {
            references(schema, &mut waiting);
        }
    }
    defs.retain(|name, _| needed.contains(name));
    if !defs.is_empty() {
        root.insert("$defs".to_owned(), Value::Object(defs));
    }
}

fn references(schema: &Map<String, Value>, found: &mut Vec<String>) {
    found.extend(schema.get("$ref").and_then(Value::as_str).and_then(definition));
    walk::each(schema, &mut |_, _, inner| {
        if let Value::Object(inner) = inner {
            references(inner, found);
        }
    });
}

/// Returns the name in `#/$defs/name`.
pub(super) fn definition(reference: &str) -> Option<String> {
    Some(reference.strip_prefix("#/$defs/")?.split('/').next()?.to_owned())
}
