use tool_sdk::tool;

trait Reader {
    /// Read a file.
    #[tool(read)]
    fn read_file(&self);
}

fn main() {}
