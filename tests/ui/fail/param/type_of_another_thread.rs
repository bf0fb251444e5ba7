use std::rc::Rc;

use tool_sdk::tool;

/// Draw a point.
#[tool]
fn draw(
    /// Where.
    at: Rc<u32>,
) -> String {
    at.to_string()
}

fn main() {}
