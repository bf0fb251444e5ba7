//! Rust types in normal form; external schemas and descriptions have their own files.

mod describe;
mod external;

use std::borrow::Cow;
use std::collections::HashMap;

use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Serialize};

use super::*;

#[track_caller]
fn check<T: JsonSchema>(expected: Value) {
    let schema = Schema::for_type::<T>();
    // Compared as text, because the order of keys matters.
    assert_eq!(
        serde_json::to_string_pretty(&schema).unwrap(),
        serde_json::to_string_pretty(&expected).unwrap()
    );
    let again = normalize::normalize_root(schema.to_value(), Map::new());
    assert_eq!(Schema::new(&again), schema, "the normal form stays as it is");
    assert!(find_faults(schema.as_map()).is_empty());
}

/// Checks the schema of `T` as the only property, called `x`.
#[track_caller]
fn check_property<T: JsonSchema>(required: bool, expected: Value) {
    let schema = object_schema([property::<T>("x", required)].into_iter());
    assert_eq!(
        serde_json::to_string_pretty(&schema.property("x")).unwrap(),
        serde_json::to_string_pretty(&expected).unwrap()
    );
}

fn property<T: JsonSchema>(name: &str, required: bool) -> SchemaProperty<'_> {
    SchemaProperty {
        name,
        schema: |generator| generator.subschema_for::<T>(),
        description: "",
        required,
        hidden: false,
        default: None,
        keywords: Vec::new(),
    }
}

/// A place.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Point {
    x: f64,
    y: f64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Plain {
    Fast,
    Slow,
}

/// How it is done.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Documented {
    /// At once,
    /// without looking.
    Fast,
    /// With care.
    Slow,
    Never,
}

#[test]
fn nested_structs_are_inlined_and_closed() {
    #[derive(Deserialize, JsonSchema)]
    struct Outer {
        /// Where.
        at: Point,
        via: Option<Point>,
        names: Option<Vec<String>>,
    }
    check::<Outer>(json!({
        "type": "object",
        "properties": {
            "at": {
                "type": "object",
                "description": "Where.",
                "properties": { "x": { "type": "number" }, "y": { "type": "number" } },
                "required": ["x", "y"],
                "additionalProperties": false,
            },
            "via": {
                "type": "object",
                "description": "A place.",
                "properties": { "x": { "type": "number" }, "y": { "type": "number" } },
                "required": ["x", "y"],
                "additionalProperties": false,
            },
            "names": { "type": "array", "items": { "type": "string" } },
        },
        "required": ["at"],
        "additionalProperties": false,
    }));
}

#[test]
fn integers_have_bounds_and_no_formats() {
    check_property::<u8>(true, json!({ "type": "integer", "minimum": 0, "maximum": 255 }));
    check_property::<i32>(
        true,
        json!({ "type": "integer", "minimum": i32::MIN, "maximum": i32::MAX }),
    );
    check_property::<i64>(
        true,
        json!({ "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX }),
    );
    check_property::<Option<usize>>(
        false,
        json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX }),
    );
    check_property::<i128>(true, json!({ "type": "integer" }));
    check_property::<u128>(true, json!({ "type": "integer", "minimum": 0 }));
    let (least, most) = (f64::from(f32::MIN), f64::from(f32::MAX));
    check_property::<f32>(true, json!({ "type": "number", "minimum": least, "maximum": most }));
}

#[test]
fn variants_without_data_are_an_enum() {
    check_property::<Plain>(true, json!({ "type": "string", "enum": ["fast", "slow"] }));
    check_property::<Option<Plain>>(false, json!({ "type": "string", "enum": ["fast", "slow"] }));
    let documented = json!({
        "type": "string",
        "description":
            "How it is done.\n- `fast`: At once, without looking.\n- `slow`: With care.",
        "enum": ["never", "fast", "slow"],
    });
    check_property::<Documented>(true, documented.clone());
    check_property::<Option<Documented>>(false, documented);
}

#[test]
fn a_description_of_the_parameter_keeps_the_docs_of_the_variants() {
    let mut mode = property::<Option<Documented>>("mode", false);
    mode.description = "Which way.";
    let schema = object_schema([mode].into_iter());
    assert_eq!(
        schema.property("mode").unwrap()["description"],
        "Which way.\n- `fast`: At once, without looking.\n- `slow`: With care."
    );
}

#[test]
fn tagged_variants_are_closed_objects() {
    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "kind", rename_all = "snake_case")]
    enum Internal {
        Circle { radius: u8 },
        Nothing,
    }
    let circle = json!({
        "type": "object",
        "properties": {
            "kind": { "type": "string", "const": "circle" },
            "radius": { "type": "integer", "minimum": 0, "maximum": 255 },
        },
        "required": ["kind", "radius"],
        "additionalProperties": false,
    });
    let nothing = json!({
        "type": "object",
        "properties": { "kind": { "type": "string", "const": "nothing" } },
        "required": ["kind"],
        "additionalProperties": false,
    });
    check::<Internal>(json!({
        "type": "object", "oneOf": [circle, nothing],
    }));

    #[derive(Deserialize, JsonSchema)]
    enum External {
        Word(String),
        Unit,
    }
    check_property::<External>(
        true,
        json!({ "oneOf": [
            { "type": "string", "enum": ["Unit"] },
            {
                "type": "object",
                "properties": { "Word": { "type": "string" } },
                "required": ["Word"],
                "additionalProperties": false,
            },
        ]}),
    );
}

/// A folder.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Tree {
    name: String,
    children: Vec<Tree>,
    parent: Option<Box<Tree>>,
}

#[test]
fn recursive_types_keep_the_definitions_that_they_need() {
    let properties = json!({
        "name": { "type": "string" },
        "children": { "type": "array", "items": { "$ref": "#/$defs/Tree" } },
        "parent": { "$ref": "#/$defs/Tree" },
    });
    check::<Tree>(json!({
        "type": "object",
        "description": "A folder.",
        "properties": properties,
        "required": ["name", "children"],
        "additionalProperties": false,
        "$defs": { "Tree": {
            "type": "object",
            "description": "A folder.",
            "properties": properties,
            "required": ["name", "children"],
            "additionalProperties": false,
        }},
    }));
}

#[test]
fn one_generator_serves_all_properties() {
    let schema =
        object_schema([property::<Tree>("a", true), property::<Vec<Tree>>("b", true)].into_iter());
    assert_eq!(schema.as_map()["$defs"].as_object().unwrap().len(), 1);
    assert!(find_faults(schema.as_map()).is_empty());
}

#[test]
fn maps_tuples_and_values_stay_what_they_are() {
    check_property::<HashMap<String, u8>>(
        true,
        json!({
            "type": "object",
            "additionalProperties": { "type": "integer", "minimum": 0, "maximum": 255 },
        }),
    );
    check_property::<Map<String, Value>>(
        true,
        json!({ "type": "object", "additionalProperties": true }),
    );
    check_property::<(String, bool)>(
        true,
        json!({
            "type": "array",
            "prefixItems": [{ "type": "string" }, { "type": "boolean" }],
            "minItems": 2,
            "maxItems": 2,
        }),
    );
    check_property::<Value>(true, json!({}));
    check_property::<Option<Value>>(false, json!({}));
    check_property::<Vec<Value>>(true, json!({ "type": "array", "items": {} }));
}

#[test]
fn keeps_null_in_items_and_outputs() {
    check_property::<Vec<Option<String>>>(
        true,
        json!({ "type": "array", "items": { "type": ["string", "null"] } }),
    );
    #[derive(Serialize, JsonSchema)]
    struct Row {
        name: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        size: Option<bool>,
    }
    assert_eq!(
        Schema::for_output::<Row>().to_value(),
        json!({
            "type": "object",
            "properties": { "name": { "type": ["string", "null"] }, "size": { "type": "boolean" } },
            "required": ["name"],
            "additionalProperties": false,
        })
    );
}

#[test]
fn flattened_parts_are_not_closed_on_their_own() {
    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "kind", rename_all = "snake_case")]
    enum Shape {
        Circle { radius: u8 },
        Square { side: u8 },
    }
    #[derive(Deserialize, JsonSchema)]
    struct Drawing {
        #[serde(flatten)]
        point: Point,
        #[serde(flatten)]
        shape: Shape,
    }
    let schema = Schema::for_type::<Drawing>();
    assert!(schema.property("x").is_some());
    let branches = schema.as_map()["oneOf"].as_array().unwrap();
    assert!(branches.iter().all(|branch| branch.get("additionalProperties").is_none()));
    assert!(schema.as_map().get("additionalProperties").is_none());

    #[derive(Deserialize, JsonSchema)]
    struct Simple {
        #[serde(flatten)]
        point: Point,
        z: bool,
    }
    assert_eq!(Schema::for_type::<Simple>().as_map()["additionalProperties"], false);
    assert_eq!(Schema::for_type::<Simple>().properties().count(), 3);
}

#[test]
fn a_definition_in_a_conjunction_is_not_closed() {
    let schema = json!({
        "type": "object",
        "properties": { "a": {
            "allOf": [{ "$ref": "#/$defs/A" }, { "$ref": "#/$defs/B" }],
        }, "c": { "$ref": "#/$defs/C" } },
        "$defs": {
            "A": { "type": "object", "properties": { "a": true } },
            "B": { "type": "object", "properties": { "b": true } },
            "C": { "type": "object", "properties": { "c": { "$ref": "#/$defs/D" } } },
            "D": { "type": "object" },
            "unused": { "type": "string" },
        },
    });
    let form = normalize::normalize_root(schema, Map::new());
    let closed = |name: &str| form["$defs"][name].get("additionalProperties").is_some();
    assert_eq!(["A", "B", "C", "D"].map(closed), [false, false, true, true]);
    assert!(form["$defs"].get("unused").is_none());
}

#[test]
fn keeps_properties_named_like_keywords() {
    #[derive(Deserialize, JsonSchema)]
    #[expect(non_snake_case, reason = "the names of keywords")]
    struct Words {
        title: String,
        format: String,
        #[serde(rename = "$schema")]
        schema: String,
        anyOf: Option<bool>,
        required: bool,
        default: Option<bool>,
    }
    let schema = Schema::for_type::<Words>();
    assert_eq!(
        schema.properties().map(|(name, _)| name).collect::<Vec<_>>(),
        ["title", "format", "$schema", "anyOf", "required", "default"]
    );
    assert_eq!(schema.required().collect::<Vec<_>>(), ["title", "format", "$schema", "required"]);
}

struct Instant;

impl JsonSchema for Instant {
    fn schema_name() -> Cow<'static, str> {
        "Instant".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> schemars::Schema {
        json_schema!({ "type": "string", "format": "date-time", "title": "Instant" })
    }
}

#[test]
fn keeps_standard_formats_only() {
    check_property::<Option<Instant>>(false, json!({ "type": "string", "format": "date-time" }));
    struct Odd;
    impl JsonSchema for Odd {
        fn schema_name() -> Cow<'static, str> {
            "Odd".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> schemars::Schema {
            json_schema!({ "type": "string", "format": "x-odd" })
        }
    }
    check_property::<Odd>(true, json!({ "type": "string" }));
}

#[test]
fn serde_defaults_are_kept_and_null_is_none() {
    #[derive(Deserialize, JsonSchema)]
    struct Defaults {
        #[serde(default)]
        count: u8,
        #[serde(default)]
        name: Option<String>,
        #[serde(default)]
        #[schemars(range(min = 1, max = 50))]
        limit: Option<u32>,
    }
    check::<Defaults>(json!({
        "type": "object",
        "properties": {
            "count": { "type": "integer", "minimum": 0, "maximum": 255, "default": 0 },
            "name": { "type": "string" },
            "limit": { "type": "integer", "minimum": 1, "maximum": 50 },
        },
        "additionalProperties": false,
    }));
}

#[test]
fn an_empty_struct_has_no_properties() {
    #[derive(Deserialize, JsonSchema)]
    struct Empty {}
    assert_eq!(Schema::for_type::<Empty>(), Schema::default());
    check_property::<Empty>(
        true,
        json!({ "type": "object", "properties": {}, "additionalProperties": false }),
    );
    assert_eq!(object_schema(std::iter::empty()), Schema::default());
}

#[test]
fn keeps_the_order_of_parameters() {
    let mut path = property::<String>("path", true);
    path.description = "Where.";
    path.set_length(1, 200);
    path.keywords.push(("pattern", "^/".into()));
    let mut limit = property::<u32>("limit", false);
    limit.description = "How many.";
    limit.default = Some(2000.into());
    limit.keywords.push(("minimum", 1.into()));
    limit.keywords.push(("maximum", 5000.into()));
    let mut wide = property::<u8>("wide", false);
    wide.keywords.push(("maximum", 70_000.into()));
    let mut tags = property::<Option<Vec<String>>>("tags", false);
    tags.set_length(0, 3);
    let mut env = property::<HashMap<String, String>>("env", false);
    env.set_length(1, usize::MAX);
    let mut secret = property::<String>("secret", false);
    secret.hidden = true;
    let schema = object_schema([path, limit, wide, tags, env, secret].into_iter());
    assert_eq!(
        schema.to_string(),
        json!({
            "type": "object",
            "properties": {
                "path": {
                    "type": "string", "description": "Where.",
                    "minLength": 1, "maxLength": 200, "pattern": "^/",
                },
                "limit": {
                    "type": "integer", "description": "How many.",
                    "minimum": 1, "maximum": 5000, "default": 2000,
                },
                "wide": { "type": "integer", "minimum": 0, "maximum": 255 },
                "tags": { "type": "array", "items": { "type": "string" }, "maxItems": 3 },
                "env": {
                    "type": "object", "minProperties": 1,
                    "additionalProperties": { "type": "string" },
                },
            },
            "required": ["path"],
            "additionalProperties": false,
        })
        .to_string()
    );
}

#[test]
fn keeps_required_parameters_in_refinements() {
    let mut schema =
        object_schema([property::<String>("a", true), property::<String>("b", false)].into_iter());
    schema.set_description("a", "New.");
    schema.set_description("zzz", "Nobody.");
    schema.hide_optional("a");
    schema.hide_optional("b");
    assert_eq!(schema.properties().map(|(name, _)| name).collect::<Vec<_>>(), ["a"]);
    assert_eq!(schema.property("a").unwrap()["description"], "New.");
}
