use tool_sdk::toolset;

#[toolset]
trait Shelf {
    /// List the books.
    #[tool(read)]
    fn list(&self) -> String;
}

fn main() {}
