use tool_sdk::tool;

/// Read a file.
#[tool(read)]
fn read_file(
    /// How many.
    #[arg(default 5)]
    count: u32,
) -> String {
    count.to_string()
}

fn main() {}
