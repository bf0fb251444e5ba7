//! Decides where an object may be closed against unknown properties.
//!
//! An object may be closed where it alone describes the value. Where several schemas describe the
//! same value, each would refuse the properties of the others.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::references::definition;
use crate::schema::walk;

/// Whether an object here may be closed against unknown properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// It alone describes the value.
    Alone,
    /// Other schemas describe the same value, but not its properties.
    Beside,
    /// A condition, or one of several schemas that must all hold: nothing in it may change.
    Frozen,
}

/// Returns the context of each definition: the strictest of its uses.
pub(super) fn places(root: &Map<String, Value>) -> BTreeMap<String, Place> {
    let mut found = BTreeMap::new();
    if !walk::has(root, &["$defs"]) {
        return found;
    }
    loop {
        let mut next = found.clone();
        survey(root, Place::Alone, &mut next);
        if let Some(Value::Object(defs)) = root.get("$defs") {
            for (name, schema) in defs {
                let place = found.get(name).copied().unwrap_or(Place::Alone);
                if let Value::Object(schema) = schema {
                    survey(schema, place, &mut next);
                }
            }
        }
        if next == found {
            return found;
        }
        found = next;
    }
}

fn survey(schema: &Map<String, Value>, place: Place, found: &mut BTreeMap<String, Place>) {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str).and_then(definition) {
        let here = if speaks_of_object(schema) { place.max(Place::Beside) } else { place };
        let known = found.entry(name).or_insert(here);
        *known = here.max(*known);
    }
    let shared = is_shared(schema);
    walk::each(schema, &mut |keyword, _, inner| {
        if let Value::Object(inner) = inner {
            survey(inner, place_inside(shared, keyword, place), found);
        }
    });
}

pub(super) fn speaks_of_object(schema: &Map<String, Value>) -> bool {
    walk::has(
        schema,
        &["properties", "patternProperties", "additionalProperties", "unevaluatedProperties"],
    )
}

/// Whether the branches of a union are not the only schemas that describe the value.
pub(super) fn is_shared(schema: &Map<String, Value>) -> bool {
    let others = ["$ref", "allOf", "anyOf", "oneOf", "if"];
    schema.keys().filter(|keyword| others.contains(&keyword.as_str())).count() > 1
        || speaks_of_object(schema)
}

/// Returns the context of a subschema below `keyword`; `shared` comes from [`is_shared`].
pub(super) fn place_inside(shared: bool, keyword: &str, place: Place) -> Place {
    let frozen = place == Place::Frozen;
    match keyword {
        _ if frozen => Place::Frozen,
        "not" | "if" | "then" | "else" | "contains" | "dependentSchemas" | "propertyNames" => {
            Place::Frozen
        }
        "allOf" => Place::Frozen,
        "anyOf" | "oneOf" if shared => Place::Beside,
        "anyOf" | "oneOf" => place,
        _ => Place::Alone,
    }
}
