use tool_sdk::tool;

/// Write a file.
#[tool(write, approval(dangerous = async |args| args.path.is_empty()))]
fn write_file(
    /// The path.
    path: String,
) -> String {
    path
}

fn main() {}
