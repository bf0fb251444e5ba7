use std::borrow::Cow;

use tool_sdk::tool;

/// Sort lines.
#[tool]
fn sort(
    /// The lines.
    lines: Cow<'_, str>,
) -> String {
    lines.into_owned()
}

fn main() {}
