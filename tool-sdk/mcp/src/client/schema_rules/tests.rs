//! Tests of the rules, with schemas that would make validation endless.

use serde_json::json;

use super::*;

fn check(schema: &Value) -> Result<usize, String> {
    check_evaluations(schema.as_object().unwrap())
}

#[track_caller]
fn keeps_rules(schema: &Value) {
    assert!(check(schema).is_ok(), "{schema:.200}: {:?}", check(schema));
}

#[track_caller]
fn breaks_rule(schema: &Value, why: &str) {
    let found = check(schema).unwrap_err();
    assert!(found.contains(why), "{:.200}: {found}", schema.to_string());
}

#[test]
fn counts_evaluations_on_one_path_of_a_value() {
    assert_eq!(check(&json!({ "type": "array", "items": { "type": "integer" } })), Ok(2));
    let books = json!({
        "properties": { "all": { "items": { "$ref": "#/$defs/book" } }, "one": { "$ref": "#/$defs/book" } },
        "$defs": { "book": { "properties": { "title": { "type": "string" }, "n": {} } } },
    });
    assert_eq!(check(&books), Ok(5), "members are different paths");
    let choice = json!({ "anyOf": [{ "items": {} }, { "type": "string" }, true] });
    assert_eq!(check(&choice), Ok(4));
}

#[test]
fn recursion_into_different_parts_of_a_value_keeps_the_rules() {
    let any_json = json!({ "$ref": "#/$defs/json", "$defs": { "json": { "anyOf": [
        { "type": ["string", "number", "boolean", "null"] },
        { "type": "array", "items": { "$ref": "#/$defs/json" } },
        { "type": "object", "additionalProperties": { "$ref": "#/$defs/json" } },
    ] } } });
    let filter = json!({ "anyOf": [
        { "properties": { "and": { "items": { "$ref": "#" } } } },
        { "properties": { "or": { "items": { "$ref": "#" } } } },
        { "properties": { "not": { "$ref": "#" }, "field": { "type": "string" } } },
    ] });
    let tree = json!({
        "properties": { "left": { "$ref": "#" }, "right": { "$ref": "#" } },
        "additionalProperties": { "$ref": "#" },
    });
    let conditional = json!({
        "if": { "required": ["kind"] },
        "then": { "items": { "$ref": "#" } }, "else": { "items": { "$ref": "#" } },
    });
    // Two that refer to each other, and lists in lists.
    let mutual = json!({ "$ref": "#/$defs/a", "$defs": {
        "a": { "properties": { "b": { "items": { "items": { "$ref": "#/$defs/b" } } } } },
        "b": { "properties": { "a": { "$ref": "#/$defs/a" } } },
    } });
    for schema in [any_json, filter, tree, conditional, mutual] {
        keeps_rules(&schema);
    }
}

// fault 10: neither a schema nor a value is long, and both together would never end.
#[test]
fn exponential_work_breaks_a_rule() {
    let twice = |keyword: &str| {
        json!({ "$ref": "#/$defs/t", "$defs": { "t": { keyword: [
            { "items": { "$ref": "#/$defs/t" } }, { "items": { "$ref": "#/$defs/t" } },
        ] } } })
    };
    for keyword in ["allOf", "anyOf", "oneOf"] {
        breaks_rule(&twice(keyword), "in two ways");
    }
    for two_ways in [
        json!({ "patternProperties": { "a": { "$ref": "#" } }, "properties": { "a": { "$ref": "#" } } }),
        json!({ "items": { "$ref": "#" }, "contains": { "$ref": "#" } }),
        json!({ "items": { "$ref": "#" }, "not": { "items": { "$ref": "#" } } }),
        json!({ "items": { "$ref": "#" }, "if": { "items": { "$ref": "#" } } }),
        json!({ "additionalProperties": { "$ref": "#" },
            "dependentSchemas": { "a": { "properties": { "b": { "$ref": "#" } } } } }),
        json!({ "items": { "$ref": "#/$defs/b" },
            "$defs": { "b": { "allOf": [{ "items": { "$ref": "#" } }, { "items": { "$ref": "#/$defs/b" } }] } } }),
        // An `unevaluated` keyword evaluates the others again.
        json!({ "allOf": [{ "items": { "$ref": "#" } }], "unevaluatedItems": false }),
        json!({ "contains": { "$ref": "#" }, "unevaluatedItems": false }),
    ] {
        breaks_rule(&two_ways, "in two ways");
    }

    // The same on one value, without any depth.
    let mut chain = json!({ "$defs": {}, "$ref": "#/$defs/d0" });
    for at in 0..60 {
        let next = json!({ "$ref": format!("#/$defs/d{}", at + 1) });
        chain["$defs"][format!("d{at}")] = json!({ "allOf": [next, next] });
    }
    chain["$defs"]["d60"] = json!({ "type": "integer" });
    breaks_rule(&chain, "more than 2000 times");
    // On the parts of a value, without a cycle.
    for at in 0..60 {
        let next = json!({ "items": { "$ref": format!("#/$defs/d{}", at + 1) } });
        chain["$defs"][format!("d{at}")] = json!({ "allOf": [next, next] });
    }
    breaks_rule(&chain, "more than 2000 times");
    breaks_rule(&json!({ "allOf": [{ "$ref": "#" }] }), "applies itself to the same value");
}

// An extensible tree, as the standard shows it.
#[test]
fn dynamic_references_may_have_several_targets() {
    keeps_rules(&json!({
        "$ref": "#/$defs/tree", "$dynamicAnchor": "node", "unevaluatedProperties": false,
        "$defs": { "tree": { "$dynamicAnchor": "node", "properties": {
            "data": true, "kids": { "items": { "$dynamicRef": "#node" } },
        } } },
    }));
    keeps_rules(&json!({ "items": { "$recursiveRef": "#" } }));
    breaks_rule(&json!({ "$dynamicRef": "#other" }), "leads nowhere");
    breaks_rule(&json!({ "items": { "$ref": "https://example.com/x" } }), "leads nowhere");
}

// fault 10: a single evaluation may be expensive.
#[test]
fn long_keywords_count_as_several_evaluations() {
    let many = |one: Value| {
        let all = vec![json!({ "$ref": "#/$defs/t" }); 20_000];
        json!({ "properties": { "v": { "anyOf": all } }, "$defs": { "t": one } })
    };
    for heavy in [
        json!({ "type": "string" }),
        json!({ "pattern": "^(a|b)*c$" }),
        json!({ "maxLength": 3 }),
        json!({ "enum": ["a", "b"] }),
        json!({ "propertyNames": { "minLength": 2 } }),
        json!({ "patternProperties": { "x": false } }),
        json!({ "uniqueItems": true }),
        json!({ "items": { "enum": [0, 1, 2] } }),
    ] {
        breaks_rule(&many(heavy), "more than 2000 times");
    }
    let names: Vec<_> = (0..10_000).map(|at| at.to_string()).collect();
    let named: Map<_, _> = names.iter().map(|name| (name.clone(), json!(1))).collect();
    for long in [
        json!({ "required": names }),
        json!({ "properties": named }),
        json!({ "enum": names }),
        json!({ "const": [names] }),
        json!({ "dependentRequired": { "a": names } }),
    ] {
        assert!(check(&long).unwrap() > 1_000, "{long:.80}");
        breaks_rule(&json!({ "allOf": [long, long] }), "more than 2000 times");
    }
    let patterns: Map<_, _> = (0..200).map(|at| (at.to_string(), json!(true))).collect();
    breaks_rule(&json!({ "patternProperties": patterns }), "more than 2000 times");
}

// fault 10: validating a value nests as deep as the schemas for each of its levels.
#[test]
fn schemas_nested_for_one_value_are_limited() {
    let nested = |levels: usize| {
        (0..levels)
            .fold(json!({ "items": { "$ref": "#" } }), |inner, _| json!({ "allOf": [inner] }))
    };
    keeps_rules(&nested(31));
    breaks_rule(&nested(40), "nested for one value");
}

// fault 10: the validator compiles a copy of what is beside an `unevaluated` keyword.
#[test]
fn expansion_of_unevaluated_keywords_is_limited() {
    let mut chain = json!({ "$ref": "#/$defs/d0", "$defs": {}, "unevaluatedProperties": false });
    for at in 0..30 {
        let next = json!({ "$ref": format!("#/$defs/d{}", at + 1) });
        chain["$defs"][format!("d{at}")] = json!({ "anyOf": [next, next] });
    }
    chain["$defs"]["d30"] = json!({});
    breaks_rule(&chain, "more than 2000 times");
    let closed = json!({ "allOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#/$defs/a" }],
        "unevaluatedProperties": false, "$defs": { "a": { "anyOf": [{ "$ref": "#" }] } } });
    breaks_rule(&closed, "applies itself to the same value");
    let wide = json!({ "anyOf": vec![json!({}); 400], "unevaluatedProperties": false });
    keeps_rules(&wide);
    let many: Map<_, _> = (0..40).map(|at| (at.to_string(), wide.clone())).collect();
    breaks_rule(&json!({ "properties": many }), "expand to too many schemas");
}

// fault 10: checking the rules does not take long, and not much of the stack.
#[test]
fn check_is_linear() {
    let mut chain = json!({ "$defs": {}, "$ref": "#/$defs/d0" });
    for at in 0..3_000 {
        let next = json!({ "$ref": format!("#/$defs/d{}", (at + 1) % 3_000) });
        chain["$defs"][format!("d{at}")] = json!({ "properties": { "a": next, "b": next } });
    }
    keeps_rules(&chain);
}
