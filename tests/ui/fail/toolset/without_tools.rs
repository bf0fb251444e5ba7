use tool_sdk::{Registry, toolset};

struct Reader;

#[toolset]
impl Reader {
    fn read_file(&self) {}
}

fn main() {
    Reader.read_file();
    let _ = Registry::builder().add(Reader);
}
