//! Resource limits of a child process (rlimits and niceness).
//!
//! The limits are set in the child before it executes the program.
//!
//! **Invariant:** a child whose limits cannot be set is not started.

#[cfg(unix)]
use std::sync::OnceLock;

/// The limit for open files that the host requests; more than it ever opens at once.
#[cfg(unix)]
const OPEN_FILES_TARGET: u64 = 1 << 16;

/// The host's soft limit for open files before [`raise_open_files_limit`] raised it.
#[cfg(unix)]
static INITIAL_OPEN_FILES: OnceLock<Option<u64>> = OnceLock::new();

/// Raises the soft limit for open files towards the hard limit, because a large file transaction
/// holds a handle of each folder. Children get the initial limit, which programs may rely on.
#[cfg(unix)]
pub fn raise_open_files_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let most = maximum.map_or(OPEN_FILES_TARGET, |most| most.min(OPEN_FILES_TARGET));
    if current.is_some_and(|current| current < most) && INITIAL_OPEN_FILES.set(current).is_ok() {
        // Best effort: on failure the old limit stays.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum });
    }
}

/// Resource limits for a child; each descendant inherits them separately.
///
/// Limits that are not set stay as they are for the host. A limit can only be lowered.
///
/// # Examples
///
/// ```
/// # #[cfg(unix)]
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use tool_sdk::process::{self, Command, ResourceLimits};
///
/// let limits = ResourceLimits::default().open_files(20).niceness(5);
/// let output = process::run(Command::shell("ulimit -n").limits(limits)).await?;
///
/// assert_eq!(output.stdout.to_text(), "20\n");
/// # Ok::<(), process::RunError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct ResourceLimits {
    open_files: Option<u64>,
    processes: Option<u64>,
    file_bytes: Option<u64>,
    memory_bytes: Option<u64>,
    niceness: Option<i32>,
}

impl ResourceLimits {
    /// Limits the number of open files (`RLIMIT_NOFILE`).
    pub fn open_files(mut self, count: u64) -> Self {
        self.open_files = Some(count);
        self
    }

    /// Limits the number of processes (`RLIMIT_NPROC`). The system counts all processes of the
    /// user, and does not restrict the superuser.
    pub fn processes(mut self, count: u64) -> Self {
        self.processes = Some(count);
        self
    }

    /// Limits the size of a file that it writes, in bytes (`RLIMIT_FSIZE`).
    pub fn file_bytes(mut self, bytes: u64) -> Self {
        self.file_bytes = Some(bytes);
        self
    }

    /// Limits the address space, in bytes (`RLIMIT_AS`).
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = Some(bytes);
        self
    }

    /// Lowers the scheduling priority, by 19 at most.
    pub fn niceness(mut self, niceness: u8) -> Self {
        self.niceness = Some(i32::from(niceness.min(19)));
        self
    }

    /// Applies the limits to the calling process. Makes system calls only, so it is safe after
    /// `fork`.
    #[cfg(unix)]
    pub(super) fn apply_to_self(self) -> rustix::io::Result<()> {
        use rustix::process::Resource;

        match self.open_files {
            Some(_) => lower_rlimit(Resource::Nofile, self.open_files)?,
            None => restore_open_files_limit()?,
        }
        lower_rlimit(Resource::Nproc, self.processes)?;
        lower_rlimit(Resource::Fsize, self.file_bytes)?;
        lower_rlimit(Resource::As, self.memory_bytes)?;
        match self.niceness {
            Some(niceness) => rustix::process::nice(niceness).map(drop),
            None => Ok(()),
        }
    }
}

#[cfg(unix)]
fn lower_rlimit(resource: rustix::process::Resource, limit: Option<u64>) -> rustix::io::Result<()> {
    use rustix::process::{Rlimit, getrlimit, setrlimit};

    let Some(limit) = limit else { return Ok(()) };
    let limit = getrlimit(resource).maximum.map_or(limit, |most| most.min(limit));
    setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })
}

/// Restores the limit for open files that the host started with.
#[cfg(unix)]
fn restore_open_files_limit() -> rustix::io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Some(&current) = INITIAL_OPEN_FILES.get() else { return Ok(()) };
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current, maximum })
}
