use tool_sdk::{Registry, toolset};

struct Shelf;

#[toolset]
impl Shelf {
    /// Find a book.
    #[tool(read)]
    async fn find(
        &self,
        /// Its title.
        title,
    ) -> String {
        String::new()
    }

    /// List the books.
    #[tool(raed)]
    fn list(&self) -> String {
        String::new()
    }
}

fn main() {
    let _ = Registry::builder().add(Shelf);
}
