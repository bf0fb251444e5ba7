use tool_sdk::tool;

/// Write a file.
#[tool(write, approval(dangerous = |args| args.file.is_empty()))]
fn write_file(
    /// The path.
    path: String,
) -> String {
    path
}

fn main() {}
