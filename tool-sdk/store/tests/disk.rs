//! Disks that reject writes: the old state is kept, and the error says what happened (fault 3).
//!
//! The disk is a small file system in memory, which is mounted in a namespace of the test. The test
//! passes on systems without that permission, unless `TOOL_STD_TEST_DISK` is `required`.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![expect(clippy::print_stdout, reason = "a test that is skipped says why")]

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use tool_sdk::store::SqliteStore;
use tool_sdk::{MemoryOwner, MemoryScope, MemoryStore as _, NoteDraft, NoteQuery};

/// Makes the tests fail where no disk can be mounted.
const DISK: &str = "TOOL_STD_TEST_DISK";

/// Names the disk for a test that runs on one.
const PLACE: &str = "TOOL_SDK_TEST_PLACE";

/// Mounts a disk of 8 MiB at `$1`, and runs the rest.
const SCRIPT: &str = r#"
    disk=$1; shift
    mount -t tmpfs -o size=8m,mode=700 none "$disk" && exec "$@"
"#;

/// Runs the test `name` again on a disk of its own. Returns the disk there.
fn run_on_disk(name: &str) -> Option<PathBuf> {
    if let Some(place) = std::env::var_os(PLACE) {
        return Some(place.into());
    }
    let mut mount = Command::new("unshare");
    mount.args(["-Urm", "mount", "-t", "tmpfs", "none", "/mnt"]);
    if !mount.output().is_ok_and(|output| output.status.success()) {
        let why = "this system does not let the test make a namespace";
        assert!(std::env::var_os(DISK).is_none_or(|it| it != "required"), "{why}");
        println!("skipped: {why}");
        return None;
    }
    let disk = tempfile::tempdir().unwrap();
    let output = Command::new("unshare")
        .args(["-Urm", "sh", "-c", SCRIPT, "sh"])
        .arg(disk.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(PLACE, disk.path())
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && out.contains("1 passed"), "{out}{err}");
    None
}

async fn add_note(store: &SqliteStore, content: &str) -> io::Result<()> {
    let draft = NoteDraft { scope: MemoryScope::User, ..NoteDraft::new(content) };
    store.create_note(&MemoryOwner::default(), draft).await.map(drop)
}

async fn texts(folder: &Path) -> Vec<String> {
    let store = SqliteStore::in_folder(folder);
    let page = store.search_notes(&MemoryOwner::default(), &NoteQuery::new("")).await.unwrap();
    page.matches.into_iter().map(|it| it.note.content).collect()
}

#[tokio::test]
async fn a_full_disk_is_reported_and_keeps_the_old_state() {
    let Some(disk) = run_on_disk("a_full_disk_is_reported_and_keeps_the_old_state") else { return };
    let folder = disk.join("state");
    let store = SqliteStore::in_folder(&folder);
    add_note(&store, "old").await.unwrap();
    let error = add_note(&store, &"new ".repeat(3_000_000)).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}");
    assert!(error.to_string().ends_with("is full; nothing was changed"), "{error}");
    assert_eq!(texts(&folder).await, ["old"]);
    add_note(&store, "fits").await.unwrap();
    assert_eq!(texts(&folder).await.len(), 2);
    assert_eq!(store.describe().await.unwrap().databases[0].soundness, "ok");

    // The last connection gives the space of its log back.
    drop(store);
    // Where there is no room to create it, nothing half-made is taken for a state.
    std::fs::write(disk.join("filler"), vec![0; 16 << 20]).unwrap_err();
    let new = disk.join("new");
    let store = SqliteStore::in_folder(&new);
    let error = add_note(&store, "first").await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}");
    std::fs::remove_file(disk.join("filler")).unwrap();
    add_note(&store, "first").await.unwrap();
    assert_eq!(texts(&new).await, ["first"]);
}

#[tokio::test]
async fn a_read_only_disk_is_reported_and_keeps_the_old_state() {
    let Some(disk) = run_on_disk("a_read_only_disk_is_reported_and_keeps_the_old_state") else {
        return;
    };
    let folder = disk.join("state");
    add_note(&SqliteStore::in_folder(&folder), "old").await.unwrap();
    let remount = |how: &str| {
        let mut mount = Command::new("mount");
        let status = mount.args(["-o", &format!("remount,bind,{how}")]).arg(&disk).status();
        assert!(status.unwrap().success());
    };
    remount("ro");
    let error = add_note(&SqliteStore::in_folder(&folder), "new").await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ReadOnlyFilesystem, "{error}");
    let error = add_note(&SqliteStore::in_folder(disk.join("other")), "new").await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ReadOnlyFilesystem, "{error}");
    remount("rw");
    assert_eq!(texts(&folder).await, ["old"]);
}
