//! What is to be started and kept, and how.

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

/// A program to start and to keep, and how.
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
    /// A program with arguments; no shell reads them.
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

    /// The folder that it runs in; the host's own when nothing is said.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.program.folder = Some(folder.into());
        self
    }

    /// The environment; [`ChildEnv::inherited`] when nothing is said.
    pub fn env(mut self, env: ChildEnv) -> Self {
        self.program.env = Some(env);
        self
    }

    /// What it may use up; no more limits than the host's own when nothing is said.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.program.limits = limits;
        self
    }

    /// Whether it gets a terminal of its own, which can be typed into. Without one it has
    /// nothing to read.
    pub fn terminal(mut self, terminal: bool) -> Self {
        self.terminal = terminal;
        self
    }

    /// What is started, for records: the program with its arguments, its folder, and the names
    /// of the variables that it sees.
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

    /// What it is, for lists.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// How many bytes of output are kept between two looks at it, half of them from the
    /// start; 1 MiB when nothing is said.
    pub fn keep(mut self, bytes: usize) -> Self {
        self.keep = bytes;
        self
    }

    /// How long it may tidy up when it is ended; two seconds when nothing is said.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// What the kernel lets it do; everything when nothing is said.
    pub fn sandbox(mut self, policy: Policy) -> Self {
        self.program.sandbox = policy;
        self
    }

    /// What ends it when it fires, for example [`Context::closed`](crate::Context::closed).
    pub fn until(mut self, token: CancellationToken) -> Self {
        self.until = token;
        self
    }

    pub(super) fn wiring(&self) -> Wiring {
        if self.terminal { Wiring::Terminal } else { Wiring::Together }
    }

    /// For `map_err`: it could not be started.
    pub(super) fn failed(&self, source: io::Error) -> RunError {
        RunError::Spawn { program: self.program.name.to_string_lossy().into_owned(), source }
    }
}
