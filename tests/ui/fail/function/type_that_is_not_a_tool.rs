use tool_sdk::tools;

struct ReadFile;

fn main() {
    let _ = tools![ReadFile];
}
