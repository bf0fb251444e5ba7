//! Files of a folder by their names, without a link that is followed.
//!
//! Where the system sees to that itself, it is asked at once: what goes through cap-std takes
//! the name apart as if it were a path first.
//!
//! **Invariant:** a name is one name. With a separator in it, or as `..`, it would lead elsewhere.

use std::fs::File;
use std::io;
use std::path::{Component, Path};

use cap_std::fs::Dir;

/// Opens a file to read it; a pipe is not waited for.
pub(super) fn open(dir: &Dir, name: &Path) -> io::Result<File> {
    system::open(dir, one(name)?)
}

/// Makes a file that is not there yet, to write it; `mode` says who else may do what.
pub(super) fn create(dir: &Dir, name: &Path, mode: u32) -> io::Result<File> {
    system::create(dir, one(name)?, mode)
}

fn one(name: &Path) -> io::Result<&Path> {
    let mut parts = name.components();
    let is_one = match (parts.next(), parts.next()) {
        (Some(Component::Normal(part)), None) => part == name.as_os_str(),
        // The folder itself, which is no file.
        (Some(Component::CurDir), None) => true,
        _ => false,
    };
    if is_one { Ok(name) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use rustix::fs::{Mode, OFlags, openat};

    use super::{Dir, File, Path, io};

    /// What a link is refused with.
    const FLAGS: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

    pub(super) fn open(dir: &Dir, name: &Path) -> io::Result<File> {
        let flags = FLAGS | OFlags::RDONLY | OFlags::NONBLOCK;
        Ok(openat(dir, name, flags, Mode::empty())?.into())
    }

    pub(super) fn create(dir: &Dir, name: &Path, mode: u32) -> io::Result<File> {
        let flags = FLAGS | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        Ok(openat(dir, name, flags, Mode::from_raw_mode(mode))?.into())
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod system {
    use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
    use cap_std::fs::OpenOptions;

    use super::{Dir, File, Path, io};

    pub(super) fn open(dir: &Dir, name: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).nonblock(true).follow(FollowSymlinks::No);
        Ok(dir.open_with(name, &options)?.into_std())
    }

    #[cfg_attr(not(unix), expect(unused_variables, reason = "who may do what is said otherwise"))]
    pub(super) fn create(dir: &Dir, name: &Path, mode: u32) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        cap_std::fs::OpenOptionsExt::mode(&mut options, mode);
        Ok(dir.open_with(name, &options)?.into_std())
    }
}

#[cfg(test)]
mod tests {
    use cap_std::ambient_authority;

    use super::*;

    // PA1
    #[test]
    fn only_what_is_one_name_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("a")).unwrap();
        std::fs::write(folder.path().join("a/f"), "").unwrap();
        std::fs::write(folder.path().join("f"), "").unwrap();
        let dir = Dir::open_ambient_dir(folder.path().join("a"), ambient_authority()).unwrap();
        assert!(open(&dir, Path::new("f")).is_ok());
        for name in ["", "..", "../f", "./f", "f/", "../a/f", "/", "/f"] {
            let name = Path::new(name);
            assert_eq!(open(&dir, name).unwrap_err().kind(), io::ErrorKind::InvalidInput);
            assert_eq!(create(&dir, name, 0o600).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[cfg(unix)]
    #[test]
    fn no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("f"), "").unwrap();
        std::os::unix::fs::symlink("f", folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink("new", folder.path().join("stray")).unwrap();
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        assert!(open(&dir, Path::new("link")).is_err());
        assert!(create(&dir, Path::new("stray"), 0o600).is_err());
        assert!(!folder.path().join("new").exists());
    }
}
