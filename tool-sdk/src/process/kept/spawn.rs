//! The builder for a background process.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::super::program::Program;
use super::super::sandbox::Policy;
use super::super::start::Wiring;
use super::super::{ChildEnv, Limits, RunError};

/// A command to start as a background process: program, arguments, terminal and limits.
#[derive(Clone, Debug)]
#[must_use]
pub struct Spawn {
    pub(super) program: Program,
    pub(super) terminal: bool,
    pub(super) title: String,
    pub(super) keep: usize,
    pub(super) grace: Duration,
    pub(super) until: CancellationToken,
}

impl Spawn {
    /// Creates a command from a program and its arguments, without a shell.
    pub fn exec<A: Into<OsString>>(
        program: impl Into<OsString>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            program: Program::new(program, args),
            terminal: false,
            title: String::new(),
            keep: 1 << 20,
            grace: Duration::from_secs(2),
            until: CancellationToken::new(),
        }
    }

    /// Sets the working directory. Default: that of the host.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.program.folder = Some(folder.into());
        self
    }

    /// Sets the environment. Default: [`ChildEnv::from_host`].
    pub fn env(mut self, env: ChildEnv) -> Self {
        self.program.env = Some(env);
        self
    }

    /// Sets the resource limits. Default: those of the host.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.program.limits = limits;
        self
    }

    /// Sets whether it gets a pseudoterminal, into which input can be typed. Without one its
    /// standard input is empty. Default: no.
    pub fn terminal(mut self, terminal: bool) -> Self {
        self.terminal = terminal;
        self
    }

    /// Returns the command for audit records: program and arguments, working directory, and the
    /// names of the environment variables.
    #[must_use]
    pub fn record(&self) -> [(&'static str, Value); 3] {
        let text = |text: &OsStr| Value::from(text.to_string_lossy());
        let Program { name, args, folder, .. } = &self.program;
        let argv = std::iter::once(name).chain(args).map(|word| text(word)).collect();
        let folder = folder.as_ref().map_or(Value::Null, |folder| text(folder.as_os_str()));
        [
            ("argv", Value::Array(argv)),
            ("folder", folder),
            ("variables", self.program.env().names().map(text).collect()),
        ]
    }

    /// Sets the title that is shown in lists.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Sets how many bytes of output are buffered between two reads, half of them from the start.
    /// Default: 1 MiB.
    pub fn keep(mut self, bytes: usize) -> Self {
        self.keep = bytes;
        self
    }

    /// Sets the time between `SIGTERM` and `SIGKILL` when it is terminated. Default: two seconds.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets the sandbox policy. Default: no sandbox.
    pub fn sandbox(mut self, policy: Policy) -> Self {
        self.program.sandbox = policy;
        self
    }

    /// Sets a token whose cancellation terminates it, for example
    /// [`Context::closed`](crate::Context::closed).
    pub fn until(mut self, token: CancellationToken) -> Self {
        self.until = token;
        self
    }

    pub(super) fn wiring(&self) -> Wiring {
        if self.terminal { Wiring::Terminal } else { Wiring::Together }
    }

    /// Converts an I/O error of the start, for `map_err`.
    pub(super) fn failed(&self, source: io::Error) -> RunError {
        RunError::Spawn { program: self.program.name.to_string_lossy().into_owned(), source }
    }
}
