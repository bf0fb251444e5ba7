use tool_sdk::tool;

/// Read a file.
#[tool(risk = "read", doc = "Reads a file.")]
fn read_file() {}

fn main() {}
