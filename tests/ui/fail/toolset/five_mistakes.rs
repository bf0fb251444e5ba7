use tool_sdk::{Registry, toolset};

struct Reader;

#[toolset(prefix = "fs")]
impl Reader {
    #[tool(raed)]
    fn read_file(&self, path: String) -> String {
        path
    }

    /// List a folder.
    #[tool(read, display(primary = file))]
    async fn list(
        &self,
        /// The path.
        path: String,
    ) -> String {
        path
    }
}

fn main() {
    let _ = Reader.read_file(String::new());
    let _ = Reader.list(String::new());
    let _ = ReaderListArgs { path: String::new() };
    let _ = Registry::builder().add(Reader);
}
