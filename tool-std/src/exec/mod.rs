//! Tools that run commands.
//!
//! They come in three families for the same work, of which a model gets one: see
//! [`variants`]. All of them judge a command by what bash would run, command by command,
//! under the permission `exec_command`, and run exactly what was judged.

// A tool is a type of its function's name, so the module must have another one.
mod argv;
mod command;
mod confined;
mod files;
mod judged;
mod kill;
mod line;
mod list;
mod once;
mod plain;
mod program;
mod report;
mod stdin;
mod variants;

pub use self::argv::shell;
pub use self::command::exec_command;
pub use self::kill::kill_session;
pub use self::line::shell_command;
pub use self::list::list_sessions;
pub use self::stdin::write_stdin;
pub use self::variants::variants;
