//! Definitions and their references.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::schema::walk;

/// Replaces a root that only refers to a definition by that definition.
pub(super) fn inline_root_ref(root: &mut Map<String, Value>) {
    for _ in 0..16 {
        let Some(Value::String(reference)) = walk::get_keyword(root, "$ref") else { return };
        let Some(target) = walk::resolve_ref(root, reference) else { return };
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
pub(super) fn keep_used_definitions(root: &mut Map<String, Value>, mut defs: Map<String, Value>) {
    if defs.is_empty() {
        return;
    }
    let mut needed = BTreeSet::new();
    let mut waiting = Vec::new();
    collect_refs(root, &mut waiting);
    while let Some(name) = waiting.pop() {
        if needed.insert(name.clone())
            && let Some(Value::Object(schema)) = defs.get(&name)
        {
            collect_refs(schema, &mut waiting);
        }
    }
    defs.retain(|name, _| needed.contains(name));
    if !defs.is_empty() {
        root.insert("$defs".to_owned(), Value::Object(defs));
    }
}

fn collect_refs(schema: &Map<String, Value>, found: &mut Vec<String>) {
    found.extend(schema.get("$ref").and_then(Value::as_str).and_then(definition_name));
    walk::for_each_subschema(schema, &mut |_, _, inner| {
        if let Value::Object(inner) = inner {
            collect_refs(inner, found);
        }
    });
}

/// Returns the name in `#/$defs/name`.
pub(super) fn definition_name(reference: &str) -> Option<String> {
    Some(reference.strip_prefix("#/$defs/")?.split('/').next()?.to_owned())
}
