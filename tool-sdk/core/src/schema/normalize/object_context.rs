//! Decides where an object may be closed against unknown properties.
//!
//! An object may be closed where it alone describes the value. Where several schemas describe the
//! same value, each would refuse the properties of the others.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::definitions::definition_name;
use crate::schema::walk;

/// Whether an object here may be closed against unknown properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ObjectContext {
    /// It alone describes the value.
    Alone,
    /// Other schemas describe the same value, but not its properties.
    Shared,
    /// A condition, or one of several schemas that must all hold: nothing in it may change.
    Frozen,
}

/// Returns the context of each definition: the strictest of its uses.
pub(super) fn definition_contexts(root: &Map<String, Value>) -> BTreeMap<String, ObjectContext> {
    let mut found = BTreeMap::new();
    if !walk::has_any_keyword(root, &["$defs"]) {
        return found;
    }
    loop {
        let mut next = found.clone();
        collect_contexts(root, ObjectContext::Alone, &mut next);
        if let Some(Value::Object(defs)) = root.get("$defs") {
            for (name, schema) in defs {
                let place = found.get(name).copied().unwrap_or(ObjectContext::Alone);
                if let Value::Object(schema) = schema {
                    collect_contexts(schema, place, &mut next);
                }
            }
        }
        if next == found {
            return found;
        }
        found = next;
    }
}

fn collect_contexts(
    schema: &Map<String, Value>,
    place: ObjectContext,
    found: &mut BTreeMap<String, ObjectContext>,
) {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str).and_then(definition_name) {
        let here =
            if has_object_keywords(schema) { place.max(ObjectContext::Shared) } else { place };
        let known = found.entry(name).or_insert(here);
        *known = here.max(*known);
    }
    let shared = is_shared(schema);
    walk::for_each_subschema(schema, &mut |keyword, _, inner| {
        if let Value::Object(inner) = inner {
            collect_contexts(inner, child_context(shared, keyword, place), found);
        }
    });
}

pub(super) fn has_object_keywords(schema: &Map<String, Value>) -> bool {
    walk::has_any_keyword(
        schema,
        &["properties", "patternProperties", "additionalProperties", "unevaluatedProperties"],
    )
}

/// Whether the branches of a union are not the only schemas that describe the value.
pub(super) fn is_shared(schema: &Map<String, Value>) -> bool {
    let others = ["$ref", "allOf", "anyOf", "oneOf", "if"];
    schema.keys().filter(|keyword| others.contains(&keyword.as_str())).count() > 1
        || has_object_keywords(schema)
}

/// Returns the context of a subschema below `keyword`; `shared` comes from [`is_shared`].
pub(super) fn child_context(shared: bool, keyword: &str, place: ObjectContext) -> ObjectContext {
    let frozen = place == ObjectContext::Frozen;
    match keyword {
        _ if frozen => ObjectContext::Frozen,
        "not" | "if" | "then" | "else" | "contains" | "dependentSchemas" | "propertyNames" => {
            ObjectContext::Frozen
        }
        "allOf" => ObjectContext::Frozen,
        "anyOf" | "oneOf" if shared => ObjectContext::Shared,
        "anyOf" | "oneOf" => place,
        _ => ObjectContext::Alone,
    }
}
