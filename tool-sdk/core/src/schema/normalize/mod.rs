//! Normalizes the output of schemars.
//!
//! Pure functions over [`Value`], and the only place that knows the habits of schemars: sized
//! integers as `format`, optional as nullable, documented variants as `oneOf`, booleans as schemas.
//!
//! **Invariant:** normalization is idempotent.

mod definitions;
mod object_context;
mod unions;

use serde_json::{Map, Value, json};

use self::definitions::{definition_name, inline_root_ref, keep_used_definitions};
use self::object_context::{ObjectContext, child_context, definition_contexts, is_shared};
use self::unions::{fold_string_variants, merge_single_branch, remove_null};
use super::keyword_order::sort_keywords;
use super::walk::{self, is_type};

/// The standard formats of JSON Schema 2020-12.
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

/// Returns the normal form of `schema`, with the `definitions` that it uses.
pub(super) fn normalize_root(schema: Value, definitions: Map<String, Value>) -> Map<String, Value> {
    let mut root = match schema {
        Value::Object(map) => map,
        Value::Bool(false) => walk::never_schema(),
        _ => Map::new(),
    };
    if !definitions.is_empty() {
        root.insert("$defs".to_owned(), Value::Object(definitions));
    }
    walk::sanitize_definition_names(&mut root);
    inline_root_ref(&mut root);
    let places = definition_contexts(&root);
    let defs = walk::has_any_keyword(&root, &["$defs"]).then(|| root.shift_remove("$defs"));
    let mut defs = match defs.flatten() {
        Some(Value::Object(defs)) => defs,
        _ => Map::new(),
    };
    for (name, schema) in &mut defs {
        normalize_node(schema, places.get(name).copied().unwrap_or(ObjectContext::Alone), false);
    }
    normalize_object(&mut root, ObjectContext::Alone, false);
    infer_root_type(&mut root, &defs);
    let is_object = walk::get_keyword(&root, "type").is_some_and(|ty| ty == "object");
    if is_object && !walk::has_any_keyword(&root, &["allOf", "anyOf", "oneOf", "properties"]) {
        root.insert("properties".to_owned(), json!({}));
    }
    keep_used_definitions(&mut root, defs);
    sort_keywords(&mut root);
    root
}

fn normalize_node(schema: &mut Value, place: ObjectContext, optional: bool) {
    match schema {
        Value::Bool(true) => *schema = json!({}),
        Value::Bool(false) => *schema = Value::Object(walk::never_schema()),
        _ => {}
    }
    if let Value::Object(map) = schema {
        normalize_object(map, place, optional);
    }
}

fn normalize_object(map: &mut Map<String, Value>, place: ObjectContext, optional: bool) {
    // Most schemas are leaves, which half of the steps do not apply to.
    let leaf = map.keys().all(|keyword| is_leaf_keyword(keyword));
    if optional && place != ObjectContext::Frozen {
        remove_null(map);
    }
    if !leaf {
        remove_annotations(map);
        merge_single_branch(map);
        fold_string_variants(map);
        if walk::get_keyword(map, "default") == Some(&Value::Null) {
            map.shift_remove("default");
        }
    }
    unwrap_single_type(map);
    add_number_bounds(map);
    let format = walk::get_keyword(map, "format").and_then(Value::as_str);
    if format.is_some_and(|format| !FORMATS.contains(&format)) {
        map.shift_remove("format");
    }
    if !leaf {
        normalize_children(map, place);
        if walk::get_keyword(map, "required").and_then(Value::as_array).is_some_and(Vec::is_empty) {
            map.shift_remove("required");
        }
    }
    if place == ObjectContext::Alone {
        close_object(map);
    }
    sort_keywords(map);
}

/// Whether `keyword` is an assertion without subschemas.
fn is_leaf_keyword(keyword: &str) -> bool {
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

/// Removes annotations that mean nothing to a model.
fn remove_annotations(map: &mut Map<String, Value>) {
    for keyword in ["$schema", "$id", "$comment", "title"] {
        if walk::has_any_keyword(map, &[keyword]) {
            map.shift_remove(keyword);
        }
    }
}

fn normalize_children(map: &mut Map<String, Value>, place: ObjectContext) {
    let shared = is_shared(map);
    let required = walk::get_keyword_mut(map, "required").map(Value::take);
    if let Some(Value::Object(properties)) = walk::get_keyword_mut(map, "properties") {
        let place = child_context(shared, "properties", place);
        let required = required.as_ref().and_then(Value::as_array);
        for (name, schema) in properties {
            let optional = required.is_none_or(|all| all.iter().all(|other| other != name));
            normalize_node(schema, place, optional);
        }
    }
    if let Some(place) = walk::get_keyword_mut(map, "required") {
        *place = required.unwrap_or_default();
    }
    walk::for_each_subschema_mut(map, &mut |keyword, schema| match keyword {
        "properties" => {}
        // A boolean here says whether the object is open or closed.
        "additionalProperties" | "unevaluatedProperties" if schema.is_boolean() => {}
        _ => normalize_node(schema, child_context(shared, keyword, place), false),
    });
}

fn unwrap_single_type(map: &mut Map<String, Value>) {
    if let Some(ty) = walk::get_keyword_mut(map, "type")
        && let Some([only]) = ty.as_array_mut().map(Vec::as_mut_slice)
    {
        *ty = only.take();
    }
}

/// Replaces the format of a sized number by its bounds.
fn add_number_bounds(map: &mut Map<String, Value>) {
    let Some(Value::String(format)) = walk::get_keyword(map, "format") else { return };
    if is_type(map, "number") && format == "float" {
        let most = Value::from(f64::from(f32::MAX));
        return add_bounds(map, Some(Value::from(f64::from(f32::MIN))), Some(most));
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
    add_bounds(map, least, most);
}

/// Adds the bounds of a type, unless there are bounds already.
fn add_bounds(map: &mut Map<String, Value>, least: Option<Value>, most: Option<Value>) {
    for (keyword, exclusive, bound) in
        [("minimum", "exclusiveMinimum", least), ("maximum", "exclusiveMaximum", most)]
    {
        if let Some(bound) = bound
            && !walk::has_any_keyword(map, &[keyword, exclusive])
        {
            map.insert(keyword.to_owned(), bound);
        }
    }
}

/// Closes an object against unknown properties.
fn close_object(map: &mut Map<String, Value>) {
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
    let named = walk::has_any_keyword(map, &["properties"]);
    let object = named || is_type(map, "object") && !walk::has_any_keyword(map, &empty);
    if object && !walk::has_any_keyword(map, &open) {
        if !named {
            map.insert("properties".to_owned(), json!({}));
        }
        map.insert("additionalProperties".to_owned(), false.into());
    }
}

/// Sets the type of a root union whose branches are all objects.
fn infer_root_type(root: &mut Map<String, Value>, defs: &Map<String, Value>) {
    if walk::has_any_keyword(root, &["type"]) {
        return;
    }
    let object = |branch: &Value| {
        let target = branch.get("$ref").and_then(Value::as_str).and_then(definition_name);
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
