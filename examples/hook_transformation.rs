//! A hook before the call that rewrites its arguments.
//!
//! The rewritten call is decoded and judged like any other: a rule that allows the call of the model
//! does not allow the one that would run. The approval prompt shows both.

use std::sync::Arc;

use serde_json::Value;
use tool_sdk::{
    ApprovalResponse, Call, Hook, HookContext, HookDecision, HookPriority, Pipeline, Registry,
    Rule, ScriptedApprover, Session, ToolError, tool,
};

/// Write a file.
#[tool(write)]
fn save(
    /// Where to write it.
    path: String,
    /// What to write.
    text: String,
) -> String {
    format!("{} bytes in {path}", text.len())
}

/// Moves every path into the folder of the session's project.
struct IntoProject;

impl Hook for IntoProject {
    async fn before(&self, call: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        let Some(project) = call.session().project() else {
            return Err(ToolError::config("the session has no project"));
        };
        let mut arguments = call.arguments_value();
        if let Some(Value::String(path)) = arguments.get_mut("path") {
            *path = format!("{project}/{path}");
        }
        Ok(HookDecision::none().rewrite(&arguments).with_context("(paths are in the project)"))
    }
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let asked = Arc::new(ScriptedApprover::new([ApprovalResponse::Once]));
    let pipeline = Pipeline::new(Registry::linked()?)
        .rules(["allow save(path: notes/*)".parse()?])
        .shared_approver(Arc::clone(&asked) as _)
        .hook("save", HookPriority::VALIDATION, IntoProject);
    let arguments = r#"{"path": "notes/a.txt", "text": "hello"}"#;

    // The rule is about `notes/a.txt`, which is not the file that would be written, so the user is asked.
    let session = Session::new("example").with_project("garden");
    let outcome = pipeline.call(&session, Call::new("save", arguments)).await;
    assert_eq!(outcome.text(), "5 bytes in garden/notes/a.txt\n\n(paths are in the project)");
    let ask = &asked.requests()[0];
    assert_eq!(ask.arguments["path"], "garden/notes/a.txt");
    assert_eq!(ask.original.as_ref().map(|sent| &sent["path"]), Some(&"notes/a.txt".into()));
    println!("{}", outcome.text());

    // If a hook fails, the call does not run.
    let nowhere = Session::new("nowhere");
    let outcome = pipeline.call(&nowhere, Call::new("save", arguments)).await;
    assert_eq!(outcome.text(), "the hook `IntoProject` failed, so the call is refused");
    println!("{}", outcome.text());

    // A rule may deny the rewritten call as well.
    let rules = ["allow save".parse::<Rule>()?, "deny save(path: secret/*)".parse()?];
    pipeline.set_rules(rules.into_iter().collect());
    let secret = Session::new("secret").with_project("secret");
    let outcome = pipeline.call(&secret, Call::new("save", arguments)).await;
    assert!(outcome.text().contains("`deny save(path: secret/*)`"), "{}", outcome.text());
    println!("{}", outcome.text());
    Ok(())
}

// F68, F64
#[cfg(test)]
#[test]
fn a_rewritten_call_is_judged_anew() {
    main().expect("what it shows holds");
}
