use tool_sdk::toolset;

trait Read {
    fn read_file(&self);
}

struct Reader;

#[toolset]
impl Read for Reader {
    /// Read a file.
    #[tool(read)]
    fn read_file(&self) {}
}

fn main() {
    Reader.read_file();
}
