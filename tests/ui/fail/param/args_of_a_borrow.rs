use schemars::JsonSchema;
use serde::Deserialize;
use tool_sdk::{Args, tool};

#[derive(Deserialize, JsonSchema)]
struct Query<'q> {
    text: &'q str,
}

/// Search.
#[tool(read)]
async fn search(args: Args<Query<'_>>) -> String {
    args.text.to_owned()
}

fn main() {}
