//! Covers the files and folders that the child must not read.
//!
//! An empty file without permissions is mounted over each file, and an empty folder without
//! permissions over each folder. Both are read-only, so the child cannot change the permissions,
//! and without capabilities it cannot open them. A folder around a covered path can be moved; the
//! cover moves with it.
//!
//! **Invariant:** no path is resolved through a symlink.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, mkdirat, openat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, OpenTreeFlags, UnmountFlags, fsconfig_create,
    fsmount, fsopen, open_tree, unmount,
};
use rustix::process::fchdir;

use super::mounts::{attach_mount, is_missing, set_read_only};
use super::open_without_links;

const EMPTY_FOLDER: &str = "folder";
const EMPTY_FILE: &str = "file";

/// The empty objects execute nothing and are not devices.
const ATTRIBUTES: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID
    .union(MountAttrFlags::MOUNT_ATTR_NODEV)
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

/// Covers `paths` and leaves the working directory; returns the paths that could not be covered,
/// with the error.
///
/// A path that does not exist any more needs no cover, and neither does one in a folder that this
/// user cannot enter.
pub(super) fn cover_paths(paths: &BTreeSet<PathBuf>) -> io::Result<Vec<String>> {
    let objects = EmptyObjects::mount()?;
    let mut uncovered = Vec::new();
    // In path order, a folder comes before the paths in it, which are gone when it is covered.
    for path in paths {
        let covered = match open_without_links(path) {
            Ok(place) => objects.cover(&place),
            Err(error) if is_missing(&error) || is_denied(&error) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = covered {
            uncovered.push(format!("`{}` ({error})", path.display()));
        }
    }
    objects.unmount()?;
    Ok(uncovered)
}

fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// A file system with an empty folder and an empty file.
struct EmptyObjects(OwnedFd);

impl EmptyObjects {
    /// Mounts the file system over `/`, where path lookups do not see it: they start below. Before
    /// Linux 6.15, only parts of a mount that has a place can be cloned.
    fn mount() -> io::Result<Self> {
        let new = fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&new)?;
        let mount = fsmount(&new, FsMountFlags::FSMOUNT_CLOEXEC, ATTRIBUTES)?;
        mkdirat(&mount, EMPTY_FOLDER, Mode::empty())?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        drop(openat(&mount, EMPTY_FILE, flags, Mode::empty())?);
        set_read_only(mount.as_fd())?;
        attach_mount(&mount, &open_without_links(Path::new("/"))?)?;
        Ok(Self(mount))
    }

    fn cover(&self, place: &OwnedFd) -> io::Result<()> {
        let name = match FileType::from_raw_mode(fstat(place)?.st_mode) {
            FileType::Directory => EMPTY_FOLDER,
            _ => EMPTY_FILE,
        };
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        attach_mount(&open_tree(&self.0, name, flags)?, place)
    }

    /// Removes the file system; its clones stay.
    fn unmount(self) -> io::Result<()> {
        fchdir(&self.0)?;
        Ok(unmount(".", UnmountFlags::DETACH)?)
    }
}
