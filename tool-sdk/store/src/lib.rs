//! State on SQLite: notes, plans, conversations, and the history of calls.
//!
//! This crate is a part of [tool-sdk](https://docs.rs/tool-sdk), which re-exports it with the
//! feature `store`. Programs name `tool_sdk` only.
//!
//! A [`SqliteStore`] implements the store traits of the runtime in two files of a folder:
//! `state.db` is small and precious, `history.db` is large and can be pruned. Several processes may
//! use them at once.
//!
//! **Invariant:** a database that is in use is opened by SQLite alone. Closing any other descriptor
//! of the file would drop the POSIX locks of the process, and with them those of SQLite.

#![forbid(unsafe_code)]

mod conversations;
mod creation;
mod database;
mod error;
mod export;
mod file_system;
mod memory;
mod migrations;
mod plans;
mod report;
mod sessions;
mod set_aside;
mod sqlite_store;
#[cfg(test)]
mod tests;

pub use self::error::StoreError;
pub use self::export::ExportCursor;
pub use self::report::{DatabaseReport, StateReport};
pub use self::sqlite_store::{SqliteStore, StateBackup};
