use serde::Deserialize;
use tool_sdk::tool;

#[derive(Deserialize)]
struct Point {
    x: u32,
}

/// Draw a point.
#[tool]
fn draw(
    /// Where.
    at: Point,
) -> String {
    at.x.to_string()
}

fn main() {}
