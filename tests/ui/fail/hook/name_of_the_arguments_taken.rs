use tool_sdk::tool;

struct ReadFileArgs {
    path: String,
}

fn is_long(args: &ReadFileArgs) -> bool {
    args.path.len() > 80
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
