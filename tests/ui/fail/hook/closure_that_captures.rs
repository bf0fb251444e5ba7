use tool_sdk::tool;

fn main() {
    let limit = 5;
    let _ = limit;

    /// Write a file.
    #[tool(write, approval(dangerous = |args| args.path.len() > limit))]
    fn write_file(
        /// The path.
        path: String,
    ) -> String {
        path
    }
}
