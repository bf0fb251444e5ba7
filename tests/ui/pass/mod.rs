//! Code that the macros must accept, and what comes of it.
//!
//! These are modules of the test binary and not programs of their own: they compile once,
//! under the lints of the workspace, and can ask the tools what they are.

mod hygiene;
mod shapes;

use serde_json::Value;
use tool_sdk::testing::Harness;
use tool_sdk::{Definition, IntoTools};

/// The definition of the only tool among `tools`.
#[track_caller]
fn definition(tools: impl IntoTools) -> Definition {
    match tools.into_tools().as_slice() {
        [tool] => tool.definition().clone(),
        tools => panic!("expected one tool, found {}", tools.len()),
    }
}

/// The text that a call of the only tool among `tools` gives.
#[track_caller]
fn call(tools: impl IntoTools, arguments: Value) -> String {
    let tools = tools.into_tools();
    let name = tools.first().expect("a tool").definition().name.to_string();
    wait(Harness::new(tools).ok(&name, arguments)).into_text()
}

/// The names of a tool's parameters, in order.
fn parameters(definition: &Definition) -> Vec<String> {
    definition.parameters.properties().map(|(name, _)| name.to_owned()).collect()
}

fn wait<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(future)
}
