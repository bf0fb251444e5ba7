//! All arguments as one struct.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tool_sdk::{Args, Context, tool, tools};

use crate::pass::{call, definition, parameters};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    /// What to look for.
    query: String,
    /// How many at most.
    #[serde(default)]
    limit: Option<u32>,
    /// The kind.
    #[serde(rename = "type", default)]
    r#type: Option<String>,
}

fn is_empty(search: &Search) -> bool {
    search.query.is_empty()
}

/// Searches.
#[tool(
    read,
    display(primary = query, show(query, limit), summary = "Searching {query} {limit} {type}"),
    approval(dangerous = is_empty),
    parallel = by(query),
    example = r#"{"query": "a"}"#
)]
async fn search_struct(cx: &Context, args: Args<Search>) -> String {
    format!("{}: {} {:?} {:?}", cx.tool(), args.query, args.limit, args.r#type)
}

/// Searches.
#[tool(read)]
fn search_pattern(Args(Search { query, limit, .. }): Args<Search>) -> String {
    format!("{query} {limit:?}")
}

#[test]
fn the_struct_is_the_schema() {
    assert_eq!(parameters(&definition(tools![search_struct])), ["query", "limit", "type"]);
    assert_eq!(
        call(tools![search_struct], json!({"query": "a", "type": "b"})),
        r#"search_struct: a None Some("b")"#
    );
    assert_eq!(call(tools![search_pattern], json!({"query": "a", "limit": 1})), "a Some(1)");
}
