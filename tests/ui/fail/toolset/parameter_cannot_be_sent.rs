use tool_sdk::toolset;

struct Reader;

struct Point {
    x: u32,
}

#[toolset]
impl Reader {
    /// Draw a point.
    #[tool(read)]
    async fn draw(
        &self,
        /// Where.
        at: Point,
    ) -> String {
        at.x.to_string()
    }
}

fn main() {}
