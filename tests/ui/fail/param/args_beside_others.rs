use schemars::JsonSchema;
use serde::Deserialize;
use tool_sdk::{Args, tool};

#[derive(Deserialize, JsonSchema)]
struct Search {
    query: String,
}

/// Search.
#[tool]
fn search(
    args: Args<Search>,
    /// How many.
    limit: u32,
) -> String {
    format!("{} {limit}", args.query)
}

fn main() {}
