use tool_sdk::{Registry, toolset};

struct Shelf<T>(T);

#[toolset]
impl<T: ToString> Shelf<T> {
    /// List the books.
    #[tool(read)]
    fn list(&self) -> String {
        self.0.to_string()
    }
}

fn main() {
    let _ = Registry::builder().add(Shelf(5));
}
