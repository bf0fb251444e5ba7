use tool_sdk::toolset;

struct Reader;

#[toolset]
impl Reader {
    /// Read a file.
    #[tool(read, name = "read")]
    fn read_file(&self) {}

    /// Read a page.
    #[tool(read, name = "read")]
    fn read_page(&self) {}
}

fn main() {}
