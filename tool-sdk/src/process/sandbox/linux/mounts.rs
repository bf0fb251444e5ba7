//! Mounts of the sandbox: the whole file system is read-only, the writable folders are writable,
//! and the protected paths in them are read-only again.
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

use rustix::fs::{Access, access};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use super::super::Order;
use super::{opened, writable};

/// `/proc` is read-only, without devices, set-uid programs and executables.
const PROCESSES: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY
    .union(MountAttrFlags::MOUNT_ATTR_NOSUID)
    .union(MountAttrFlags::MOUNT_ATTR_NODEV)
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

/// `/dev/pts` has devices, but no set-uid programs and executables.
const TERMINALS: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

/// New pseudoterminals can be opened.
const TERMINAL_MODES: &[(&CStr, &CStr)] = &[(c"mode", c"620"), (c"ptmxmode", c"666")];

/// The result of mounting.
#[derive(Debug, Default)]
pub(super) struct Mounts {
    /// Protected paths that could not be made read-only, with the error.
    pub(super) open: Vec<String>,
    /// Why `/proc` could not be mounted, so that it shows processes outside.
    pub(super) processes: Option<io::Error>,
    /// Whether `/dev/pts` contains only terminals of the sandbox.
    pub(super) terminals: bool,
}

/// Applies the mounts in the namespace of this process.
pub(super) fn confine(order: &Order) -> io::Result<Mounts> {
    let folder = std::env::current_dir();
    // Open them here: descriptors from before refer to the mounts of the host.
    let writable = writable(order);
    let trees: Vec<OwnedFd> =
        writable.iter().map(|(_, place)| tree(place)).collect::<io::Result<_>>()?;
    read_only(opened(Path::new("/"))?.as_fd())?;
    for ((_, place), tree) in writable.iter().zip(&trees) {
        attach(tree, place)?;
    }
    let mut pinned = Vec::new();
    let mut open = Vec::new();
    // In path order, outer paths come before inner ones.
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
    // The old working directory refers to the mounts of the host.
    match folder {
        Ok(folder) => std::env::set_current_dir(folder)?,
        Err(_) => std::env::set_current_dir("/")?,
    }
    Ok(Mounts { open, processes, terminals })
}

/// Turns every folder between a writable folder and `path` into a mount point, so that it cannot
/// be moved.
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

/// Mounts `path` read-only.
fn hold(path: &Path, writable: &[(&Path, OwnedFd)]) -> io::Result<()> {
    if outer(path, writable).is_none() {
        // It is read-only already.
        return Ok(());
    }
    let place = opened(path)?;
    let tree = tree(&place)?;
    read_only(tree.as_fd())?;
    attach(&tree, &place)
}

/// Returns the writable folder that contains `path`.
fn outer<'a>(path: &Path, writable: &[(&'a Path, OwnedFd)]) -> Option<&'a Path> {
    writable.iter().map(|(folder, _)| *folder).find(|folder| path.starts_with(folder))
}

/// Returns whether a missing path cannot be created: it will have a placeholder, or its folder is
/// not writable.
fn cannot_come(order: &Order, path: &Path) -> bool {
    let Some(folder) = path.parent().filter(|folder| folder.is_dir()) else { return false };
    order.floor.is_none() || access(folder, Access::WRITE_OK).is_err()
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

/// Mounts a new file system over `place`.
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

/// Clones the mount tree at `place`.
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

/// Makes all mounts at and below `place` read-only.
fn read_only(place: BorrowedFd<'_>) -> io::Result<()> {
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
