use std::rc::Rc;

use tool_sdk::tool;

/// Read a file.
#[tool(read)]
async fn read_file() -> String {
    let text = Rc::new("text");
    std::future::ready(()).await;
    text.to_string()
}

fn main() {}
