//! Tools for a vault: a folder of Markdown notes with links and tags.
//!
//! The vault is the [`Workspace`](tool_sdk::Workspace) of the session. Each tool is one function, and a
//! program serves all of them over MCP, HTTP and a command line with one line of code; see
//! `src/main.rs`.

mod judged_moves;
mod list_tool;
mod markdown;
mod move_plan;
mod move_tool;
mod note_names;
mod notes;
mod read_tool;
mod search_tool;
mod thread_tools;
mod write_tool;

pub use self::list_tool::vault_list;
pub use self::move_tool::vault_move;
pub use self::read_tool::vault_read;
pub use self::search_tool::vault_search;
pub use self::thread_tools::{thread_list, thread_push, thread_read};
pub use self::write_tool::vault_write;
