use tool_sdk::tool;

/// Read a file.
#[tool(read)]
fn read_file<'a>(
    /// The path.
    path: &'a str,
) -> String {
    path.to_owned()
}

fn main() {}
