use tool_sdk::tool;

struct State<T>(T);

/// Sort lines.
#[tool]
fn sort(state: State<u8>) {
    let _ = state.0;
}

fn main() {}
