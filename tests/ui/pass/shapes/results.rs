//! Everything that a tool may return.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use tool_sdk::testing::Harness;
use tool_sdk::{Json, Output, ToolError, tool, tools};

use crate::pass::{call, definition, wait};

#[derive(Serialize, JsonSchema)]
struct Weather {
    degrees: f64,
}

#[derive(Debug)]
struct Storm;

impl fmt::Display for Storm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a storm")
    }
}

impl From<Storm> for ToolError {
    fn from(storm: Storm) -> Self {
        Self::unavailable(storm).hint("try later")
    }
}

type Outcome<T> = Result<T, Storm>;

/// Nothing.
#[tool(read)]
fn result_unit() {}

/// Text.
#[tool(read)]
async fn result_text() -> &'static str {
    "text"
}

/// Output.
#[tool(read)]
fn result_output() -> Output {
    Output::text("output")
}

/// Structure.
#[tool(read)]
async fn result_json() -> Json<Weather> {
    Json(Weather { degrees: 1.5 })
}

/// Structure or an error.
#[tool(read)]
async fn result_json_or_error() -> Result<Json<Vec<Weather>>, ToolError> {
    Ok(Json(Vec::new()))
}

/// Nothing or an error of its own.
#[tool(read)]
fn result_unit_or_error() -> Result<(), Storm> {
    Ok(())
}

/// Always fails.
#[tool(read)]
async fn result_alias() -> Outcome<String> {
    Err(Storm)
}

#[test]
fn results_become_text() {
    assert_eq!(call(tools![result_unit], json!({})), "done");
    assert_eq!(call(tools![result_text], json!({})), "text");
    assert_eq!(call(tools![result_output], json!({})), "output");
    assert_eq!(call(tools![result_json], json!({})), r#"{"degrees":1.5}"#);
    assert_eq!(call(tools![result_json_or_error], json!({})), "[]");
    assert_eq!(call(tools![result_unit_or_error], json!({})), "done");
}

#[test]
fn structure_has_a_schema() {
    assert!(definition(tools![result_text]).output.is_none());
    assert!(definition(tools![result_json]).output.is_some());
    assert!(definition(tools![result_json_or_error]).output.is_some());
}

#[test]
fn an_error_of_ones_own_is_a_failed_call() {
    let error = wait(Harness::new(tools![result_alias]).error("result_alias", "{}"));
    assert_eq!(error.message(), "a storm");
    assert_eq!(error.suggestion(), Some("try later"));
}
