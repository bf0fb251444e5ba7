//! Transactions in many folders, and while another process holds the directory lock.

use std::cell::Cell;
use std::process::Command;

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::transaction::{read, tree};
use super::*;

/// The number of folders, with one file each.
const COUNT: usize = 300;

/// Changes one file in each of many folders.
fn everywhere(workspace: &Workspace) -> FileTransaction {
    (0..COUNT).fold(FileTransaction::new().durable(false), |changes, at| {
        let (path, before) = read(workspace, &format!("{at}/file"));
        changes.write(path, before, "new")
    })
}

// F140: locking needs no additional handles, which a commit or rollback could lack.
#[test]
fn needs_one_handle_per_folder() {
    const LIMIT: &str = "TOOL_SDK_HANDLES";
    let Ok(limit) = std::env::var(LIMIT) else {
        for limit in [COUNT + 100, 2 * COUNT - 20] {
            let again = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "tests::many_folders::needs_one_handle_per_folder"])
                .env(LIMIT, limit.to_string())
                .output()
                .unwrap();
            let report = String::from_utf8_lossy(&again.stdout);
            assert!(again.status.success() && report.contains("1 passed"), "{limit}: {report}");
        }
        return;
    };
    let limit = Rlimit { current: limit.parse().ok(), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit).unwrap();
    let (folder, workspace) = folder();
    for at in 0..COUNT {
        fs::create_dir(folder.path().join(at.to_string())).unwrap();
        fs::write(folder.path().join(format!("{at}/file")), "old").unwrap();
    }
    let before = tree(&folder);
    let stale = workspace.resolve("src/main.rs").unwrap();
    let changes = everywhere(&workspace).write(stale, Snapshot::absent(), "is there already");
    let error = changes.commit(|| false).unwrap_err();
    assert_eq!((error.kind(), tree(&folder)), (WorkspaceErrorKind::Conflict, before), "{error:?}");
    everywhere(&workspace).commit(|| false).unwrap();
    assert_eq!(tree(&folder).iter().filter(|it| it.ends_with("=new")).count(), COUNT);
}

#[test]
fn waiting_for_a_lock_can_be_cancelled() {
    let (folder, workspace) = folder();
    let theirs = fs::File::open(folder.path().join("src")).unwrap();
    flock(&theirs, FlockOperation::NonBlockingLockExclusive).unwrap();
    let asked = Cell::new(0);
    let stopped = || asked.replace(asked.get() + 1) >= 10;
    let (path, before) = read(&workspace, "src/main.rs");
    let error = FileTransaction::new().write(path, before, "ours").commit(stopped).unwrap_err();
    assert_eq!(error.kind(), WorkspaceErrorKind::Aborted);
    assert_eq!(tree(&folder), ["src/", "src/main.rs=fn main() {}"]);
}
