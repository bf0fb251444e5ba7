use tool_sdk::tool;

/// Read a file.
#[tool(write, permission = "edit(*)")]
fn read_file(
    /// The path.
    path: String,
) -> String {
    path
}

fn main() {}
