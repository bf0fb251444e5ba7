//! What a child may use up.
//!
//! **Invariant:** a limit that cannot be set keeps the child from starting.

/// Limits for a child and, each by itself, everything below it.
///
/// Where nothing is said, the host's own limits hold; none is ever lifted.
///
/// # Examples
///
/// ```
/// # #[cfg(unix)]
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use tool_sdk::process::{self, Limits, Run};
///
/// let limits = Limits::default().open_files(20).niceness(5);
/// let finished = process::run(Run::shell("ulimit -n").limits(limits)).await?;
///
/// assert_eq!(finished.stdout.text(), "20\n");
/// # Ok::<(), process::RunError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Limits {
    open_files: Option<u64>,
    processes: Option<u64>,
    file_bytes: Option<u64>,
    memory_bytes: Option<u64>,
    niceness: Option<i32>,
}

impl Limits {
    /// How many files it may have open.
    pub fn open_files(mut self, count: u64) -> Self {
        self.open_files = Some(count);
        self
    }

    /// How many processes its user may have; the system counts all of them, and does not
    /// hold the superuser to it.
    pub fn processes(mut self, count: u64) -> Self {
        self.processes = Some(count);
        self
    }

    /// How long a file may become that it writes.
    pub fn file_bytes(mut self, bytes: u64) -> Self {
        self.file_bytes = Some(bytes);
        self
    }

    /// How much memory it may ask for.
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = Some(bytes);
        self
    }

    /// How far it steps back for others, at most 19.
    pub fn niceness(mut self, niceness: u8) -> Self {
        self.niceness = Some(i32::from(niceness.min(19)));
        self
    }

    /// Limits the calling process. Makes system calls only.
    #[cfg(unix)]
    pub(super) fn apply(self) -> rustix::io::Result<()> {
        use rustix::process::Resource;

        lower(Resource::Nofile, self.open_files)?;
        lower(Resource::Nproc, self.processes)?;
        lower(Resource::Fsize, self.file_bytes)?;
        lower(Resource::As, self.memory_bytes)?;
        match self.niceness {
            Some(niceness) => rustix::process::nice(niceness).map(drop),
            None => Ok(()),
        }
    }
}

#[cfg(unix)]
fn lower(resource: rustix::process::Resource, limit: Option<u64>) -> rustix::io::Result<()> {
    use rustix::process::{Rlimit, getrlimit, setrlimit};

    let Some(limit) = limit else { return Ok(()) };
    let limit = getrlimit(resource).maximum.map_or(limit, |most| most.min(limit));
    setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })
}
