use std::error::Error;

use tool_sdk::tool;

/// Read a file.
#[tool(read)]
fn read_file() -> Result<String, Box<dyn Error>> {
    Ok(String::new())
}

fn main() {}
