// No macro can see the `impl` block around it, so rustc has the word; `#[toolset]` is what it takes.
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
