use std::future::{Future, ready};

use tool_sdk::tool;

/// Read a file.
#[tool(read)]
fn read_file() -> impl Future<Output = String> {
    ready(String::new())
}

fn main() {}
