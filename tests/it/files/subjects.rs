//! Tools of others that take paths, and say nothing about them.

use schemars::JsonSchema;
use serde::Deserialize;
use tool_sdk::{Args, WorkspacePath, tool};

use super::*;

/// Empty a file.
#[tool(write, register = false)]
async fn clear(
    /// The file.
    path: WorkspacePath,
) -> String {
    format!("{path} is empty")
}

/// Show a file.
#[tool(read, register = false)]
async fn show(
    /// The file.
    path: Option<WorkspacePath>,
) -> String {
    format!("{path:?}")
}

/// Set a project up.
#[tool(write, display(summary = "Setting up {path}"), register = false)]
async fn set_up(
    /// The file to write.
    #[arg(default = "AGENTS.md")]
    path: WorkspacePath,
) -> String {
    path.to_string()
}

#[derive(Deserialize, JsonSchema)]
struct Several {
    /// The files.
    paths: Vec<WorkspacePath>,
}

/// Empty several files.
#[tool(write, register = false)]
async fn clear_all(args: Args<Several>) -> String {
    args.paths.len().to_string()
}

// F77, PA7: what a path is says what a call touches, also where a tool does not.
#[tokio::test]
async fn a_path_is_a_subject_by_itself() {
    let folder = TempDir::new().unwrap();
    let session = Session::new("s").lend(Workspace::open([folder.path()]).unwrap());
    for (rules, tool, arguments, expected) in [
        (&["allow clear"][..], "clear", json!({ "path": "src/a" }), "allow"),
        (&["allow clear"], "clear", json!({ "path": ".envrc" }), "ask"),
        (&["allow clear"], "clear", json!({ "path": "/etc/passwd" }), "ask"),
        (&["allow clear(src/*)"], "clear", json!({ "path": "./src/a" }), "allow"),
        (&["allow clear(src/*)"], "clear", json!({ "path": "a" }), "ask"),
        (&["allow clear", "deny clear(src/*)"], "clear", json!({ "path": "src//a" }), "deny"),
        (&[], "show", json!({ "path": "src/a" }), "allow"),
        (&[], "show", json!({ "path": ".envrc" }), "allow"),
        (&[], "show", json!({ "path": "/etc/passwd" }), "ask"),
        (&["deny show(src/*)"], "show", json!({ "path": "src/a" }), "deny"),
        (&["deny show(src/*)"], "show", json!({}), "ask"),
        (&["allow set_up"], "set_up", json!({}), "ask"),
        (&["allow set_up"], "set_up", json!({ "path": "a" }), "allow"),
        (&["allow clear_all"], "clear_all", json!({ "paths": ["a", "b"] }), "allow"),
        (&["allow clear_all"], "clear_all", json!({ "paths": ["a", ".envrc"] }), "ask"),
        (&["allow clear_all(src/*)"], "clear_all", json!({ "paths": ["src/a", "b"] }), "ask"),
    ] {
        let rules = rules.iter().map(|rule| rule.parse::<Rule>().unwrap());
        let tools = Registry::builder().add(tools![clear, show, set_up, clear_all]);
        let pipeline = Pipeline::new(tools.build().unwrap()).rules(rules);
        let text = arguments.to_string();
        let checked = pipeline.check(&session, Call::new(tool, text.as_str())).await.unwrap();
        let decision = serde_json::to_value(checked).unwrap();
        assert_eq!(decision["decision"], expected, "{tool} {text}: {decision}");
    }
}

// F77: without a folder nothing says where a path leads, and no tool is trusted with it.
#[tokio::test]
async fn a_path_that_leads_nowhere_makes_nothing_harmless() {
    let pipeline = Pipeline::new(Registry::builder().add(tools![clear]).build().unwrap());
    let call = Call::new("clear", r#"{"path": "src/a"}"#);
    let checked = pipeline.check(&Session::new("s"), call).await.unwrap();
    assert_eq!(serde_json::to_value(checked).unwrap()["decision"], "ask");
}
