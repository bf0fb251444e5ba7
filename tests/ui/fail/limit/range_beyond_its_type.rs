use tool_sdk::tool;

/// Read a file.
#[tool(read)]
fn read_file(
    /// How many.
    #[arg(range = 300..=400)]
    count: u8,
) -> String {
    count.to_string()
}

fn main() {}
