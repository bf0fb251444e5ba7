//! Types and variants with the names of the prelude's.

use serde_json::json;
use tool_sdk::{tool, tools, toolset};

use crate::pass::call;

struct Arc;
struct Box;
struct Context;
struct Duration;
struct Future;
struct Option;
struct Result;
struct Send;
struct String;
struct Sync;
struct Vec;
struct Some;
struct None;
struct Ok;
struct Err;

fn use_them() {
    let _ = (Arc, Box, Context, Duration, Future, Option, Result, Send, String, Sync, Vec);
    let _ = (Some, None, Ok, Err);
}

/// Repeats.
#[tool(
    read,
    approval(required = |args, _| args.text.is_empty()),
    display(summary = "Repeating {text}{label}", result = |_| serde_json::Value::Null),
    parallel = by(text)
)]
async fn shadowed_types(
    /// What.
    text: &str,
    /// How often.
    #[arg(default = std::num::NonZeroU8::MIN)]
    times: std::num::NonZeroU8,
    /// A label.
    label: std::option::Option<&str>,
    /// More of them.
    more: std::option::Option<std::vec::Vec<std::string::String>>,
    cx: &tool_sdk::Context,
) -> std::result::Result<std::string::String, tool_sdk::ToolError> {
    use_them();
    let more = more.map(|more| more.concat()).unwrap_or_default();
    let text = text.repeat(times.get().into());
    std::result::Result::Ok(format!("{}: {text}{}{more}", cx.tool(), label.unwrap_or_default()))
}

struct Echo;

#[toolset]
impl Echo {
    /// Repeats.
    #[tool(read, name = "shadowed_types_method")]
    async fn echo(
        &self,
        /// What.
        text: std::string::String,
    ) -> std::result::Result<std::string::String, tool_sdk::ToolError> {
        std::result::Result::Ok(text)
    }
}

#[test]
fn nothing_comes_from_the_prelude() {
    assert_eq!(
        call(tools![shadowed_types], json!({"text": "ab", "times": 2, "more": ["c"]})),
        "shadowed_types: ababc"
    );
    assert_eq!(call(Echo, json!({"text": "a"})), "a");
}
