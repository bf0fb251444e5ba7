//! A type of the name that the struct of arguments has where hooks take it.

use serde_json::json;
use tool_sdk::{tool, tools};

use crate::pass::call;

/// The user's own.
struct ReadFileArgs(u8);

/// Reads a file.
#[tool(read, display(summary = "Reading {path}"))]
fn read_file(
    /// The path.
    path: String,
) -> String {
    let ReadFileArgs(own) = ReadFileArgs(7);
    format!("{path} {own}")
}

#[test]
fn a_tool_without_hooks_takes_no_name_of_arguments() {
    assert_eq!(call(tools![read_file], json!({"path": "a"})), "a 7");
}
