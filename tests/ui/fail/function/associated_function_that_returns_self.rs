use tool_sdk::tool;

struct Files;

impl Files {
    /// Open the files.
    #[tool(read)]
    fn open_files() -> Self {
        Self
    }
}

fn main() {}
