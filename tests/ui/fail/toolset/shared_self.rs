use std::sync::Arc;

use tool_sdk::toolset;

struct Reader;

#[toolset]
impl Reader {
    /// Read a file.
    #[tool(read)]
    fn read_file(self: Arc<Self>) {}
}

fn main() {
    Arc::new(Reader).read_file();
}
