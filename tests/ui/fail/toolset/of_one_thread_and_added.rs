use std::cell::RefCell;

use tool_sdk::{Registry, toolset};

struct Shelf {
    books: RefCell<Vec<String>>,
}

#[toolset]
impl Shelf {
    /// List the books.
    #[tool(read)]
    async fn list(&self) -> String {
        self.books.borrow().join(", ")
    }
}

fn main() {
    let books = RefCell::default();
    let _ = Registry::builder().add(Shelf { books });
}
