use tool_sdk::tool;

/// Read a file.
#[tool("Read a file")]
fn read_file(
    /// The path.
    path: String,
) -> String {
    path
}

fn main() {}
