use tool_sdk::tool;

struct Context;

/// Sort lines.
#[tool]
async fn sort(cx: &Context) {
    let _ = cx;
}

fn main() {}
