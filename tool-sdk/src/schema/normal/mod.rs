//! Brings what schemars writes into the one form that everything else reads.
//!
//! Pure over [`Value`], and the only place that knows schemars' habits: sized integers as
//! `format`, optional as nullable, documented variants as `oneOf`, booleans as schemas.
//!
//! **Invariant:** a schema in normal form stays as it is.

mod places;
mod references;
mod unions;

use serde_json::{Map, Value, json};

use self::places::{Place, is_shared, place_inside, places};
use self::references::{definition, keep_needed, take_root_reference};
use self::unions::{fold_strings, merge_single, without_null};
use super::order::order;
use super::walk::{self, is_type};

/// The formats of JSON Schema 2020-12.
pub(crate) const FORMATS: [&str; 19] = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uuid",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
    "regex",
];

/// The normal form of `schema`, with those of `definitions` that it needs.
pub(super) fn form(schema: Value, definitions: Map<String, Value>) -> Map<String, Value> {
    let mut root = match schema {
        Value::Object(map) => map,
        Value::Bool(false) => walk::nothing(),
        _ => Map::new(),
    };
    if !definitions.is_empty() {
        root.insert("$defs".to_owned(), Value::Object(definitions));
    }
    walk::plain_names(&mut root);
    take_root_reference(&mut root);
    let places = places(&root);
    let defs = walk::has(&root, &["$defs"]).then(|| root.shift_remove("$defs"));
    let mut defs = match defs.flatten() {
        Some(Value::Object(defs)) => defs,
        _ => Map::new(),
    };
    for (name, schema) in &mut defs {
        node(schema, places.get(name).copied().unwrap_or(Place::Alone), false);
    }
    object(&mut root, Place::Alone, false);
    type_of_branches(&mut root, &defs);
    let is_object = walk::get(&root, "type").is_some_and(|ty| ty == "object");
    if is_object && !walk::has(&root, &["allOf", "anyOf", "oneOf", "properties"]) {
        root.insert("properties".to_owned(), json!({}));
    }
    keep_needed(&mut root, defs);
    order(&mut root);
    root
}

fn node(schema: &mut Value, place: Place, optional: bool) {
    match schema {
        Value::Bool(true) => *schema = json!({}),
        Value::Bool(false) => *schema = Value::Object(walk::nothing()),
        _ => {}
    }
    if let Value::Object(map) = schema {
        object(map, place, optional);
    }
}

fn object(map: &mut Map<String, Value>, place: Place, optional: bool) {
    // Most schemas are leaves, where the half of all this finds nothing.
    let leaf = map.keys().all(|keyword| is_plain(keyword));
    if optional && place != Place::Frozen {
        without_null(map);
    }
    if !leaf {
        without_notes(map);
        merge_single(map);
        fold_strings(map);
        if walk::get(map, "default") == Some(&Value::Null) {
            map.shift_remove("default");
        }
    }
    plain_type(map);
    bound_number(map);
    let format = walk::get(map, "format").and_then(Value::as_str);
    if format.is_some_and(|format| !FORMATS.contains(&format)) {
        map.shift_remove("format");
    }
    if !leaf {
        inside(map, place);
        if walk::get(map, "required").and_then(Value::as_array).is_some_and(Vec::is_empty) {
            map.shift_remove("required");
        }
    }
    if place == Place::Alone {
        close(map);
    }
    order(map);
}

/// Whether `keyword` says something of the value alone, and in one way.
fn is_plain(keyword: &str) -> bool {
    matches!(
        keyword,
        "type"
            | "description"
            | "format"
            | "minimum"
            | "maximum"
            | "minLength"
            | "maxLength"
            | "pattern"
            | "enum"
            | "const"
    )
}

/// What is there for people and programs, and nothing to a model.
fn without_notes(map: &mut Map<String, Value>) {
    for keyword in ["$schema", "$id", "$comment", "title"] {
        if walk::has(map, &[keyword]) {
            map.shift_remove(keyword);
        }
    }
}

fn inside(map: &mut Map<String, Value>, place: Place) {
    let shared = is_shared(map);
    let required = walk::get_mut(map, "required").map(Value::take);
    if let Some(Value::Object(properties)) = walk::get_mut(map, "properties") {
        let place = place_inside(shared, "properties", place);
        let required = required.as_ref().and_then(Value::as_array);
        for (name, schema) in properties {
            let optional = required.is_none_or(|all| all.iter().all(|other| other != name));
            node(schema, place, optional);
        }
    }
    if let Some(place) = walk::get_mut(map, "required") {
        *place = required.unwrap_or_default();
    }
    walk::each_mut(map, &mut |keyword, schema| match keyword {
        "properties" => {}
        // Open or closed is what these two say with a boolean.
        "additionalProperties" | "unevaluatedProperties" if schema.is_boolean() => {}
        _ => node(schema, place_inside(shared, keyword, place), false),
    });
}

fn plain_type(map: &mut Map<String, Value>) {
    if let Some(ty) = walk::get_mut(map, "type")
        && let Some([only]) = ty.as_array_mut().map(Vec::as_mut_slice)
    {
        *ty = only.take();
    }
}

/// What a sized number can hold, said with the words of JSON Schema.
fn bound_number(map: &mut Map<String, Value>) {
    let Some(Value::String(format)) = walk::get(map, "format") else { return };
    if is_type(map, "number") && format == "float" {
        let most = Value::from(f64::from(f32::MAX));
        return bound(map, Some(Value::from(f64::from(f32::MIN))), Some(most));
    }
    if !is_type(map, "integer") {
        return;
    }
    let (least, most): (Option<Value>, Option<Value>) = match format.as_str() {
        "int8" => (Some(i8::MIN.into()), Some(i8::MAX.into())),
        "int16" => (Some(i16::MIN.into()), Some(i16::MAX.into())),
        "int32" => (Some(i32::MIN.into()), Some(i32::MAX.into())),
        "int64" | "int" => (Some(i64::MIN.into()), Some(i64::MAX.into())),
        "uint8" => (Some(0.into()), Some(u8::MAX.into())),
        "uint16" => (Some(0.into()), Some(u16::MAX.into())),
        "uint32" => (Some(0.into()), Some(u32::MAX.into())),
        "uint64" | "uint" => (Some(0.into()), Some(u64::MAX.into())),
        "uint128" => (Some(0.into()), None),
        _ => return,
    };
    bound(map, least, most);
}

/// Sets the bounds of a type, where none are said.
fn bound(map: &mut Map<String, Value>, least: Option<Value>, most: Option<Value>) {
    for (keyword, exclusive, bound) in
        [("minimum", "exclusiveMinimum", least), ("maximum", "exclusiveMaximum", most)]
    {
        if let Some(bound) = bound
            && !walk::has(map, &[keyword, exclusive])
        {
            map.insert(keyword.to_owned(), bound);
        }
    }
}

/// What a struct does not name is refused.
fn close(map: &mut Map<String, Value>) {
    let open = [
        "$ref",
        "additionalProperties",
        "allOf",
        "anyOf",
        "const",
        "dependentSchemas",
        "enum",
        "if",
        "oneOf",
        "patternProperties",
        "unevaluatedProperties",
    ];
    let empty = ["maxProperties", "minProperties", "propertyNames"];
    let named = walk::has(map, &["properties"]);
    let object = named || is_type(map, "object") && !walk::has(map, &empty);
    if object && !walk::has(map, &open) {
        if !named {
            map.insert("properties".to_owned(), json!({}));
        }
        map.insert("additionalProperties".to_owned(), false.into());
    }
}

/// A root union whose branches are all objects is an object.
fn type_of_branches(root: &mut Map<String, Value>, defs: &Map<String, Value>) {
    if walk::has(root, &["type"]) {
        return;
    }
    let object = |branch: &Value| {
        let target = branch.get("$ref").and_then(Value::as_str).and_then(definition);
        let branch = target.and_then(|name| defs.get(&name)).unwrap_or(branch);
        branch.get("type").is_some_and(|ty| ty == "object")
    };
    let unions = ["anyOf", "oneOf"]
        .iter()
        .filter_map(|keyword| root.get(*keyword)?.as_array())
        .any(|branches| !branches.is_empty() && branches.iter().all(object));
    if unions || root.contains_key("properties") {
        root.insert("type".to_owned(), "object".into());
    }
}
