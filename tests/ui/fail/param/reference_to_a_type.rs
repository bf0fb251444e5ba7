use tool_sdk::tool;

struct Point {
    x: u32,
}

/// Draw a point.
#[tool]
fn draw(
    /// Where.
    at: &Point,
) -> String {
    at.x.to_string()
}

fn main() {}
