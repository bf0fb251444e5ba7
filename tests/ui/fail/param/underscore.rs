use tool_sdk::tool;

/// Draw a point.
#[tool]
fn draw(
    /// Where.
    _: u32,
) {
}

fn main() {}
