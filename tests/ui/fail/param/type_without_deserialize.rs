use schemars::JsonSchema;
use tool_sdk::tool;

#[derive(JsonSchema)]
struct Point {
    x: u32,
}

/// Draw points.
#[tool]
fn draw(
    /// Where.
    at: Vec<Point>,
) -> String {
    at.iter().map(|point| point.x.to_string()).collect()
}

fn main() {}
