use schemars::JsonSchema;
use serde::Deserialize;
use tool_sdk::{Args, tool};

#[derive(Deserialize, JsonSchema)]
struct Search {
    query: String,
}

/// Search.
#[tool]
fn search(#[arg(hidden)] args: Args<Search>) -> String {
    args.query.clone()
}

fn main() {}
