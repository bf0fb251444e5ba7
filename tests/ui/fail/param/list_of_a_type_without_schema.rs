use tool_sdk::tool;

struct Point;

/// Draw.
#[tool(read)]
fn draw(
    /// Where.
    points: Vec<Point>,
) -> String {
    points.len().to_string()
}

fn main() {}
