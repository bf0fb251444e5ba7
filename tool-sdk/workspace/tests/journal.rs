//! Transactions of processes that are killed: with a journal every transaction is whole again.
//!
//! The processes are this test binary again: [`process`] is what they run, and does nothing on its
//! own.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use tool_sdk_workspace::{FileTransaction, Workspace};

/// Where a process finds the root and the state folder.
const TOP: &str = "TOOL_SDK_TEST_JOURNAL";

/// How many files a transaction changes.
const FILES: usize = 40;

fn workspace(top: &Path) -> Workspace {
    Workspace::open([top.join("root")]).unwrap().with_journal(top.join("journal"))
}

#[test]
#[ignore = "the other tests start it as a process of its own"]
fn process() {
    let Some(top) = std::env::var_os(TOP) else { return };
    let workspace = workspace(Path::new(&top));
    for round in 0_u64.. {
        let changes = (0..FILES).fold(FileTransaction::new(), |changes, nth| {
            let path = workspace.resolve(&format!("file{nth}")).unwrap();
            let before = path.snapshot(1 << 20).unwrap();
            let content = format!("{} {round}", std::process::id());
            changes.write(path, before, content)
        });
        changes.durable(false).commit(|| false).unwrap();
        if round == 0 {
            let mut out = std::io::stdout();
            writeln!(out, "\nready").unwrap();
        }
    }
}

/// Kills a process in the middle of its work; returns how many different contents the files have
/// before the recovery.
fn kill_one(top: &Path, after: Duration) -> usize {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process", "--ignored", "--nocapture"])
        .env(TOP, top)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.by_ref().map_while(Result::ok).any(|line| line == "ready"));
    thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    contents(top)
}

/// Returns how many different contents the files have.
fn contents(top: &Path) -> usize {
    let read = |nth| fs::read_to_string(top.join(format!("root/file{nth}"))).unwrap();
    (0..FILES).map(read).collect::<std::collections::HashSet<_>>().len()
}

fn kill_often(rounds: u64) {
    let top = tempfile::tempdir().unwrap();
    fs::create_dir(top.path().join("root")).unwrap();
    let mut half_made = 0;
    for round in 0..rounds {
        // All moments of ten milliseconds, without a pattern.
        let found = kill_one(top.path(), Duration::from_micros(round * 7919 % 10_000));
        half_made += usize::from(found > 1);
        let (_, left) = workspace(top.path()).recover_interrupted();
        assert!(left.is_empty(), "{left:?}");
        assert_eq!(contents(top.path()), 1, "round {round}");
        let names = fs::read_dir(top.path().join("root")).unwrap();
        assert_eq!(names.count(), FILES, "temporary files are left in round {round}");
    }
    // The figure shows that the kills met the transactions.
    let mut out = std::io::stdout();
    writeln!(out, "{half_made} of {rounds} were half made before their recovery").unwrap();
}

#[test]
fn transactions_of_killed_processes_are_whole_after_recovery() {
    kill_often(20);
}

#[test]
#[ignore = "the long form; `.ci/proofs` runs it"]
fn two_hundred_transactions_of_killed_processes_are_whole_after_recovery() {
    kill_often(200);
}
