//! The registry and the toolset over real tools: conflicts, queries, expectations, audiences.

use serde_json::{Value, json};
use tool_sdk::testing::Harness;
use tool_sdk::{
    Context, Definition, DynamicTool, ErrorKind, IntoTools, Refinement, Registry, RiskClass,
    Session, ToolsFile, Toolset, provider, tool, tools,
};

mod first {
    //! A module with a tool of a name that another module uses too.

    use tool_sdk::tool;

    /// Says where it is from.
    #[tool(read, name = "twin", register = false)]
    pub(crate) fn twin() -> &'static str {
        "first"
    }
}

mod second {
    //! The other module.

    use tool_sdk::tool;

    /// Says where it is from.
    #[tool(read, name = "twin", aliases("pair"), register = false)]
    pub(crate) fn twin() -> &'static str {
        "second"
    }

    /// Has an alias that is somebody's name.
    #[tool(read, aliases("twin", "PAIR"), register = false)]
    pub(crate) fn other() -> &'static str {
        "other"
    }
}

// F15, F24, F28: every conflict at once, each with both places.
#[test]
fn every_conflict_is_reported_with_both_places() {
    let error = Registry::builder()
        .add(tools![first::twin, second::twin, second::other])
        .build()
        .expect_err("names are taken twice");
    let message = error.to_string();
    assert_eq!(error.conflicts().len(), 2, "{message}");
    assert_eq!(message.matches("tests/it/registry.rs:").count(), 5, "{message}");
    assert!(message.contains("the name `twin` is taken 3 times:"), "{message}");
    assert!(message.contains("the name `pair` is taken 2 times:"), "{message}");
}

#[tokio::test]
async fn only_an_override_shadows() {
    let registry = Registry::builder()
        .add(tools![first::twin])
        .override_with(tools![second::twin])
        .build()
        .expect("the override is declared");
    let harness = Harness::from_registry(registry);
    assert_eq!(harness.ok("twin", "{}").await.as_text(), "second");
    // F24: an alias resolves in any case.
    assert_eq!(harness.ok("PaiR", "{}").await.as_text(), "second");

    let error = Registry::builder().override_with(tools![first::twin]).build().unwrap_err();
    assert!(error.to_string().contains("overrides nothing"), "{error}");
    let error = Registry::builder()
        .add(tools![first::twin])
        .override_with(tools![second::twin])
        .override_with(tools![first::twin])
        .build()
        .unwrap_err();
    assert_eq!(error.conflicts().len(), 1, "{error}");
    assert!(error.to_string().contains("the name `twin` is taken 2 times"), "{error}");
}

// F28: a host keeps two tools of one name, and everything about the renamed one has its new name.
#[tokio::test]
async fn a_host_renames_a_tool() {
    let of_second =
        |tool: &Definition| (!tool.aliases.is_empty()).then(|| "second_twin".to_owned());
    let registry = Registry::builder()
        .add(tools![first::twin, second::twin])
        .rename_tools(of_second)
        .build()
        .expect("the names differ");
    let harness = Harness::from_registry(registry.clone());
    assert_eq!(harness.ok("twin", "{}").await.as_text(), "first");
    assert_eq!(harness.ok("second_twin", "{}").await.as_text(), "second");
    let error = harness.error("second_twin", r#"{"x": 1}"#).await;
    assert!(error.message().starts_with("invalid arguments for `second_twin`"), "{error}");

    let denied = ["deny twin".parse().expect("a rule")];
    let harness = Harness::from_registry(registry).map_pipeline(|pipeline| pipeline.rules(denied));
    assert_eq!(harness.error("second_twin", "{}").await.kind(), ErrorKind::Denied);

    let named = |name: &'static str| move |_: &Definition| Some(name.to_owned());
    let two = Registry::builder().add(tools![look, shelf_list]);
    let error = two.clone().rename_tools(named("two words")).build().unwrap_err().to_string();
    assert!(error.contains("`two words`"), "{error}");
    let error = two.rename_tools(named("same")).build().unwrap_err().to_string();
    assert!(error.contains("the name `same` is taken 2 times"), "{error}");
}

/// Only for librarians.
#[tool(read, category = "shelf", scopes("librarian"), aliases("shelves"), register = false)]
fn shelf_list() -> &'static str {
    "shelves"
}

/// Changes something.
#[tool(write, destructive, category = "shelf", register = false)]
fn shelf_clear() {}

/// Not for models.
#[tool(read, hidden, register = false)]
fn internals() -> &'static str {
    "inside"
}

/// Not finished.
#[tool(execute, experimental, register = false)]
fn untested() {}

fn shelf() -> Registry {
    Registry::builder()
        .add(tools![untested, shelf_list, shelf_clear, internals])
        .build()
        .expect("no conflicts")
}

fn names<'a>(tools: impl Iterator<Item = &'a std::sync::Arc<dyn tool_sdk::Tool>>) -> Vec<String> {
    tools.map(|tool| tool.definition().name.to_string()).collect()
}

// F14, F15: each query gives exactly the matching tools, by name.
#[test]
fn queries_give_exactly_what_matches() {
    let registry = shelf();
    assert_eq!(names(registry.iter()), ["internals", "shelf_clear", "shelf_list", "untested"]);
    assert_eq!(names(registry.by_category("shelf")), ["shelf_clear", "shelf_list"]);
    assert_eq!(names(registry.by_risk(RiskClass::Write)), ["shelf_clear"]);
    assert_eq!(names(registry.by_name_pattern("shelf_*")), ["shelf_clear", "shelf_list"]);
    assert_eq!(names(registry.by_scope("oracle")), ["internals", "shelf_clear", "untested"]);
    // F25: a map from aliases to names.
    assert_eq!(registry.aliases().collect::<Vec<_>>(), [("shelves", "shelf_list")]);
}

fn listed(toolset: &Toolset) -> Vec<String> {
    toolset.view().definitions().map(|definition| definition.name.to_string()).collect()
}

// F14, F27, F104: who sees what.
#[tokio::test]
async fn an_audience_sees_and_calls_only_its_own() {
    assert_eq!(listed(&Toolset::new(shelf())), ["shelf_clear"]);
    let librarian = Toolset::new(shelf()).with_scope("librarian");
    assert_eq!(listed(&librarian), ["shelf_clear", "shelf_list"]);
    assert_eq!(listed(&librarian.without(["*_clear"])), ["shelf_list"]);
    let some = Toolset::new(shelf()).with_experimental().only(["untested", "shelf_list"]);
    assert_eq!(listed(&some), ["untested"]);

    // F104: an alias or another case names the same tool.
    for name in ["SHELF_CLEAR", "Shelf_*"] {
        assert!(listed(&Toolset::new(shelf()).without([name])).is_empty(), "{name}");
    }
    let librarian = Toolset::new(shelf()).with_scope("librarian");
    assert!(librarian.without(["Shelves"]).get("shelf_list").is_none());

    let harness = Harness::from_registry(shelf());
    assert_eq!(harness.ok("internals", "{}").await.as_text(), "inside");
    let error = harness.error("shelf_list", "{}").await;
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

fn for_small_models(session: &Session) -> Refinement {
    match session.model() {
        Some("tiny") => Refinement::default().description("Look.").without("depth"),
        _ => Refinement::default(),
    }
}

/// Look at something, with many words about how.
#[tool(read, init = for_small_models, register = false)]
fn look(
    /// What.
    what: String,
    /// How deep.
    #[arg(default = 3)]
    depth: u8,
) -> String {
    format!("{what} {depth}")
}

// F6, F103: two sessions see different definitions; what is left out may still be sent.
#[tokio::test]
async fn a_session_may_see_another_definition() {
    let registry = Registry::builder().add(tools![look]).build().expect("one tool");
    let big = Toolset::new(registry.clone()).for_session(&Session::new("a").with_model("big"));
    let tiny = Toolset::new(registry.clone()).for_session(&Session::new("b").with_model("tiny"));
    let text = |toolset: &Toolset| {
        provider::encode_tools(toolset.view().definitions(), provider::Dialect::OpenAi).to_string()
    };
    assert!(text(&big).contains("depth") && !text(&tiny).contains("depth"));
    assert!(text(&tiny).contains("\"Look.\""));
    assert_eq!(
        Harness::from_registry(registry)
            .ok("look", json!({"what": "x", "depth": 9}))
            .await
            .as_text(),
        "x 9"
    );
}

// F28: what was not linked is an error with a hint.
#[test]
fn what_is_expected_and_missing_is_named() {
    let error = Registry::builder()
        .add(tools![look])
        .expect_tools(["look", "nothing"])
        .build()
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "not found: `nothing`\n  is the crate linked? write `tool_sdk::link!(the_crate);`\n  found: 1 of tool-tests"
    );
    // One reason does not hide the other.
    let error = Registry::builder().add(tools![look, look]).expect_tools(["nothing"]).build();
    let error = error.unwrap_err().to_string();
    assert!(error.contains("the name `look` is taken 2 times"), "{error}");
    assert!(error.contains("not found: `nothing`"), "{error}");
}

// F12, F30: a definition file that was written can be read, and a bad one names its fault.
#[tokio::test]
async fn tools_come_from_a_file_and_go_into_one() {
    let registry = shelf();
    let file =
        provider::encode_tools(registry.definitions(), provider::Dialect::ToolsJson).to_string();
    let handler = |name: &'static str| move |_: Value, _: Context| async move { name };
    let tools = ToolsFile::parse("tools.json", &file)
        .expect("what was written can be read")
        .bind("internals", handler("i"))
        .bind("shelf_clear", handler("c"))
        .bind("shelf_list", handler("l"))
        .bind("untested", handler("u"))
        .finish()
        .expect("every tool has its handler");
    let again = Registry::builder().add(tools).build().expect("no conflicts");
    assert_eq!(
        provider::encode_tools(again.definitions(), provider::Dialect::ToolsJson).to_string(),
        file
    );
    assert_eq!(Harness::from_registry(again).ok("shelf_clear", "{}").await.as_text(), "c");

    let bad = r#"{"version": 1, "tools": [
        {"name": "a", "description": "A.", "parameters": {"type": "array"}},
        {"name": "b c", "description": "B.", "parameters": {"type": "object"}},
        {"name": "d", "description": " ", "parameters": {"type": "object"}}
    ]}"#;
    let message = ToolsFile::parse("tools.json", bad).expect_err("three are wrong").to_string();
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 3, "{message}");
    assert!(lines[0].starts_with("tools.json#/tools/0/parameters: tool `a`: "), "{message}");
    assert!(lines[1].starts_with("tools.json#/tools/1: tool `b c`: "), "{message}");
    assert!(lines[2].starts_with("tools.json#/tools/2/description: tool `d`: "), "{message}");

    for extra in [
        r#""requires_auht": true"#,
        r#""flags": {"requires_auht": true}"#,
        r#""risk": {"class": "read", "destructve": true}"#,
    ] {
        let text = format!(
            r#"[{{"name": "a", "description": "A.", "parameters": {{"type": "object"}}, {extra}}}]"#
        );
        let message = ToolsFile::parse("t.json", &text).expect_err("it is misspelt").to_string();
        assert!(message.contains("unknown field"), "{message}");
    }
    let pattern = r#"[{"name": "a", "description": "A.", "parameters": {"type": "object", "properties": {"x": {"pattern": "(?!a)"}}}}]"#;
    let message =
        ToolsFile::parse("t.json", pattern).expect_err("it cannot be checked").to_string();
    assert!(message.contains("/properties/x/pattern cannot be checked"), "{message}");

    for (rest, words) in [
        (r#""paramaters": {}"#, "t.json#/0: tool `a`: unknown field `paramaters`"),
        (r#""name": "b", "parameters": {"type": "object"}"#, "the key \"name\" comes twice"),
        (
            r#""parameters": {"type": "object", "properties": {"x": {"minimum": 5, "maximum": 1}}}"#,
            "t.json#/0/parameters/properties/x: tool `a`: nothing has `minimum` 5 and `maximum` 1",
        ),
        (
            r#""parameters": {"type": "object", "properties": {"x": {"type": "integer", "default": "x"}}}"#,
            "/properties/x is wrong: `default` is the string \"x\", but must be an integer",
        ),
        (
            r#""parameters": {"type": "object", "properties": {"x": {"typ": "string"}}}"#,
            "/properties/x: tool `a`: unknown keyword `typ`; did you mean `type`?",
        ),
        (
            r#""parameters": {"type": "object"}, "aliases": ["g", "G"]"#,
            "#/0/aliases: tool `a`: a name is used twice",
        ),
        (
            r#""parameters": {"type": "object"}, "permission": """#,
            "#/0/permission: tool `a`: is empty",
        ),
        (
            r#""parameters": {"type": "object"}, "risk": {"class": "read", "destructive": true}"#,
            "#/0/risk: tool `a`: a read-only tool cannot be destructive",
        ),
    ] {
        let text = format!(r#"[{{"name": "a", "description": "A.", {rest}}}]"#);
        let message = ToolsFile::parse("t.json", &text).expect_err("it is wrong").to_string();
        assert!(message.contains(words), "{message}");
    }

    let one = r#"[{"name": "a", "description": "A.", "parameters": {"type": "object", "properties": {}}}]"#;
    let message =
        ToolsFile::parse("t.json", one).expect("it is right").finish().unwrap_err().to_string();
    assert_eq!(message, "t.json#/0: tool `a`: has no handler");
}

// F9: a tool that cannot use the macro is treated exactly alike.
#[tokio::test]
async fn a_tool_by_hand_is_a_tool_like_any_other() {
    let definition: Definition = serde_json::from_value(json!({
        "name": "by_hand",
        "description": "Counts.",
        "parameters": {
            "type": "object",
            "properties": {"n": {"type": "integer", "maximum": 9, "description": "How many."}},
            "required": ["n"],
            "additionalProperties": false,
        },
    }))
    .expect("it is a definition");
    let by_hand =
        DynamicTool::new(
            definition,
            |args: Value, _cx: Context| async move { args["n"].to_string() },
        );
    let harness = Harness::new(by_hand.into_tools());
    assert_eq!(harness.ok("by_hand", json!({"n": 3})).await.as_text(), "3");
    assert_eq!(
        harness.error("by_hand", json!({"n": 10, "m": 1})).await.message(),
        "invalid arguments for `by_hand`:\n\
         - `n` is 10, but must be at most 9\n\
         - unknown argument `m`\n\
         expected: {\"n\": integer ≤ 9}"
    );
}

/// Signs in.
#[tool(execute, register = false)]
fn sign_in(
    /// The token.
    #[arg(sensitive, alias("credentials"))]
    token: String,
) -> String {
    token.len().to_string()
}

// F169: a secret is masked under every name that it may be sent by.
#[tokio::test]
async fn secrets_never_reach_an_event() {
    let harness = Harness::new(tools![sign_in]);
    let mut events = harness.pipeline().subscribe();
    for arguments in [r#"{"token": "hunter2"}"#, r#"{"credentials": "hunter2"}"#] {
        assert_eq!(harness.ok("sign_in", arguments).await.as_text(), "7");
    }
    while let Some(event) = events.try_recv() {
        let text = serde_json::to_string(&event).expect("an event is JSON");
        assert!(!text.contains("hunter2"), "{text}");
    }
}
