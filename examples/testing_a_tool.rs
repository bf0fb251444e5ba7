//! Tests of a tool.
//!
//! Three kinds: of the function itself, of the tool through a pipeline in memory, and checks that
//! every tool must pass. Run them with
//! `cargo test -p tool-examples --example testing_a_tool`.

use tool_sdk::{Context, Registry, ToolError, tool};

/// Convert a length from feet to metres.
#[tool(read, example = r#"{"feet": 6}"#)]
async fn to_metres(
    /// The length in feet.
    #[arg(range = 0.0..=1_000_000.0)]
    feet: f64,
    /// Digits after the point.
    #[arg(default = 2, range = 0..=9)]
    digits: u8,
    cx: &Context,
) -> Result<String, ToolError> {
    if feet.fract() != 0.0 && digits == 0 {
        return Err(ToolError::invalid("digits", "a length in parts of a foot needs digits")
            .hint("leave `digits` out"));
    }
    cx.set_metadata("unit", "m");
    Ok(format!("{:.*} m", usize::from(digits), feet * 0.3048))
}

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = Registry::linked()?;
    let findings = tool_sdk::testing::ToolChecks::default().findings(&registry);
    println!("{} tool, {} findings", registry.len(), findings.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tool_sdk::testing::{self, Harness};
    use tool_sdk::{ErrorKind, tools};

    use super::*;

    #[tokio::test]
    async fn the_function_is_called_as_any_other() {
        let text = to_metres(10.0, 1, &testing::context()).await.expect("it is valid");
        assert_eq!(text, "3.0 m");
    }

    #[tokio::test]
    async fn the_tool_fills_defaults_in() {
        let harness = Harness::new(tools![to_metres]);
        assert_eq!(harness.ok("to_metres", json!({"feet": 10})).await.as_text(), "3.05 m");
    }

    #[tokio::test]
    async fn an_error_has_a_kind_and_a_hint() {
        let harness = Harness::new(tools![to_metres]);
        let error = harness.error("to_metres", json!({"feet": 1.5, "digits": 0})).await;
        assert_eq!(error.kind(), ErrorKind::InvalidArgs);
        assert_eq!(error.suggestion(), Some("leave `digits` out"));
    }

    #[tokio::test]
    async fn what_the_schema_says_holds_before_the_body_runs() {
        let harness = Harness::new(tools![to_metres]);
        let error = harness.error("to_metres", json!({"feet": -1})).await;
        assert!(error.message().contains("`feet`"), "{error}");
    }

    #[tokio::test]
    async fn examples_run_and_every_provider_takes_the_tool() {
        Harness::new(tools![to_metres]).run_examples().await;
        testing::check_all(&Registry::linked().expect("no two tools share a name"));
    }
}
