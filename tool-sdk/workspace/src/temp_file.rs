//! Temporary files, and the compare-and-swap by which they replace a file or remove it.
//!
//! Other processes may change the file at any moment. Where the system can exchange two names
//! atomically, the old file is compared with the snapshot after the exchange. If it differs, the
//! names are exchanged back, so that no concurrent change is lost. The caller holds the
//! [directory lock], because two processes that exchange back at the same time would undo each
//! other. On other systems a short race between comparing and replacing remains.
//!
//! The comparison after the exchange is the proof. The one before it only avoids that other
//! processes see their file replaced for a moment, so it trusts an unchanged stamp and does not
//! read the content.
//!
//! Until the names are exchanged back, another process may open the new file under that name and
//! write to it. Such a write is kept in a file beside it. Only a process that opened the file in
//! that moment and writes after it was exchanged back writes to an unlinked file.
//!
//! The comparison is in [`expected_file`](super::expected_file), the renames are in
//! [`atomic_rename`](super::atomic_rename).
//!
//! [directory lock]: super::dir_lock
//!
//! **Invariant:** a file is removed only after it was compared, or if this module created it.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use cap_std::fs::{Dir, File};

use super::atomic_rename::{
    FileIdentity, RenameMode, RenameOutcome, identity_from, read_identity, rename_atomically,
};
use super::expected_file::{ExpectedFile, matches_exactly, probably_matches};
use super::open::create_entry;
use super::permissions::{apply_owner_and_mode, initial_mode};
use super::snapshot::SnapshotMetadata;

/// How often the names are exchanged back while other processes do the same. With an even number
/// the file that was written last ends up under the name.
const MAX_RESTORE_ATTEMPTS: usize = 1000;

/// The delay between two attempts.
const RETRY_DELAY: Duration = Duration::from_micros(50);

/// Fails with `EFBIG` if `bytes` exceeds the file size limit (`RLIMIT_FSIZE`). A write over the
/// limit would kill the process by `SIGXFSZ`.
#[cfg(unix)]
fn check_size_limit(bytes: u64) -> io::Result<()> {
    use rustix::process::{Resource, getrlimit};

    let most = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
    if bytes <= most { Ok(()) } else { Err(rustix::io::Errno::FBIG.into()) }
}

#[cfg(not(unix))]
fn check_size_limit(_: u64) -> io::Result<()> {
    Ok(())
}

/// A temporary file that is removed on drop, unless it was renamed to its target.
pub(super) struct TempFile {
    dir: Arc<Dir>,
    /// Empty once it was renamed.
    name: OsString,
    identity: FileIdentity,
}

impl TempFile {
    /// Creates a file of a random name; see [`create_named`](Self::create_named).
    pub(super) fn create_with(
        dir: &Arc<Dir>,
        content: &[u8],
        like: Option<&SnapshotMetadata>,
        durable: bool,
    ) -> io::Result<Self> {
        Self::create_named(random_name(), dir, content, like, durable)
    }

    /// Creates a file with `content`, and with the mode, owner and extended attributes of `like`.
    /// A symbolic link gets a random name.
    pub(super) fn create_named(
        name: OsString,
        dir: &Arc<Dir>,
        content: &[u8],
        like: Option<&SnapshotMetadata>,
        durable: bool,
    ) -> io::Result<Self> {
        if like.is_some_and(|saved| saved.is_link) {
            return Self::create_symlink(dir, content);
        }
        check_size_limit(content.len() as u64)?;
        let file = File::from_std(create_entry(dir, name.as_ref(), initial_mode(like))?);
        // From here on, a failure removes the file on drop.
        let mut temporary = Self { dir: Arc::clone(dir), name, identity: FileIdentity::default() };
        // Set access control before there is content to read.
        if let Some(saved) = like {
            saved.attributes.apply_to(&file)?;
        }
        (&file).write_all(content)?;
        let own = file.metadata()?;
        temporary.identity = identity_from(&own);
        if let Some(saved) = like.filter(|saved| !saved.matches_owner_and_mode(&own)) {
            apply_owner_and_mode(&file, &own, saved)?;
        }
        if durable {
            file.sync_all()?;
        }
        Ok(temporary)
    }

    /// Takes over a file that an interrupted transaction left.
    pub(super) fn adopt(dir: &Arc<Dir>, name: &str) -> io::Result<Self> {
        let identity = read_identity(dir, name.as_ref())?;
        Ok(Self { dir: Arc::clone(dir), name: name.into(), identity })
    }

    /// Creates a symbolic link, to restore one that was removed.
    #[cfg(unix)]
    fn create_symlink(dir: &Arc<Dir>, target: &[u8]) -> io::Result<Self> {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt as _;

        let name = random_name();
        dir.symlink_contents(OsStr::from_bytes(target), &name)?;
        Ok(Self { dir: Arc::clone(dir), name, identity: FileIdentity::default() })
    }

    #[cfg(not(unix))]
    fn create_symlink(_: &Arc<Dir>, _: &[u8]) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Replaces the file `target` if it equals `expected`, or creates it if nothing is expected.
    /// Returns whether the file matched. `content` is what the temporary file was created with.
    pub(super) fn replace_expected(
        mut self,
        content: &[u8],
        target: &Path,
        expected: Option<ExpectedFile<'_>>,
    ) -> io::Result<bool> {
        let Some(expected) = expected else { return self.rename_to_unused(target) };
        if !probably_matches(&self.dir, target, expected)? {
            return Ok(false);
        }
        match rename_atomically(&self.dir, self.name.as_ref(), target, RenameMode::Exchange)? {
            RenameOutcome::Unsupported if !matches_exactly(&self.dir, target, expected)? => {
                Ok(false)
            }
            RenameOutcome::Unsupported => self.rename_over(target),
            RenameOutcome::Refused => Ok(false),
            RenameOutcome::Done => {
                let is_expected = matches_exactly(&self.dir, self.name.as_ref(), expected);
                if !matches!(is_expected, Ok(true)) {
                    self.restore_original(target, content)?;
                }
                is_expected
            }
        }
    }

    /// Renames it to `target` if that name is unused. Returns whether it was.
    fn rename_to_unused(mut self, target: &Path) -> io::Result<bool> {
        match rename_atomically(&self.dir, self.name.as_ref(), target, RenameMode::NoReplace)? {
            RenameOutcome::Unsupported if name_exists(&self.dir, target)? => Ok(false),
            RenameOutcome::Unsupported => self.rename_over(target),
            RenameOutcome::Refused => Ok(false),
            RenameOutcome::Done => {
                self.name.clear();
                Ok(true)
            }
        }
    }

    /// Renames it to `target` and overwrites a file of that name.
    fn rename_over(&mut self, target: &Path) -> io::Result<bool> {
        self.dir.rename(&self.name, &self.dir, target)?;
        self.name.clear();
        Ok(true)
    }

    /// Removes the file `target` if it equals `expected`. Returns whether it did.
    pub(super) fn remove_expected(
        dir: &Arc<Dir>,
        target: &Path,
        expected: ExpectedFile<'_>,
    ) -> io::Result<bool> {
        if !probably_matches(dir, target, expected)? {
            return Ok(false);
        }
        let (dir, name) = (Arc::clone(dir), random_name());
        let mut out = Self { dir, name, identity: FileIdentity::default() };
        match rename_atomically(&out.dir, target, out.name.as_ref(), RenameMode::NoReplace)? {
            RenameOutcome::Unsupported if !matches_exactly(&out.dir, target, expected)? => {
                Ok(false)
            }
            RenameOutcome::Unsupported => out.dir.remove_file(target).map(|()| true),
            RenameOutcome::Refused => Ok(false),
            RenameOutcome::Done => {
                let is_expected = matches_exactly(&out.dir, out.name.as_ref(), expected);
                if !matches!(is_expected, Ok(true)) {
                    out.move_to_if_unused(target)?;
                }
                is_expected
            }
        }
    }

    /// Exchanges the names back until the own file comes out. Any other file that comes out
    /// belongs to a process that does the same at this moment. The own file is then removed,
    /// unless another process wrote to it, so that its content is no longer `content`.
    fn restore_original(&mut self, target: &Path, content: &[u8]) -> io::Result<()> {
        let untouched = ExpectedFile { content, metadata: None };
        for _ in 0..MAX_RESTORE_ATTEMPTS {
            let back =
                rename_atomically(&self.dir, self.name.as_ref(), target, RenameMode::Exchange);
            if matches!(back, Ok(RenameOutcome::Done))
                && read_identity(&self.dir, self.name.as_ref())
                    .is_ok_and(|out| out == self.identity)
            {
                return match matches_exactly(&self.dir, self.name.as_ref(), untouched) {
                    Ok(true) => Ok(()),
                    _ => self.move_to_if_unused(target),
                };
            }
            sleep(RETRY_DELAY);
        }
        self.move_to_if_unused(target)
    }

    /// Renames a file of another process to `target` if that name is unused, else leaves it under
    /// its temporary name.
    fn move_to_if_unused(&mut self, target: &Path) -> io::Result<()> {
        let name = std::mem::take(&mut self.name);
        match rename_atomically(&self.dir, name.as_ref(), target, RenameMode::NoReplace) {
            Ok(RenameOutcome::Done) => Ok(()),
            _ => Err(io::Error::other(format!(
                "another process wrote it at the same time; its version was kept as `{}`",
                name.display()
            ))),
        }
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            let _ = self.dir.remove_file(&self.name);
        }
    }
}

/// Returns whether the name exists.
fn name_exists(dir: &Dir, name: &Path) -> io::Result<bool> {
    match dir.symlink_metadata(name) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns a random file name. `RandomState` reads system randomness once per thread. If another
/// process guesses the name, creating the file fails.
pub(super) fn random_name() -> OsString {
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
    use crate::xattrs::ExtendedAttributes;

    #[test]
    fn the_mode_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let dir = Arc::new(Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap());
        for mode in [0o644, 0o600, 0o640, 0o664, 0o666, 0o777, 0o604, 0o4755, 0o2750] {
            fs::write(&file, "old").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let saved = SnapshotMetadata::from_std(
                &fs::metadata(&file).unwrap(),
                ExtendedAttributes::default(),
            );
            let next = TempFile::create_with(&dir, b"new", Some(&saved), false).unwrap();
            let found = fs::metadata(folder.path().join(&next.name)).unwrap();
            assert_eq!(found.mode() & 0o7777, mode, "{mode:o}");
        }
    }

    // PA5: an equal stamp is a hint, equal content is the proof.
    #[test]
    fn restores_a_file_with_an_equal_stamp_and_other_content() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "THEM").unwrap();
        let dir = Arc::new(Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap());
        let number = fs::metadata(&file).unwrap().ino();
        let target = Path::new("file");
        let saved = || {
            SnapshotMetadata::from_std(&fs::metadata(&file).unwrap(), ExtendedAttributes::default())
        };

        let next = TempFile::create_with(&dir, b"ours", None, false).unwrap();
        let expected = ExpectedFile { content: b"read", metadata: Some(&saved()) };
        assert!(!next.replace_expected(b"ours", target, Some(expected)).unwrap());
        let expected = ExpectedFile { content: b"read", metadata: Some(&saved()) };
        assert!(!TempFile::remove_expected(&dir, target, expected).unwrap());
        assert_eq!(fs::read(&file).unwrap(), b"THEM");
        assert_eq!(fs::metadata(&file).unwrap().ino(), number);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    // PA5: what another process wrote to the exchanged file is kept.
    #[test]
    fn keeps_a_concurrent_write_to_the_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "THEM").unwrap();
        let dir = Arc::new(Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap());
        let target = Path::new("file");

        let mut next = TempFile::create_with(&dir, b"ours", None, false).unwrap();
        let name = next.name.clone();
        assert!(matches!(
            rename_atomically(&dir, name.as_ref(), target, RenameMode::Exchange),
            Ok(RenameOutcome::Done)
        ));
        fs::write(&file, "late").unwrap();
        let error = next.restore_original(target, b"ours").unwrap_err();
        drop(next);
        assert!(error.to_string().contains(name.to_str().unwrap()), "{error}");
        assert_eq!(fs::read(&file).unwrap(), b"THEM");
        assert_eq!(fs::read(folder.path().join(name)).unwrap(), b"late");
    }
}
