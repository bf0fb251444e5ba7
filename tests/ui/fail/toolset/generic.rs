use tool_sdk::toolset;

struct Reader<T>(T);

#[toolset]
impl<T: Send + Sync + 'static> Reader<T> {
    /// Read a file.
    #[tool(read)]
    fn read_file(&self) {}
}

fn main() {
    Reader(1).read_file();
    let _ = Reader(1).0;
}
