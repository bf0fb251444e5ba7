use tool_sdk::tool;

/// Read a file.
#[tool(read, aliases["open"])]
fn read_file(
    /// The path.
    path: String,
) -> String {
    path
}

fn main() {}
