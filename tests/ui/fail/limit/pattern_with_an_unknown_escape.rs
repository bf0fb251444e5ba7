use tool_sdk::tool;

/// Read a file.
#[tool(read)]
fn read_file(
    /// The path.
    #[arg(pattern = "^\d+$")]
    path: String,
) -> String {
    path
}

fn main() {}
