use tool_sdk::toolset;

struct Reader;

#[toolset]
impl Reader {
    /// Read a file.
    #[tool(read)]
    fn read_file(&self) {}

    /// Read a file.
    #[tool(read, name = "read_file")]
    fn read_all(&self) {}
}

fn main() {
    Reader.read_file();
    Reader.read_all();
}
