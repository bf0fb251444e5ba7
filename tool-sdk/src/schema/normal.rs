//! Brings what schemars writes into the one form that everything else reads.
//!
//! Pure over [`Value`], and the only place that knows schemars' habits: sized integers as
//! `format`, optional as nullable, documented variants as `oneOf`, booleans as schemas.
//!
//! **Invariant:** a schema in normal form stays as it is.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::walk;

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

/// Whether an object here may be closed against unknown properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// It alone says what the value is.
    Alone,
    /// Others speak of the same value, but not of what is inside it.
    Beside,
    /// A condition, or one of several that all hold: nothing in it may change.
    Frozen,
}

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

/// Brings the schema of a property into normal form, when it refers to nothing around it.
pub(super) fn property(schema: &mut Value, optional: bool) {
    node(schema, Place::Alone, optional);
}

/// A root that only names a definition becomes that definition.
fn take_root_reference(root: &mut Map<String, Value>) {
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

/// Where each definition is used: the strictest of its places counts.
fn places(root: &Map<String, Value>) -> BTreeMap<String, Place> {
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

/// The name in `#/$defs/name`.
fn definition(reference: &str) -> Option<String> {
    Some(reference.strip_prefix("#/$defs/")?.split('/').next()?.to_owned())
}

fn speaks_of_object(schema: &Map<String, Value>) -> bool {
    walk::has(
        schema,
        &["properties", "patternProperties", "additionalProperties", "unevaluatedProperties"],
    )
}

/// Whether the branches of a union in `schema` are not the only ones to speak of the value.
fn is_shared(schema: &Map<String, Value>) -> bool {
    let others = ["$ref", "allOf", "anyOf", "oneOf", "if"];
    schema.keys().filter(|keyword| others.contains(&keyword.as_str())).count() > 1
        || speaks_of_object(schema)
}

/// The place of what stands below `keyword` in a schema that [is shared](is_shared) or not.
fn place_inside(shared: bool, keyword: &str, place: Place) -> Place {
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
    bound_integer(map);
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

/// An optional property is left out, never null.
fn without_null(map: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = walk::get_mut(map, "type")
        && types.iter().any(|ty| ty != "null")
    {
        types.retain(|ty| ty != "null");
    }
    if let Some(Value::Array(values)) = walk::get_mut(map, "enum")
        && values.iter().any(|value| !value.is_null())
    {
        values.retain(|value| !value.is_null());
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = walk::get_mut(map, keyword)
            && !branches.iter().all(is_null)
        {
            branches.retain(|branch| !is_null(branch));
            for branch in branches {
                if let Value::Object(branch) = branch {
                    without_null(branch);
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

/// A union of one is what it holds; what is said outside wins.
fn merge_single(map: &mut Map<String, Value>) {
    for keyword in ["anyOf", "oneOf", "allOf", "anyOf"] {
        let Some([Value::Object(only)]) =
            walk::get(map, keyword).and_then(Value::as_array).map(Vec::as_slice)
        else {
            continue;
        };
        let annotation = |key: &str| matches!(key, "description" | "title" | "default");
        let fits = |(key, value): (&String, &Value)| {
            annotation(key) || key != keyword && map.get(key).is_none_or(|here| here == value)
        };
        if only.iter().all(fits) && !(speaks_of_object(map) && speaks_of_object(only)) {
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

/// Documented variants without data are one string with an `enum`; what their docs say
/// goes into the description.
fn fold_strings(map: &mut Map<String, Value>) {
    for keyword in ["oneOf", "anyOf"] {
        let Some(Value::Array(branches)) = walk::get(map, keyword) else { continue };
        let free = !map.contains_key("enum") && !map.contains_key("const");
        let string = map.get("type").is_none_or(|ty| ty == "string");
        let Some(variants) = branches.iter().map(variant).collect::<Option<Vec<_>>>() else {
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

/// The names and the docs of a branch that is only strings.
fn variant(branch: &Value) -> Option<(Vec<&str>, Option<String>)> {
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

fn plain_type(map: &mut Map<String, Value>) {
    if let Some(ty) = walk::get_mut(map, "type")
        && let Some([only]) = ty.as_array_mut().map(Vec::as_mut_slice)
    {
        *ty = only.take();
    }
}

/// Whether the schema is of type `name`, among others perhaps.
fn is_type(map: &Map<String, Value>, name: &str) -> bool {
    match walk::get(map, "type") {
        Some(Value::Array(types)) => types.iter().any(|ty| ty == name),
        Some(ty) => ty == name,
        None => false,
    }
}

/// What a sized integer can hold, said with the words of JSON Schema.
fn bound_integer(map: &mut Map<String, Value>) {
    let Some(Value::String(format)) = walk::get(map, "format") else { return };
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

/// Keeps the definitions that something refers to.
fn keep_needed(root: &mut Map<String, Value>, mut defs: Map<String, Value>) {
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

/// What something is and means comes first, what holds more schemas last.
pub(crate) fn order(map: &mut Map<String, Value>) {
    if map.keys().is_sorted_by_key(|keyword| rank(keyword)) {
        return;
    }
    let mut entries: Vec<(String, Value)> = std::mem::take(map).into_iter().collect();
    entries.sort_by_key(|(keyword, _)| rank(keyword));
    map.extend(entries);
}

/// Where a keyword stands among the others.
pub(super) fn rank(keyword: &str) -> u8 {
    match keyword {
        "$ref" | "type" => 0,
        "description" => 1,
        "properties" => 3,
        "required" => 4,
        "additionalProperties" => 5,
        "default" => 6,
        "$defs" => 7,
        _ => 2,
    }
}
