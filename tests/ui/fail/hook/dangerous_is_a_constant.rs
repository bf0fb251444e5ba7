use tool_sdk::tool;

/// Write a file.
#[tool(write, approval(dangerous = true))]
fn write_file(
    /// The path.
    path: String,
) -> String {
    path
}

fn main() {}
