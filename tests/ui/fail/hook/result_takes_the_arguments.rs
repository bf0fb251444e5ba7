use tool_sdk::tool;

fn shown(args: &WriteFileArgs) -> serde_json::Value {
    args.path.as_str().into()
}

/// Write a file.
#[tool(write, display(result = shown))]
fn write_file(
    /// The path.
    path: String,
) -> String {
    path
}

fn main() {}
