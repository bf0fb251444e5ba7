//! What `testing::check_all` finds in a struct of arguments, which no macro sees.

use schemars::JsonSchema;
use serde::Deserialize;
use tool_sdk::testing::ToolChecks;
use tool_sdk::{Args, Registry, tool, tools};

#[derive(Deserialize, JsonSchema)]
struct Order {
    item: String,
    /// How many.
    #[schemars(range(min = 1, max = 9))]
    count: u32,
    /// Where to.
    address: Address,
}

#[derive(Deserialize, JsonSchema)]
struct Address {
    street: String,
    /// The town.
    town: Option<String>,
}

/// Order something.
#[tool(
    write,
    register = false,
    example = r#"{"item": "tea", "count": 10, "address": {"street": 1}}"#
)]
fn order(args: Args<Order>) -> String {
    let Address { street, town } = &args.address;
    format!("{} {} {street} {town:?}", args.item, args.count)
}

#[test]
fn missing_descriptions_and_wrong_examples_of_structs_are_found() {
    let line = line!() - 7;
    let registry = Registry::builder().add(tools![order]).build().expect("it is valid");
    let findings = ToolChecks::default().without_dialect(tool_sdk::provider::Dialect::OpenAiStrict);
    let findings = findings.findings(&registry);
    let text = findings.join("\n");
    for expected in [
        "the parameter `item` has no description",
        "the field `street` of `address` has no description",
        "`count` is 10, but must be between 1 and 9",
        "`address.street` is 1, but must be a string",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    assert_eq!(findings.len(), 3, "{text}");
    let place = format!("`order` (tool-tests 0.1.0, tests/it/checks.rs:{line})");
    assert!(findings.iter().all(|finding| finding.starts_with(&place)), "{place}\n{text}");
}
