//! Child processes: what they see, how long they run, how much they say.
//!
//! [`run`] starts one program, feeds it, and waits for it with a limit. [`Processes`] keep
//! programs that run on while others look at them now and then. Every child sees a
//! [`ChildEnv`] and nothing else of the environment, and leads a process group of its own
//! that is ended with it.
//!
//! **Invariant:** nothing here decides whether a program may run, or knows why it does.

#[cfg(unix)]
mod begun;
mod capture;
mod env;
mod group;
#[cfg(target_os = "linux")]
mod guardian;
#[cfg(unix)]
mod harden;
#[cfg(unix)]
mod kept;
mod limits;
mod mark;
#[cfg(feature = "mcp")]
mod piped;
mod program;
pub mod sandbox;
mod start;
mod tree;

use std::ffi::OsString;
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

use self::capture::Capture;
pub use self::capture::Captured;
pub use self::env::{ChildEnv, ForbiddenName};
#[cfg(unix)]
pub use self::harden::harden_process;
#[cfg(unix)]
pub use self::kept::{Attached, Look, Process, Processes, Spawn, Turn, TypeError};
pub use self::limits::Limits;
#[cfg(all(unix, feature = "cli"))]
pub(crate) use self::limits::raise_open_files;
use self::mark::Mark;
#[cfg(feature = "mcp")]
pub(crate) use self::piped::Piped;
use self::program::{Confinement, Program};
use self::sandbox::{Policy, Status};
use self::start::{Streams, Wiring, Writer};
use self::tree::Tree;

/// How long output is waited for after the child has ended: what it started may hold its
/// pipes open for ever.
const DRAIN: Duration = Duration::from_millis(250);

/// A program to run once, and within which limits.
///
/// # Examples
///
/// ```
/// # #[cfg(unix)]
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use tool_sdk::process::{self, Exit, Run};
///
/// let finished = process::run(Run::exec("cat", ["-"]).stdin("hello")).await?;
///
/// assert_eq!(finished.exit, Exit::Code(0));
/// assert_eq!(finished.stdout.text(), "hello");
/// # Ok::<(), process::RunError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Run {
    program: Program,
    stdin: Vec<u8>,
    timeout: Duration,
    grace: Duration,
    keep: usize,
}

impl Run {
    /// A program with arguments; no shell reads them.
    pub fn exec<A: Into<OsString>>(
        program: impl Into<OsString>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            program: Program::new(program, args),
            stdin: Vec::new(),
            timeout: Duration::from_secs(60),
            grace: Duration::from_millis(200),
            keep: 64 << 10,
        }
    }

    /// A line for the shell.
    pub fn shell(line: impl Into<OsString>) -> Self {
        Self::exec("sh", [OsString::from("-c"), line.into()])
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

    /// What it reads, and then no more; nothing when nothing is said.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// How long it may run; a minute when nothing is said.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long it may tidy up when it has to end early; 200 ms when nothing is said.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How many bytes of each of its outputs are kept; 64 KiB when nothing is said.
    pub fn keep(mut self, bytes: usize) -> Self {
        self.keep = bytes;
        self
    }

    /// What the kernel lets it do; everything when nothing is said.
    pub fn sandbox(mut self, policy: Policy) -> Self {
        self.program.sandbox = policy;
        self
    }

    /// A program that is told nothing gets nothing to read, and no pipe for it.
    fn wiring(&self) -> Wiring {
        if self.stdin.is_empty() { Wiring::Apart } else { Wiring::Fed }
    }
}

/// What became of a program that was started.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finished {
    /// How it ended.
    pub exit: Exit,
    /// What it wrote.
    pub stdout: Captured,
    /// What it complained about.
    pub stderr: Captured,
    /// How long it took.
    pub elapsed: Duration,
    /// Whether something that it started still held its output open when it had ended.
    pub held: bool,
    /// How far it was confined, where that was wanted.
    pub sandbox: Option<Status>,
    /// Names that are protected and came while it ran: the sandbox could not hold them, for
    /// there was nothing to hold. What came into them, other programs execute or obey later.
    pub planted: Vec<PathBuf>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Its time was up, and its group was ended.
    TimedOut,
    /// It has ended, and nobody can tell how: something else in this program waited for it, or
    /// it hangs in the kernel and could not be ended.
    Unknown,
}

/// Why a program could not be run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// It could not be started: it is not there, not executable, or its folder is not there.
    #[error("`{program}` could not be started")]
    Spawn {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// The sandbox that it needs cannot be had.
    #[error("the sandbox cannot hold what is required of it: {0}")]
    Sandbox(Status),
    /// It could not be waited for; it was ended.
    #[error("a child process could not be waited for")]
    Wait(#[source] io::Error),
}

/// Has the system tell this program how its children end, where that is ignored.
///
/// A program that was started by one that ignores `SIGCHLD` does so too, and then nothing can
/// be started here. This undoes it for the whole process, so it is for `main`;
/// [`cli::App::main`](crate::cli::App::main) calls it.
pub fn hear_of_children() {
    #[cfg(target_os = "linux")]
    start::linux::hear_of_children();
}

/// Keeps the memory and the variables of this program from other processes of the user, where
/// the system can: the commands that it starts are such processes.
#[cfg(feature = "cli")]
pub(crate) fn keep_memory() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // Where it is refused, all is as it was.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Whether the system tells this program how its children end.
#[cfg(feature = "cli")]
pub(crate) fn hears_of_children() -> bool {
    #[cfg(target_os = "linux")]
    return start::linux::hears_of_children();
    #[cfg(not(target_os = "linux"))]
    true
}

/// Whether what a command starts is found wherever it went, unless it hides on purpose.
#[cfg(any(feature = "cli", test))]
pub(crate) fn finds_what_hides() -> bool {
    #[cfg(target_os = "linux")]
    return Mark::of_host().is_ok_and(|mark| mark.row().is_some());
    #[cfg(not(target_os = "linux"))]
    false
}

/// Runs a program to its end or its time limit.
///
/// Completion does not wait for what the program left running; what a confined program left
/// running is ended. When the future is dropped, the program's group is ended.
///
/// # Errors
///
/// Fails when the program could not be started or waited for, as in a program that ignores
/// `SIGCHLD`: see [`hear_of_children`]. How it ended is no error.
pub async fn run(run: Run) -> Result<Finished, RunError> {
    let started = Instant::now();
    let failed = |source| RunError::Spawn {
        program: run.program.name.to_string_lossy().into_owned(),
        source,
    };
    let (confined, confinement) = run.program.confined()?;
    let mark = Mark::fresh().map_err(failed)?;
    let (mut tree, streams) =
        Tree::start(&confined, mark, run.wiring(), run.grace).map_err(failed)?;
    let Streams { input, output, complaints, held: ends, .. } = streams;
    let (mut stdout, mut stderr) = (Capture::new(run.keep), Capture::new(run.keep));
    let (exit, held) = {
        let talk = async {
            tokio::join!(
                feed(input, &run.stdin),
                stdout.drain(Some(output)),
                stderr.drain(complaints)
            )
        };
        let mut talk = pin!(talk.map(drop).fuse());
        let exit = match timeout(run.timeout, exit_of(&mut tree, talk.as_mut())).await {
            Ok(status) => {
                let exit = Exit::of(status.map_err(RunError::Wait)?);
                if confinement.leaves_some() {
                    // What holds the sandbox together goes when this is done.
                    tree.end().await;
                }
                exit
            }
            Err(_) => {
                tree.end().await;
                Exit::TimedOut
            }
        };
        // From now on only what the child left behind keeps its output open.
        drop(ends);
        let held = !talk.is_terminated() && timeout(DRAIN, talk).await.is_err();
        (exit, held)
    };
    let elapsed = started.elapsed();
    let (stdout, stderr) = (stdout.finish(), stderr.finish());
    let planted = planted(&confinement).await;
    Ok(Finished { exit, stdout, stderr, elapsed, held, sandbox: confinement.status, planted })
}

/// Which protected names have come.
async fn planted(confinement: &Confinement) -> Vec<PathBuf> {
    if confinement.status.is_none() {
        return Vec::new();
    }
    let planted = confinement.planted.clone();
    // A runtime that ends meanwhile has nobody to tell.
    tokio::task::spawn_blocking(move || planted.found()).await.unwrap_or_default()
}

/// Waits for the child, and talks to it until then.
async fn exit_of(
    tree: &mut Tree,
    mut talk: Pin<&mut impl FusedFuture<Output = ()>>,
) -> io::Result<ExitStatus> {
    loop {
        tokio::select! {
            status = tree.wait() => return status,
            () = talk.as_mut() => {}
        }
    }
}

/// Writes `bytes` and closes the pipe. A child that reads no more does not need them.
async fn feed(stdin: Option<Writer>, bytes: &[u8]) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(bytes).await;
    }
}

impl Exit {
    fn of(status: ExitStatus) -> Self {
        match status.code() {
            Some(code) => Self::Code(code),
            None => Self::Signal(signal_of(status)),
        }
    }
}

#[cfg(unix)]
fn signal_of(status: ExitStatus) -> i32 {
    std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or_default()
}

/// Elsewhere every exit has a code.
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
