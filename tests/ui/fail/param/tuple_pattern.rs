use tool_sdk::tool;

/// Draw a point.
#[tool]
fn draw(
    /// Where.
    (x, y): (u32, u32),
) -> String {
    format!("{x} {y}")
}

fn main() {}
