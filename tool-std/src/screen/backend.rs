//! The ports: what shows a screen.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use tool_sdk::{Context, ToolError};

/// What a backend does, and what comes of it.
pub type Work<'a, T> = Pin<Box<dyn Future<Output = Result<T, ToolError>> + Send + 'a>>;

/// Where a screen is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shown {
    /// Where a person sees it, such as an address for a browser.
    pub address: Option<String>,
    /// The session behind it, where the tools that type into sessions know one.
    pub session: Option<u32>,
}

impl Shown {
    /// Somewhere that nothing is said of.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Where a person sees it.
    #[must_use]
    pub fn address(mut self, address: impl Into<String>) -> Self {
        self.address = Some(address.into());
        self
    }

    /// The session behind it.
    #[must_use]
    pub fn session(mut self, session: u32) -> Self {
        self.session = Some(session);
        self
    }
}

/// Shows a terminal to a person.
///
/// A session has one at the most. The context says whose it is, and is cancelled with the
/// call; a backend that starts something keeps nothing of it when its future is dropped.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Context, ToolError};
/// use tool_std::screen::{Shown, Terminal, TerminalBackend, Work};
///
/// /// A terminal that somebody else keeps running.
/// struct Elsewhere(String);
///
/// impl TerminalBackend for Elsewhere {
///     fn start<'a>(&'a self, _: &'a Context) -> Work<'a, Shown> {
///         Box::pin(async { Ok(Shown::new().address(&self.0)) })
///     }
///
///     fn stop<'a>(&'a self, _: &'a Context) -> Work<'a, bool> {
///         Box::pin(async { Err(ToolError::unavailable("the terminal is not ours to end")) })
///     }
///
///     fn status<'a>(&'a self, cx: &'a Context) -> Work<'a, Option<Shown>> {
///         Box::pin(async { self.start(cx).await.map(Some) })
///     }
/// }
///
/// let terminal = Terminal::behind(Elsewhere("http://127.0.0.1:7681".to_owned()));
/// let session = tool_sdk::Session::new("s1").lend(terminal);
/// ```
pub trait TerminalBackend: Send + Sync + 'static {
    /// Starts the terminal of the session; one that runs already stays, and is told.
    ///
    /// # Errors
    ///
    /// Fails when there is none to be had.
    fn start<'a>(&'a self, cx: &'a Context) -> Work<'a, Shown>;

    /// Ends it, with everything that runs in it. Gives whether there was one.
    ///
    /// # Errors
    ///
    /// Fails when it may still run.
    fn stop<'a>(&'a self, cx: &'a Context) -> Work<'a, bool>;

    /// Where it is shown, if it runs.
    ///
    /// # Errors
    ///
    /// Fails when that is not known.
    fn status<'a>(&'a self, cx: &'a Context) -> Work<'a, Option<Shown>>;
}

/// How large a desktop is, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// From left to right.
    pub width: u32,
    /// From top to bottom.
    pub height: u32,
}

/// Shows a desktop to a person. What is said of a [`TerminalBackend`] holds here too.
pub trait DesktopBackend: Send + Sync + 'static {
    /// Starts the desktop of the session; one that runs already stays as it is, and is told.
    ///
    /// # Errors
    ///
    /// Fails when there is none to be had, or none of this size.
    fn start<'a>(&'a self, size: Size, cx: &'a Context) -> Work<'a, Shown>;

    /// Ends it, with everything that runs on it. Gives whether there was one.
    ///
    /// # Errors
    ///
    /// Fails when it may still run.
    fn stop<'a>(&'a self, cx: &'a Context) -> Work<'a, bool>;

    /// Where it is shown, if it runs.
    ///
    /// # Errors
    ///
    /// Fails when that is not known.
    fn status<'a>(&'a self, cx: &'a Context) -> Work<'a, Option<Shown>>;
}

/// A backend that a host lends to the tool [`terminal`](fn@super::terminal).
#[derive(Clone)]
pub struct Terminal(Arc<dyn TerminalBackend>);

impl Terminal {
    /// The terminal behind `backend`.
    #[must_use]
    pub fn behind(backend: impl TerminalBackend) -> Self {
        Self(Arc::new(backend))
    }

    /// What shows it.
    #[must_use]
    pub fn backend(&self) -> &dyn TerminalBackend {
        &*self.0
    }
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal").finish_non_exhaustive()
    }
}
