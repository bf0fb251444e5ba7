//! File transactions: commit, conflict, rollback and concurrent changes.

use std::cell::Cell;

use futures_util::FutureExt as _;

use super::*;

const LIMIT: u64 = 1024 * 1024;

fn at(workspace: &Workspace, path: &str) -> ResolvedPath {
    workspace.resolve(path).unwrap()
}

pub(super) fn read(workspace: &Workspace, path: &str) -> (ResolvedPath, Snapshot) {
    let path = at(workspace, path);
    let before = path.snapshot(LIMIT).unwrap();
    (path, before)
}

fn write(workspace: &Workspace, path: &str, content: &str) -> Result<(), WorkspaceError> {
    let (path, before) = read(workspace, path);
    FileTransaction::new().write(path, before, content).durable(false).commit(|| false)
}

/// Returns every file and folder below a folder, with the text of the files.
pub(super) fn tree(folder: &TempDir) -> Vec<String> {
    fn walk(folder: &Path, top: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(top).unwrap().display().to_string();
            if path.is_dir() {
                found.push(format!("{name}/"));
                walk(&path, top, found);
            } else {
                found.push(format!("{name}={}", fs::read_to_string(&path).unwrap_or_default()));
            }
        }
    }
    let mut found = Vec::new();
    walk(folder.path(), folder.path(), &mut found);
    found.sort();
    found
}

const UNTOUCHED: [&str; 2] = ["src/", "src/main.rs=fn main() {}"];

#[test]
fn creates_parent_folders_and_replaces_files() {
    let (folder, workspace) = folder();
    write(&workspace, "a/b/c", "one").unwrap();
    write(&workspace, "a/b/c", "two").unwrap();
    assert_eq!(tree(&folder), ["a/", "a/b/", "a/b/c=two", "src/", "src/main.rs=fn main() {}"]);
}

#[test]
fn removes_and_renames_files() {
    let (folder, workspace) = folder();
    let (from, to) = (read(&workspace, "src/main.rs"), read(&workspace, "lib/lib.rs"));
    FileTransaction::new().rename(from, to, "fn lib() {}").commit(|| false).unwrap();
    assert_eq!(tree(&folder), ["lib/", "lib/lib.rs=fn lib() {}", "src/"]);
    let (path, before) = read(&workspace, "lib/lib.rs");
    FileTransaction::new().remove(path, before).commit(|| false).unwrap();
    assert_eq!(tree(&folder), ["lib/", "src/"]);
}

// PA5: the file is compared with its snapshot right before it is replaced.
#[test]
fn a_concurrent_change_is_a_conflict() {
    let (folder, workspace) = folder();
    let file = folder.path().join("src/main.rs");
    let theirs: [fn(&Path); 4] = [
        |file| fs::write(file, "fn THEM() {}").unwrap(),
        |file| fs::write(file, "longer than it was before").unwrap(),
        |file| fs::remove_file(file).unwrap(),
        |file| {
            let _ = fs::remove_file(file);
            fs::create_dir(file).unwrap();
        },
    ];
    for change in theirs {
        let _ = fs::remove_dir(&file);
        fs::write(&file, "fn main() {}").unwrap();
        let (path, before) = read(&workspace, "src/main.rs");
        change(&file);
        let now = tree(&folder);
        for changes in [
            FileTransaction::new().write(path.clone(), before.clone(), "fn us() {}"),
            FileTransaction::new().remove(path.clone(), before.clone()),
        ] {
            let error = changes.commit(|| false).unwrap_err();
            assert_eq!(error.kind(), WorkspaceErrorKind::Conflict, "{error}");
            assert_eq!(tree(&folder), now);
        }
    }
    let (path, before) = read(&workspace, "new");
    fs::write(folder.path().join("new"), "theirs").unwrap();
    let error = FileTransaction::new().write(path, before, "ours").commit(|| false).unwrap_err();
    assert_eq!(error.kind(), WorkspaceErrorKind::Conflict);
    assert_eq!(fs::read_to_string(folder.path().join("new")).unwrap(), "theirs");
}

// A file with equal content and a new time is not a conflict.
#[test]
fn a_rewrite_of_equal_content_is_no_conflict() {
    let (folder, workspace) = folder();
    let file = folder.path().join("src/main.rs");
    let again: [fn(&Path); 2] = [
        |file| fs::write(file, "fn main() {}").unwrap(),
        |file| {
            fs::remove_file(file).unwrap();
            fs::write(file, "fn main() {}").unwrap();
        },
    ];
    for change in again {
        fs::write(&file, "fn main() {}").unwrap();
        let (path, before) = read(&workspace, "src/main.rs");
        change(&file);
        FileTransaction::new().write(path, before, "fn us() {}").commit(|| false).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "fn us() {}");
    }
}

/// Changes one file from many threads, each with its own workspace like another process; `next`
/// returns the new text. Returns the number of successful commits.
#[cfg(target_os = "linux")]
fn from_many_sides(
    folder: &TempDir,
    next: impl Fn(Option<&str>) -> Option<String> + Sync,
) -> usize {
    let act = || {
        let workspace = Workspace::open([folder.path()]).unwrap();
        let mut acknowledged = 0;
        for _ in 0..200 {
            let (path, before) = read(&workspace, "shared");
            let old = before.content().map(|old| std::str::from_utf8(old).unwrap());
            let Some(text) = next(old) else { continue };
            match FileTransaction::new().durable(false).write(path, before, text).commit(|| false) {
                Ok(()) => acknowledged += 1,
                Err(error) => assert_eq!(error.kind(), WorkspaceErrorKind::Conflict, "{error:?}"),
            }
        }
        acknowledged
    };
    std::thread::scope(|scope| {
        let sides: Vec<_> = (0..8).map(|_| scope.spawn(act)).collect();
        sides.into_iter().map(|side| side.join().unwrap()).sum()
    })
}

// PA5: a write between the comparison and the rename is not lost either.
#[test]
#[cfg(target_os = "linux")]
fn concurrent_commits_lose_no_change() {
    let (folder, _) = folder();
    let shared = folder.path().join("shared");
    fs::write(&shared, "").unwrap();
    let lines = from_many_sides(&folder, |old| Some(format!("{}line\n", old?)));
    assert_eq!(fs::read_to_string(&shared).unwrap().lines().count(), lines);
    assert!(lines > 0);

    for _ in 0..20 {
        fs::remove_file(&shared).unwrap();
        let made = from_many_sides(&folder, |old| old.is_none().then(|| "made\n".to_owned()));
        assert_eq!(made, 1);
    }
    fs::remove_file(&shared).unwrap();
    assert_eq!(tree(&folder), UNTOUCHED);
}

// F140: all or nothing, including created folders.
#[test]
fn a_failure_rolls_back_the_other_changes() {
    let (folder, workspace) = folder();
    fs::write(folder.path().join("old"), "old").unwrap();
    fs::write(folder.path().join("gone"), "gone").unwrap();
    let stale = at(&workspace, "src/main.rs");
    let before = tree(&folder);
    let (old, gone, new) =
        (read(&workspace, "old"), read(&workspace, "gone"), read(&workspace, "x/y/new"));
    let changes = FileTransaction::new()
        .write(old.0, old.1, "changed")
        .remove(gone.0, gone.1)
        .write(new.0, new.1, "new")
        .write(stale, Snapshot::absent(), "is there already");
    let error = changes.commit(|| false).unwrap_err();
    assert_eq!(error.kind(), WorkspaceErrorKind::Conflict);
    assert_eq!(tree(&folder), before);
}

// F140: all or nothing, also in several batches.
#[test]
fn large_transactions_are_all_or_nothing() {
    let (folder, workspace) = folder();
    for at in 0..200 {
        fs::write(folder.path().join(format!("old{at}")), "old").unwrap();
    }
    let before = tree(&folder);
    let changes = || {
        let mut changes = FileTransaction::new().durable(false);
        for at in 0..100 {
            let ((old, was), (gone, had), (new, none)) = (
                read(&workspace, &format!("old{at}")),
                read(&workspace, &format!("old{}", 100 + at)),
                read(&workspace, &format!("new/{}/{at}", at % 7)),
            );
            changes = changes.write(old, was, "new").remove(gone, had).write(new, none, "new");
        }
        changes
    };
    let stale = at(&workspace, "src/main.rs");
    let failing = [
        changes().write(stale.clone(), Snapshot::absent(), "is there already"),
        changes().remove(stale, read(&workspace, "old0").1),
    ];
    for changes in failing {
        assert_eq!(changes.commit(|| false).unwrap_err().kind(), WorkspaceErrorKind::Conflict);
        assert_eq!(tree(&folder), before);
    }
    assert_eq!(changes().commit(|| true).unwrap_err().kind(), WorkspaceErrorKind::Aborted);
    assert_eq!(tree(&folder), before);

    changes().commit(|| false).unwrap();
    let after = tree(&folder);
    assert_eq!(after.iter().filter(|it| it.ends_with("=new")).count(), 200);
    assert_eq!(after.len(), 200 + UNTOUCHED.len() + 1 + 7);
}

#[test]
fn a_cancelled_commit_changes_nothing() {
    let (folder, workspace) = folder();
    for patience in 0..4 {
        let asked = Cell::new(0);
        let stopped = || asked.replace(asked.get() + 1) >= patience;
        let (a, b) = (read(&workspace, "new/a"), read(&workspace, "new/b"));
        let old = read(&workspace, "src/main.rs");
        let changes = FileTransaction::new().write(a.0, a.1, "a").write(b.0, b.1, "b");
        let error = changes.remove(old.0, old.1).commit(stopped).unwrap_err();
        assert_eq!(error.kind(), WorkspaceErrorKind::Aborted);
        assert_eq!(tree(&folder), UNTOUCHED, "after {patience}");
    }
}

#[cfg(unix)]
#[test]
fn reports_a_folder_that_was_removed() {
    let (folder, workspace) = folder();
    fs::create_dir(folder.path().join("sub")).unwrap();
    let write = FileTransaction::new().write(at(&workspace, "sub/new"), Snapshot::absent(), "new");
    let goes = || {
        let _ = fs::remove_dir(folder.path().join("sub"));
        false
    };
    let error = write.commit(goes).unwrap_err();
    assert_eq!(error.kind(), WorkspaceErrorKind::Conflict);
    assert!(error.message().starts_with("the folder of `sub/new` was removed"), "{error}");
    assert_eq!(tree(&folder), UNTOUCHED);
}

#[test]
fn rejects_writing_to_folders_and_below_files() {
    let (folder, workspace) = folder();
    assert_eq!(
        at(&workspace, "src").snapshot(LIMIT).unwrap_err().kind(),
        WorkspaceErrorKind::Failed
    );
    for (path, kind) in [
        ("src", WorkspaceErrorKind::Conflict),
        (".", WorkspaceErrorKind::Failed),
        ("src/main.rs/x", WorkspaceErrorKind::Failed),
    ] {
        let changes = FileTransaction::new().write(at(&workspace, path), Snapshot::absent(), "x");
        let error = changes.commit(|| false).unwrap_err();
        assert_eq!(error.kind(), kind, "{path}: {error}");
    }
    assert_eq!(tree(&folder), UNTOUCHED);
}

#[test]
fn rejects_writing_to_read_only_folders() {
    let (_folder, workspace) = folder();
    let lent = TempDir::new().unwrap();
    fs::write(lent.path().join("page"), "text").unwrap();
    let workspace = workspace.with_read_only(lent.path()).unwrap();
    let path = lent.path().join("page");
    let error = write(&workspace, path.to_str().unwrap(), "x").unwrap_err();
    assert_eq!(error.kind(), WorkspaceErrorKind::Denied);
    assert!(error.message().ends_with("is in a folder that may only be read"), "{error}");
    assert_eq!(tree(&lent), ["page=text"]);
}

#[test]
fn rejects_files_over_the_limit() {
    let (_folder, workspace) = folder();
    let path = at(&workspace, "src/main.rs");
    assert!(path.snapshot(12).is_ok());
    let error = path.snapshot(11).unwrap_err();
    assert_eq!(error.message(), "`src/main.rs` has more than 11 bytes, too many to change it");
}

#[tokio::test]
async fn the_lock_is_the_same_for_every_path_of_a_file() {
    let (_folder, workspace) = folder();
    let clone = workspace.clone();
    let held = workspace.lock_files([&at(&workspace, "src/main.rs").canonicalize().unwrap()]).await;
    let other = at(&clone, "src/../src/main.rs").canonicalize().unwrap();
    let places = [other.clone(), other];
    let second = clone.lock_files(&places);
    tokio::pin!(second);
    assert!((&mut second).now_or_never().is_none());
    drop(held);
    let _both = second.await;
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn keeps_the_mode() {
        let (folder, workspace) = folder();
        let script = folder.path().join("run.sh");
        fs::write(&script, "old").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o751)).unwrap();
        write(&workspace, "run.sh", "new").unwrap();
        assert_eq!(mode(&script), 0o751);
        let (from, to) = (read(&workspace, "run.sh"), read(&workspace, "run2.sh"));
        FileTransaction::new().rename(from, to, "new").commit(|| false).unwrap();
        assert_eq!(mode(&folder.path().join("run2.sh")), 0o751);

        // A new file gets the default mode.
        write(&workspace, "new", "new").unwrap();
        fs::write(folder.path().join("like"), "").unwrap();
        assert_eq!(mode(&folder.path().join("new")), mode(&folder.path().join("like")));
    }

    // A moved file exists at all times, and stays when another change fails.
    #[test]
    fn removes_files_after_all_writes() {
        let (folder, workspace) = folder();
        let number = || fs::metadata(folder.path().join("src/main.rs")).unwrap().ino();
        let was = number();
        fs::write(folder.path().join("other"), "other").unwrap();
        let changes = FileTransaction::new()
            .rename(read(&workspace, "src/main.rs"), read(&workspace, "lib.rs"), "fn lib() {}")
            .write(at(&workspace, "other"), Snapshot::absent(), "is there already");
        assert_eq!(changes.commit(|| false).unwrap_err().kind(), WorkspaceErrorKind::Conflict);
        assert_eq!(number(), was);
        assert!(!folder.path().join("lib.rs").exists());
    }

    #[test]
    fn rollback_restores_the_mode() {
        let (folder, workspace) = folder();
        let script = folder.path().join("run.sh");
        fs::write(&script, "old").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
        let (path, before) = read(&workspace, "run.sh");
        let stale = at(&workspace, "src/main.rs");
        let changes =
            FileTransaction::new().remove(path, before).write(stale, Snapshot::absent(), "x");
        assert_eq!(changes.commit(|| false).unwrap_err().kind(), WorkspaceErrorKind::Conflict);
        assert_eq!((mode(&script), fs::read_to_string(&script).unwrap()), (0o700, "old".into()));
    }

    // A concurrent `chmod` to private is a conflict.
    #[test]
    fn a_concurrent_chmod_is_a_conflict() {
        let (folder, workspace) = folder();
        let file = folder.path().join("src/main.rs");
        for theirs in [0o600, 0o400] {
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
            let (path, before) = read(&workspace, "src/main.rs");
            fs::set_permissions(&file, fs::Permissions::from_mode(theirs)).unwrap();
            for changes in [
                FileTransaction::new().write(path.clone(), before.clone(), "fn us() {}"),
                FileTransaction::new().remove(path.clone(), before.clone()),
            ] {
                let error = changes.commit(|| false).unwrap_err();
                assert_eq!(error.kind(), WorkspaceErrorKind::Conflict, "{error}");
                assert_eq!(mode(&file), theirs);
                assert_eq!(tree(&folder), UNTOUCHED);
            }
        }
    }

    #[test]
    fn rejects_read_only_files() {
        let (folder, workspace) = folder();
        let file = folder.path().join("src/main.rs");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
        assert_eq!(
            write(&workspace, "src/main.rs", "x").unwrap_err().kind(),
            WorkspaceErrorKind::Denied
        );
        assert_eq!(tree(&folder), UNTOUCHED);
    }

    #[test]
    fn rejects_pipes_without_blocking() {
        let (folder, workspace) = folder();
        let made = Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap();
        assert!(made.success());
        let pipe = at(&workspace, "pipe");
        let changes = FileTransaction::new().write(pipe.clone(), Snapshot::absent(), "x");
        for error in [
            pipe.snapshot(LIMIT).unwrap_err(),
            pipe.canonicalize().unwrap_err(),
            changes.commit(|| false).unwrap_err(),
        ] {
            assert_eq!(error.message(), "`pipe` is a pipe or a device, not a file");
        }
        // A pipe that was created after the path was resolved.
        let later = at(&workspace, "later").canonicalize().unwrap();
        fs::rename(folder.path().join("pipe"), folder.path().join("later")).unwrap();
        assert_eq!(later.snapshot(LIMIT).unwrap_err().kind(), WorkspaceErrorKind::Failed);
        let changes = FileTransaction::new().write(later, Snapshot::absent(), "x");
        assert_eq!(changes.commit(|| false).unwrap_err().kind(), WorkspaceErrorKind::Conflict);
    }

    #[test]
    fn writes_through_links_inside_the_root() {
        let (folder, workspace) = folder();
        symlink("src/main.rs", folder.path().join("link")).unwrap();
        symlink("nowhere", folder.path().join("broken")).unwrap();
        write(&workspace, "link", "new").unwrap();
        assert!(fs::symlink_metadata(folder.path().join("link")).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(folder.path().join("src/main.rs")).unwrap(), "new");
        let broken = at(&workspace, "broken").canonicalize().unwrap();
        assert_eq!(broken.snapshot(LIMIT).unwrap_err().kind(), WorkspaceErrorKind::Conflict);
        let changes = FileTransaction::new().write(broken, Snapshot::absent(), "x");
        assert_eq!(changes.commit(|| false).unwrap_err().kind(), WorkspaceErrorKind::Conflict);
    }

    // F140: a dangling link is removed, and restored by a rollback.
    #[test]
    fn removes_and_restores_a_dangling_link() {
        let (folder, workspace) = folder();
        let link = folder.path().join("broken");
        symlink("nowhere", &link).unwrap();
        let broken = at(&workspace, "broken").canonicalize().unwrap();
        let before = broken.snapshot_link().unwrap();
        assert_eq!(before.content(), Some(&b"nowhere"[..]));
        let (main, stale) = read(&workspace, "src/main.rs");
        fs::write(folder.path().join("src/main.rs"), "changed").unwrap();
        let both =
            FileTransaction::new().remove(broken.clone(), before.clone()).remove(main, stale);
        assert_eq!(both.commit(|| false).unwrap_err().kind(), WorkspaceErrorKind::Conflict);
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("nowhere"));

        // A conflict while the link has another target.
        fs::remove_file(&link).unwrap();
        symlink("elsewhere", &link).unwrap();
        let remove =
            |before| FileTransaction::new().remove(broken.clone(), before).commit(|| false);
        assert_eq!(remove(before).unwrap_err().kind(), WorkspaceErrorKind::Conflict);
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("elsewhere"));
        remove(broken.snapshot_link().unwrap()).unwrap();
        assert!(!link.is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let (main, _) = read(&workspace, "src/main.rs");
        assert_eq!(main.snapshot_link().unwrap_err().kind(), WorkspaceErrorKind::Failed);
    }

    // PA1: a folder that is replaced by a link during a write does not lead outside.
    #[test]
    fn a_symlink_race_never_escapes_the_root() {
        let (folder, workspace) = folder();
        let outside = TempDir::new().unwrap();
        fs::write(outside.path().join("file"), "secret").unwrap();
        let inside = folder.path().join("dir");
        fs::create_dir(&inside).unwrap();
        fs::write(inside.join("file"), "ours").unwrap();
        symlink(outside.path(), folder.path().join("trap")).unwrap();
        let done = AtomicBool::new(false);
        let (mut written, mut seen) = (0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let dir = fs::File::open(folder.path()).unwrap();
                while !done.load(Ordering::Relaxed) {
                    let flags = rustix::fs::RenameFlags::EXCHANGE;
                    rustix::fs::renameat_with(&dir, "dir", &dir, "trap", flags).unwrap();
                }
            });
            for round in 0..20_000 {
                let path = at(&workspace, "dir/file");
                // Both ways to open: with links inside of the root, and canonical without links.
                let path = if round % 2 == 0 { Ok(path) } else { path.canonicalize() };
                let Ok(path) = path else { continue };
                let Ok(before) = path.snapshot(LIMIT) else { continue };
                assert_ne!(before.content(), Some(&b"secret"[..]), "it was read outside");
                seen += 1;
                let changes = FileTransaction::new().write(path, before, "ours").durable(false);
                written += usize::from(changes.commit(|| false).is_ok());
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(tree(&outside), ["file=secret"]);
        assert!(written > 0 && seen > 0, "{written} written, {seen} seen");
        let litter = |folder: &Path| fs::read_dir(folder).unwrap().count();
        let real = if inside.is_symlink() { folder.path().join("trap") } else { inside };
        assert_eq!((litter(folder.path()), litter(&real)), (3, 1));
    }
}
