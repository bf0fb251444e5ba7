use tool_sdk::{Registry, toolset};

struct Reader;

#[toolset]
impl Reader {
    /// Read a file.
    #[tool(read)]
    fn read_file() {}
}

fn main() {
    Reader::read_file();
    let _ = Registry::builder().add(Reader);
}
