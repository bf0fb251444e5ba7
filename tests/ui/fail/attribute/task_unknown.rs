use tool_sdk::tool;

/// Renumbers every book.
#[tool(write, task = forbidden)]
async fn renumber() {}

fn main() {}
