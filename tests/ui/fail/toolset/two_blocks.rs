use tool_sdk::{Registry, toolset};

struct Shelf;

#[toolset]
impl Shelf {
    /// List the books.
    #[tool(read)]
    fn list(&self) -> String {
        String::new()
    }
}

#[toolset]
impl Shelf {
    /// Count the books.
    #[tool(read)]
    fn count(&self) -> String {
        self.list()
    }
}

fn main() {
    let _ = Registry::builder().add(Shelf);
}
