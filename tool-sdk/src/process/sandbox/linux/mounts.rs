//! Mounts of its own: everything is read-only but the writable folders, and in these what
//! is protected is read-only again.
//!
//! Each is mounted where it is already. A mount point can neither be renamed nor removed, so
//! every folder between a writable one and something protected in it becomes one too:
//! otherwise the folder around it could be put aside, and another one made.
//!
//! **Invariant:** nothing is found by a path with a link in it.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, CWD, Dir, Mode, OFlags, ResolveFlags, access, openat2};
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};
use rustix::process::{getgid, getuid};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::super::{Level, Order};
use super::{opened, writable};
use crate::workspace::is_protected;

/// Puts this process into such mounts; gives what is protected and could not be held.
pub(super) fn confine(order: &Order) -> io::Result<Vec<String>> {
    let folder = std::env::current_dir();
    own_namespaces()?;
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
    for path in protected(order)? {
        match hold(&path, &writable, &mut pinned) {
            Ok(()) => {}
            Err(error) if is_missing(&error) && cannot_come(order, &path) => {}
            Err(error) => open.push(format!("`{}` ({error})", path.display())),
        }
    }
    // A folder that was entered before is one without the mounts above it.
    match folder {
        Ok(folder) => std::env::set_current_dir(folder)?,
        Err(_) => std::env::set_current_dir("/")?,
    }
    Ok(open)
}

/// Has a user namespace in which this user is who they are, with mounts and shared memory of
/// its own.
fn own_namespaces() -> io::Result<()> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let flags = UnshareFlags::NEWUSER | UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
    #[expect(unsafe_code, reason = "the call is unsafe for the sake of one flag")]
    // SAFETY: without `UnshareFlags::FILES` the descriptors stay as they are.
    unsafe { unshare_unsafe(flags) }?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    Ok(())
}

/// What must not change, the outer before the inner.
fn protected(order: &Order) -> io::Result<Vec<PathBuf>> {
    if order.level != Level::WorkspaceWrite {
        return Ok(Vec::new());
    }
    let mut all = order.protected.clone();
    for root in &order.roots {
        all.extend(protected_in(root)?);
    }
    Ok(all.into_iter().collect())
}

/// The protected names directly in `root`, and in its hidden folders: the list has names of
/// two parts such as `.github/workflows`.
fn protected_in(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for name in names(root)? {
        if is_protected(&name, &root.join(&name)) {
            found.push(root.join(name));
        } else if name.as_os_str().as_bytes().starts_with(b".") {
            // What is no folder has nothing in it.
            let inner = names(&root.join(&name)).unwrap_or_default();
            let inner = inner.into_iter().map(|inner| name.join(inner));
            found.extend(
                inner
                    .filter(|inner| is_protected(inner, &root.join(inner)))
                    .map(|inner| root.join(inner)),
            );
        }
    }
    Ok(found)
}

fn names(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat2(CWD, folder, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = PathBuf::from(OsStr::from_bytes(entry?.file_name().to_bytes()));
        if !matches!(name.as_os_str().as_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    Ok(names)
}

/// Makes `path` read-only, and every folder around it one that stays.
fn hold(path: &Path, writable: &[(&Path, OwnedFd)], pinned: &mut Vec<PathBuf>) -> io::Result<()> {
    let Some((outer, _)) = writable.iter().find(|(folder, _)| path.starts_with(folder)) else {
        // Nothing in it can be written anyhow.
        return Ok(());
    };
    let between = path.ancestors().skip(1).take_while(|folder| folder != outer);
    let mut between: Vec<&Path> = between.collect();
    between.reverse();
    for folder in between {
        if !pinned.iter().any(|done| done == folder) {
            let place = opened(folder)?;
            attach(&tree(&place)?, &place)?;
            pinned.push(folder.to_owned());
        }
    }
    let place = opened(path)?;
    let tree = tree(&place)?;
    read_only(tree.as_fd())?;
    attach(&tree, &place)
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
