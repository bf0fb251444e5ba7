use std::io;

use tool_sdk::tool;

/// Read a file.
#[tool(read)]
async fn read_file() -> Result<String, io::Error> {
    Ok(String::new())
}

fn main() {}
