//! Mounts of its own: everything is read-only but the writable folders, and in these what
//! is protected is read-only again.
//!
//! Each is mounted where it is already. A mount point can neither be renamed nor removed, so
//! every folder between a writable one and something protected in it becomes one too:
//! otherwise the folder around it could be put aside, and another one made. Deeper down, a
//! folder may be moved with what is protected in it, or nobody could work there.
//!
//! `/proc` tells of no process outside, and no terminal outside has a name, where the system
//! lets them be mounted anew.
//!
//! **Invariant:** nothing is found by a path with a link in it.

use std::ffi::CStr;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use super::super::Order;
use super::{opened, writable};

/// What `/proc` tells can be read and no more.
const PROCESSES: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY
    .union(MountAttrFlags::MOUNT_ATTR_NOSUID)
    .union(MountAttrFlags::MOUNT_ATTR_NODEV)
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

/// Terminals are devices that cannot be started.
const TERMINALS: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

/// New terminals may be had.
const TERMINAL_MODES: &[(&CStr, &CStr)] = &[(c"mode", c"620"), (c"ptmxmode", c"666")];

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Mounts {
    /// What is protected and could not be held.
    pub(super) open: Vec<String>,
    /// Why `/proc` tells of processes outside, where it does.
    pub(super) processes: Option<io::Error>,
    /// Whether all terminals that have a name are its own.
    pub(super) terminals: bool,
}

/// Puts this process into such mounts.
pub(super) fn confine(order: &Order) -> io::Result<Mounts> {
    let folder = std::env::current_dir();
    // Opened here: what was opened before is no part of these mounts.
    let writable = writable(order);
    let trees: Vec<OwnedFd> =
        writable.iter().map(|(_, place)| tree(place)).collect::<io::Result<_>>()?;
    read_only(opened(Path::new("/"))?.as_fd())?;
    for ((_, place), tree) in writable.iter().zip(&trees) {
        attach(tree, place)?;
    }
    let mut pinned = Vec::new();
    let mut open = Vec::new();
    // The outer ones come before the inner ones.
    for path in &order.protected.near {
        match pin(path, &writable, &mut pinned).and_then(|()| hold(path, &writable)) {
            Ok(()) => {}
            Err(error) if is_missing(&error) && cannot_come(order, path) => {}
            Err(error) => open.push(format!("`{}` ({error})", path.display())),
        }
    }
    for path in &order.protected.deep {
        match hold(path, &writable) {
            Err(error) if !is_missing(&error) => {
                open.push(format!("`{}` ({error})", path.display()));
            }
            _ => {}
        }
    }
    let processes = fresh(c"proc", &[], Path::new("/proc"), PROCESSES).err();
    let terminals = fresh(c"devpts", TERMINAL_MODES, Path::new("/dev/pts"), TERMINALS).is_ok();
    // A folder that was entered before is one without the mounts above it.
    match folder {
        Ok(folder) => std::env::set_current_dir(folder)?,
        Err(_) => std::env::set_current_dir("/")?,
    }
    Ok(Mounts { open, processes, terminals })
}

/// Makes every folder between a writable one and `path` one that stays.
fn pin(path: &Path, writable: &[(&Path, OwnedFd)], pinned: &mut Vec<PathBuf>) -> io::Result<()> {
    let Some(outer) = outer(path, writable) else { return Ok(()) };
    let between = path.ancestors().skip(1).take_while(|folder| *folder != outer);
    let mut between: Vec<&Path> = between.collect();
    between.reverse();
    for folder in between {
        if !pinned.iter().any(|done| done == folder) {
            let place = opened(folder)?;
            attach(&tree(&place)?, &place)?;
            pinned.push(folder.to_owned());
        }
    }
    Ok(())
}

/// Makes `path` read-only.
fn hold(path: &Path, writable: &[(&Path, OwnedFd)]) -> io::Result<()> {
    if outer(path, writable).is_none() {
        // Nothing in it can be written anyhow.
        return Ok(());
    }
    let place = opened(path)?;
    let tree = tree(&place)?;
    read_only(tree.as_fd())?;
    attach(&tree, &place)
}

/// The writable folder that `path` lies in.
fn outer<'a>(path: &Path, writable: &[(&'a Path, OwnedFd)]) -> Option<&'a Path> {
    writable.iter().map(|(folder, _)| *folder).find(|folder| path.starts_with(folder))
}

/// Whether nobody can make what is missing: something will stand in for it, or the folder
/// cannot be written.
fn cannot_come(order: &Order, path: &Path) -> bool {
    let Some(folder) = path.parent().filter(|folder| folder.is_dir()) else { return false };
    order.floor.is_none() || access(folder, Access::WRITE_OK).is_err()
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

/// Mounts a file system of its own over `place`.
fn fresh(
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
    attach(&mount, &opened(place)?)
}

/// A place with everything that is mounted in it, to be mounted once more.
fn tree(place: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    Ok(open_tree(place, c"", flags)?)
}

fn attach(tree: &OwnedFd, place: &OwnedFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(tree, c"", place, c"", flags)?)
}

/// Makes everything that is mounted at and below a place read-only.
fn read_only(place: BorrowedFd<'_>) -> io::Result<()> {
    let change = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    #[expect(unsafe_code, reason = "no crate has this call")]
    // SAFETY: the path and the structure live as long as the call, which only reads them.
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
