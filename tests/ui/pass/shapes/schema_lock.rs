//! A tool whose schema is committed, and has not drifted.

use serde_json::{Value, json};
use tool_sdk::{tool, tools};

use crate::pass::{call, definition};

/// Reads lines.
#[tool(read, schema = "ui/pass/shapes/schema_lock.json")]
fn schema_locked(
    /// The path.
    path: String,
    /// How many.
    #[arg(default = 10, range = 1..=100)]
    lines: u32,
    /// The order.
    #[arg(choices("up", "down"), length = ..=4)]
    order: Option<String>,
    /// A pattern.
    #[arg(pattern = "^[a-z]$", default = "a")]
    pattern: &str,
    /// Not told.
    #[arg(hidden, default = false)]
    hidden: bool,
) -> String {
    format!("{path} {lines} {order:?} {pattern} {hidden}")
}

#[test]
fn a_committed_schema_is_the_one_in_use() {
    let committed: Value =
        serde_json::from_str(include_str!("schema_lock.json")).expect("it is JSON");
    let definition = definition(tools![schema_locked]);
    assert_eq!(committed["description"], *definition.description);
    assert_eq!(committed["inputSchema"], definition.parameters.to_value());
    assert_eq!(call(tools![schema_locked], json!({"path": "a"})), "a 10 None a false");
}
