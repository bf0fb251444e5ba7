use tool_sdk::tool;

struct ReadFileArgs;

fn is_long(_: &ReadFileArgs) -> bool {
    let _ = ReadFileArgs;
    true
}

/// Read a file.
#[tool(read, approval(dangerous = is_long))]
fn read_file(
    /// The path.
    path: String,
) -> String {
    path
}

fn main() {}
