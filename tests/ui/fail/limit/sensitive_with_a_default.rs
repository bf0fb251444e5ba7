use tool_sdk::tool;

/// Read a file.
#[tool(read)]
fn read_file(
    /// The token.
    #[arg(sensitive, default = "guest")]
    token: String,
) -> String {
    token
}

fn main() {}
