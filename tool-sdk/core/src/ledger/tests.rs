//! Tests of the ledger: limits, phases, rollback, and files that were damaged.

use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Ledger, LedgerLimits, MutationPhase};
use crate::error::{ErrorKind, ToolError};

fn make(ledger: &Ledger, phases: &[MutationPhase]) -> Result<String, ToolError> {
    let id = ledger.begin("s1", "deploy", Value::Null)?.id;
    for phase in phases {
        ledger.record(&id, *phase, Value::Null)?;
    }
    Ok(id)
}

// F157: the third equal mutation in the window is blocked; dry runs do not count.
#[test]
fn blocks_the_third_equal_mutation_in_the_window() {
    use MutationPhase::{Applied, DryRun};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.jsonl");
    let ledger = Ledger::open(&path).unwrap();
    for _ in 0..5 {
        make(&ledger, &[DryRun, DryRun]).unwrap();
    }
    make(&ledger, &[Applied]).unwrap();
    make(&ledger, &[DryRun, Applied]).unwrap();
    let found = ledger.evaluate_loop_guard("deploy").unwrap();
    assert_eq!((found.blocked, found.recent_count, found.threshold), (true, 2, 3));
    assert!(!ledger.evaluate_loop_guard("other").unwrap().blocked);

    // A restart keeps the state.
    let ledger = Ledger::open(&path).unwrap();
    let error = make(&ledger, &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    let last = &ledger.transactions(1).unwrap()[0];
    assert_eq!(last.phase(), MutationPhase::Blocked);
    ledger.begin("s1", "other", Value::Null).unwrap();

    let limits = LedgerLimits { window: Duration::ZERO, ..LedgerLimits::default() };
    let later = Ledger::open(&path).unwrap().with_limits(limits);
    // A clock of whole milliseconds may not have moved since.
    while later.evaluate_loop_guard("deploy").unwrap().recent_count > 0 {
        std::hint::spin_loop();
    }
    make(&later, &[Applied]).unwrap();
}

// F158
#[test]
fn illegal_phases_are_refused_and_the_timeline_is_kept() {
    use MutationPhase::{Applied, Blocked, DryRun, Failed, Plan, RolledBack, Verified};

    for (phases, wrong) in [
        (&[][..], Verified),
        (&[DryRun], Verified),
        (&[Applied], Applied),
        (&[Applied], DryRun),
        (&[Applied, Verified], Failed),
        (&[Applied, Failed], Applied),
    ] {
        let ledger = Ledger::default();
        let id = make(&ledger, phases).unwrap();
        let error = ledger.record(&id, wrong, Value::Null).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{phases:?} {wrong}");
        let timeline = ledger.transaction(&id).unwrap().timeline;
        let seen: Vec<MutationPhase> = timeline.iter().map(|entry| entry.phase).collect();
        assert_eq!(seen, [&[Plan], phases].concat(), "nothing was recorded");
    }
    let ledger = Ledger::default();
    let id = make(&ledger, &[]).unwrap();
    for only_the_ledger in [Plan, Blocked, RolledBack] {
        let error = ledger.record(&id, only_the_ledger, Value::Null).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgs);
    }
    let unknown = ledger.record("m0", Applied, Value::Null).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
    let details = ledger.record(&id, Applied, json!({ "host": "a" })).unwrap();
    assert_eq!(details.timeline[1].details, json!({ "host": "a" }));
}

// F158: a failure after a change calls the hook, a failure before it does not.
#[test]
fn a_failed_transaction_is_rolled_back() {
    use MutationPhase::{Applied, Failed, RollbackFailed, RolledBack};

    let undone = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&undone);
    let ledger = Ledger::default().with_rollback(move |transaction| {
        log.lock().unwrap().push(transaction.fingerprint.clone());
        Ok(())
    });
    let id = make(&ledger, &[Failed]).unwrap();
    assert_eq!(ledger.transaction(&id).unwrap().phase(), Failed);
    assert!(undone.lock().unwrap().is_empty());
    let id = make(&ledger, &[Applied, Failed]).unwrap();
    assert_eq!(ledger.transaction(&id).unwrap().phase(), RolledBack);
    assert_eq!(*undone.lock().unwrap(), ["deploy"]);

    let broken = Ledger::default().with_rollback(|_| Err(ToolError::failed("no way back")));
    let id = make(&broken, &[Applied, Failed]).unwrap();
    let transaction = broken.transaction(&id).unwrap();
    assert_eq!(transaction.phase(), RollbackFailed);
    assert_eq!(transaction.timeline.last().unwrap().details, "no way back");
}

// F157: bad lines are skipped with a warning and stay in the file; a line that was cut by the end of
// its process is ended.
#[test]
fn bad_lines_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.jsonl");
    let append = |text: &str| {
        std::fs::File::options().append(true).open(&path).unwrap().write_all(text.as_bytes())
    };
    let first = make(&Ledger::open(&path).unwrap(), &[]).unwrap();
    append("no JSON\n{\"time_ms\": 1}\n\n\u{0}\n{\"time_ms\": 17").unwrap();
    let ledger = Ledger::open(&path).unwrap();
    assert_eq!(ledger.skipped_lines(), 3);
    let second = make(&ledger, &[]).unwrap();
    let read = Ledger::open(&path).unwrap();
    assert_eq!(read.skipped_lines(), 4, "the line that was cut");
    let ids: Vec<String> = read.transactions(9).unwrap().into_iter().map(|it| it.id).collect();
    assert_eq!(ids, [second, first]);
    assert!(std::fs::read_to_string(&path).unwrap().contains("no JSON"));
}

// F157: two ledgers on one file, as in two processes.
#[test]
fn ledgers_on_one_file_see_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/ledger.jsonl");
    let (one, other) = (Ledger::open(&path).unwrap(), Ledger::open(&path).unwrap());
    let id = make(&one, &[]).unwrap();
    other.record(&id, MutationPhase::Applied, Value::Null).unwrap();
    let error = one.record(&id, MutationPhase::Applied, Value::Null).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let path = &path;
            scope.spawn(move || append_many(path, writer));
        }
    });
    assert_eq!(one.transactions(1000).unwrap().len(), 81);
    assert_eq!(one.skipped_lines(), 0);
}

fn append_many(path: &Path, writer: usize) {
    let ledger = Ledger::open(path).unwrap();
    for at in 0..10 {
        ledger.begin("s", &format!("{writer} {at}"), Value::Null).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn the_file_is_private() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.jsonl");
    make(&Ledger::open(&path).unwrap(), &[]).unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert!(Ledger::open(&path).is_err(), "others may write to it");
}
