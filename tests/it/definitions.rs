//! What a definition promises: each fact is told everywhere, and has the effect that its
//! name says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tool_sdk::provider::{self, Dialect};
use tool_sdk::testing::Harness;
use tool_sdk::{
    Args, Definition, DynamicTool, ErrorKind, IntoTools, Json, Parallel, Registry, RiskClass, Rule,
    Schema, ToolName, ToolSource, tool, tools,
};

/// Counts the pages
/// of a book.
#[tool(read, register = false)]
async fn count_pages(
    /// The book.
    title: String,
) -> Json<Count> {
    Json(Count { pages: title.len() })
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct Count {
    pages: usize,
}

/// Not what the model is told.
#[tool(write, register = false, permission = "edit", description = "Strikes a page out.")]
fn strike_page(
    /// Which one.
    #[arg(range = 1..)]
    page: u32,
) -> String {
    format!("struck {page}")
}

fn definition(tools: impl IntoTools) -> Definition {
    let tools = tools.into_tools();
    tools.first().expect("there is a tool").definition().clone()
}

/// What is called one thing where it is written, and another where it is read.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Leaf {
    #[serde(rename(serialize = "written", deserialize = "read"))]
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(default)]
    pages: u32,
}

/// Turns a leaf.
#[tool(read, register = false)]
fn turn_leaf(
    /// Which one.
    leaf: Leaf,
) -> Json<Leaf> {
    Json(leaf)
}

/// Takes a list of words.
#[tool(read, register = false)]
fn take_words(words: Args<Vec<String>>) -> String {
    words.join(" ")
}

// F13: a result has the schema of what is written, and an argument that of what is read.
#[tokio::test]
async fn a_type_that_is_written_otherwise_than_it_is_read_has_two_schemas() {
    let definition = definition(tools![turn_leaf]);
    let output = definition.output.as_ref().expect("it is typed").to_value();
    let input = definition.parameters.to_value();
    let keys = |schema: &Value| {
        let properties = schema["properties"].as_object().expect("it is an object");
        let mut keys: Vec<String> = properties.keys().cloned().collect();
        keys.sort();
        keys
    };
    let taken = match input["properties"]["leaf"]["$ref"].as_str() {
        Some(to) => input.pointer(to.trim_start_matches('#')).expect("it is there"),
        None => &input["properties"]["leaf"],
    };
    assert_eq!(keys(taken), ["note", "pages", "read"]);
    assert_eq!(keys(&output), ["note", "pages", "written"]);
    // What has a default may be left out, and is always written.
    assert_eq!(taken["required"], json!(["read"]));
    assert_eq!(output["required"], json!(["written", "pages"]));

    let harness = Harness::new(tools![turn_leaf]);
    let turned = harness.call("turn_leaf", json!({ "leaf": { "read": "a" } })).await;
    let turned: Value = serde_json::from_str(&turned.text()).expect("it is JSON");
    let validator = jsonschema::draft202012::new(&output).expect("the schema is valid");
    assert!(validator.is_valid(&turned), "{turned}");
    assert_eq!(turned, json!({ "written": "a", "pages": 0 }));
}

// F89, O2: the class of every standard tool, which is what asks or does not; none is guessed.
#[test]
fn every_standard_tool_has_the_class_that_its_effect_has() {
    let registry = Registry::builder().add_linked().add(tools![
        tool_std::research::deep_research,
        tool_std::screen::desktop,
        tool_std::screen::terminal,
    ]);
    let registry = registry.build().expect("no two tools share a name");
    let of = |class: RiskClass| {
        let definitions = registry.definitions().filter(|it| {
            it.risk.class == class && it.place.is_some_and(|place| place.package == "tool-std")
        });
        definitions.map(|it| it.name.as_str()).collect::<Vec<_>>()
    };
    let read = [
        "ask_clarification",
        "check_env_vars",
        "debug_mcp_server",
        "deep_research",
        "emit_event",
        "find_definition",
        "find_references",
        "get_env_var",
        "get_repo_map",
        "github_list_issues",
        "github_list_pull_requests",
        "github_read_file",
        "github_read_issue",
        "github_read_pull_request",
        "github_search",
        "glob_files",
        "grep_files",
        "inject_context",
        "list_dir",
        "list_sessions",
        "list_symbols",
        "log",
        "mcp_prompt_get",
        "mcp_resource_list",
        "mcp_resource_read",
        "memory_get",
        "memory_search",
        "modify_prompt",
        "mutation_begin",
        "mutation_record",
        "mutation_status",
        "notify_self",
        "plan_enter",
        "plan_exit",
        "plan_update",
        "reaction_check",
        "reaction_list",
        "read_file",
        "request_decision",
        "request_env_var",
        "search_code",
        "set_state",
        "skill",
        "skill_list",
        "todo_read",
        "todo_write",
        "tool_search",
        "update_plan",
        "web_fetch",
        "web_search",
    ];
    let execute = [
        "desktop",
        "exec_command",
        "kill_session",
        "register_mcp_server",
        "shell",
        "shell_command",
        "terminal",
        "write_stdin",
    ];
    assert_eq!(of(RiskClass::Read), read);
    let write = [
        "apply_patch",
        "edit_file",
        "github_comment",
        "github_create_issue",
        "memory_create",
        "memory_delete",
        "memory_update",
        "plugin_manager",
        "skill_create",
        "skill_install",
        "skill_remove",
        "skill_update",
        "write_file",
    ];
    assert_eq!(of(RiskClass::Write), write);
    assert_eq!(of(RiskClass::Execute), execute);

    // What says nothing may do anything, whatever it is called.
    let schema = || Schema::from_value(json!({ "type": "object" })).expect("a schema");
    for name in ["get_weather", "list_files", "read_only"] {
        let name = ToolName::new(name).expect("a name");
        let untold = Definition::new(name, "Only reads.", schema());
        assert_eq!(untold.risk.class, RiskClass::Execute);
    }
}

// F3: what is not an object is refused when the tools are put together, and a schema that is
// none with the place of what is wrong.
#[test]
fn arguments_that_are_no_object_are_refused() {
    let error = Registry::builder().add(tools![take_words]).build().unwrap_err().to_string();
    assert!(error.starts_with("the arguments of `take_words` ("), "{error}");
    assert!(error.contains("tests/it/definitions.rs:"), "{error}");
    assert!(error.ends_with("are not an object; take a struct with named fields"), "{error}");
    let gone = json!({ "$ref": "#/$defs/gone" });
    let error = Schema::from_value(json!({ "type": "object", "properties": { "x": gone } }));
    let error = error.unwrap_err();
    assert_eq!(error.path(), "/properties/x", "{error}");
}

// F4: the comment is the description, unless one is written.
#[test]
fn every_export_has_the_comment_as_its_description() {
    let (counts, strikes) = (definition(tools![count_pages]), definition(tools![strike_page]));
    for dialect in Dialect::ALL {
        let text = |of: &Definition| provider::encode_tool(of, dialect).to_string();
        assert!(text(&counts).contains(r#""description":"Counts the pages\nof a book.""#));
        assert!(text(&strikes).contains(r#""description":"Strikes a page out.""#));
        assert!(!text(&strikes).contains("Not what"), "{}", dialect.as_str());
    }
}

// F5: rules are evaluated against the permission that is written.
#[tokio::test]
async fn rules_speak_of_the_permission() {
    let with = |rule: &str| {
        let rule: Rule = rule.parse().expect("it is a rule");
        Harness::new(tools![strike_page]).map_pipeline(|pipeline| pipeline.rules([rule]))
    };
    let error = with("deny edit").error("strike_page", r#"{"page": 1}"#).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert_eq!(definition(tools![strike_page]).permission(), "edit");
    assert_eq!(definition(tools![count_pages]).permission(), "count_pages");
}

// F13: a result is typed for who calls the function, and JSON with a schema for others.
#[tokio::test]
async fn a_structured_result_is_typed_and_json() {
    assert_eq!(count_pages("abc".to_owned()).await.0, Count { pages: 3 });
    let output = Harness::new(tools![count_pages]).ok("count_pages", r#"{"title": "abc"}"#).await;
    assert_eq!(output.to_structured(), Some(json!({ "pages": 3 })));
    let schema = definition(tools![count_pages]).output.expect("it has a schema");
    assert_eq!(schema.property("pages").expect("it is told")["type"], "integer");
}

// F19: the function schema of OpenAI and OpenRouter.
#[test]
fn a_function_schema_has_a_type_a_name_and_parameters() {
    for dialect in [Dialect::OpenAi, Dialect::OpenRouter] {
        let tool = provider::encode_tool(&definition(tools![strike_page]), dialect);
        assert_eq!(tool["type"], "function");
        assert_eq!(tool["function"]["name"], "strike_page");
        assert_eq!(tool["function"]["description"], "Strikes a page out.");
        assert_eq!(tool["function"]["parameters"]["required"], json!(["page"]));
    }
}

// F21: what is written about a tool is honoured, and arguments are judged before it runs.
#[tokio::test]
async fn facts_are_honoured() {
    let (counts, strikes) = (definition(tools![count_pages]), definition(tools![strike_page]));
    assert_eq!((counts.parallel(), strikes.parallel()), (Parallel::Shared, Parallel::Exclusive));
    assert_eq!((counts.source, strikes.risk.class), (ToolSource::Native, RiskClass::Write));
    let error = Harness::new(tools![strike_page]).error("strike_page", r#"{"page": 0}"#).await;
    assert_eq!(error.kind(), ErrorKind::InvalidArgs);
    assert!(error.message().contains("`page` is 0"), "{}", error.message());
}

// F22: names stand everywhere as they were written. F23: and so does where a tool is from.
#[tokio::test]
async fn names_and_sources_are_told_as_they_are() {
    let mut remote = definition(tools![strike_page]);
    remote.name = ToolName::new("Remote-Strike").expect("it is a name");
    remote.source = ToolSource::Mcp { server: "books".to_owned() };
    let remote = DynamicTool::new(remote, |_: Value, _| async { "struck" });
    let registry = Registry::builder().add(tools![strike_page]).add(remote).build();
    let registry = registry.expect("no conflicts");
    assert_eq!(registry.names().collect::<Vec<_>>(), ["Remote-Strike", "strike_page"]);
    let harness = Harness::from_registry(registry);
    let mut events = harness.pipeline().subscribe();
    for (name, source) in [
        ("strike_page", json!({ "type": "native" })),
        ("Remote-Strike", json!({ "type": "mcp", "server": "books" })),
    ] {
        let _ = harness.ok(name, r#"{"page": 1}"#).await;
        while let Some(event) = events.try_recv() {
            assert_eq!(event.tool.name.as_str(), name);
            assert_eq!(json!(event.tool.source), source);
        }
    }
}

// F30: the file of all tools is the one that is committed.
#[test]
fn tools_json_is_the_golden_file() {
    let tools = tools![count_pages, strike_page];
    let registry = Registry::builder().add(tools).build().expect("no conflicts");
    let document = provider::encode_tools(registry.definitions(), Dialect::ToolsJson);
    insta::with_settings!({ snapshot_path => "../snapshots", prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("tools.json", format!("{document:#}"));
    });
}

/// A tool of the kind that is on its way out.
struct Struck(&'static str);

#[expect(deprecated, reason = "what is deprecated goes on to work")]
mod legacy {
    use tool_sdk::{DynamicTool, LegacyTool, ToolError};

    use super::{Struck, Value, json};

    impl LegacyTool for Struck {
        fn name(&self) -> &str {
            self.0
        }

        fn description(&self) -> &str {
            "Strikes a page out."
        }

        fn parameters(&self) -> Value {
            let page = json!({ "type": "integer", "minimum": 1, "description": "Which one." });
            json!({ "type": "object", "properties": { "page": page }, "required": ["page"] })
        }

        async fn execute(&self, args: Value) -> Result<String, ToolError> {
            Ok(format!("struck {}", args["page"]))
        }
    }

    pub(super) fn tool(name: &'static str) -> Result<DynamicTool, ToolError> {
        DynamicTool::legacy(Struck(name))
    }
}

// F10: the older kind of tool works, behind the same checks and rules; that its trait is
// deprecated is a case of `ui/fail`.
#[tokio::test]
async fn an_older_tool_is_a_tool_like_any_other() {
    let tool = || legacy::tool("strike").expect("it can be a tool");
    let harness = Harness::new(tool());
    assert_eq!(harness.ok("strike", r#"{"page": 2}"#).await.as_text(), "struck 2");
    let error = harness.error("strike", r#"{"page": 0}"#).await;
    assert_eq!(error.kind(), ErrorKind::InvalidArgs);
    let rule: Rule = "deny strike".parse().expect("it is a rule");
    let harness = Harness::new(tool()).map_pipeline(|pipeline| pipeline.rules([rule]));
    assert_eq!(harness.error("strike", r#"{"page": 2}"#).await.kind(), ErrorKind::Denied);
    let error = legacy::tool("no name").expect_err("it is no name");
    assert!(error.message().contains("`no name`"), "{}", error.message());
}

// F172
#[test]
fn what_a_tool_works_on_is_told_by_its_category() {
    let registry = Registry::linked().unwrap();
    let standard =
        || registry.definitions().filter(|it| it.describe_location().starts_with("tool-std "));
    let files: Vec<_> = standard()
        .filter(|definition| definition.is_file_operation())
        .map(|definition| definition.name.as_str())
        .collect();
    let expected = ["apply_patch", "edit_file", "list_dir", "read_file", "write_file"];
    assert_eq!(files, expected);
    assert!(standard().any(|definition| definition.is_in_category("search")));
}
