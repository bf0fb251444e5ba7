//! Every dialect with difficult definitions.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::name::ToolName;
use crate::risk::{Risk, RiskClass};
use crate::schema::Schema;

fn definition(name: &str, schema: Value) -> Definition {
    let name = ToolName::new(name.to_owned()).unwrap();
    Definition::new(name, "Does it.", Schema::from_value(schema).unwrap())
}

/// A tool whose only parameter is `x`, not required.
fn with(x: Value) -> Definition {
    definition(
        "t",
        json!({ "type": "object", "properties": { "x": x }, "additionalProperties": false }),
    )
}

fn parameters(definition: &Definition, dialect: Dialect) -> Value {
    let tool = encode_tool(definition, dialect);
    let at = match dialect {
        Dialect::Mcp => "/inputSchema",
        Dialect::OpenAi | Dialect::OpenRouter | Dialect::OpenAiStrict => "/function/parameters",
        Dialect::Anthropic => "/input_schema",
        Dialect::GeminiGenerate => "/parametersJsonSchema",
        Dialect::OpenAiResponses | Dialect::Gemini | Dialect::Portable | Dialect::ToolsJson => {
            "/parameters"
        }
    };
    tool.pointer(at).unwrap().clone()
}

/// What `dialect` says of a parameter that is `x`, and says without a loss.
#[track_caller]
fn check(dialect: Dialect, x: Value, expected: Value) {
    let definition = with(x);
    let found = parameters(&definition, dialect);
    assert_eq!(
        serde_json::to_string_pretty(&found["properties"]["x"]).unwrap(),
        serde_json::to_string_pretty(&expected).unwrap()
    );
    assert_eq!(lint(&definition, dialect), []);
}

#[track_caller]
fn loses(dialect: Dialect, x: Value, path: &str, problem: &str) {
    let findings = lint(&with(x), dialect);
    assert!(
        findings.iter().any(|finding| finding.path == path && finding.problem.contains(problem)),
        "{findings:#?}"
    );
}

#[test]
fn names_of_dialects_can_be_read_back() {
    for dialect in Dialect::ALL {
        assert_eq!(dialect.as_str().parse::<Dialect>(), Ok(dialect));
    }
    assert!("openapi".parse::<Dialect>().unwrap_err().to_string().contains("openai-strict"));
}

#[test]
fn every_document_has_the_shape_of_its_format() {
    let mut definition = with(json!({ "type": "string" }));
    definition.risk = Risk::new(RiskClass::Read);
    definition.title = Some("Do it".into());
    let schema = definition.parameters.to_value();
    let of = |dialect| encode_tools([&definition], dialect);
    assert_eq!(
        of(Dialect::Mcp).to_string(),
        json!({ "tools": [{
            "name": "t", "title": "Do it", "description": "Does it.", "inputSchema": schema,
            "annotations": {
                "title": "Do it", "readOnlyHint": true, "destructiveHint": false,
                "idempotentHint": true, "openWorldHint": false,
            },
        }]})
        .to_string()
    );
    let function = json!([{
        "type": "function",
        "function": { "name": "t", "description": "Does it.", "parameters": schema },
    }]);
    assert_eq!(of(Dialect::OpenAi).to_string(), function.to_string());
    assert_eq!(of(Dialect::OpenRouter).to_string(), function.to_string());
    assert_eq!(
        of(Dialect::OpenAiStrict).to_string(),
        json!([{
            "type": "function",
            "function": { "name": "t", "description": "Does it.", "strict": true, "parameters": {
                "type": "object",
                "properties": { "x": { "type": ["string", "null"] } },
                "required": ["x"],
                "additionalProperties": false,
            }},
        }])
        .to_string()
    );
    assert_eq!(
        of(Dialect::Anthropic).to_string(),
        json!([{ "name": "t", "description": "Does it.", "input_schema": schema }]).to_string()
    );
    let function = json!([{
        "type": "function", "name": "t", "description": "Does it.", "parameters": schema,
    }]);
    assert_eq!(of(Dialect::Gemini).to_string(), function.to_string());
    let function = json!([{
        "type": "function", "name": "t", "description": "Does it.", "strict": false,
        "parameters": schema,
    }]);
    assert_eq!(of(Dialect::OpenAiResponses).to_string(), function.to_string());
    assert_eq!(
        of(Dialect::GeminiGenerate).to_string(),
        json!([{ "name": "t", "description": "Does it.", "parametersJsonSchema": schema }])
            .to_string()
    );
    assert_eq!(
        of(Dialect::Portable).to_string(),
        json!([{ "name": "t", "description": "Does it.", "parameters": schema }]).to_string()
    );
}

// F30: what is written can be loaded again.
#[test]
fn tools_json_holds_the_whole_definition() {
    let mut definition = with(json!({ "type": "string" }));
    definition.risk = Risk::new(RiskClass::Write).destructive();
    definition.aliases = vec![ToolName::from_static("tee")];
    Arc::make_mut(&mut definition.display).primary = Some("x".to_owned());
    definition.timeout = Some(std::time::Duration::from_secs(3));
    definition.examples = vec![r#"{"x": "a"}"#.into()];
    let document = encode_tools([&definition], Dialect::ToolsJson);
    assert_eq!(document["version"], 1);
    let tool = &document["tools"][0];
    assert!(tool.get("place").is_none() && tool.get("flags").is_none());
    assert_eq!(serde_json::from_value::<Definition>(tool.clone()).unwrap(), definition);
}

#[test]
fn strict_mode_says_in_words_what_it_does_not_know() {
    check(
        Dialect::OpenAiStrict,
        json!({
            "type": "string", "description": "Where", "maxLength": 200, "pattern": "^/",
            "format": "uri", "default": "/",
        }),
        json!({
            "type": ["string", "null"],
            "description": "Where. At most 200 characters. Format: uri. Default: \"/\".",
            "pattern": "^/",
        }),
    );
    check(
        Dialect::OpenAiStrict,
        json!({ "type": "integer", "minimum": 1, "maximum": u64::MAX, "default": 7 }),
        json!({ "type": ["integer", "null"], "description": "Default: 7.", "minimum": 1 }),
    );
}

#[test]
fn strict_mode_takes_null_for_what_is_absent() {
    let strict = |x, expected| check(Dialect::OpenAiStrict, x, expected);
    strict(
        json!({ "type": "string", "enum": ["a", "b"] }),
        json!({ "type": ["string", "null"], "enum": ["a", "b", null] }),
    );
    strict(json!({ "const": "a" }), json!({ "type": ["string", "null"], "enum": ["a", null] }));
    strict(
        json!({ "oneOf": [{ "type": "string" }, { "type": "integer" }], "description": "D." }),
        json!({
            "description": "D.",
            "anyOf": [{ "type": "string" }, { "type": "integer" }, { "type": "null" }],
        }),
    );
    strict(
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "additionalProperties": false }),
        json!({
            "type": ["object", "null"],
            "properties": { "a": { "type": ["string", "null"] } },
            "required": ["a"],
            "additionalProperties": false,
        }),
    );
    strict(
        json!({ "type": "array", "prefixItems": [{ "type": "string" }, { "type": "integer" }],
                "minItems": 2, "maxItems": 2 }),
        json!({
            "type": ["array", "null"],
            "description": "Items in this order: string, integer.",
            "minItems": 2,
            "maxItems": 2,
            "items": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
        }),
    );
}

#[test]
fn strict_mode_keeps_recursion_and_lets_references_stand_alone() {
    let node = json!({
        "type": "object",
        "properties": { "next": { "$ref": "#/$defs/Node", "description": "The next." } },
        "additionalProperties": false,
    });
    let definition = definition(
        "t",
        json!({
            "type": "object",
            "properties": { "x": { "$ref": "#/$defs/Node" } },
            "required": ["x"],
            "$defs": { "Node": node },
        }),
    );
    assert_eq!(
        parameters(&definition, Dialect::OpenAiStrict),
        json!({
            "type": "object",
            "properties": { "x": { "$ref": "#/$defs/Node" } },
            "required": ["x"],
            "additionalProperties": false,
            "$defs": { "Node": {
                "type": "object",
                "properties": { "next": {
                    "description": "The next.",
                    "anyOf": [{ "$ref": "#/$defs/Node" }, { "type": "null" }],
                }},
                "required": ["next"],
                "additionalProperties": false,
            }},
        })
    );
    assert_eq!(lint(&definition, Dialect::OpenAiStrict), []);
    assert_eq!(lint(&definition, Dialect::Gemini)[0].path, "/$defs/Node/properties/next/anyOf/0");
    let portable = parameters(&definition, Dialect::Portable);
    assert!(!portable.to_string().contains('$'));
    assert_eq!(
        portable["properties"]["x"]["properties"]["next"],
        json!({
            "type": "object",
            "description": "The next. The same fields as in the `Node` around it.",
        })
    );
    assert_eq!(lint(&definition, Dialect::Portable)[0].path, "/properties/x/properties/next");
}

#[test]
fn strict_mode_sends_maps_as_text_and_says_so() {
    let map = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    assert_eq!(
        parameters(&with(map.clone()), Dialect::OpenAiStrict)["properties"]["x"],
        json!({
            "type": ["string", "null"],
            "description": "A JSON object, sent as text. Each value: string.",
        })
    );
    loses(Dialect::OpenAiStrict, map, "/properties/x", "free names");
    loses(Dialect::OpenAiStrict, json!({}), "/properties/x", "any type");
    loses(Dialect::OpenAiStrict, json!({ "type": "array" }), "/properties/x/items", "any type");
    loses(
        Dialect::OpenAiStrict,
        json!({ "type": "array", "items": { "type": "string" }, "contains": { "const": "a" } }),
        "/properties/x",
        "`contains`",
    );
}

#[test]
fn gemini_gets_only_documented_words() {
    let gemini = |x, expected| check(Dialect::Gemini, x, expected);
    gemini(json!({ "type": "string", "const": "a" }), json!({ "type": "string", "enum": ["a"] }));
    gemini(
        json!({ "type": "integer", "exclusiveMinimum": 0, "multipleOf": 5, "default": 5 }),
        json!({ "type": "integer", "description": "A multiple of 5. Default: 5.", "minimum": 1 }),
    );
    gemini(
        json!({ "type": ["array", "null"], "items": { "type": "string" }, "description": "D." }),
        json!({
            "description": "D.",
            "anyOf": [
                { "type": "array", "items": { "type": "string" } },
                { "type": "null" },
            ],
        }),
    );
    gemini(
        json!({ "enum": ["a", 1, null] }),
        json!({ "anyOf": [
            { "type": "string", "enum": ["a"] },
            { "type": "integer", "enum": [1] },
            { "type": "null" },
        ]}),
    );
}

#[test]
fn portable_unfolds_references_and_merges_conjunctions() {
    let definition = definition(
        "t",
        json!({
            "type": "object",
            "properties": {
                "a": { "$ref": "#/$defs/A", "description": "Here." },
                "b": { "allOf": [{ "$ref": "#/$defs/A" }, { "required": ["id"] }] },
                "c": { "type": "object", "patternProperties": { "^x": { "type": "string" } } },
            },
            "$defs": { "A": {
                "type": "object", "description": "There.",
                "properties": { "id": { "type": "string", "minLength": 1 } },
            }},
        }),
    );
    assert_eq!(
        parameters(&definition, Dialect::Portable),
        json!({
            "type": "object",
            "properties": {
                "a": {
                    "type": "object",
                    "description": "Here.",
                    "properties": { "id": { "type": "string", "description": "At least 1 character." } },
                },
                "b": {
                    "type": "object",
                    "description": "There.",
                    "properties": { "id": { "type": "string", "description": "At least 1 character." } },
                    "required": ["id"],
                },
                "c": {
                    "type": "object",
                    "description": "Names must match the regular expression `^x`.",
                    "additionalProperties": { "type": "string" },
                },
            },
        })
    );
    assert_eq!(lint(&definition, Dialect::Portable), []);
}

#[test]
fn no_provider_gets_a_union_at_the_top() {
    let form = |kind: &str| {
        json!({
            "type": "object",
            "properties": { "kind": { "type": "string", "const": kind } },
            "required": ["kind"],
            "additionalProperties": false,
        })
    };
    let definition = definition("t", json!({ "type": "object", "oneOf": [form("a"), form("b")] }));
    for dialect in [
        Dialect::OpenAi,
        Dialect::OpenAiStrict,
        Dialect::OpenRouter,
        Dialect::Anthropic,
        Dialect::Gemini,
        Dialect::GeminiGenerate,
        Dialect::Portable,
    ] {
        let schema = parameters(&definition, dialect);
        assert_eq!(schema["type"], "object", "{dialect}");
        assert_eq!(schema["properties"]["kind"]["enum"], json!(["a", "b"]), "{dialect}");
        assert!(schema.get("oneOf").is_none() && schema.get("anyOf").is_none(), "{dialect}");
        assert_eq!(lint(&definition, dialect), [], "{dialect}");
    }
    assert!(parameters(&definition, Dialect::Mcp).get("oneOf").is_some());
}

#[test]
fn a_schema_that_unfolds_without_end_is_cut() {
    let mut defs = serde_json::Map::new();
    for at in 0..40 {
        let next = format!("#/$defs/L{}", at + 1);
        defs.insert(
            format!("L{at}"),
            json!({ "type": "object", "properties": { "a": { "$ref": next }, "b": { "$ref": next } } }),
        );
    }
    defs.insert("L40".to_owned(), json!({ "type": "string" }));
    let definition = definition(
        "t",
        json!({ "type": "object", "properties": { "x": { "$ref": "#/$defs/L0" } }, "$defs": defs }),
    );
    assert!(parameters(&definition, Dialect::Portable).to_string().len() < 1_000_000);
    assert!(!lint(&definition, Dialect::Portable).is_empty());
    assert!(!definition.parameters.signature().is_empty());
}

#[test]
fn names_that_are_refused_are_found_everywhere() {
    let nested = json!({ "type": "array", "items": {
        "type": "object", "properties": { "a b": { "type": "string" } },
    }});
    loses(Dialect::Anthropic, nested.clone(), "/properties/x/items/properties/a b", "`a b`");
    let dashed =
        definition("t", json!({ "type": "object", "properties": { "a-b": { "type": "string" } } }));
    assert_eq!(lint(&dashed, Dialect::Anthropic), []);
    assert_eq!(lint(&dashed, Dialect::Gemini).len(), 1);
    assert_eq!(
        lint(&dashed, Dialect::Gemini)[0].to_string(),
        "tool `t`: /properties/a-b: the name `a-b` is refused; \
         use 1 to 64 of A-Z a-z 0-9 _, starting with a letter or _"
    );
}

#[test]
fn descriptions_are_measured() {
    let mut long = with(json!({ "type": "string" }));
    long.description = "é".repeat(1025).into();
    let refused = |dialect| lint(&long, dialect).len();
    assert_eq!([Dialect::OpenAi, Dialect::OpenAiStrict].map(refused), [1, 1]);
    assert_eq!([Dialect::Anthropic, Dialect::Gemini, Dialect::Mcp].map(refused), [0, 0, 0]);
    long.description = " ".into();
    assert_eq!(refused_for_silence(&long), "there is no description");
}

fn refused_for_silence(definition: &Definition) -> String {
    lint(definition, Dialect::Mcp).remove(0).problem
}

#[test]
fn sets_have_limits_too() {
    let many: Vec<_> =
        (0..129).map(|at| definition(&format!("t{at}"), json!({ "type": "object" }))).collect();
    let findings = lint_all(&many, Dialect::OpenAi);
    assert_eq!(findings.len(), 1);
    assert_eq!(
        findings[0].to_string(),
        "tool `t128`: it comes after 128 others, which is the most; \
         offer fewer tools, by scope or category"
    );
    assert_eq!(lint_all(&many, Dialect::Mcp), []);
    assert_eq!(lint_all([&many[0], &many[0]], Dialect::Mcp).len(), 1);
}

#[test]
fn strict_mode_has_limits() {
    let mut deep = json!({ "type": "string" });
    for _ in 0..10 {
        deep = json!({
            "type": "object", "properties": { "a": deep }, "required": ["a"],
            "additionalProperties": false,
        });
    }
    let findings = lint(&with(deep), Dialect::OpenAiStrict);
    assert!(findings[0].problem.contains("deeper than 10"), "{findings:?}");
    let values: Vec<String> = (0..1001).map(|at| format!("value_{at:020}")).collect();
    let findings = lint(&with(json!({ "type": "string", "enum": values })), Dialect::OpenAiStrict);
    assert_eq!(findings.len(), 2, "{findings:?}");
}

#[test]
fn the_protocol_takes_only_words_of_the_standard() {
    loses(
        Dialect::Mcp,
        json!({ "type": "integer", "format": "uint32" }),
        "/properties/x",
        "uint32",
    );
    loses(
        Dialect::Mcp,
        json!({ "type": "string", "nullable": true }),
        "/properties/x",
        "`nullable`",
    );
    loses(
        Dialect::Mcp,
        json!({ "type": "number", "x-mcp-header": "a b" }),
        "/properties/x",
        "cannot name a header",
    );
    loses(
        Dialect::Mcp,
        json!({ "type": "number", "x-mcp-header": "a" }),
        "/properties/x",
        "this type",
    );
}

#[test]
fn a_broken_schema_is_a_finding_and_no_panic() {
    let schema: Schema = serde_json::from_value(json!({
        "type": "object",
        "properties": { "x": { "$ref": "#/nowhere" }, "y": 7, "z": { "type": "text", "enum": 1 } },
        "required": "x",
    }))
    .unwrap();
    let broken = Definition::new(ToolName::from_static("t"), "Does it.", schema);
    for dialect in Dialect::ALL {
        assert!(lint(&broken, dialect).len() >= 4, "{dialect}");
        assert!(encode_tool(&broken, dialect).is_object());
    }
    assert!(!describe_tools([&broken]).is_empty());
}

// F17: every tool is named, with its parameters.
#[test]
fn the_list_names_every_tool() {
    let mut b = definition("b", json!({ "type": "object", "additionalProperties": false }));
    b.description = "Line one.\n\nLine two.\n".into();
    let a = with(json!({ "type": "integer", "minimum": 1, "default": 1 }));
    assert_eq!(
        describe_tools([&a, &b]),
        "- t {\"x\"?: integer ≥ 1 = 1}\n  Does it.\n- b {}\n  Line one.\n\n  Line two.\n"
    );
}
