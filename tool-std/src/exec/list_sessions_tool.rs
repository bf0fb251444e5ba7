//! `list_sessions`: lists the background commands.

use std::fmt::Write as _;

use tool_sdk::process::BackgroundProcesses;
use tool_sdk::{Context, tool};

/// List the background commands that were started in this conversation, with their session
/// IDs.
#[tool(read, category = "shell", display(name = "Sessions", summary = "Listing sessions"))]
pub fn list_sessions(cx: &Context) -> String {
    let mut list = String::new();
    for process in cx.session().extension::<BackgroundProcesses>().list() {
        let state = if process.exit().is_some() { "ended, output not read" } else { "running" };
        let title = process.title().escape_debug();
        // Writing to a string cannot fail.
        let _ = writeln!(
            list,
            "{}: {title} ({state}, started {} seconds ago)",
            process.id(),
            process.age().as_secs()
        );
    }
    if list.is_empty() { "no sessions".to_owned() } else { list }
}
