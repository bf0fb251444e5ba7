use std::rc::Rc;

use tool_sdk::toolset;

struct Reader;

#[toolset]
impl Reader {
    /// Read a file.
    #[tool(read)]
    async fn read_file(&self) -> String {
        let text = Rc::new("text");
        std::future::ready(()).await;
        text.to_string()
    }
}

fn main() {}
