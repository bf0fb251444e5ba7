use tool_sdk::{tool, tools};

struct Point {
    x: u32,
}

/// Draw a point.
#[tool(display(primary = at))]
async fn draw(
    /// Where.
    at: Point,
) -> String {
    at.x.to_string()
}

fn main() {
    let _ = tools![draw];
}
