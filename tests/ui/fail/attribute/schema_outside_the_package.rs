use tool_sdk::tool;

/// Read a file.
#[tool(read, schema = "/schemas/read_file.json")]
fn read_file(
    /// The path.
    path: String,
) -> String {
    path
}

fn main() {}
