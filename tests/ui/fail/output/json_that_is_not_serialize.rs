use tool_sdk::{Json, tool};

struct Lines(Vec<String>);

/// Read a file.
#[tool(read)]
fn read_file() -> Json<Lines> {
    Json(Lines(Vec::new()))
}

fn main() {
    let _ = Lines(Vec::new()).0;
}
