use tool_sdk::tool;

/// Write a file.
#[tool(write, approval(suggest = |args| args.path.clone()))]
fn write_file(
    /// The path.
    path: String,
) -> String {
    path
}

fn main() {}
