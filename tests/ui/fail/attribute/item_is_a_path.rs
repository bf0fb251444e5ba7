use tool_sdk::tool;

/// Read a file.
#[tool(tool_sdk::read)]
fn read_file(
    /// The path.
    path: String,
) -> String {
    path
}

fn main() {}
