//! The validator agrees with `jsonschema`, for random schemas and values.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use crate::call::RawArgs;
use crate::schema::Schema;
use crate::tool::args::{ArgChecks, parse_value, unsupported};

fn names() -> impl Strategy<Value = String> {
    select(vec!["a".to_owned(), "b".to_owned(), "ab".to_owned()])
}

fn scalars() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2..4_i64).prop_map(Value::from),
        Just(json!(1.5)),
        select(vec!["", "a", "b", "ab"]).prop_map(Value::from),
    ]
}

fn values() -> impl Strategy<Value = Value> {
    scalars().prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(names(), inner, 0..4).prop_map(Value::from_iter),
        ]
    })
}

fn keyword(inner: BoxedStrategy<Value>) -> impl Strategy<Value = (&'static str, Value)> {
    let count = || (0..3_u64).prop_map(Value::from);
    let bound = || (-1..3_i64).prop_map(Value::from);
    let map =
        |inner: BoxedStrategy<Value>| btree_map(names(), inner, 1..3).prop_map(Value::from_iter);
    let list = |inner: BoxedStrategy<Value>| vec(inner, 1..3).prop_map(Value::from);
    let needed = || proptest::sample::subsequence(vec!["a", "b", "ab"], 0..3).prop_map(Value::from);
    let form = || select(vec!["^a", "b$", "^.$"]);
    let reference = select(vec!["#/$defs/one", "#/$defs/two", "#/properties/x", "#named", "#"]);
    let types = vec!["null", "boolean", "integer", "number", "string", "array", "object"];
    let several = proptest::sample::subsequence(types.clone(), 1..4).prop_map(Value::from);
    let said = |keyword: &'static str| move |value| (keyword, value);
    prop_oneof![
        3 => select(types).prop_map(|ty| ("type", ty.into())),
        1 => several.prop_map(said("type")),
        1 => values().prop_map(said("const")),
        1 => vec(scalars(), 1..3).prop_map(|all| ("enum", all.into())),
        1 => (select(vec!["minLength", "maxLength", "minItems", "maxItems", "minProperties",
            "maxProperties"]), count()),
        1 => (select(vec!["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]), bound()),
        1 => Just(("multipleOf", json!(2))),
        1 => Just(("uniqueItems", json!(true))),
        1 => form().prop_map(|form| ("pattern", form.into())),
        2 => map(inner.clone()).prop_map(said("properties")),
        1 => needed().prop_map(said("required")),
        2 => (
            select(vec!["additionalProperties", "items", "not", "contains", "propertyNames",
                "unevaluatedItems", "unevaluatedProperties", "if", "then", "else"]),
            inner.clone(),
        ),
        2 => Just(("unevaluatedProperties", json!(false))),
        2 => (select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]), list(inner.clone())),
        1 => btree_map(form().prop_map(str::to_owned), inner.clone(), 1..3)
            .prop_map(|map| ("patternProperties", Value::from_iter(map))),
        1 => map(inner).prop_map(said("dependentSchemas")),
        1 => btree_map(names(), needed(), 1..3)
            .prop_map(|map| ("dependentRequired", Value::from_iter(map))),
        1 => (select(vec!["minContains", "maxContains"]), count()),
        2 => reference.prop_map(|reference| ("$ref", reference.into())),
    ]
}

fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![1 => any::<bool>().prop_map(Value::from), 3 => Just(json!({}))];
    leaf.prop_recursive(4, 24, 4, |inner| {
        vec(keyword(inner), 1..4).prop_map(|said| {
            said.into_iter().map(|(keyword, value)| (keyword.to_owned(), value)).collect()
        })
    })
}

/// A schema of arguments; `x` is random and may refer to other random schemas.
fn documents() -> impl Strategy<Value = Value> {
    (schemas(), schemas(), schemas(), schemas()).prop_map(|(x, one, two, named)| {
        let named = match named {
            Value::Object(mut map) => {
                map.insert("$anchor".to_owned(), "named".into());
                Value::Object(map)
            }
            _ => json!({ "$anchor": "named" }),
        };
        json!({
            "type": "object",
            "properties": { "x": x },
            "$defs": { "one": one, "two": two, "named": named },
        })
    })
}

#[track_caller]
fn agree(document: &Value, x: &Value) {
    let schema: Schema = serde_json::from_value(document.clone()).unwrap();
    // A schema that refers to itself without end is refused.
    if unsupported(schema.as_map()).is_some() {
        return;
    }
    let arguments = Value::Object(Map::from_iter([("x".to_owned(), x.clone())]));
    let checks = ArgChecks::from_schema(schema.clone(), &[]).with_external_check(&schema, &[]);
    let ours = parse_value("t", &checks, &RawArgs::new(arguments.to_string()));
    let theirs = jsonschema::validator_for(document).unwrap().is_valid(&arguments);
    assert_eq!(ours.is_ok(), theirs, "{document}\n{arguments}\n{ours:?}");
    // The same for the published form of the schema.
    let told = Schema::from_value(document.clone()).unwrap();
    let told = ArgChecks::from_schema(told.clone(), &[]).with_external_check(&told, &[]);
    let told = parse_value("t", &told, &RawArgs::new(arguments.to_string()));
    assert_eq!(told.is_ok(), theirs, "{document}\n{arguments}\n{told:?}");
}

proptest! {
    #[test]
    fn what_fits_is_what_fits_for_others(document in documents(), all in vec(values(), 4)) {
        all.iter().for_each(|x| agree(&document, x));
    }
}

#[test]
fn items_that_are_equal_are_equal_in_any_order() {
    let document = json!({ "type": "object", "properties": { "x": { "uniqueItems": true } } });
    agree(&document, &json!([{ "a": 1, "b": 2 }, { "b": 2, "a": 1 }]));
    agree(&document, &json!([1, 1.0]));
    agree(&document, &json!([1, true, "1", null]));
}

#[test]
fn a_constant_holds_beside_a_list() {
    let x = json!({ "enum": [true, 1, "a"], "const": 1 });
    let document = json!({ "type": "object", "properties": { "x": x } });
    for x in [json!(true), json!(1), json!("a"), json!(1.0), json!(2)] {
        agree(&document, &x);
    }
}
