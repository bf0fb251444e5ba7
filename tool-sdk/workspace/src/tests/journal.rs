//! Recovery of transactions whose process was killed.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::transaction::{read, tree};
use super::*;
use crate::journal::begin_entry;
use crate::journal_entry::JournalEntry;
use crate::staged_file::{FileChange, StagedFile, TransactionFolders};

/// A root with the files `a` to `d`, and the folder for journals.
struct JournalFixture {
    root: TempDir,
    state: TempDir,
    workspace: Workspace,
}

const OLD: [&str; 4] = ["a=old", "b=old", "c=old", "d=old"];

impl JournalFixture {
    fn new() -> Self {
        let (root, state) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        for name in ["a", "b", "c", "d"] {
            fs::write(root.path().join(name), "old").unwrap();
        }
        let workspace = Workspace::open([root.path()]).unwrap();
        let workspace = workspace.with_journal(state.path().join("journal"));
        Self { root, state, workspace }
    }

    /// Writes `a` to `c` and removes `d`, and stops after `count` of these changes.
    fn interrupt(&self, count: usize) -> JournalEntry {
        let mut folders = TransactionFolders::default();
        let stage = |(name, after): (&str, Option<&str>)| {
            let (path, before) = read(&self.workspace, name);
            let path = path.canonicalize().unwrap();
            let (after, template) = (after.map(Into::into), before.clone());
            let change = FileChange { path, before, after, template };
            let mut staged = StagedFile::new(change, &mut folders).unwrap();
            staged.write(false).unwrap();
            staged
        };
        let changes = [("a", Some("new")), ("b", Some("new")), ("c", Some("new")), ("d", None)];
        let mut staged: Vec<_> = changes.map(stage).into();
        let entry = begin_entry(&self.journal(), &staged, false).unwrap().unwrap();
        staged.iter_mut().take(count).for_each(|file| file.commit().unwrap());
        // A process that is killed removes nothing.
        std::mem::forget(staged);
        entry
    }

    fn journal(&self) -> PathBuf {
        self.state.path().join("journal")
    }

    /// Makes another change below the root.
    fn write_other(&self) -> Result<(), WorkspaceError> {
        let (path, before) = read(&self.workspace, "other");
        FileTransaction::new().write(path, before, "new").commit(|| false)
    }

    fn journals(&self) -> usize {
        fs::read_dir(self.journal()).unwrap().count()
    }
}

#[test]
fn next_transaction_finishes_one_that_was_interrupted() {
    for count in 1..=4 {
        let fixture = JournalFixture::new();
        drop(fixture.interrupt(count));
        fixture.write_other().unwrap();
        assert_eq!(tree(&fixture.root), ["a=new", "b=new", "c=new", "other=new"], "{count}");
        assert_eq!(fixture.journals(), 0);
    }
}

#[test]
fn next_transaction_undoes_one_that_replaced_nothing() {
    let fixture = JournalFixture::new();
    drop(fixture.interrupt(0));
    assert_eq!(tree(&fixture.root).len(), 7, "three temporary files");
    fixture.write_other().unwrap();
    assert_eq!(tree(&fixture.root), [&OLD[..], &["other=new"]].concat());
    assert_eq!(fixture.journals(), 0);
}

#[test]
fn leaves_files_that_changed_since_and_says_so_once() {
    let fixture = JournalFixture::new();
    drop(fixture.interrupt(1));
    fs::write(fixture.root.path().join("b"), "theirs").unwrap();
    let before = tree(&fixture.root);
    let error = fixture.write_other().unwrap_err();
    assert_eq!(error.kind(), WorkspaceErrorKind::Failed);
    assert!(error.message().contains("/b` is neither as before"), "{error}");
    assert_eq!(tree(&fixture.root), before);
    assert_eq!(fixture.workspace.count_interrupted(), (0, 1));
    fixture.write_other().unwrap();
}

#[test]
fn leaves_a_folder_that_was_replaced() {
    let fixture = JournalFixture::new();
    fs::create_dir(fixture.root.path().join("sub")).unwrap();
    fs::write(fixture.root.path().join("sub/e"), "old").unwrap();
    let mut folders = TransactionFolders::default();
    let mut staged: Vec<StagedFile> = Vec::new();
    for name in ["sub/e", "a"] {
        let (path, before) = read(&fixture.workspace, name);
        let (path, template) = (path.canonicalize().unwrap(), before.clone());
        let change = FileChange { path, before, after: Some("new".into()), template };
        staged.push(StagedFile::new(change, &mut folders).unwrap());
    }
    staged.iter_mut().for_each(|file| file.write(false).unwrap());
    drop(begin_entry(&fixture.journal(), &staged, false).unwrap().unwrap());
    std::mem::forget(staged);
    fs::rename(fixture.root.path().join("sub"), fixture.root.path().join("moved")).unwrap();
    fs::create_dir(fixture.root.path().join("sub")).unwrap();
    let (recovered, left) = fixture.workspace.recover_interrupted();
    assert_eq!(recovered, 0);
    assert!(left[0].contains("/sub`: it was replaced"), "{left:?}");
}

#[test]
fn waits_for_a_process_that_runs() {
    let fixture = JournalFixture::new();
    let running = fixture.interrupt(1);
    let before = tree(&fixture.root);
    assert_eq!(fixture.workspace.recover_interrupted(), (0, vec![]));
    assert_eq!(tree(&fixture.root), before);
    drop(running);
    assert_eq!(fixture.workspace.recover_interrupted(), (1, vec![]));
    assert_eq!(tree(&fixture.root), ["a=new", "b=new", "c=new"]);
}

#[test]
fn ignores_journals_of_other_roots_and_those_that_others_could_write() {
    let fixture = JournalFixture::new();
    drop(fixture.interrupt(1));
    let other = TempDir::new().unwrap();
    let elsewhere = Workspace::open([other.path()]).unwrap().with_journal(fixture.journal());
    assert_eq!(elsewhere.recover_interrupted(), (0, vec![]));

    let journal = fs::read_dir(fixture.journal()).unwrap().next().unwrap().unwrap().path();
    let mode = |mode| fs::set_permissions(&journal, fs::Permissions::from_mode(mode)).unwrap();
    assert_eq!(fs::metadata(&journal).unwrap().permissions().mode() & 0o777, 0o600);
    mode(0o622);
    assert_eq!(fixture.workspace.recover_interrupted(), (0, vec![]));
    mode(0o600);
    assert_eq!(fixture.workspace.recover_interrupted(), (1, vec![]));
}

#[test]
fn keeps_no_journal_where_tools_can_write() {
    let fixture = JournalFixture::new();
    let inside = fixture.root.path().join("journal");
    let workspace = fixture.workspace.clone().with_journal(&inside);
    let changes = ["a", "b"].into_iter().fold(FileTransaction::new(), |changes, name| {
        let (path, before) = read(&workspace, name);
        changes.write(path, before, "new")
    });
    changes.commit(|| false).unwrap();
    assert!(!inside.exists());
}
