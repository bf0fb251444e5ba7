//! Mounts of the sandbox: the whole file system is read-only, the writable folders are writable,
//! and the protected paths in them are read-only again. The paths that the child must not read are
//! [covered](super::read_covers).
//!
//! Each is a bind mount onto itself. A mount point can be neither renamed nor removed, so every
//! folder between a writable folder and a protected path becomes a mount point too: otherwise it
//! could be moved away and replaced. Further down ("deep" paths) this would hinder work, so a
//! folder there can be moved together with the protected paths in it.
//!
//! `/proc` and `/dev/pts` are mounted anew where the kernel permits it, so that processes and
//! terminals outside are not visible.
//!
//! **Invariant:** no path is resolved through a symlink.

use std::ffi::CStr;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, Stat, access, fstat, stat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use rustix::process::fchdir;

use super::{open_without_links, open_writable_folders, read_covers};
use crate::sandbox::HelperRequest;

/// `/proc` is read-only, without devices, set-uid programs and executables.
const PROC_ATTRIBUTES: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY
    .union(MountAttrFlags::MOUNT_ATTR_NOSUID)
    .union(MountAttrFlags::MOUNT_ATTR_NODEV)
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

/// `/dev/pts` has devices, but no set-uid programs and executables.
const PTS_ATTRIBUTES: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

/// New pseudoterminals can be opened.
const PTS_OPTIONS: &[(&CStr, &CStr)] = &[(c"mode", c"620"), (c"ptmxmode", c"666")];

/// The result of mounting.
#[derive(Debug, Default)]
pub(super) struct MountReport {
    /// Protected paths that could not be made read-only, with the error.
    pub(super) unprotected: Vec<String>,
    /// Why `/proc` could not be mounted, so that it shows processes outside.
    pub(super) proc_error: Option<io::Error>,
    /// The paths that could not be covered, with the error; `None` if no path is to be covered.
    pub(super) read_covers: Option<io::Result<Vec<String>>>,
    /// Whether `/dev/pts` contains only terminals of the sandbox.
    pub(super) has_own_terminals: bool,
}

/// Applies the mounts in the namespace of this process.
pub(super) fn apply_mounts(order: &HelperRequest) -> io::Result<MountReport> {
    let folder = current_folder(order)?;
    reject_unreadable_folder(order, &folder.0)?;
    // Open them here: descriptors from before refer to the mounts of the host.
    let writable = open_writable_folders(order);
    let trees: Vec<OwnedFd> =
        writable.iter().map(|(_, place)| clone_mount_tree(place)).collect::<io::Result<_>>()?;
    set_read_only(open_without_links(Path::new("/"))?.as_fd())?;
    for ((_, place), tree) in writable.iter().zip(&trees) {
        attach_mount(tree, place)?;
    }
    let mut pinned = Vec::new();
    let mut open = Vec::new();
    // In path order, outer paths come before inner ones.
    for path in &order.protected.near {
        match pin_parents(path, &writable, &mut pinned).and_then(|()| protect_path(path, &writable))
        {
            Ok(()) => {}
            Err(error) if is_missing(&error) && cannot_be_created(order, path) => {}
            Err(error) => open.push(format!("`{}` ({error})", path.display())),
        }
    }
    for path in &order.protected.deep {
        match protect_path(path, &writable) {
            Err(error) if !is_missing(&error) => {
                open.push(format!("`{}` ({error})", path.display()));
            }
            _ => {}
        }
    }
    let read_covers = order.unreadable.as_ref().map(read_covers::cover_paths);
    let processes = mount_new(c"proc", &[], Path::new("/proc"), PROC_ATTRIBUTES).err();
    let terminals =
        mount_new(c"devpts", PTS_OPTIONS, Path::new("/dev/pts"), PTS_ATTRIBUTES).is_ok();
    // The old working directory refers to the mounts of the host.
    enter_folder(&folder)?;
    Ok(MountReport {
        unprotected: open,
        proc_error: processes,
        read_covers,
        has_own_terminals: terminals,
    })
}

/// Fails if the child would start in a folder that it must not read, and that it could not enter.
fn reject_unreadable_folder(order: &HelperRequest, folder: &Path) -> io::Result<()> {
    let unreadable = order.unreadable.iter().flatten().find(|path| folder.starts_with(path));
    unreadable.map_or(Ok(()), |path| {
        let path = path.display();
        Err(io::Error::other(format!("the working folder is in `{path}`, which may not be read")))
    })
}

/// Returns the path and the identity of the working directory.
fn current_folder(order: &HelperRequest) -> io::Result<(PathBuf, Stat)> {
    match std::env::current_dir() {
        Ok(path) => Ok((path, stat(".")?)),
        // A probe starts no program, so it needs no folder.
        Err(_) if order.required_status.is_none() => Ok(("/".into(), stat("/")?)),
        Err(error) => Err(error),
    }
}

/// Enters the working directory again, below the new mounts; fails if its path leads to another
/// folder by now.
fn enter_folder((path, before): &(PathBuf, Stat)) -> io::Result<()> {
    let folder = open_without_links(path)?;
    let now = fstat(&folder)?;
    if (now.st_dev, now.st_ino) != (before.st_dev, before.st_ino) {
        return Err(io::Error::other("the working folder was replaced"));
    }
    Ok(fchdir(&folder)?)
}

/// Turns every folder between a writable folder and `path` into a mount point, so that it cannot
/// be moved.
fn pin_parents(
    path: &Path,
    writable: &[(&Path, OwnedFd)],
    pinned: &mut Vec<PathBuf>,
) -> io::Result<()> {
    let Some(outer) = find_writable_parent(path, writable) else { return Ok(()) };
    let between = path.ancestors().skip(1).take_while(|folder| *folder != outer);
    let mut between: Vec<&Path> = between.collect();
    between.reverse();
    for folder in between {
        if !pinned.iter().any(|done| done == folder) {
            let place = open_without_links(folder)?;
            attach_mount(&clone_mount_tree(&place)?, &place)?;
            pinned.push(folder.to_owned());
        }
    }
    Ok(())
}

/// Mounts `path` read-only.
fn protect_path(path: &Path, writable: &[(&Path, OwnedFd)]) -> io::Result<()> {
    if find_writable_parent(path, writable).is_none() {
        // It is read-only already.
        return Ok(());
    }
    let place = open_without_links(path)?;
    let tree = clone_mount_tree(&place)?;
    set_read_only(tree.as_fd())?;
    attach_mount(&tree, &place)
}

/// Returns the writable folder that contains `path`.
fn find_writable_parent<'a>(path: &Path, writable: &[(&'a Path, OwnedFd)]) -> Option<&'a Path> {
    writable.iter().map(|(folder, _)| *folder).find(|folder| path.starts_with(folder))
}

/// Returns whether a missing path cannot be created: it will have a placeholder, or its folder is
/// not writable.
fn cannot_be_created(order: &HelperRequest, path: &Path) -> bool {
    let Some(folder) = path.parent().filter(|folder| folder.is_dir()) else { return false };
    order.required_status.is_none() || access(folder, Access::WRITE_OK).is_err()
}

pub(super) fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

/// Mounts a new file system over `place`.
fn mount_new(
    kind: &CStr,
    options: &[(&CStr, &CStr)],
    place: &Path,
    attributes: MountAttrFlags,
) -> io::Result<()> {
    let new = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        fsconfig_set_string(&new, *name, *value)?;
    }
    fsconfig_create(&new)?;
    let mount = fsmount(&new, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    attach_mount(&mount, &open_without_links(place)?)
}

/// Clones the mount tree at `place`.
fn clone_mount_tree(place: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    Ok(open_tree(place, c"", flags)?)
}

pub(super) fn attach_mount(tree: &OwnedFd, place: &OwnedFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(tree, c"", place, c"", flags)?)
}

/// Makes all mounts at and below `place` read-only.
pub(super) fn set_read_only(place: BorrowedFd<'_>) -> io::Result<()> {
    let change = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    #[expect(unsafe_code, reason = "no safe API has this system call")]
    // SAFETY: the path and the structure outlive the call, which only reads them.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            place.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const change,
            size_of::<libc::mount_attr>(),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
