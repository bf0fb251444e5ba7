use tool_sdk::toolset;

struct Reader;

#[toolset]
impl Reader {
    /// Read a file.
    #[tool(read)]
    fn read_file(&mut self) {}
}

fn main() {
    Reader.read_file();
}
