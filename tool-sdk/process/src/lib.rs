//! Child processes: environment, resource limits, timeouts, output capture, sandbox.
//!
//! [`run`] starts one command, writes its standard input and waits for it with a timeout.
//! [`BackgroundProcesses`] holds processes that keep running between tool calls. Every child
//! gets the variables of a [`ChildEnv`] and no others, and leads a process group of its own
//! that is terminated with it.
//!
//! **Invariant:** nothing here decides whether a command may run; callers have been authorized.

#[cfg(unix)]
mod background;
mod capture;
mod env;
mod group;
#[cfg(unix)]
mod harden;
mod limits;
#[cfg(unix)]
mod partial_sequence;
mod piped;
mod program;
#[cfg(target_os = "linux")]
mod reaper;
pub mod sandbox;
mod spawn;
mod tag;
mod tree;
mod working_dir;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::FusedFuture;
use thiserror::Error;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

#[cfg(unix)]
pub use self::background::{
    AttachedProgram, BackgroundCommand, BackgroundProcess, BackgroundProcesses, MAX_ATTENDED,
    ProcessOutput, ProcessSlot, PtyInputError, WeakBackgroundProcesses,
};
pub use self::capture::CapturedOutput;
use self::capture::OutputCapture;
pub use self::env::{ChildEnv, ForbiddenName};
#[cfg(unix)]
pub use self::harden::harden_process;
pub use self::limits::ResourceLimits;
use self::program::{ActiveSandbox, CommandSpec};
use self::sandbox::{SandboxPolicy, SandboxStatus};
use self::spawn::{HostStdio, InputWriter, StdioMode};
use self::tag::ProcessTag;
use self::tree::ProcessTree;
use self::working_dir::WorkingDir;

/// For the other crates of the SDK, without a promise of stability.
#[doc(hidden)]
pub mod internal {
    #[cfg(unix)]
    pub use crate::limits::raise_open_files_limit;
    pub use crate::piped::{PipedChild, StderrCapture};
    pub use crate::working_dir::enter_without_links;
    pub use crate::{deny_memory_access, has_rlimit_tags, receives_sigchld};
}

/// How long to read output after the child has exited. A descendant may hold the pipes open
/// forever.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);

/// A command to run once with [`run`]: program, arguments, environment and limits.
///
/// # Examples
///
/// ```
/// # #[cfg(unix)]
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use tool_sdk::process::{self, Command, ExitOutcome};
///
/// let output = process::run(Command::new("cat", ["-"]).stdin("hello")).await?;
///
/// assert_eq!(output.exit, ExitOutcome::Code(0));
/// assert_eq!(output.stdout.to_text(), "hello");
/// # Ok::<(), process::RunError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Command {
    spec: CommandSpec,
    stdin: Vec<u8>,
    timeout: Duration,
    grace_period: Duration,
    output_limit: usize,
}

impl Command {
    /// Creates a command from a program and its arguments, without a shell.
    pub fn new<A: Into<OsString>>(
        program: impl Into<OsString>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            spec: CommandSpec::new(program, args),
            stdin: Vec::new(),
            timeout: Duration::from_secs(60),
            grace_period: Duration::from_millis(200),
            output_limit: 64 << 10,
        }
    }

    /// Creates a command that runs `line` with `sh -c`.
    pub fn shell(line: impl Into<OsString>) -> Self {
        Self::new("sh", [OsString::from("-c"), line.into()])
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

    /// Sets what is written to standard input before it is closed. Default: nothing.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Sets the timeout. Default: one minute.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the time between `SIGTERM` and `SIGKILL` when it is terminated. Default: 200 ms.
    pub fn grace_period(mut self, grace: Duration) -> Self {
        self.grace_period = grace;
        self
    }

    /// Sets how many bytes of standard output, and of standard error, are kept. Default: 64 KiB.
    pub fn output_limit(mut self, bytes: usize) -> Self {
        self.output_limit = bytes;
        self
    }

    /// Sets the sandbox policy. Default: no sandbox.
    pub fn sandbox(mut self, policy: SandboxPolicy) -> Self {
        self.spec.sandbox = policy;
        self
    }

    /// Returns the stdio mode: without input, standard input is `/dev/null` and needs no pipe.
    fn stdio_mode(&self) -> StdioMode {
        if self.stdin.is_empty() { StdioMode::NullStdin } else { StdioMode::PipedStdin }
    }
}

/// The result of a command that was started: exit, captured output, sandbox status.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CommandOutput {
    /// How the process exited.
    pub exit: ExitOutcome,
    /// The captured standard output.
    pub stdout: CapturedOutput,
    /// The captured standard error.
    pub stderr: CapturedOutput,
    /// The wall-clock time from start to exit.
    pub elapsed: Duration,
    /// Whether a descendant still held the output pipes open after the process had exited.
    pub output_left_open: bool,
    /// What the sandbox enforced; `None` without a sandbox.
    pub sandbox: Option<SandboxStatus>,
    /// Protected files that appeared during the run. The sandbox cannot protect a file that does
    /// not exist yet, and other programs may later execute or obey the contents.
    pub new_protected_files: Vec<PathBuf>,
}

/// How a process exited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExitOutcome {
    /// It exited with this code.
    Code(i32),
    /// It was killed by this signal.
    Signal(i32),
    /// The timeout expired, and its process group was killed.
    TimedOut,
    /// The exit status is unknown: another part of this program reaped the process, or it hangs
    /// in the kernel and could not be killed.
    #[default]
    Unknown,
}

/// Why a command could not be run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The program is missing or not executable, or the working directory is missing.
    #[error("cannot start `{program}`")]
    Spawn {
        /// The program.
        program: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The policy requires a sandbox that this machine cannot enforce.
    #[error("the sandbox cannot enforce the required policy: {0}")]
    Sandbox(SandboxStatus),
    /// Waiting for the child failed; it was killed.
    #[error("cannot wait for a child process")]
    Wait(#[source] io::Error),
}

/// Restores the default action of `SIGCHLD` if it is ignored.
///
/// A program inherits an ignored `SIGCHLD` from its parent. The kernel then discards the exit
/// status of its children, so this module refuses to start any. The change affects the whole
/// process, so call this in `main`; [`cli::App::main`](https://docs.rs/tool-sdk) does.
pub fn restore_sigchld() {
    #[cfg(target_os = "linux")]
    spawn::linux::restore_sigchld();
}

/// Denies other processes of the user access to the memory and environment of this process.
///
/// The commands that the host starts are such processes. Linux only, best effort.
#[doc(hidden)]
pub fn deny_memory_access() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // Best effort: a refusal changes nothing.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Returns whether the kernel reports the exit status of children to this process.
#[doc(hidden)]
pub fn receives_sigchld() -> bool {
    #[cfg(target_os = "linux")]
    return spawn::linux::receives_sigchld();
    #[cfg(not(target_os = "linux"))]
    true
}

/// Returns whether descendants can be tagged with an rlimit, so that those that leave their
/// session, parents and environment are still found.
#[doc(hidden)]
pub fn has_rlimit_tags() -> bool {
    #[cfg(target_os = "linux")]
    return ProcessTag::of_host_process().is_ok_and(|mark| mark.rlimit_tag().is_some());
    #[cfg(not(target_os = "linux"))]
    false
}

/// Runs a command until it exits or its timeout expires.
///
/// Does not wait for background processes that the command left running; those of a sandboxed
/// command are killed. Dropping the future terminates the process tree.
///
/// # Errors
///
/// Fails when the command cannot be started or waited for, for example in a host that ignores
/// `SIGCHLD`: see [`restore_sigchld`]. A non-zero exit code is not an error.
pub async fn run(run: Command) -> Result<CommandOutput, RunError> {
    let started = Instant::now();
    let failed = |source| RunError::Spawn {
        program: run.spec.program.to_string_lossy().into_owned(),
        source,
    };
    let (confined, confinement) = run.spec.wrap_in_sandbox()?;
    let mark = ProcessTag::new_unique().map_err(failed)?;
    let (mut tree, streams) =
        ProcessTree::spawn(&confined, mark, run.stdio_mode(), run.grace_period).map_err(failed)?;
    let HostStdio { stdin: input, stdout: output, stderr: complaints, child_fds: ends, .. } =
        streams;
    let (mut stdout, mut stderr) =
        (OutputCapture::new(run.output_limit), OutputCapture::new(run.output_limit));
    let (exit, held) = {
        let talk = async {
            tokio::join!(
                write_input(input, &run.stdin),
                stdout.read_to_end(Some(output)),
                stderr.read_to_end(complaints)
            )
        };
        let mut talk = pin!(talk.map(drop).fuse());
        let exit = match timeout(run.timeout, wait_for_exit(&mut tree, talk.as_mut())).await {
            Ok(status) => {
                let exit = ExitOutcome::from_status(status.map_err(RunError::Wait)?);
                if confinement.may_leave_processes() {
                    // Kill leftover processes before the placeholders of the sandbox are removed.
                    tree.shut_down().await;
                }
                exit
            }
            Err(_) => {
                tree.shut_down().await;
                ExitOutcome::TimedOut
            }
        };
        // From here on only descendants can hold the output pipes open.
        drop(ends);
        let held = !talk.is_terminated() && timeout(DRAIN_TIMEOUT, talk).await.is_err();
        (exit, held)
    };
    let elapsed = started.elapsed();
    let (stdout, stderr) = (stdout.finish(), stderr.finish());
    let planted = find_new_protected_files(&confinement).await;
    Ok(CommandOutput {
        exit,
        stdout,
        stderr,
        elapsed,
        output_left_open: held,
        sandbox: confinement.status,
        new_protected_files: planted,
    })
}

/// Returns the protected files that appeared since the command was started.
async fn find_new_protected_files(confinement: &ActiveSandbox) -> Vec<PathBuf> {
    if confinement.status.is_none() {
        return Vec::new();
    }
    let planted = confinement.protected_baseline.clone();
    // Fails only when the runtime shuts down; the result is then unused.
    tokio::task::spawn_blocking(move || planted.find_new()).await.unwrap_or_default()
}

/// Waits for the child to exit and drives its stdio meanwhile.
async fn wait_for_exit(
    tree: &mut ProcessTree,
    mut talk: Pin<&mut impl FusedFuture<Output = ()>>,
) -> io::Result<ExitStatus> {
    loop {
        tokio::select! {
            status = tree.wait() => return status,
            () = talk.as_mut() => {}
        }
    }
}

/// Writes `bytes` and closes the pipe. A write error means that the child stopped reading.
async fn write_input(stdin: Option<InputWriter>, bytes: &[u8]) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(bytes).await;
    }
}

impl ExitOutcome {
    fn from_status(status: ExitStatus) -> Self {
        match status.code() {
            Some(code) => Self::Code(code),
            None => Self::Signal(exit_signal(status)),
        }
    }
}

#[cfg(unix)]
fn exit_signal(status: ExitStatus) -> i32 {
    std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or_default()
}

/// Without Unix every exit has a code.
#[cfg(not(unix))]
fn signal_of(_status: ExitStatus) -> i32 {
    0
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod proofs;
#[cfg(test)]
#[cfg(unix)]
mod tests;
