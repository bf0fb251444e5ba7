use tool_sdk::tool;

/// Read a file.
#[tool(read)]
fn read_file() -> Result<String, String> {
    Err("nothing".to_owned())
}

fn main() {}
