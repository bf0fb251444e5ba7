//! The builder for a background process.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::program::CommandSpec;
use crate::sandbox::SandboxPolicy;
use crate::spawn::StdioMode;
use crate::working_dir::WorkingDir;
use crate::{ChildEnv, ResourceLimits, RunError};

/// A command to start as a background process: program, arguments, terminal and limits.
#[derive(Clone, Debug)]
#[must_use]
pub struct BackgroundCommand {
    pub(super) spec: CommandSpec,
    pub(super) terminal: bool,
    pub(super) title: String,
    pub(super) output_limit: usize,
    pub(super) grace_period: Duration,
    pub(super) cancel_token: CancellationToken,
}

impl BackgroundCommand {
    /// Creates a command from a program and its arguments, without a shell.
    pub fn new<A: Into<OsString>>(
        program: impl Into<OsString>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            spec: CommandSpec::new(program, args),
            terminal: false,
            title: String::new(),
            output_limit: 1 << 20,
            grace_period: Duration::from_secs(2),
            cancel_token: CancellationToken::new(),
        }
    }

    /// Sets the working directory by its path. Default: that of the host.
    pub fn current_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.spec.current_dir = Some(WorkingDir::from_path(folder));
        self
    }

    /// Sets the working directory to an open folder; `path` names it in records.
    ///
    /// The child enters the folder through its handle, so another process that puts a symbolic
    /// link in the place of the folder cannot redirect the child. A relative path that the program
    /// opens later is still resolved by the system. On Windows the child enters `path`.
    pub fn current_dir_handle(mut self, folder: File, path: impl Into<PathBuf>) -> Self {
        self.spec.current_dir = Some(WorkingDir::from_handle(folder, path));
        self
    }

    /// Sets the environment. Default: [`ChildEnv::from_host`].
    pub fn env(mut self, env: ChildEnv) -> Self {
        self.spec.env = Some(env);
        self
    }

    /// Sets the resource limits. Default: those of the host.
    pub fn limits(mut self, limits: ResourceLimits) -> Self {
        self.spec.limits = limits;
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
    pub fn to_record(&self) -> [(&'static str, Value); 3] {
        let text = |text: &OsStr| Value::from(text.to_string_lossy());
        let CommandSpec { program: name, args, current_dir: folder, .. } = &self.spec;
        let argv = std::iter::once(name).chain(args).map(|word| text(word)).collect();
        let folder = folder.as_ref().map_or(Value::Null, |folder| text(folder.path.as_os_str()));
        [
            ("argv", Value::Array(argv)),
            ("folder", folder),
            ("variables", self.spec.effective_env().var_names().map(text).collect()),
        ]
    }

    /// Sets the title that is shown in lists.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Sets how many bytes of output are buffered between two reads, half of them from the start.
    /// Default: 1 MiB.
    pub fn output_limit(mut self, bytes: usize) -> Self {
        self.output_limit = bytes;
        self
    }

    /// Sets the time between `SIGTERM` and `SIGKILL` when it is terminated. Default: two seconds.
    pub fn grace_period(mut self, grace: Duration) -> Self {
        self.grace_period = grace;
        self
    }

    /// Sets the sandbox policy. Default: no sandbox.
    pub fn sandbox(mut self, policy: SandboxPolicy) -> Self {
        self.spec.sandbox = policy;
        self
    }

    /// Sets a token whose cancellation terminates it, for example
    /// `Context::shutdown_token`.
    pub fn cancel_on(mut self, token: CancellationToken) -> Self {
        self.cancel_token = token;
        self
    }

    pub(super) fn stdio_mode(&self) -> StdioMode {
        if self.terminal { StdioMode::Terminal } else { StdioMode::MergedOutput }
    }

    /// Converts an I/O error of the start, for `map_err`.
    pub(super) fn spawn_error(&self, source: io::Error) -> RunError {
        RunError::Spawn { program: self.spec.program.to_string_lossy().into_owned(), source }
    }
}
