use tool_sdk::tools;

fn read_file() {}

fn main() {
    let _ = tools![read_file];
}
