//! Owner, mode and access control list of a file before and after it is replaced.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::thread;

use rustix::fs::{XattrFlags, fsetxattr};
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};

use super::folder;
use super::transaction::{read, tree};
use crate::error::WorkspaceErrorKind;
use crate::xattrs::ExtendedAttributes;
use crate::{FileTransaction, Snapshot};

const LIST: &str = "system.posix_acl_access";
const LIST_OF_FOLDER: &str = "system.posix_acl_default";

/// A POSIX ACL in kernel format: owner read-write, one more user read, group nothing.
fn list() -> Vec<u8> {
    const ANY_USER: u32 = u32::MAX;
    let entries =
        [(1, 6, ANY_USER), (2, 4, 54_321), (4, 0, ANY_USER), (16, 4, ANY_USER), (32, 0, ANY_USER)];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, who) in entries {
        list.extend(u16::to_le_bytes(tag));
        list.extend(u16::to_le_bytes(rights));
        list.extend(u32::to_le_bytes(who));
    }
    list
}

/// Sets an extended attribute; returns `false` if the file system does not support it.
fn set(path: &Path, name: &str, value: &[u8]) -> bool {
    fsetxattr(File::open(path).unwrap(), name, value, XattrFlags::empty()).is_ok()
}

fn attributes(path: &Path) -> ExtendedAttributes {
    ExtendedAttributes::read_from(&File::open(path).unwrap()).unwrap()
}

// PA5: with an ACL the group bits of the mode are its mask; a replacement without the ACL would be
// accessible to the group.
#[test]
fn keeps_the_acl() {
    let (folder, workspace) = folder();
    let file = folder.path().join("src/main.rs");
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    if !set(&file, LIST, &list()) {
        return;
    }
    set(&file, "user.note", b"kept");
    let (mode, expected) = (fs::metadata(&file).unwrap().mode(), attributes(&file));
    assert!(!expected.is_empty());

    let (main, before) = read(&workspace, "src/main.rs");
    FileTransaction::new().write(main, before, "new").commit(|| false).unwrap();
    assert_eq!(attributes(&file), expected);

    let (from, to) = (read(&workspace, "src/main.rs"), read(&workspace, "lib.rs"));
    FileTransaction::new().rename(from, to, "newer").commit(|| false).unwrap();
    let moved = folder.path().join("lib.rs");
    assert_eq!(
        (attributes(&moved), fs::metadata(&moved).unwrap().mode()),
        (expected.clone(), mode)
    );

    // A rollback restores the ACL.
    let (lib, before) = read(&workspace, "lib.rs");
    let (gone, _) = read(&workspace, "gone");
    fs::write(folder.path().join("gone"), "x").unwrap();
    let (_, stale) = read(&workspace, "gone");
    fs::write(folder.path().join("gone"), "y").unwrap();
    let changes = FileTransaction::new().write(lib, before, "newest").remove(gone, stale);
    assert_eq!(changes.commit(|| false).unwrap_err().kind(), WorkspaceErrorKind::Conflict);
    assert_eq!(fs::read_to_string(&moved).unwrap(), "newer");
    assert_eq!(attributes(&moved), expected);
}

// PA5: the default ACL of the folder does not widen access to a replaced file.
#[test]
fn the_default_acl_applies_to_new_files_only() {
    let (folder, workspace) = folder();
    let file = folder.path().join("src/main.rs");
    if !set(&folder.path().join("src"), LIST_OF_FOLDER, &list()) {
        return;
    }
    let before = (attributes(&file), fs::metadata(&file).unwrap().mode());
    let (main, snapshot) = read(&workspace, "src/main.rs");
    let (new, none) = read(&workspace, "src/new.rs");
    FileTransaction::new()
        .write(main, snapshot, "x")
        .write(new, none, "x")
        .commit(|| false)
        .unwrap();
    assert_eq!((attributes(&file), fs::metadata(&file).unwrap().mode()), before);
    assert!(!attributes(&folder.path().join("src/new.rs")).is_empty());
}

// PA5: a concurrent change of the ACL is a conflict.
#[test]
fn a_concurrent_acl_change_is_a_conflict() {
    let (folder, workspace) = folder();
    let file = folder.path().join("src/main.rs");
    let (main, before) = read(&workspace, "src/main.rs");
    // The ACL corresponds to the same mode.
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    let (_, open) = read(&workspace, "src/main.rs");
    if !set(&file, LIST, &list()) {
        return;
    }
    for before in [before, open] {
        let change = FileTransaction::new().write(main.clone(), before, "us");
        assert_eq!(change.commit(|| false).unwrap_err().kind(), WorkspaceErrorKind::Conflict);
    }
}

/// Changes user and groups of the current thread only.
fn become_user(other_user: u32, groups: &[u32]) {
    let groups: Vec<_> = groups.iter().map(|group| Gid::from_raw(*group)).collect();
    set_thread_groups(&groups).unwrap();
    set_thread_gid(Gid::from_raw(other_user)).unwrap();
    set_thread_uid(Uid::from_raw(other_user)).unwrap();
}

// PA5: a file of another user keeps its group, and loses setuid.
#[test]
fn keeps_the_group_of_a_shared_file() {
    let (folder, workspace) = folder();
    if !geteuid().is_root() {
        return;
    }
    let (other_user, team) = (54_321, 54_322);
    let file = folder.path().join("src/main.rs");
    chown(folder.path().join("src"), Some(other_user), None).unwrap();
    chown(folder.path(), Some(other_user), None).unwrap();
    for (mode, groups, expected) in [
        (0o4770, &[team][..], (other_user, team, 0o770)),
        (0o606, &[], (other_user, other_user, 0o600)),
    ] {
        chown(&file, Some(0), Some(team)).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        let write = || {
            become_user(other_user, groups);
            let (main, before) = read(&workspace, "src/main.rs");
            FileTransaction::new().write(main, before, "new").commit(|| false).unwrap();
        };
        thread::scope(|scope| scope.spawn(write).join().unwrap());
        let facts = fs::metadata(&file).unwrap();
        assert_eq!((facts.uid(), facts.gid(), facts.mode() & 0o7777), expected, "{mode:o}");
    }
}

// PA5: a file of another user in one's own folder may not be replaced without write access.
#[test]
fn rejects_files_without_write_permission() {
    let (folder, workspace) = folder();
    if !geteuid().is_root() {
        return;
    }
    let other_user = 54_321;
    let file = folder.path().join("src/main.rs");
    for path in [folder.path(), &folder.path().join("src")] {
        chown(path, Some(other_user), Some(other_user)).unwrap();
    }
    // Everyone may read it, also where the mask of this process is narrow.
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let try_as_somebody = || {
        become_user(other_user, &[]);
        let (main, before) = read(&workspace, "src/main.rs");
        let write = FileTransaction::new().write(main.clone(), before.clone(), "x");
        let remove = FileTransaction::new().remove(main, before);
        let (new, none) = (workspace.resolve("src/new").unwrap(), Snapshot::absent());
        FileTransaction::new().write(new, none, "mine").commit(|| false).unwrap();
        [write, remove].map(|changes| changes.commit(|| false).unwrap_err().kind())
    };
    let kinds = thread::scope(|scope| scope.spawn(try_as_somebody).join().unwrap());
    assert_eq!(kinds, [WorkspaceErrorKind::Denied; 2]);
    assert_eq!(tree(&folder), ["src/", "src/main.rs=fn main() {}", "src/new=mine"]);
    assert_eq!(fs::metadata(&file).unwrap().uid(), 0);
}
