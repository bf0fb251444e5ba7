//! A file on its way to the place of another, or out of it.
//!
//! Other processes may change the file at any moment. Where the system lets two files change
//! their names in one step, what comes out is compared with what was read, and goes back when
//! it is something else: nobody's change is lost. Those who change files in this way wait for
//! each other, because two who put back at the same time would undo each other. Elsewhere
//! there is a moment between comparing and replacing.
//!
//! **Invariant:** what is removed was compared, or is of our own making.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, OpenOptions};

use super::snapshot::Facts;

/// How much of a file is compared at once.
const CHUNK: usize = 64 * 1024;

/// How often what came out by mistake is put back, when others do the same at this moment.
/// An even number leaves what was written last in its place.
const TRIES: usize = 1000;

/// How long the others are given each time.
const PAUSE: Duration = Duration::from_micros(50);

/// A file that goes away unless it gets another's name.
pub(super) struct Temporary {
    dir: Arc<Dir>,
    /// Empty once it got the other name.
    name: OsString,
}

impl Temporary {
    /// Writes `content` to a new file of its own name; `like` says what is to be like it.
    pub(super) fn write(
        dir: &Arc<Dir>,
        content: &[u8],
        like: Option<&Facts>,
        durable: bool,
    ) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if like.is_some() {
            private(&mut options);
        }
        let name = new_name()?;
        let file = dir.open_with(&name, &options)?;
        // From here on, a failure removes it.
        let temporary = Self { dir: Arc::clone(dir), name };
        (&file).write_all(content)?;
        if let Some(facts) = like {
            give(&file, facts)?;
        }
        if durable {
            file.sync_all()?;
        }
        Ok(temporary)
    }

    /// Gives it the name `place`, if what has that name is `expected`; says whether it was.
    pub(super) fn put(mut self, place: &Path, expected: Option<&[u8]>) -> io::Result<bool> {
        let _turn = turn(&self.dir);
        if !holds(&self.dir, place, expected)? {
            return Ok(false);
        }
        let own = identity(&self.dir, self.name.as_ref())?;
        let how = if expected.is_some() { How::Exchange } else { How::New };
        match rename(&self.dir, self.name.as_ref(), place, how)? {
            Renamed::Unable => {
                self.dir.rename(&self.name, &self.dir, place)?;
                self.name.clear();
                Ok(true)
            }
            Renamed::Not => Ok(false),
            Renamed::Done if expected.is_none() => {
                self.name.clear();
                Ok(true)
            }
            Renamed::Done => {
                let is_expected = holds(&self.dir, self.name.as_ref(), expected);
                if !matches!(is_expected, Ok(true)) {
                    self.put_back(place, own)?;
                }
                is_expected
            }
        }
    }

    /// Removes the file `place`, if it is `expected`; says whether it was.
    pub(super) fn take_out(dir: &Arc<Dir>, place: &Path, expected: &[u8]) -> io::Result<bool> {
        let _turn = turn(dir);
        if !holds(dir, place, Some(expected))? {
            return Ok(false);
        }
        let mut out = Self { dir: Arc::clone(dir), name: new_name()? };
        match rename(dir, place, out.name.as_ref(), How::New)? {
            Renamed::Unable => dir.remove_file(place).map(|()| true),
            Renamed::Not => Ok(false),
            Renamed::Done => {
                let is_expected = holds(dir, out.name.as_ref(), Some(expected));
                if !matches!(is_expected, Ok(true)) {
                    out.leave_at(place)?;
                }
                is_expected
            }
        }
    }

    /// Lets what came out go back, until the own file comes out: what else comes out is of
    /// others who do the same at this moment.
    fn put_back(&mut self, place: &Path, own: Identity) -> io::Result<()> {
        for _ in 0..TRIES {
            let back = rename(&self.dir, self.name.as_ref(), place, How::Exchange);
            if matches!(back, Ok(Renamed::Done))
                && identity(&self.dir, self.name.as_ref()).is_ok_and(|out| out == own)
            {
                return Ok(());
            }
            sleep(PAUSE);
        }
        self.leave_at(place)
    }

    /// Gives a file of others the name `place` if that is free; otherwise it keeps its own.
    fn leave_at(&mut self, place: &Path) -> io::Result<()> {
        let name = std::mem::take(&mut self.name);
        match rename(&self.dir, name.as_ref(), place, How::New) {
            Ok(Renamed::Done) => Ok(()),
            _ => Err(io::Error::other(format!(
                "others wrote it at the same time; what one of them wrote is in `{}`",
                name.display()
            ))),
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            let _ = self.dir.remove_file(&self.name);
        }
    }
}

/// Whether the file holds `expected` and nothing else, or is not there.
fn holds(dir: &Dir, name: &Path, expected: Option<&[u8]>) -> io::Result<bool> {
    let is_file = match (dir.symlink_metadata(name), expected) {
        (Ok(metadata), Some(expected)) => {
            metadata.is_file() && metadata.len() == expected.len() as u64
        }
        (Ok(_), None) => false,
        (Err(error), _) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(expected.is_none());
        }
        (Err(error), _) => return Err(error),
    };
    match expected {
        Some(expected) if is_file => {
            let mut options = OpenOptions::new();
            options.read(true).nonblock(true).follow(FollowSymlinks::No);
            match dir.open_with(name, &options) {
                Ok(file) => same(file.into_std(), expected),
                // Gone since the look at it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
                Err(error) => Err(error),
            }
        }
        _ => Ok(false),
    }
}

fn same(mut file: File, expected: &[u8]) -> io::Result<bool> {
    let mut buffer = vec![0; CHUNK.min(expected.len() + 1)];
    let mut rest = expected;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(rest.is_empty()),
            read => match rest.strip_prefix(&buffer[..read]) {
                Some(left) => rest = left,
                None => return Ok(false),
            },
        }
    }
}

/// How a file gets another name in one step.
#[derive(Clone, Copy)]
enum How {
    /// What has the name gets the other one.
    Exchange,
    /// Nothing has the name.
    New,
}

/// What became of that.
enum Renamed {
    Done,
    /// There was nothing to exchange with, or something in the way.
    Not,
    /// The system does not do it.
    Unable,
}

/// How long one waits for others who replace files in the same folder. A file system without
/// locks, or somebody who holds one and does nothing, keeps nobody from writing.
const PATIENCE: Duration = Duration::from_secs(2);

/// Waits until no other one that does so replaces a file in the folder, for as long as what
/// comes back is there.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn turn(dir: &Dir) -> Option<std::os::fd::OwnedFd> {
    use rustix::fs::{FlockOperation, Mode, OFlags, flock, openat};
    use rustix::io::Errno;

    // A handle of its own: who shares one shares its lock.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(dir, ".", flags, Mode::empty()).ok()?;
    let until = std::time::Instant::now() + PATIENCE;
    loop {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Some(folder),
            Err(Errno::AGAIN | Errno::INTR) if std::time::Instant::now() < until => sleep(PAUSE),
            Err(_) => return None,
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn turn(_: &Dir) {}

/// What tells a file from all others, whatever its name is.
type Identity = (u64, u64);

#[cfg(any(target_os = "linux", target_os = "android"))]
fn rename(dir: &Dir, from: &Path, to: &Path, how: How) -> io::Result<Renamed> {
    use rustix::fs::{RenameFlags, renameat_with};
    use rustix::io::Errno;

    let flags = match how {
        How::Exchange => RenameFlags::EXCHANGE,
        How::New => RenameFlags::NOREPLACE,
    };
    match renameat_with(dir, from, dir, to, flags) {
        Ok(()) => Ok(Renamed::Done),
        Err(Errno::NOENT | Errno::EXIST) => Ok(Renamed::Not),
        // File systems, old systems, and what filters calls to the system.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => Ok(Renamed::Unable),
        Err(error) => Err(error.into()),
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn identity(dir: &Dir, name: &Path) -> io::Result<Identity> {
    use cap_std::fs::MetadataExt as _;

    let metadata = dir.symlink_metadata(name)?;
    Ok((metadata.dev(), metadata.ino()))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn rename(_: &Dir, _: &Path, _: &Path, _: How) -> io::Result<Renamed> {
    Ok(Renamed::Unable)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn identity(_: &Dir, _: &Path) -> io::Result<Identity> {
    Ok((0, 0))
}

fn new_name() -> io::Result<OsString> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(format!(".{:032x}.tmp", u128::from_ne_bytes(bytes)).into())
}

/// Until it has the mode of the file that it replaces, nobody else reads it.
#[cfg(unix)]
fn private(options: &mut OpenOptions) {
    use cap_std::fs::OpenOptionsExt as _;

    options.mode(0o600);
}

#[cfg(not(unix))]
fn private(_: &mut OpenOptions) {}

fn give(file: &cap_std::fs::File, facts: &Facts) -> io::Result<()> {
    #[cfg(unix)]
    {
        let (user, group) = facts.owner;
        let own = rustix::fs::fstat(file)?;
        if (own.st_uid, own.st_gid) != facts.owner {
            // Only some users may give files away; all others write their own.
            let _ = std::os::unix::fs::fchown(file, Some(user), Some(group));
        }
    }
    file.set_permissions(facts.permissions.clone())
}
