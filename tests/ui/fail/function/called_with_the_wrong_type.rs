use tool_sdk::tool;

/// Read a file.
#[tool(read)]
fn read_file(
    /// The path.
    path: &str,
) -> String {
    path.to_owned()
}

fn main() {
    read_file(5);
}
