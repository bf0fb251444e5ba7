use serde::Deserialize;
use tool_sdk::{Args, tool};

#[derive(Deserialize)]
struct Search {
    query: String,
}

/// Search.
#[tool(display(primary = query, summary = "Searching {query}"))]
async fn search(args: Args<Search>) -> String {
    args.query.clone()
}

fn main() {}
