//! Tools that run commands.
//!
//! They come in three families for the same work, of which a model gets one: see
//! [`variants`]. All of them judge a command by what bash would run, command by command,
//! under the permission `exec_command`, and run exactly what was judged. Only Unix has them.

// A tool is a type of its function's name, so the module must have another one.
#[cfg(unix)]
mod argv;
#[cfg(unix)]
mod command;
#[cfg(unix)]
mod confined;
#[cfg(unix)]
mod ends;
#[cfg(unix)]
mod facts;
#[cfg(unix)]
mod files;
#[cfg(unix)]
mod found;
#[cfg(unix)]
mod home;
#[cfg(unix)]
mod judged;
#[cfg(unix)]
mod kill;
#[cfg(unix)]
mod line;
#[cfg(unix)]
mod list;
#[cfg(unix)]
mod look;
#[cfg(unix)]
mod looked;
#[cfg(unix)]
mod mentioned;
#[cfg(unix)]
mod once;
#[cfg(unix)]
mod open;
#[cfg(unix)]
mod patch;
#[cfg(unix)]
mod plain;
#[cfg(unix)]
mod program;
#[cfg(unix)]
mod pushed;
#[cfg(unix)]
mod reading;
#[cfg(unix)]
mod remotes;
#[cfg(unix)]
mod report;
#[cfg(unix)]
mod scripts;
#[cfg(unix)]
mod shells;
#[cfg(unix)]
mod shown;
#[cfg(unix)]
mod stdin;
mod variants;
#[cfg(unix)]
mod wait;
#[cfg(unix)]
mod writing;
#[cfg(unix)]
mod written;

#[cfg(unix)]
pub use self::argv::shell;
#[cfg(unix)]
pub use self::command::exec_command;
#[cfg(unix)]
pub use self::kill::kill_session;
#[cfg(unix)]
pub use self::line::shell_command;
#[cfg(unix)]
pub use self::list::list_sessions;
#[cfg(all(unix, feature = "mcp"))]
pub(crate) use self::program::subjects_of_argv;
#[cfg(unix)]
pub use self::stdin::write_stdin;
pub use self::variants::variants;
