//! Screens that the user watches while an agent works: a terminal in a browser, or a desktop.
//!
//! The host implements [`TerminalBackend`] or [`DesktopBackend`]. The tool [`terminal`] lets a
//! model start, stop and query a terminal; for desktops there is only the trait. This module does
//! not know how a screen is shown or who may see it.
//!
//! The tool is not registered, because it needs a backend: a host that inserts a [`TerminalHandle`]
//! into its sessions also adds the tool.

mod backend;
mod tool;

pub use self::backend::{
    BackendFuture, DesktopBackend, DesktopSize, ScreenLocation, TerminalBackend, TerminalHandle,
};
pub use self::tool::terminal;
