use tool_sdk::tool;

mod here {
    use super::tool;

    /// Read a file.
    #[tool(read)]
    fn read_file() {}
}

mod there {
    use super::tool;

    /// Read a file.
    #[tool(read, timeout = "5s")]
    fn read_file(
        /// The path.
        path: String,
    ) -> String {
        path
    }
}

fn main() {}
