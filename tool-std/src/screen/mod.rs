//! Screens that the user watches while an agent works: a terminal or a desktop.
//!
//! The tools [`terminal`] and [`desktop`] let a model start, stop and look at them. What runs them is
//! a [`TerminalBackend`] or a [`DesktopBackend`] that the host inserts into its sessions as a
//! [`TerminalHandle`] or a [`DesktopHandle`]. With the feature `screen-programs` there are backends
//! of real programs: [`TmuxTerminal`] and [`XvfbDesktop`].
//!
//! The tools are not registered, because they need a backend: a host that inserts a handle adds the
//! tool as well. The program `tool-std` offers them when `TOOL_SDK_EXPERIMENTAL` names them.

mod backend;
mod desktop_tool;
#[cfg(all(unix, feature = "screen-programs"))]
mod framebuffer;
#[cfg(all(unix, feature = "screen-programs"))]
mod screen_process;
mod status_text;
mod terminal_tool;
#[cfg(all(unix, feature = "screen-programs"))]
mod tmux_terminal;
#[cfg(all(unix, feature = "screen-programs"))]
mod xvfb_desktop;

pub use self::backend::{
    BackendFuture, DesktopBackend, DesktopHandle, DesktopSize, ScreenLocation, TerminalBackend,
    TerminalHandle,
};
pub use self::desktop_tool::desktop;
pub use self::terminal_tool::terminal;
#[cfg(all(unix, feature = "screen-programs"))]
pub use self::tmux_terminal::TmuxTerminal;
#[cfg(all(unix, feature = "screen-programs"))]
pub use self::xvfb_desktop::XvfbDesktop;
