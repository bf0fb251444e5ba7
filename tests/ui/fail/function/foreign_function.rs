use tool_sdk::tool;

unsafe extern "C" {
    /// Read a file.
    #[tool(read)]
    fn read_file();
}

fn main() {}
