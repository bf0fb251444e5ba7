use tool_sdk::toolset;

struct Reader;

fn is_dangerous(args: &ReaderListArgs) -> bool {
    args.path.is_empty()
}

#[toolset]
impl Reader {
    /// List a folder.
    #[tool(read)]
    fn list(
        &self,
        /// The path.
        path: String,
    ) -> String {
        path
    }

    /// Read a file.
    #[tool(read, approval(dangerous = is_dangerous))]
    fn read(
        &self,
        /// The path.
        path: String,
    ) -> String {
        path
    }
}

fn main() {}
