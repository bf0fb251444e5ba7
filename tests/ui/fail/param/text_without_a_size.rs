use tool_sdk::tool;

/// Read a file.
#[tool(read)]
fn read_file(
    /// The path.
    path: str,
) -> String {
    String::new()
}

fn main() {}
