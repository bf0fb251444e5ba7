use tool_sdk::{Registry, toolset};

struct Shelf<'b>(&'b str);

#[toolset]
impl Shelf<'_> {
    /// List the books.
    #[tool(read)]
    fn list(&self) -> String {
        self.0.to_owned()
    }
}

fn main() {
    let _ = Registry::builder().add(Shelf("a book"));
}
