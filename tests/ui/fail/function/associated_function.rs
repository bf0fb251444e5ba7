use tool_sdk::tool;

struct Reader;

impl Reader {
    /// Read a file.
    #[tool(read)]
    fn read_file() {}
}

fn main() {
    Reader::read_file();
}
