use schemars::JsonSchema;
use serde::Deserialize;
use tool_sdk::tool;

#[derive(Deserialize, JsonSchema)]
struct Point {
    x: u32,
}

/// Draw a point.
#[tool(display(summary = "Drawing at {at}"))]
fn draw(
    /// Where.
    at: Point,
) -> String {
    at.x.to_string()
}

fn main() {}
