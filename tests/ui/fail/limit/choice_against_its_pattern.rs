use tool_sdk::tool;

/// Read a file.
#[tool(read)]
fn read_file(
    /// The path.
    #[arg(choices("a"), pattern = "^b$")]
    path: String,
) -> String {
    path
}

fn main() {}
