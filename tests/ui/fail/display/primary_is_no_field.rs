use schemars::JsonSchema;
use serde::Deserialize;
use tool_sdk::{Args, tool};

#[derive(Deserialize, JsonSchema)]
struct Search {
    query: String,
}

/// Search.
#[tool(read, display(primary = text))]
async fn search(args: Args<Search>) -> String {
    args.query.clone()
}

fn main() {}
