use tool_sdk::toolset;

struct Reader;

#[toolset(prefix = "fs")]
impl Reader {
    /// Read a file.
    #[tool(read)]
    fn read_file(&self) {}
}

fn main() {
    Reader.read_file();
}
