//! Hooks as functions, closures, methods and generic functions.

use serde_json::{Value, json};
use tool_sdk::{Context, Output, RawArgs, Resource, Tool, tool, tools};

mod rules {
    use tool_sdk::Context;

    use super::{HooksByPathArgs, Resource};

    pub(super) fn required(args: &HooksByPathArgs, _: &Context) -> bool {
        args.path.starts_with('/')
    }

    pub(super) fn subjects(args: &HooksByPathArgs, _: &Context) -> Vec<Resource> {
        vec![Resource::new(&args.path)]
    }
}

impl HooksByPathArgs {
    fn is_dangerous(&self) -> bool {
        self.path == "/"
    }
}

fn never<T>(_: &T, _: &str) -> bool {
    false
}

fn length(output: &Output) -> Value {
    output.as_text().len().into()
}

/// Writes.
#[tool(
    write,
    approval(
        required = rules::required,
        resources = rules::subjects,
        dangerous = HooksByPathArgs::is_dangerous,
        covers = never::<HooksByPathArgs>,
    ),
    display(result = length)
)]
async fn hooks_by_path(
    /// The path.
    path: String,
) -> String {
    path
}

/// Writes.
#[tool(
    write,
    approval(
        required = |args, cx: &Context| args.path.len() > cx.tool().as_str().len(),
        resources = |args: &HooksByClosureArgs, _| vec![args.path.as_str().into()],
        suggest = |args| { let path = &args.path; vec![format!("{path}/*")] },
    ),
    display(preview = |_, _| Ok(None), summary = "Writing")
)]
fn hooks_by_closure(
    /// The path.
    path: &str,
) -> String {
    path.to_owned()
}

#[test]
fn hooks_are_asked_about_the_decoded_arguments() {
    let cx = tool_sdk::testing::context();
    let prepared = |tools: Vec<std::sync::Arc<dyn Tool>>, path: &str| {
        let arguments = json!({ "path": path }).to_string();
        let tool = tools.first().expect("a tool");
        tool.prepare(&RawArgs::new(arguments)).expect("good arguments")
    };
    let root = prepared(tools![hooks_by_path], "/");
    assert_eq!(root.approval_required(&cx), Some(true));
    assert_eq!(root.resources(&cx), Some(vec![Resource::new("/")]));
    assert_eq!(root.covered_by("*"), Some(false));
    assert!(root.is_dangerous());
    assert_eq!(root.summary(), None);

    let short = prepared(tools![hooks_by_closure], "a");
    assert_eq!(short.approval_required(&cx), Some(false));
    assert_eq!(short.suggestions(), ["a/*"]);
    assert_eq!(short.summary().as_deref(), Some("Writing"));
    assert_eq!(short.preview(&cx).expect("it runs"), None);
    assert!(!short.is_dangerous());
}
