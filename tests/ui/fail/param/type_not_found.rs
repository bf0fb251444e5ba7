use tool_sdk::tool;

/// Draw a point.
#[tool(display(summary = "Drawing {at}"))]
fn draw(
    /// Where.
    at: Point,
) -> String {
    at.to_string()
}

fn main() {}
