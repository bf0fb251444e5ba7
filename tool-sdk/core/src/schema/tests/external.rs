//! Schemas from other sources: rejected ones, and upgrades of earlier drafts.

use super::*;

#[track_caller]
fn check_refused(schema: Value, path: &str, problem: &str) {
    let error = Schema::from_value(schema).unwrap_err();
    assert_eq!((error.path(), error.problem()), (path, problem));
}

#[test]
fn rejects_invalid_external_schemas() {
    check_refused(json!([]), "", "a schema of parameters must be a JSON object");
    check_refused(
        json!({ "type": "string" }),
        "",
        "`type` must be \"object\" for parameters, found \"string\"",
    );
    check_refused(
        json!({ "properties": {} }),
        "",
        "`type` must be \"object\" for parameters, found nothing",
    );
    let with = |schema: Value| json!({ "type": "object", "properties": { "a/b": schema } });
    check_refused(
        with(json!({ "type": "text" })),
        "/properties/a~1b",
        "`type` must be one of the seven type names, or a list of them",
    );
    check_refused(
        with(json!({ "$ref": "https://example.org/x.json" })),
        "/properties/a~1b",
        "`$ref` \"https://example.org/x.json\" leads out of the schema; only `#/...` can be followed",
    );
    check_refused(
        with(json!({ "items": { "required": "x" } })),
        "/properties/a~1b/items",
        "`required` must be a list of different names",
    );
    check_refused(with(json!(7)), "/properties/a~1b", "a schema must be an object or a boolean");
    let mut round = with(json!({ "$ref": "#/$defs/A" }));
    round["$defs"] = json!({ "A": { "$ref": "#/$defs/A" } });
    check_refused(round, "/properties/a~1b", "`$ref` \"#/$defs/A\" leads back to itself");
    let mut round = with(json!({ "type": "string" }));
    round["$defs"] = json!({ "A": { "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/A" }] } });
    check_refused(round, "/$defs/A/anyOf/1", "`$ref` \"#/$defs/A\" leads back to itself");
    let mut deep = json!({});
    for _ in 0..70 {
        deep = json!({ "items": deep });
    }
    assert!(Schema::from_value(with(deep)).unwrap_err().problem().contains("deeper than 64"));
    assert!(
        Schema::from_json("{").unwrap_err().to_string().starts_with("at the root: is not JSON")
    );
}

#[test]
fn upgrades_earlier_drafts() {
    let schema = Schema::from_value(json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Args",
        "type": ["object"],
        "definitions": { "Id": { "type": "integer", "minimum": 0, "exclusiveMinimum": true } },
        "properties": {
            "title": { "$ref": "#/definitions/Id" },
            "pair": { "type": "array", "items": [{ "type": "string" }], "additionalItems": false },
            "more": { "$ref": "#/properties/pair/items/0" },
        },
        "dependencies": { "pair": ["title"] },
    }))
    .unwrap();
    assert_eq!(
        schema.to_value(),
        json!({
            "type": "object",
            "$defs": { "Id": { "type": "integer", "exclusiveMinimum": 0 } },
            "properties": {
                "title": { "$ref": "#/$defs/Id" },
                "pair": { "type": "array", "prefixItems": [{ "type": "string" }], "items": false },
                "more": { "$ref": "#/properties/pair/prefixItems/0" },
            },
            "dependentRequired": { "pair": ["title"] },
        })
    );
}
