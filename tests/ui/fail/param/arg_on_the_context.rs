use tool_sdk::{Context, tool};

/// Sort lines.
#[tool]
fn sort(#[arg(rename = "context")] cx: &Context) {
    let _ = cx;
}

fn main() {}
