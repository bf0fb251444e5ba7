use tool_sdk::tool;

/// Read a file.
#[tool(required = asks, summary = "Reading {path}")]
fn read_file(
    /// The path.
    path: String,
) -> String {
    path
}

fn main() {}
