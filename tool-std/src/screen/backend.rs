//! The ports that a host implements to show a terminal or a desktop.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use tool_sdk::{Context, Output, ToolError};

/// The future that a backend method returns.
pub type BackendFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ToolError>> + Send + 'a>>;

/// Where a screen is shown, and how programs reach it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScreenLocation {
    /// Where the user sees it: a URL, or a command that attaches to it.
    pub address: Option<String>,
    /// The id of the session, where the tools that type into sessions know it.
    pub session: Option<u32>,
    /// Variables with which a program shows its windows there, such as `DISPLAY`.
    pub variables: Vec<(String, String)>,
}

impl ScreenLocation {
    /// Creates a location without an address and without a session.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the address at which the user sees it.
    #[must_use]
    pub fn address(mut self, address: impl Into<String>) -> Self {
        self.address = Some(address.into());
        self
    }

    /// Sets the id of the session.
    #[must_use]
    pub fn session(mut self, session: u32) -> Self {
        self.session = Some(session);
        self
    }

    /// Adds a variable with which a program shows its windows there.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }
}

/// Starts, stops and reports the terminal that the user watches.
///
/// A session has at most one terminal. The context names the session and is cancelled with the
/// call. A backend must release what it started when its future is dropped.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Context, ToolError};
/// use tool_std::screen::{BackendFuture, ScreenLocation, TerminalBackend, TerminalHandle};
///
/// /// A terminal that another process keeps running.
/// struct Elsewhere(String);
///
/// impl TerminalBackend for Elsewhere {
///     fn start<'a>(&'a self, _: &'a Context) -> BackendFuture<'a, ScreenLocation> {
///         Box::pin(async { Ok(ScreenLocation::new().address(&self.0)) })
///     }
///
///     fn stop<'a>(&'a self, _: &'a Context) -> BackendFuture<'a, bool> {
///         Box::pin(async { Err(ToolError::unavailable("the terminal is not ours to end")) })
///     }
///
///     fn status<'a>(&'a self, cx: &'a Context) -> BackendFuture<'a, Option<ScreenLocation>> {
///         Box::pin(async { self.start(cx).await.map(Some) })
///     }
/// }
///
/// let terminal = TerminalHandle::from_backend(Elsewhere("http://127.0.0.1:7681".to_owned()));
/// let session = tool_sdk::Session::new("s1").with_service(terminal);
/// ```
pub trait TerminalBackend: Send + Sync + 'static {
    /// Starts the terminal of the session. A terminal that runs already is kept, and its location
    /// is returned.
    ///
    /// # Errors
    ///
    /// Fails when no terminal can be started.
    fn start<'a>(&'a self, cx: &'a Context) -> BackendFuture<'a, ScreenLocation>;

    /// Stops the terminal with everything that runs in it. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// Fails when the terminal may still be running.
    fn stop<'a>(&'a self, cx: &'a Context) -> BackendFuture<'a, bool>;

    /// Returns the location of the terminal, if it runs.
    ///
    /// # Errors
    ///
    /// Fails when the state is unknown.
    fn status<'a>(&'a self, cx: &'a Context) -> BackendFuture<'a, Option<ScreenLocation>>;

    /// Returns what the screen shows, as text or as an image; `None` when it does not run. The
    /// default takes no screenshots.
    ///
    /// # Errors
    ///
    /// Fails when the screen cannot be read.
    fn screenshot<'a>(&'a self, cx: &'a Context) -> BackendFuture<'a, Option<Output>> {
        let _ = cx;
        Box::pin(async { Err(ToolError::unavailable("this screen takes no screenshots")) })
    }
}

/// The size of a desktop in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DesktopSize {
    /// The width.
    pub width: u16,
    /// The height.
    pub height: u16,
}

/// Starts, stops and reports the desktop that the user watches. The rules of [`TerminalBackend`]
/// apply.
pub trait DesktopBackend: Send + Sync + 'static {
    /// Starts the desktop of the session. A desktop that runs already is kept unchanged, and its
    /// location is returned.
    ///
    /// # Errors
    ///
    /// Fails when no desktop can be started, or none of this size.
    fn start<'a>(&'a self, size: DesktopSize, cx: &'a Context)
    -> BackendFuture<'a, ScreenLocation>;

    /// Stops the desktop with everything that runs on it. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// Fails when the desktop may still be running.
    fn stop<'a>(&'a self, cx: &'a Context) -> BackendFuture<'a, bool>;

    /// Returns the location of the desktop, if it runs.
    ///
    /// # Errors
    ///
    /// Fails when the state is unknown.
    fn status<'a>(&'a self, cx: &'a Context) -> BackendFuture<'a, Option<ScreenLocation>>;

    /// Returns what the screen shows, as text or as an image; `None` when it does not run. The
    /// default takes no screenshots.
    ///
    /// # Errors
    ///
    /// Fails when the screen cannot be read.
    fn screenshot<'a>(&'a self, cx: &'a Context) -> BackendFuture<'a, Option<Output>> {
        let _ = cx;
        Box::pin(async { Err(ToolError::unavailable("this screen takes no screenshots")) })
    }
}

/// The session extension that holds the backend of the tool [`terminal`](fn@super::terminal).
#[derive(Clone)]
pub struct TerminalHandle(Arc<dyn TerminalBackend>);

impl TerminalHandle {
    /// Wraps `backend`.
    #[must_use]
    pub fn from_backend(backend: impl TerminalBackend) -> Self {
        Self(Arc::new(backend))
    }

    /// Returns the backend.
    #[must_use]
    pub fn backend(&self) -> &dyn TerminalBackend {
        &*self.0
    }
}

impl fmt::Debug for TerminalHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TerminalHandle").finish_non_exhaustive()
    }
}

/// The session extension that holds the backend of the tool [`desktop`](fn@super::desktop).
#[derive(Clone)]
pub struct DesktopHandle(Arc<dyn DesktopBackend>);

impl DesktopHandle {
    /// Wraps `backend`.
    #[must_use]
    pub fn from_backend(backend: impl DesktopBackend) -> Self {
        Self(Arc::new(backend))
    }

    /// Returns the backend.
    #[must_use]
    pub fn backend(&self) -> &dyn DesktopBackend {
        &*self.0
    }
}

impl fmt::Debug for DesktopHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DesktopHandle").finish_non_exhaustive()
    }
}
