use tool_sdk::tool;

/// Read a file.
#[tool(read)]
fn read_file(
    /// The path.
    #[tool(default = "a")]
    path: String,
) -> String {
    path
}

fn main() {}
