use tool_sdk::toolset;

struct Reader;

#[toolset]
impl Reader {
    /// Read a file.
    #[tool(read, register = true)]
    fn read_file(&self) {}
}

fn main() {
    Reader.read_file();
}
