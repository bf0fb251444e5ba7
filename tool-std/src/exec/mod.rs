//! Tools that run commands, on Unix only.
//!
//! There are three families of tools for the same work, of which a model gets one; see
//! [`variants`]. All of them check every command that bash would run against the permission
//! `exec_command`, and run exactly the command line that was checked.

// A tool is a type with the name of its function, so a module cannot have that name.
#[cfg(unix)]
mod analysis;
#[cfg(unix)]
mod approval_binding;
#[cfg(unix)]
mod command_line;
#[cfg(unix)]
mod effects;
#[cfg(unix)]
mod exec_command_tool;
#[cfg(unix)]
mod incomplete_input;
#[cfg(unix)]
mod kill_session_tool;
#[cfg(unix)]
mod list_sessions_tool;
#[cfg(unix)]
mod oneshot;
#[cfg(unix)]
mod output;
#[cfg(unix)]
mod output_wait;
#[cfg(unix)]
mod patch_command;
#[cfg(unix)]
mod sandbox;
#[cfg(unix)]
mod shell_command_tool;
#[cfg(unix)]
mod shell_tool;
#[cfg(unix)]
mod strip_ansi;
#[cfg(unix)]
mod suffixes;
#[cfg(unix)]
mod terminal_shells;
#[cfg(unix)]
mod unreadable_files;
mod variants;
#[cfg(unix)]
mod write_stdin_tool;

#[cfg(all(unix, feature = "mcp"))]
pub(crate) use self::command_line::argv_resources;
#[cfg(unix)]
pub use self::exec_command_tool::exec_command;
#[cfg(unix)]
pub use self::kill_session_tool::kill_session;
#[cfg(unix)]
pub use self::list_sessions_tool::list_sessions;
#[cfg(unix)]
#[cfg(feature = "plugins")]
pub(crate) use self::sandbox::current_policy as sandbox_policy;
pub use self::shell_command_tool::shell_command;
#[cfg(unix)]
pub use self::shell_tool::shell;
pub use self::variants::variants;
#[cfg(unix)]
pub use self::write_stdin_tool::write_stdin;
