//! Signatures and type descriptions.

use super::*;

#[track_caller]
fn check_signature(properties: Value, expected: &str) {
    let schema = json!({ "type": "object", "properties": properties });
    assert_eq!(Schema::from_value(schema).unwrap().signature(), expected);
}

#[test]
fn signatures_are_one_line() {
    check_signature(
        json!({
            "offset": { "type": "integer", "minimum": 1, "maximum": u32::MAX, "default": 1 },
            "limit": { "type": "integer", "minimum": 1, "maximum": 5000, "default": 2000 },
            "mode": { "type": "string", "enum": ["fast", "slow"], "default": "fast" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "some": { "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": 4 },
            "few": { "type": "array", "items": { "type": "string" }, "maxItems": 2 },
            "many": { "type": "array", "items": { "type": "string" }, "minItems": 3 },
            "spot": { "type": "array", "items": { "type": "number" }, "minItems": 2, "maxItems": 2 },
            "where": { "type": "object", "properties": { "line": { "type": "integer" } },
                       "required": ["line"], "additionalProperties": false },
            "env": { "type": "object", "additionalProperties": { "type": "string" } },
            "size": { "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX },
            "any": {},
            "pair": { "type": "array", "prefixItems": [{ "type": "string" }, {}], "items": false },
            "more": { "type": "array", "prefixItems": [{ "type": "string" }], "items": {} },
        }),
        r#"{"offset"?: integer ≥ 1 = 1, "limit"?: integer 1..5000 = 2000, "mode"?: "fast" | "slow" = "fast", "tags"?: [string], "some"?: [string; 1..4], "few"?: [string; ≤ 2], "many"?: [string; ≥ 3], "spot"?: [number; 2], "where"?: {"line": integer}, "env"?: {[name]: string}, "size"?: integer, "any"?: any, "pair"?: [string, any], "more"?: [string, …]}"#,
    );
    assert_eq!(
        Schema::for_type::<Tree>().signature(),
        r#"{"name": string, "children": [{"name": string, "children": [{…}], "parent"?: {…}}], "parent"?: {"name": string, "children": [{…}], "parent"?: {…}}}"#
    );
}

#[test]
fn truncates_long_signatures() {
    let properties: Map<String, Value> = (0..500)
        .map(|at| (format!("ein_langer_parameter_{at}"), json!({ "type": "string" })))
        .collect();
    let schema = Schema::from_value(json!({ "type": "object", "properties": properties })).unwrap();
    let line = schema.signature();
    assert!(line.len() <= MAX_LINE && line.ends_with("string, …}"), "{line}");
    let around = Schema::from_json(
        r##"{"type": "object", "properties": { "a": { "$ref": "#/$defs/A" } },
             "$defs": { "A": { "type": "array", "items": { "$ref": "#/$defs/A" } } }}"##,
    );
    assert!(around.unwrap().signature().contains('…'));

    let mut defs = Map::new();
    for at in 0..20 {
        let next = json!({ "$ref": format!("#/$defs/L{}", at + 1) });
        let lists: Vec<_> = (0..10).map(|_| json!({ "type": "array", "items": next })).collect();
        defs.insert(format!("L{at}"), json!({ "anyOf": lists }));
    }
    defs.insert("L20".to_owned(), json!({}));
    let wide = json!({
        "type": "object", "properties": { "a": { "$ref": "#/$defs/L0" } }, "$defs": defs,
    });
    assert!(Schema::from_value(wide).unwrap().signature().contains('…'));
}

const MAX_LINE: usize = 1510;

#[test]
fn describes_types() {
    let check = |schema: Value, expected: &str| assert_eq!(describe_type(&schema), expected);
    check(
        json!({ "type": "integer", "minimum": 1, "maximum": 5000 }),
        "integer between 1 and 5000",
    );
    check(json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX }), "integer of at least 0");
    check(json!({ "type": "number", "exclusiveMinimum": 0 }), "number above 0");
    check(json!({ "type": "string" }), "string");
    check(json!({ "type": ["string", "null"] }), "string or null");
    check(json!({ "enum": ["fast", "slow"] }), "one of \"fast\", \"slow\"");
    check(json!({ "type": "object", "properties": {} }), "object");
    check(json!({}), "any value");
    check(json!({ "type": "array", "items": { "type": "string" } }), "list of strings");
    check(
        json!({ "type": "array", "items": { "type": "integer", "minimum": 1, "maximum": 5 } }),
        "list of integers between 1 and 5",
    );
    check(
        json!({ "type": "array", "items": { "enum": ["a", "b"] } }),
        "list of values, each one of \"a\", \"b\"",
    );
    check(
        json!({ "type": "array", "items": { "type": "array", "items": { "type": "string" } } }),
        "list of lists of strings",
    );
}
