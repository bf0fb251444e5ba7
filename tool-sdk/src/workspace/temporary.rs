//! A file on its way to the place of another, or out of it.
//!
//! Other processes may change the file at any moment. Where the system lets two files change
//! their names in one step, what comes out is compared with what was read, and goes back when
//! it is something else: nobody's change is lost. Whoever calls this has the [turn] in the
//! folder, because two who put back at the same time would undo each other. Elsewhere there
//! is a moment between comparing and replacing.
//!
//! What comes out is the proof; the look before it only spares others from seeing their file
//! replaced for a moment. So a file of which the system says that nobody touched it is not
//! read then.
//!
//! For the moment until it goes back, others may write into the new file as they found it
//! under that name. What they wrote is kept beside it. Only who begins to write then, and has
//! not written yet when it goes back, writes into a file that has no name any more.
//!
//! [turn]: super::turns
//!
//! **Invariant:** what is removed was compared, or is of our own making.

use std::ffi::OsString;
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, Metadata, OpenOptions};

use super::attributes::Attributes;
use super::snapshot::{Facts, Stamp};

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
    own: Identity,
}

/// What a file must hold to be replaced or removed.
#[derive(Clone, Copy)]
pub(super) struct Expected<'e> {
    pub(super) content: &'e [u8],
    /// What the system said of it when it held that, where somebody asked. Who changed its
    /// mode or owner meant the successor, too.
    pub(super) facts: Option<&'e Facts>,
}

impl Temporary {
    /// Writes `content` to a new file of its own name; `like` says what is to be like it.
    pub(super) fn write(
        dir: &Arc<Dir>,
        content: &[u8],
        like: Option<&Facts>,
        durable: bool,
    ) -> io::Result<Self> {
        if like.is_some_and(|facts| facts.is_link) {
            return Self::link(dir, content);
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        shut(&mut options, like);
        let name = new_name();
        let file = dir.open_with(&name, &options)?;
        // From here on, a failure removes it.
        let mut temporary = Self { dir: Arc::clone(dir), name, own: Identity::default() };
        // Before there is anything to read.
        if let Some(facts) = like {
            facts.attributes.give(&file)?;
        }
        (&file).write_all(content)?;
        let own = file.metadata()?;
        temporary.own = identity_of(&own);
        if let Some(facts) = like.filter(|facts| !facts.fit(&own)) {
            give(&file, &own, facts)?;
        }
        if durable {
            file.sync_all()?;
        }
        Ok(temporary)
    }

    /// Makes a symbolic link that leads where it once did.
    #[cfg(unix)]
    fn link(dir: &Arc<Dir>, target: &[u8]) -> io::Result<Self> {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt as _;

        let name = new_name();
        dir.symlink_contents(OsStr::from_bytes(target), &name)?;
        Ok(Self { dir: Arc::clone(dir), name, own: Identity::default() })
    }

    #[cfg(not(unix))]
    fn link(_: &Arc<Dir>, _: &[u8]) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Gives it, with the `content` it was written with, the name `place`, if what has that
    /// name is `expected`; says whether it was.
    pub(super) fn put(
        mut self,
        content: &[u8],
        place: &Path,
        expected: Option<Expected<'_>>,
    ) -> io::Result<bool> {
        let Some(expected) = expected else { return self.put_new(place) };
        if !seems(&self.dir, place, expected)? {
            return Ok(false);
        }
        match rename(&self.dir, self.name.as_ref(), place, How::Exchange)? {
            Renamed::Unable if !holds(&self.dir, place, expected)? => Ok(false),
            Renamed::Unable => self.replace(place),
            Renamed::Not => Ok(false),
            Renamed::Done => {
                let is_expected = holds(&self.dir, self.name.as_ref(), expected);
                if !matches!(is_expected, Ok(true)) {
                    self.put_back(place, content)?;
                }
                is_expected
            }
        }
    }

    /// Gives it the name `place`, if nothing has that; says whether it was so.
    fn put_new(mut self, place: &Path) -> io::Result<bool> {
        match rename(&self.dir, self.name.as_ref(), place, How::New)? {
            Renamed::Unable if is_there(&self.dir, place)? => Ok(false),
            Renamed::Unable => self.replace(place),
            Renamed::Not => Ok(false),
            Renamed::Done => {
                self.name.clear();
                Ok(true)
            }
        }
    }

    /// Takes the name `place` from whatever has it.
    fn replace(&mut self, place: &Path) -> io::Result<bool> {
        self.dir.rename(&self.name, &self.dir, place)?;
        self.name.clear();
        Ok(true)
    }

    /// Removes the file `place`, if it is `expected`; says whether it was.
    pub(super) fn take_out(
        dir: &Arc<Dir>,
        place: &Path,
        expected: Expected<'_>,
    ) -> io::Result<bool> {
        if !seems(dir, place, expected)? {
            return Ok(false);
        }
        let (dir, name) = (Arc::clone(dir), new_name());
        let mut out = Self { dir, name, own: Identity::default() };
        match rename(&out.dir, place, out.name.as_ref(), How::New)? {
            Renamed::Unable if !holds(&out.dir, place, expected)? => Ok(false),
            Renamed::Unable => out.dir.remove_file(place).map(|()| true),
            Renamed::Not => Ok(false),
            Renamed::Done => {
                let is_expected = holds(&out.dir, out.name.as_ref(), expected);
                if !matches!(is_expected, Ok(true)) {
                    out.leave_at(place)?;
                }
                is_expected
            }
        }
    }

    /// Lets what came out go back, until the own file comes out: what else comes out is of
    /// others who do the same at this moment. It goes, unless others wrote into it: then it
    /// is no longer what it was with its `content`.
    fn put_back(&mut self, place: &Path, content: &[u8]) -> io::Result<()> {
        let untouched = Expected { content, facts: None };
        for _ in 0..TRIES {
            let back = rename(&self.dir, self.name.as_ref(), place, How::Exchange);
            if matches!(back, Ok(Renamed::Done))
                && identity(&self.dir, self.name.as_ref()).is_ok_and(|out| out == self.own)
            {
                return match holds(&self.dir, self.name.as_ref(), untouched) {
                    Ok(true) => Ok(()),
                    _ => self.leave_at(place),
                };
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

/// Whether the file is probably what is expected: nobody touched it, or it holds the same.
fn seems(dir: &Dir, name: &Path, expected: Expected<'_>) -> io::Result<bool> {
    let is_untouched = match (expected.facts, dir.symlink_metadata(name)) {
        (Some(facts), Ok(metadata)) => Stamp::of(&metadata) == facts.stamp,
        _ => false,
    };
    Ok(is_untouched || holds(dir, name, expected)?)
}

/// Whether something has the name.
fn is_there(dir: &Dir, name: &Path) -> io::Result<bool> {
    match dir.symlink_metadata(name) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether there is a file that holds what is expected and nothing else, with its mode, owner
/// and attributes.
fn holds(dir: &Dir, name: &Path, expected: Expected<'_>) -> io::Result<bool> {
    let Expected { content, facts } = expected;
    if facts.is_some_and(|facts| facts.is_link) {
        let leads_to = dir.read_link_contents(name);
        return Ok(leads_to.is_ok_and(|path| path.as_os_str().as_encoded_bytes() == content));
    }
    let file = dir.symlink_metadata(name).and_then(|metadata| {
        let fits = metadata.len() == content.len() as u64
            && facts.is_none_or(|facts| facts.fit(&metadata));
        if !metadata.is_file() || !fits {
            return Ok(None);
        }
        let mut options = OpenOptions::new();
        options.read(true).nonblock(true).follow(FollowSymlinks::No);
        dir.open_with(name, &options).map(Some)
    });
    match file {
        Ok(Some(file)) => Ok(fits(&file, facts)? && same(file.into_std(), content)?),
        Ok(None) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether a file has what else its successor gets.
fn fits(file: &cap_std::fs::File, facts: Option<&Facts>) -> io::Result<bool> {
    let Some(facts) = facts else { return Ok(true) };
    Ok(Attributes::of(file)? == facts.attributes)
}

fn same(mut file: File, expected: &[u8]) -> io::Result<bool> {
    let mut buffer = vec![0; CHUNK.min(expected.len() + 1)];
    let mut rest = expected;
    loop {
        let read = file.read(&mut buffer)?;
        match rest.strip_prefix(&buffer[..read]) {
            // A file gives less than was asked for at its end.
            Some([]) if read < buffer.len() => return Ok(true),
            Some(left) if read > 0 => rest = left,
            _ => return Ok(false),
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

fn identity(dir: &Dir, name: &Path) -> io::Result<Identity> {
    dir.symlink_metadata(name).map(|metadata| identity_of(&metadata))
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn identity_of(metadata: &Metadata) -> Identity {
    use cap_std::fs::MetadataExt as _;

    (metadata.dev(), metadata.ino())
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn rename(_: &Dir, _: &Path, _: &Path, _: How) -> io::Result<Renamed> {
    Ok(Renamed::Unable)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn identity_of(_: &Metadata) -> Identity {
    Identity::default()
}

/// A name that nobody has. The system is asked for chance once per thread, not once per file;
/// who guesses a name all the same only keeps the file from being made.
fn new_name() -> OsString {
    let chance = RandomState::new();
    format!(".{:016x}{:016x}.tmp", chance.hash_one(0), chance.hash_one(1)).into()
}

/// The mode of a file that replaces none, as far as the user's own mask allows.
#[cfg(unix)]
const NEW: u32 = 0o644;

/// Until it has the mode and the owner of the file that it replaces, nobody else reads it who
/// could not read that one: whose group it is does not matter where all others may do as much.
#[cfg(unix)]
fn shut(options: &mut OpenOptions, like: Option<&Facts>) {
    use cap_std::fs::{OpenOptionsExt as _, PermissionsExt as _};

    let first = |facts: &Facts| match facts.attributes.is_empty() {
        true => first_mode(facts.permissions.mode()),
        false => 0o600,
    };
    options.mode(like.map_or(NEW, first));
}

#[cfg(unix)]
fn first_mode(mode: u32) -> u32 {
    let (group, others) = (mode >> 3 & 0o7, mode & 0o7);
    if group == others { mode & 0o777 } else { 0o600 }
}

#[cfg(not(unix))]
fn shut(_: &mut OpenOptions, _: Option<&Facts>) {}

/// Gives a file the mode and the owner of the one that it replaces.
#[cfg(unix)]
fn give(file: &cap_std::fs::File, own: &Metadata, facts: &Facts) -> io::Result<()> {
    use std::os::unix::fs::fchown;

    use cap_std::fs::{MetadataExt as _, PermissionsExt as _};

    let ((user, group), mut permissions) = (facts.owner, facts.permissions.clone());
    if (own.uid(), own.gid()) != facts.owner {
        // Only some users may give files away; all others write their own, of a group that
        // they are in.
        let is_users = fchown(file, Some(user), Some(group)).is_ok();
        let is_groups = is_users || fchown(file, None, Some(group)).is_ok();
        permissions.set_mode(mode_of_another(permissions.mode(), is_users, is_groups));
    }
    file.set_permissions(permissions)
}

#[cfg(not(unix))]
fn give(file: &cap_std::fs::File, _: &Metadata, facts: &Facts) -> io::Result<()> {
    file.set_permissions(facts.permissions.clone())
}

/// The mode of a file that is another user's now, perhaps of another group: nobody runs it as
/// somebody whom it was not to run as, and nobody gets rights with the group.
#[cfg(unix)]
fn mode_of_another(mode: u32, is_users: bool, is_groups: bool) -> u32 {
    let mode = if is_users { mode } else { mode & !0o4000 };
    if is_groups {
        return mode;
    }
    // Whoever was of the group is one of the others now, and the other way round.
    let both = mode >> 3 & mode & 0o7;
    mode & !0o2077 | both << 3 | both
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use cap_std::ambient_authority;

    use super::*;

    #[test]
    fn a_new_file_is_shut_where_its_group_matters() {
        for (mode, first) in [
            (0o100_644, 0o644),
            (0o755, 0o755),
            (0o600, 0o600),
            (0o4755, 0o755),
            (0o640, 0o600),
            (0o664, 0o600),
            (0o604, 0o600),
            (0o2750, 0o600),
        ] {
            assert_eq!(first_mode(mode), first, "{mode:o}");
        }
    }

    // PA5
    #[test]
    fn a_file_of_another_is_open_to_nobody_more() {
        for (mode, is_users, is_groups, expected) in [
            (0o6775, true, true, 0o6775),
            (0o6775, false, true, 0o2775),
            (0o6775, false, false, 0o755),
            (0o660, false, true, 0o660),
            (0o660, false, false, 0o600),
            (0o606, false, false, 0o600),
            (0o646, false, false, 0o644),
            (0o666, false, false, 0o666),
        ] {
            assert_eq!(mode_of_another(mode, is_users, is_groups), expected, "{mode:o}");
        }
    }

    #[test]
    fn a_new_file_gets_every_mode() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let dir = Arc::new(Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap());
        for mode in [0o644, 0o600, 0o640, 0o664, 0o666, 0o777, 0o604, 0o4755, 0o2750] {
            fs::write(&file, "old").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let facts = Facts::of(&fs::metadata(&file).unwrap(), Attributes::default());
            let next = Temporary::write(&dir, b"new", Some(&facts), false).unwrap();
            let found = fs::metadata(folder.path().join(&next.name)).unwrap();
            assert_eq!(found.mode() & 0o7777, mode, "{mode:o}");
        }
    }

    // PA5: that nobody touched a file is a hint, and what it holds is the proof.
    #[test]
    fn what_only_looks_untouched_goes_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "THEM").unwrap();
        let dir = Arc::new(Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap());
        let number = fs::metadata(&file).unwrap().ino();
        let place = Path::new("file");
        let facts = || Facts::of(&fs::metadata(&file).unwrap(), Attributes::default());

        let next = Temporary::write(&dir, b"ours", None, false).unwrap();
        let expected = Expected { content: b"read", facts: Some(&facts()) };
        assert!(!next.put(b"ours", place, Some(expected)).unwrap());
        let expected = Expected { content: b"read", facts: Some(&facts()) };
        assert!(!Temporary::take_out(&dir, place, expected).unwrap());
        assert_eq!(fs::read(&file).unwrap(), b"THEM");
        assert_eq!(fs::metadata(&file).unwrap().ino(), number);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    // PA5: who found our file under that name, and wrote into it, finds what he wrote.
    #[test]
    fn what_others_wrote_into_ours_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "THEM").unwrap();
        let dir = Arc::new(Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap());
        let place = Path::new("file");

        let mut next = Temporary::write(&dir, b"ours", None, false).unwrap();
        let name = next.name.clone();
        assert!(matches!(rename(&dir, name.as_ref(), place, How::Exchange), Ok(Renamed::Done)));
        fs::write(&file, "late").unwrap();
        let error = next.put_back(place, b"ours").unwrap_err();
        drop(next);
        assert!(error.to_string().contains(name.to_str().unwrap()), "{error}");
        assert_eq!(fs::read(&file).unwrap(), b"THEM");
        assert_eq!(fs::read(folder.path().join(name)).unwrap(), b"late");
    }
}
