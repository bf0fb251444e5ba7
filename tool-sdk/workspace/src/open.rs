//! Opens and creates files in an open folder, without following symbolic links.
//!
//! On Linux this is one `openat` call with `O_NOFOLLOW`; cap-std would first parse the name as
//! a path.
//!
//! **Invariant:** a name is a single path component. A separator or `..` could escape the folder.

use std::fs::File;
use std::io;
use std::path::{Component, Path};

use cap_std::fs::Dir;

/// Opens a file for reading, without blocking on a pipe.
pub(super) fn open_entry(dir: &Dir, name: &Path) -> io::Result<File> {
    system::open(dir, single_component(name)?)
}

/// Creates a new file with the permission bits `mode` for writing; fails if the name exists.
pub(super) fn create_entry(dir: &Dir, name: &Path, mode: u32) -> io::Result<File> {
    system::create(dir, single_component(name)?, mode)
}

fn single_component(name: &Path) -> io::Result<&Path> {
    let mut parts = name.components();
    let is_one = match (parts.next(), parts.next()) {
        (Some(Component::Normal(part)), None) => part == name.as_os_str(),
        // `.`: the folder itself; opening it as a file fails later.
        (Some(Component::CurDir), None) => true,
        _ => false,
    };
    if is_one { Ok(name) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use rustix::fs::{Mode, OFlags, openat};

    use super::{Dir, File, Path, io};

    /// A symbolic link is refused.
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

    #[cfg_attr(not(unix), expect(unused_variables, reason = "other systems have no mode bits"))]
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
    fn rejects_names_with_several_components() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("a")).unwrap();
        std::fs::write(folder.path().join("a/f"), "").unwrap();
        std::fs::write(folder.path().join("f"), "").unwrap();
        let dir = Dir::open_ambient_dir(folder.path().join("a"), ambient_authority()).unwrap();
        assert!(open_entry(&dir, Path::new("f")).is_ok());
        for name in ["", "..", "../f", "./f", "f/", "../a/f", "/", "/f"] {
            let name = Path::new(name);
            assert_eq!(open_entry(&dir, name).unwrap_err().kind(), io::ErrorKind::InvalidInput);
            assert_eq!(
                create_entry(&dir, name, 0o600).unwrap_err().kind(),
                io::ErrorKind::InvalidInput
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn does_not_follow_symlinks() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("f"), "").unwrap();
        std::os::unix::fs::symlink("f", folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink("new", folder.path().join("stray")).unwrap();
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        assert!(open_entry(&dir, Path::new("link")).is_err());
        assert!(create_entry(&dir, Path::new("stray"), 0o600).is_err());
        assert!(!folder.path().join("new").exists());
    }
}
