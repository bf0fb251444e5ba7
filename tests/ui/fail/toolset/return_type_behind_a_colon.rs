use tool_sdk::{Registry, toolset};

struct Shelf;

#[toolset]
impl Shelf {
    /// List the books.
    #[tool(read)]
    fn list(&self): String {
        String::new()
    }
}

fn main() {
    let _ = Registry::builder().add(Shelf);
}
