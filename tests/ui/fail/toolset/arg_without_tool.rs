use tool_sdk::toolset;

struct Reader;

#[toolset]
impl Reader {
    /// Read a file.
    #[tool(read)]
    fn read_file(&self) {}

    fn skip(&self, #[arg(default = 1)] lines: u32) {
        let _ = lines;
    }
}

fn main() {
    Reader.read_file();
    Reader.skip(1);
}
