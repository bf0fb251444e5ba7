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
//! What is compared stands in [`expected`](super::expected), how names change in
//! [`rename`](super::rename).
//!
//! [turn]: super::turns
//!
//! **Invariant:** what is removed was compared, or is of our own making.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use cap_std::fs::{Dir, File};

use super::expected::{Expected, holds, seems};
use super::named::create;
use super::rename::{How, Identity, Renamed, identity, identity_of, rename};
use super::rights::{first, give};
use super::snapshot::Facts;
use crate::store::place::fits;

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
        fits(content.len() as u64)?;
        let name = new_name();
        let file = File::from_std(create(dir, name.as_ref(), first(like))?);
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

/// Whether something has the name.
fn is_there(dir: &Dir, name: &Path) -> io::Result<bool> {
    match dir.symlink_metadata(name) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// A name that nobody has. The system is asked for chance once per thread, not once per file;
/// who guesses a name all the same only keeps the file from being made.
fn new_name() -> OsString {
    let chance = RandomState::new();
    let mut name = String::with_capacity(".".len() + 32 + ".tmp".len());
    let _ = write!(name, ".{:016x}{:016x}.tmp", chance.hash_one(0), chance.hash_one(1));
    name.into()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use cap_std::ambient_authority;

    use super::*;
    use crate::workspace::attributes::Attributes;

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
