//! Who may do what with a file, before and after a change.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::thread;

use rustix::fs::{XattrFlags, fsetxattr};
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};

use super::changes::{read, tree};
use super::folder;
use crate::error::ErrorKind;
use crate::workspace::attributes::Attributes;
use crate::workspace::{Changes, Snapshot};

const LIST: &str = "system.posix_acl_access";
const LIST_OF_FOLDER: &str = "system.posix_acl_default";

/// A list as the system keeps it: the owner writes, one more user reads, the group nothing.
fn list() -> Vec<u8> {
    const ANYBODY: u32 = u32::MAX;
    let entries =
        [(1, 6, ANYBODY), (2, 4, 54_321), (4, 0, ANYBODY), (16, 4, ANYBODY), (32, 0, ANYBODY)];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, who) in entries {
        list.extend(u16::to_le_bytes(tag));
        list.extend(u16::to_le_bytes(rights));
        list.extend(u32::to_le_bytes(who));
    }
    list
}

/// Says no where the file system knows no such thing.
fn set(path: &Path, name: &str, value: &[u8]) -> bool {
    fsetxattr(File::open(path).unwrap(), name, value, XattrFlags::empty()).is_ok()
}

fn attributes(path: &Path) -> Attributes {
    Attributes::of(&File::open(path).unwrap()).unwrap()
}

// PA5: the mode of a file with a list says nothing of its group, to which a successor without
// the list would be open.
#[test]
fn the_list_of_who_may_read_stays() {
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
    Changes::new().write(main, before, "new").apply(|| false).unwrap();
    assert_eq!(attributes(&file), expected);

    let (from, to) = (read(&workspace, "src/main.rs"), read(&workspace, "lib.rs"));
    Changes::new().rename(from, to, "newer").apply(|| false).unwrap();
    let moved = folder.path().join("lib.rs");
    assert_eq!(
        (attributes(&moved), fs::metadata(&moved).unwrap().mode()),
        (expected.clone(), mode)
    );

    // What is undone has its list again.
    let (lib, before) = read(&workspace, "lib.rs");
    let (gone, _) = read(&workspace, "gone");
    fs::write(folder.path().join("gone"), "x").unwrap();
    let (_, stale) = read(&workspace, "gone");
    fs::write(folder.path().join("gone"), "y").unwrap();
    let changes = Changes::new().write(lib, before, "newest").remove(gone, stale);
    assert_eq!(changes.apply(|| false).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(fs::read_to_string(&moved).unwrap(), "newer");
    assert_eq!(attributes(&moved), expected);
}

// PA5: nor is it open to those whom new files of its folder are open to.
#[test]
fn the_list_of_the_folder_is_for_new_files() {
    let (folder, workspace) = folder();
    let file = folder.path().join("src/main.rs");
    if !set(&folder.path().join("src"), LIST_OF_FOLDER, &list()) {
        return;
    }
    let before = (attributes(&file), fs::metadata(&file).unwrap().mode());
    let (main, snapshot) = read(&workspace, "src/main.rs");
    let (new, none) = read(&workspace, "src/new.rs");
    Changes::new().write(main, snapshot, "x").write(new, none, "x").apply(|| false).unwrap();
    assert_eq!((attributes(&file), fs::metadata(&file).unwrap().mode()), before);
    assert!(!attributes(&folder.path().join("src/new.rs")).is_empty());
}

// PA5: who takes somebody from the list meant what comes after it, too.
#[test]
fn a_list_that_changed_meanwhile_is_kept() {
    let (folder, workspace) = folder();
    let file = folder.path().join("src/main.rs");
    let (main, before) = read(&workspace, "src/main.rs");
    // The list has the mode that the file had.
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    let (_, open) = read(&workspace, "src/main.rs");
    if !set(&file, LIST, &list()) {
        return;
    }
    for before in [before, open] {
        let change = Changes::new().write(main.clone(), before, "us");
        assert_eq!(change.apply(|| false).unwrap_err().kind(), ErrorKind::Conflict);
    }
}

/// Only this thread is somebody else.
fn become_one_of(somebody: u32, groups: &[u32]) {
    let groups: Vec<_> = groups.iter().map(|group| Gid::from_raw(*group)).collect();
    set_thread_groups(&groups).unwrap();
    set_thread_gid(Gid::from_raw(somebody)).unwrap();
    set_thread_uid(Uid::from_raw(somebody)).unwrap();
}

// PA5: a file of somebody else's stays that of its group, and nobody runs it as somebody else.
#[test]
fn a_file_that_is_shared_stays_with_its_group() {
    let (folder, workspace) = folder();
    if !geteuid().is_root() {
        return;
    }
    let (somebody, team) = (54_321, 54_322);
    let file = folder.path().join("src/main.rs");
    chown(folder.path().join("src"), Some(somebody), None).unwrap();
    chown(folder.path(), Some(somebody), None).unwrap();
    for (mode, groups, expected) in
        [(0o4770, &[team][..], (somebody, team, 0o770)), (0o606, &[], (somebody, somebody, 0o600))]
    {
        chown(&file, Some(0), Some(team)).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        let write = || {
            become_one_of(somebody, groups);
            let (main, before) = read(&workspace, "src/main.rs");
            Changes::new().write(main, before, "new").apply(|| false).unwrap();
        };
        thread::scope(|scope| scope.spawn(write).join().unwrap());
        let facts = fs::metadata(&file).unwrap();
        assert_eq!((facts.uid(), facts.gid(), facts.mode() & 0o7777), expected, "{mode:o}");
    }
}

// PA5: a file in a folder of one's own may be somebody else's, who does not share it.
#[test]
fn what_this_user_may_not_write_is_not_replaced() {
    let (folder, workspace) = folder();
    if !geteuid().is_root() {
        return;
    }
    let somebody = 54_321;
    let file = folder.path().join("src/main.rs");
    for path in [folder.path(), &folder.path().join("src")] {
        chown(path, Some(somebody), Some(somebody)).unwrap();
    }
    let try_as_somebody = || {
        become_one_of(somebody, &[]);
        let (main, before) = read(&workspace, "src/main.rs");
        let write = Changes::new().write(main.clone(), before.clone(), "x");
        let remove = Changes::new().remove(main, before);
        let (new, none) = (workspace.resolve("src/new").unwrap(), Snapshot::absent());
        Changes::new().write(new, none, "mine").apply(|| false).unwrap();
        [write, remove].map(|changes| changes.apply(|| false).unwrap_err().kind())
    };
    let kinds = thread::scope(|scope| scope.spawn(try_as_somebody).join().unwrap());
    assert_eq!(kinds, [ErrorKind::Denied; 2]);
    assert_eq!(tree(&folder), ["src/", "src/main.rs=fn main() {}", "src/new=mine"]);
    assert_eq!(fs::metadata(&file).unwrap().uid(), 0);
}
