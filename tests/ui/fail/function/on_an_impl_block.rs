use tool_sdk::tool;

struct Reader;

#[tool(read)]
impl Reader {
    fn read(&self) {}
}

fn main() {
    Reader.read();
}
