use tool_sdk::tool;

/// Reads files.
#[tool(read)]
struct ReadFile;

fn main() {
    let _ = ReadFile;
}
