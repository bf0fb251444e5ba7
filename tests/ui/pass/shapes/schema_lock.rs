//! Tools whose schemas are committed, and have not drifted.
//!
//! Each has a test that the macro wrote, which compares all of its schema: those of this
//! module are run as `pass::shapes::schema_lock::schema_of_..::is_as_committed`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tool_sdk::{Args, tool, tools, toolset};

use crate::pass::{call, definition};

/// Reads lines.
#[tool(read, schema = "pass/shapes/schema_lock.json")]
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

#[derive(Deserialize, JsonSchema)]
struct Search {
    /// What to look for.
    query: String,
    /// Where.
    within: Vec<Place>,
}

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The shelf.
    shelf: u8,
}

/// Searches the shelves.
#[tool(read, schema = "pass/shapes/schema_lock_of_a_struct.json")]
fn schema_locked_search(args: Args<Search>) -> String {
    format!(
        "{} {}",
        args.query,
        args.within.iter().map(|place| u32::from(place.shelf)).sum::<u32>()
    )
}

struct Shelf;

#[toolset]
impl Shelf {
    /// Takes a book.
    #[tool(write, schema = "pass/shapes/schema_lock_of_a_method.json")]
    fn schema_locked_take(
        &self,
        /// The title.
        title: &str,
    ) -> String {
        title.to_owned()
    }
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

#[test]
fn a_tool_in_a_function_may_have_one_too() {
    /// Reads lines.
    #[tool(read, register = false, schema = "pass/shapes/schema_lock_in_a_function.json")]
    fn schema_locked_inside(
        /// The path.
        path: String,
    ) -> String {
        path
    }
    assert_eq!(call(tools![schema_locked_inside], json!({"path": "a"})), "a");
}

#[test]
fn structs_and_methods_may_have_one() {
    let arguments = json!({"query": "a", "within": [{"shelf": 2}, {"shelf": 3}]});
    assert_eq!(call(tools![schema_locked_search], arguments), "a 5");
    assert_eq!(call(Shelf, json!({"title": "b"})), "b");
}
