//! Screens that people watch while an agent works: a terminal in a browser, a desktop.
//!
//! What shows them belongs to the host, and stands behind [`TerminalBackend`] and
//! [`DesktopBackend`]. A model starts, ends and looks at a terminal with the tool
//! [`terminal`]; for desktops there is the trait alone. Nothing here knows how anything is
//! shown, or who may see it.
//!
//! The tool is not registered, because it is of use only where there is a backend: whoever
//! lends a [`Terminal`] adds it.

mod backend;
mod tool;

pub use self::backend::{DesktopBackend, Shown, Size, Terminal, TerminalBackend, Work};
pub use self::tool::terminal;
