//! Functions that few people write, and that are tools all the same.

use serde_json::json;
use tool_sdk::{Context, tool, tools};

use crate::pass::{call, definition, parameters};

/// Does nothing.
#[tool(read)]
const fn odd_constant(
    /// Whatever.
    _it: u8,
) {
}

/// Marks a text.
#[tool(read)]
fn odd_mutable(
    /// The text.
    mut text: String,
) -> String
where
    String: Clone,
{
    text.push('!');
    text
}

/// Asks twice.
#[tool(read)]
async fn odd_contexts(one: &Context, other: Context) -> String {
    (one.call_id() == other.call_id()).to_string()
}

/// Weighs it.
#[tool(name = "weigh", read)]
fn größe(
    /// How many.
    #[arg(rename = "count", default = { let one = 1; one + 1 })]
    zahl: u8,
) -> String {
    zahl.to_string()
}

#[doc = concat!("Matches", " it.")]
#[tool(read, approval(dangerous = is_of::<u8>))]
fn r#where(
    /// Of which kind.
    #[expect(unused_variables, reason = "an attribute that is not ours")]
    r#type: Option<Option<String>>,
) {
}

fn is_of<T>(args: &WhereArgs) -> bool {
    args.r#type.is_some() && size_of::<T>() == 1
}

#[test]
fn odd_functions_are_tools() {
    assert_eq!(call(tools![odd_constant], json!({"_it": 1})), "done");
    assert_eq!(call(tools![odd_mutable], json!({"text": "a"})), "a!");
    assert_eq!(call(tools![odd_contexts], json!({})), "true");
    assert_eq!(call(tools![größe], json!({})), "2");
    let matched = definition(tools![r#where]);
    assert_eq!((matched.name.as_str(), &*matched.description), ("where", "Matches it."));
    assert_eq!(parameters(&matched), ["type"]);
}
