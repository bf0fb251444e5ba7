use tool_sdk::toolset;

struct Reader;

#[toolset]
impl Reader {
    /// Read a file.
    #[tool(read, approval(dangerous = Self::is_dangerous))]
    fn read(
        &self,
        /// The path.
        path: String,
    ) -> String {
        path
    }

    fn is_dangerous(&self, args: &ReaderReadArgs) -> bool {
        args.path.is_empty()
    }
}

fn main() {}
