use tool_sdk::tool;

/// Read a file.
#[tool(read, destructive = false)]
fn read_file(
    /// The path.
    path: String,
) -> String {
    path
}

fn main() {}
