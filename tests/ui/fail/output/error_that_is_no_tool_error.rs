use tool_sdk::tool;

#[derive(Debug)]
struct Broken;

/// Read a file.
#[tool(read)]
async fn read_file() -> Result<String, Broken> {
    Ok(String::new())
}

fn main() {}
