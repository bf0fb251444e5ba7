//! Databases that several processes write to, and whose processes are killed while they do.
//!
//! The processes are this test binary again: [`process`] is what they run, and does nothing on its
//! own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, SystemTime};

use serde_json::json;
use tool_sdk::store::SqliteStore;
use tool_sdk::{
    CallRecord, CallStatus, MemoryOwner, MemoryStore as _, NoteDraft, NoteQuery, PlanStore as _,
    SessionPlan, SessionStore as _,
};

/// Where a process finds the state folder.
const FOLDER: &str = "TOOL_SDK_TEST_STATE";
/// How many entries of each kind a process writes.
const ENTRIES: &str = "TOOL_SDK_TEST_ENTRIES";

fn owner() -> MemoryOwner {
    MemoryOwner { user: None, project: Some("p".to_owned()) }
}

fn call_record(call: &str) -> CallRecord {
    CallRecord {
        call: call.to_owned(),
        session: "s".to_owned(),
        user: None,
        tool: "t".to_owned(),
        arguments: json!({}),
        request: None,
        status: CallStatus::Completed,
        started_at: SystemTime::now(),
        elapsed_ms: Some(1),
        response: Some(json!("x".repeat(500))),
    }
}

/// Writes entries of each kind, and prints a line when one is acknowledged.
#[tokio::test]
async fn process() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let entries: usize = std::env::var(ENTRIES).unwrap().parse().unwrap();
    let store = SqliteStore::in_folder(folder);
    let name = std::process::id();
    let mut out = std::io::stdout();
    // The harness began the line with the name of the test.
    writeln!(out, "\nready").unwrap();
    let mut plan = SessionPlan::default();
    for number in 0..entries {
        let note = NoteDraft::new(format!("entry {name} {number}"));
        let note = store.create_note(&owner(), note).await.unwrap();
        writeln!(out, "note {}", note.id).unwrap();
        let call = format!("{name}.{number}");
        store.save_call(call_record(&call)).await.unwrap();
        writeln!(out, "call {call}").unwrap();
        plan.version = store.save_plan(&name.to_string(), plan.clone()).await.unwrap().unwrap();
        writeln!(out, "plan {name} {}", plan.version).unwrap();
    }
}

/// A process that writes, and what it was acknowledged.
struct WriterProcess {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl WriterProcess {
    fn start(folder: &Path, entries: usize) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process", "--nocapture"])
            .env(FOLDER, folder)
            .env(ENTRIES, entries.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.by_ref().map_while(Result::ok).any(|line| line == "ready"));
        Self { child, lines }
    }

    /// Kills the process after `time`, and returns what it was acknowledged by then; with `first` the time
    /// begins with the first entry, however slow the disk is.
    fn kill_after(mut self, time: Duration, first: bool) -> Vec<String> {
        let mut acknowledged = Vec::new();
        if first {
            acknowledged
                .extend(self.lines.by_ref().map_while(Result::ok).find(|line| is_entry(line)));
        }
        thread::sleep(time);
        self.child.kill().unwrap();
        acknowledged.extend(self.acknowledged());
        acknowledged
    }

    /// Waits for the end and returns what the process was acknowledged.
    fn finish(mut self) -> Vec<String> {
        let status = self.child.wait().unwrap();
        let acknowledged = self.acknowledged();
        assert!(status.success(), "{status}: {acknowledged:?}");
        acknowledged
    }

    fn acknowledged(mut self) -> Vec<String> {
        let lines: Vec<String> = self.lines.by_ref().map_while(Result::ok).collect();
        let _ = self.child.wait();
        lines.into_iter().filter(|line| is_entry(line)).collect()
    }
}

/// Whether a line acknowledges an entry.
fn is_entry(line: &str) -> bool {
    ["note ", "call ", "plan "].iter().any(|kind| line.starts_with(kind))
}

/// Checks that everything that was acknowledged is there, and that nothing is corrupt.
async fn check(folder: &Path, acknowledged: &[String]) {
    let store = SqliteStore::in_folder(folder);
    let all = NoteQuery { limit: usize::MAX - 1, ..NoteQuery::new("") };
    let notes = store.search_notes(&owner(), &all).await.unwrap();
    let notes: BTreeSet<String> = notes.matches.into_iter().map(|it| it.note.id).collect();
    let calls = store.list_calls("s").await.unwrap();
    let calls: BTreeSet<String> = calls.into_iter().map(|it| it.call).collect();
    for line in acknowledged {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["note", id] => assert!(notes.contains(id), "{line} is lost"),
            ["call", id] => assert!(calls.contains(id), "{line} is lost"),
            ["plan", key, version] => {
                let plan = store.load_plan(key).await.unwrap();
                assert!(plan.version >= version.parse().unwrap(), "{line} is lost");
            }
            // The process was killed while it wrote the line.
            _ => {}
        }
    }
    let report = store.describe().await.unwrap();
    assert!(report.databases.iter().all(|it| it.soundness == "ok"), "{report:?}");
    assert!(report.set_aside.is_empty(), "nothing was taken for corrupt: {report:?}");
}

/// Random times, also of the first use, when the databases are created.
async fn kill_writers(kills: u64) {
    let mut folder = tempfile::tempdir().unwrap();
    let (mut acknowledged, mut total) = (Vec::new(), 0);
    for kill in 0..kills {
        if kill % 4 == 0 {
            folder = tempfile::tempdir().unwrap();
            acknowledged.clear();
        }
        // Two at once, so that one also dies while the other one waits for its lock.
        let writers = [0, 1].map(|_| WriterProcess::start(folder.path(), 100_000));
        for (nth, writer) in writers.into_iter().enumerate() {
            let time = Duration::from_micros(rand_below(25_000));
            // The last pair of a folder lives until something was written.
            acknowledged.extend(writer.kill_after(time, nth == 0 && kill % 4 == 3));
        }
        check(folder.path(), &acknowledged).await;
        total += acknowledged.len();
    }
    assert!(total > 0, "some writes were acknowledged");
}

/// A random number, without a dependency: each hasher has keys of its own.
fn rand_below(end: u64) -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};

    std::collections::hash_map::RandomState::new().build_hasher().finish() % end
}

async fn write_at_once(processes: usize, entries: usize) {
    let folder = tempfile::tempdir().unwrap();
    let writers: Vec<_> =
        (0..processes).map(|_| WriterProcess::start(folder.path(), entries)).collect();
    let acknowledged: Vec<String> = writers.into_iter().flat_map(WriterProcess::finish).collect();
    assert_eq!(acknowledged.len(), processes * entries * 3);
    check(folder.path(), &acknowledged).await;
    let report = SqliteStore::in_folder(folder.path()).describe().await.unwrap();
    let count = (processes * entries) as u64;
    assert_eq!(report.databases[0].entries, [("notes", count), ("plans", processes as u64)]);
    assert_eq!(report.databases[1].entries[0], ("calls", count));
}

/// How many kills and entries: more with `TOOL_SDK_TEST_PROOF`, as `.ci/proofs` sets it.
fn amount(short: usize, long: usize) -> usize {
    if std::env::var_os("TOOL_SDK_TEST_PROOF").is_some() { long } else { short }
}

#[tokio::test]
async fn killed_writers_lose_nothing_and_corrupt_nothing() {
    if std::env::var_os(FOLDER).is_none() {
        kill_writers(amount(10, 100) as u64).await;
    }
}

#[tokio::test]
async fn processes_that_write_at_once_lose_nothing() {
    if std::env::var_os(FOLDER).is_none() {
        write_at_once(amount(8, 16), amount(15, 100)).await;
    }
}
