use tool_sdk::tool;

/// Say how large a file is.
#[tool(read)]
fn größe() {}

fn main() {}
