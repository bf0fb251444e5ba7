use std::cell::Cell;

use tool_sdk::toolset;

struct Reader {
    calls: Cell<u32>,
}

#[toolset]
impl Reader {
    /// Count calls.
    #[tool(read)]
    fn count(&self) -> String {
        self.calls.get().to_string()
    }
}

fn main() {}
