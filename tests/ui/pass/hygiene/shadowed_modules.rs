//! Modules with the names of every crate that generated code could mean.

use ::serde_json::json;
use ::tool_sdk::{tool, tools, toolset};

use crate::pass::call;

mod alloc {}
mod core {}
mod inventory {}
mod schemars {}
mod serde {}
mod serde_json {}
mod std {}
mod tool_sdk {}
mod tool_sdk_macros {}

/// Greets.
#[tool(
    read,
    display(primary = name, summary = "Greeting {name}"),
    parallel = by(name),
    timeout = "5s",
    example = r#"{"name": "Ada"}"#
)]
async fn shadowed_modules(
    /// Whom.
    name: &str,
    /// How often.
    #[arg(default = 1, range = 1..=3)]
    times: usize,
    /// With what.
    #[arg(default = "hello", choices("hello", "hi"))]
    word: Option<&str>,
) -> String {
    ::std::vec![::std::format!("{} {name}", word.unwrap_or_default()); times].join(", ")
}

struct Greeter;

#[toolset]
impl Greeter {
    /// Greets.
    #[tool(read, name = "shadowed_modules_method")]
    fn greet(
        &self,
        /// Whom.
        name: &str,
    ) -> String {
        ::std::format!("hello {name}")
    }
}

#[test]
fn paths_are_absolute() {
    assert_eq!(
        call(tools![shadowed_modules], json!({"name": "Ada", "times": 2})),
        "hello Ada, hello Ada"
    );
    assert_eq!(call(Greeter, json!({"name": "Ada"})), "hello Ada");
}
