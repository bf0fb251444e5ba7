//! What a child may use up.
//!
//! **Invariant:** a limit that cannot be set keeps the child from starting.

#[cfg(unix)]
use std::sync::OnceLock;

/// More files than anything here opens at once.
#[cfg(all(unix, feature = "cli"))]
const MANY: u64 = 1 << 16;

/// How many files this process could have open before it raised that itself.
#[cfg(unix)]
static OPEN_FILES: OnceLock<Option<u64>> = OnceLock::new();

/// Lets this process have as many files open as it may give itself: a large change holds a handle
/// of each folder. What it starts has what it had itself, since programs may count on that.
#[cfg(all(unix, feature = "cli"))]
pub(crate) fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let most = maximum.map_or(MANY, |most| most.min(MANY));
    if current.is_some_and(|current| current < most) && OPEN_FILES.set(current).is_ok() {
        // Where that is refused, everything is as it was.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum });
    }
}

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

        match self.open_files {
            Some(_) => lower(Resource::Nofile, self.open_files)?,
            None => give_back_open_files()?,
        }
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

/// Sets the limit that the host had before it raised its own.
#[cfg(unix)]
fn give_back_open_files() -> rustix::io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Some(&current) = OPEN_FILES.get() else { return Ok(()) };
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current, maximum })
}
