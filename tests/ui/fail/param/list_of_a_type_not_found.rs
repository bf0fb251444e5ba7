use tool_sdk::{State, tool};

/// Draw a line.
#[tool]
async fn draw(
    /// Where.
    points: Vec<Point>,
    canvas: State<Canvas>,
) -> String {
    canvas.draw(points)
}

fn main() {}
