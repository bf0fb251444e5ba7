use tool_sdk::tool;

/// Read a file.
#[tool(read)]
fn read_file(
    /// The path.
    #[arg(required)]
    path: String,
    /// How many lines.
    #[arg(optional)]
    lines: u32,
) -> String {
    format!("{path} {lines}")
}

fn main() {}
