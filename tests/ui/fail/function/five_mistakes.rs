use tool_sdk::{tool, tools};

#[tool(raed, display(primary = file))]
async fn read_file(
    path: String,
    /// The first line.
    #[arg(default = 0, range = 1..)]
    offset: u32,
) -> String {
    format!("{path} {offset}")
}

async fn use_it() {
    let _ = tools![read_file];
    let _ = ReadFileArgs { path: String::new(), offset: 1 };
    let _: String = read_file(String::new(), 1).await;
}

fn main() {
    let _ = use_it();
}
