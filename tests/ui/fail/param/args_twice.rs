use schemars::JsonSchema;
use serde::Deserialize;
use tool_sdk::{Args, tool};

#[derive(Deserialize, JsonSchema)]
struct Search {
    query: String,
}

/// Search.
#[tool]
fn search(args: Args<Search>, more: Args<Search>) -> String {
    format!("{} {}", args.query, more.query)
}

fn main() {}
