use tool_sdk::{Registry, toolset};

struct Shelf;

#[toolset]
impl Shelf {
    /// Find a book.
    #[tool(read, approval(dangerous = |args| args.title.is_empty()))]
    fn find(
        &self,
        /// Its title.
        title: String,
    ) -> String {
        title
    }

    /// Find a book.
    #[tool(read, approval(dangerous = |args| args.title.is_empty()))]
    fn find(
        &self,
        /// Its title.
        title: String,
    ) -> String {
        title
    }
}

fn main() {
    let _ = Registry::builder().add(Shelf);
}
