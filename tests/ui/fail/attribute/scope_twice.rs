use tool_sdk::tool;

/// Read a file.
#[tool(read, scopes("a", "a"))]
fn read_file(
    /// The path.
    path: String,
) -> String {
    path
}

fn main() {}
