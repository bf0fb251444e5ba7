//! Traits in scope whose methods every type has.

use serde_json::json;
use tool_sdk::{tool, tools};

use crate::pass::call;

trait Everything {
    fn facts(&self) {}
    fn schema(&self) {}
    fn slot(&self) {}
    fn unwrap_or(&self) {}
}

impl<T: ?Sized> Everything for T {}

fn use_it() {
    ().facts();
    ().schema();
    ().slot();
    ().unwrap_or();
}

/// Echoes.
#[tool(read, display(summary = "Echoing {text}"))]
fn shadowed_traits(
    /// What.
    #[arg(default = String::from("nothing"))]
    text: String,
) -> String {
    use_it();
    text
}

#[test]
fn methods_are_found_by_their_types() {
    assert_eq!(call(tools![shadowed_traits], json!({})), "nothing");
}
