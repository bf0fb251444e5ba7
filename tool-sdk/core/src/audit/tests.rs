//! The content of records, and integrity and privacy of the log file.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};
use std::{fs, thread};

use serde_json::json;

use super::*;
use crate::redact::Redactor;
use crate::schema::Schema;

fn definition() -> Definition {
    Definition::new(ToolName::from_static("run"), "Runs a program.", Schema::default())
}

fn decision() -> Decision {
    let rule = Rule::parse(Action::Ask, "run(git *)").unwrap().origin("rules.toml");
    Decision {
        rules: vec![rule],
        subjects: vec!["git push".into()],
        ..Decision::new(Action::Ask, DecisionSource::Rule, "the rule decides")
    }
}

/// Writes a record for the call id `call`.
fn record(log: &AuditLog, call: &str, what: AuditEvent<'_>) {
    let session = Session::new("s").with_user("ada").with_agent("coder");
    let (definition, call) = (definition(), CallId::from_external(call));
    let fingerprint = Fingerprint::compute(&definition, "{}", &[]);
    let mut record = AuditRecord::new(&session, &definition, &call, &fingerprint, what);
    record.time = UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
    log.record(&record).unwrap();
}

// F91: an incomplete record, for example because of a full disk, does not damage the next one.
#[test]
fn an_incomplete_record_does_not_damage_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let decision = decision();
    let open = || AuditLog::open(&path, Redactor::default()).unwrap();
    record(&open(), "c1", AuditEvent::from_decision(&decision, None));
    let whole = fs::read(&path).unwrap();
    fs::write(&path, [&whole, &whole[..20]].concat()).unwrap();
    let log = open();
    record(&log, "c2", AuditEvent::from_decision(&decision, None));
    record(&log, "c3", AuditEvent::from_decision(&decision, None));
    let text = fs::read_to_string(&path).unwrap();
    let calls: Vec<_> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).ok().map(|record| record["call"].clone()))
        .collect();
    assert_eq!(calls, [Some(json!("c1")), None, Some(json!("c2")), Some(json!("c3"))]);
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

// P6, F91
#[test]
fn records_contain_decision_and_outcome() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let log = AuditLog::open(&path, Redactor::default()).unwrap();
    let (decision, reply) =
        (decision(), ApprovalResponse::Session { patterns: vec!["git *".to_owned()] });
    let answer = AuditAnswer::new(&reply, Some("ada"));
    record(&log, "1", AuditEvent::from_decision(&decision, Some(answer)));
    let facts = json!({"argv": ["git", "push"], "exit": 1});
    record(
        &log,
        "1",
        AuditEvent::Ran {
            outcome: Err(ErrorKind::Failed),
            elapsed_ms: 12,
            facts: facts.as_object(),
        },
    );
    record(&log, "2", AuditEvent::Ran { outcome: Ok(()), elapsed_ms: 0, facts: None });

    let fingerprint = Fingerprint::compute(&definition(), "{}", &[]);
    let head = json!({
        "time": "2023-11-14T22:13:20.123Z", "session": "s", "user": "ada", "agent": "coder",
        "call": "1", "tool": "run", "source": {"type": "native"}, "permission": "run",
        "fingerprint": fingerprint,
    });
    let with = |more: Value| {
        let mut all = head.as_object().unwrap().clone();
        all.extend(more.as_object().unwrap().clone());
        Value::Object(all)
    };
    let expected = [
        with(json!({
            "what": "decided", "decision": "ask", "by": "rule", "reason": "the rule decides",
            "rules": [{"rule": "ask run(git *)", "scope": "user", "origin": "rules.toml"}],
            "subjects": ["git push"],
            "answer": {"who": "ada", "reply": "session", "patterns": ["git *"]},
        })),
        with(json!({
            "what": "ran", "outcome": "failed", "elapsed_ms": 12,
            "facts": {"argv": ["git", "push"], "exit": 1},
        })),
        with(json!({"call": "2", "what": "ran", "outcome": "ok", "elapsed_ms": 0})),
    ];
    assert_eq!(lines(&path), expected);
}

// Every record names the hooks that changed the call.
#[test]
fn records_name_the_hooks_that_changed_the_call() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let log = AuditLog::open(&path, Redactor::new(["open-sesame-42"])).unwrap();
    let (session, definition, call) = (Session::new("s"), definition(), CallId::from_external("1"));
    let fingerprint = Fingerprint::compute(&definition, "{}", &[]);
    let ran = AuditEvent::Ran { outcome: Ok(()), elapsed_ms: 0, facts: None };
    let mut record = AuditRecord::new(&session, &definition, &call, &fingerprint, ran);
    log.record(&record).unwrap();
    let names = ["Trim".to_owned(), "open-sesame-42 (PreToolUse[0].hooks[0])".to_owned()];
    record.changed_by = &names;
    log.record(&record).unwrap();
    let lines = lines(&path);
    assert_eq!(lines[0].get("changed_by"), None);
    assert_eq!(lines[1]["changed_by"][0], "Trim");
    let second = lines[1]["changed_by"][1].as_str().unwrap();
    assert!(second.ends_with("(PreToolUse[0].hooks[0])") && !second.contains("sesame"), "{second}");
}

// LG1
#[test]
fn redacts_secrets_in_records() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let secret = "quoted \"secret\"\nof two lines";
    let log = AuditLog::open(&path, Redactor::new([secret])).unwrap();
    let reply = ApprovalResponse::RejectWith { feedback: format!("use {secret}") };
    let mut decision = decision();
    decision.reason = format!("because {secret}").into();
    decision.subjects = vec![format!("curl https://a:b@host -H '{secret}'").into()];
    decision.rules[0].origin = secret.to_owned();
    record(
        &log,
        secret,
        AuditEvent::from_decision(&decision, Some(AuditAnswer::new(&reply, None))),
    );
    let facts = json!({"env": {"password": "pw"}, secret: [secret]});
    record(&log, "2", AuditEvent::Ran { outcome: Ok(()), elapsed_ms: 1, facts: facts.as_object() });
    let text = fs::read_to_string(&path).unwrap();
    for part in ["quoted", "of two lines", "a:b", "\"pw\""] {
        assert!(!text.contains(part), "{part}: {text}");
    }
    assert_eq!(lines(&path).len(), 2);
}

// P6: a caller cannot hide what a call does by text that looks like a secret.
#[test]
fn a_call_cannot_hide_its_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let log = AuditLog::open(&path, Redactor::new(["Zx9q8w7e6r5t4"])).unwrap();
    for shape in ["Authorization: Bearer precious-data", "sk-0precious-data-precious-data"] {
        let command = format!("rm -rf precious-data # {shape}");
        let arguments = json!({ "cmd": command, "why": "Authorization: Bearer run/2023-11-14T22" });
        let arguments = arguments.to_string();
        let mut decision = decision();
        decision.subjects = vec![command.clone().into()];
        decision.reason = format!("`{command}` is asked about").into();
        let session = Session::new("s");
        let (definition, call) = (definition(), CallId::from_external("1"));
        let fingerprint = Fingerprint::compute(&definition, &arguments, &[]);
        let what = AuditEvent::from_decision(&decision, None);
        let mut record = AuditRecord::new(&session, &definition, &call, &fingerprint, what);
        record.time = UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
        let made_of = [arguments.as_str()];
        record.argument_texts = &made_of;
        log.record(&record).unwrap();
        let line = lines(&path).pop().unwrap();
        assert!(line["subjects"][0].to_string().contains("rm -rf precious-data"), "{line}");
        assert!(line["reason"].to_string().contains("rm -rf precious-data"), "{line}");
        assert_eq!((&line["tool"], &line["permission"]), (&json!("run"), &json!("run")));
        assert!(line["time"].as_str().unwrap().starts_with("2023-11-14T22"), "{line}");
    }
}

#[test]
fn concurrent_records_are_not_interleaved() {
    const WRITERS: usize = 8;
    const RECORDS: usize = 100;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let path = &path;
            scope.spawn(move || {
                // A separate file handle, like another process.
                let log = AuditLog::open(path, Redactor::default()).unwrap();
                let facts = json!({"long": "x".repeat(writer * 3000)});
                for at in 0..RECORDS {
                    let ran = AuditEvent::Ran {
                        outcome: Ok(()),
                        elapsed_ms: 1,
                        facts: facts.as_object(),
                    };
                    record(&log, &format!("{writer}-{at}"), ran);
                }
            });
        }
    });
    let mut calls: Vec<_> = lines(&path).iter().map(|line| line["call"].to_string()).collect();
    calls.sort();
    calls.dedup();
    assert_eq!(calls.len(), WRITERS * RECORDS);
}

#[cfg(unix)]
#[test]
fn the_log_file_is_private() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str| AuditLog::open(folder.path().join(name), Redactor::default());
    let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode();

    open("new").unwrap();
    assert_eq!(mode("new") & 0o777, 0o600);

    fs::write(folder.path().join("open"), "{}\n").unwrap();
    fs::set_permissions(folder.path().join("open"), fs::Permissions::from_mode(0o666)).unwrap();
    record(&open("open").unwrap(), "1", AuditEvent::from_decision(&decision(), None));
    assert_eq!(mode("open") & 0o777, 0o600);
    assert_eq!(lines(&folder.path().join("open")).len(), 2);

    for (target, link) in [("new", "link"), ("nowhere", "dangling")] {
        symlink(folder.path().join(target), folder.path().join(link)).unwrap();
        open(link).unwrap_err();
    }
    assert!(!folder.path().join("nowhere").exists());
    fs::create_dir(folder.path().join("folder")).unwrap();
    open("folder").unwrap_err();
    AuditLog::open("/dev/null", Redactor::default()).unwrap_err();
}
