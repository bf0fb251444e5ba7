//! The facts that an approval of a command is bound to, and the audit record.

use std::fs;
use std::future::{Future, ready};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tool_sdk::process::sandbox::{SandboxLevel, SandboxMode, SandboxPolicy};
use tool_sdk::{
    ApprovalRequest, ApprovalResponse, Approver, AuditRecord, AuditSink, Call, ErrorKind, Mode,
    Pipeline, ScriptedApprover, Session, Workspace,
};

use crate::support::Host;

fn write_script(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Approves, after replacing a script.
struct Swaps(std::path::PathBuf);

impl Approver for Swaps {
    fn request_approval(
        &self,
        ask: Arc<ApprovalRequest>,
    ) -> Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
        write_script(&self.0, "#!/bin/sh\necho SWAPPED >> ran\n");
        ask.set_responder("a hurried person");
        Box::pin(ready(Some(ApprovalResponse::Once)))
    }
}

// CVE-2026-32978: an approval is bound to the contents of the script.
#[tokio::test]
async fn approval_is_void_after_script_changes() {
    for (tool, arguments) in [
        ("exec_command", json!({ "cmd": "./sub/s.sh" })),
        ("exec_command", json!({ "cmd": "bash sub/s.sh" })),
        ("exec_command", json!({ "cmd": "./s.sh; true", "workdir": "sub" })),
        ("exec_command", json!({ "cmd": "cd sub && ./s.sh" })),
        ("exec_command", json!({ "cmd": ". sub/s.sh" })),
        ("exec_command", json!({ "cmd": "timeout 5 sh sub/s.sh" })),
        ("exec_command", json!({ "cmd": "(cd other); sh sub/s.sh" })),
        ("exec_command", json!({ "cmd": "cd other | true; sh sub/s.sh" })),
        ("exec_command", json!({ "cmd": "cd nope; sh sub/s.sh" })),
        ("exec_command", json!({ "cmd": "cd -P -- sub && sh s.sh" })),
        ("exec_command", json!({ "cmd": "pushd sub && sh s.sh" })),
        ("exec_command", json!({ "cmd": "sh < sub/s.sh" })),
        ("exec_command", json!({ "cmd": "cat sub/s.sh | sh" })),
        ("exec_command", json!({ "cmd": "awk -f sub/s.sh" })),
        // Whichever program reads it, and however it is named.
        ("exec_command", json!({ "cmd": "sh sub/s*.sh" })),
        ("exec_command", json!({ "cmd": "cd sub && ./s.s?" })),
        ("exec_command", json!({ "cmd": "cat sub/*.sh | sh" })),
        ("exec_command", json!({ "cmd": "bash -s a < sub/s.sh" })),
        ("exec_command", json!({ "cmd": "sh <(cat sub/s.sh)" })),
        ("exec_command", json!({ "cmd": "for f in sub/s.sh; do sh $f; done" })),
        ("exec_command", json!({ "cmd": "f=sub/s.sh; sh $f" })),
        ("exec_command", json!({ "cmd": "sh \"$(echo sub/s.sh)\"" })),
        ("exec_command", json!({ "cmd": "unheard-of '.read sub/s.sh'" })),
        ("exec_command", json!({ "cmd": "sed -nf sub/s.sh x" })),
        ("exec_command", json!({ "cmd": "cd sub && PATH=. s.sh" })),
        ("exec_command", json!({ "cmd": format!("{}sh sub/s.sh", "true; ".repeat(40)) })),
        // Behind what only bash knows, and in a folder that a program enters.
        ("exec_command", json!({ "cmd": "sh $PWD/sub/s.sh" })),
        ("exec_command", json!({ "cmd": "sh \"$(pwd)/sub/s.sh\"" })),
        ("exec_command", json!({ "cmd": "cd \"$PWD/sub\" && sh s.sh" })),
        ("exec_command", json!({ "cmd": "env -C sub sh s.sh" })),
        ("exec_command", json!({ "cmd": "a=sub; sh $a/s.sh" })),
        ("exec_command", json!({ "cmd": "sh */s.sh" })),
        ("exec_command", json!({ "cmd": "find sub -exec sh {} +" })),
        ("exec_command", json!({ "cmd": "ls sub | xargs sh" })),
        ("shell_command", json!({ "command": "./sub/s.sh" })),
        ("shell", json!({ "command": ["./sub/s.sh"] })),
    ] {
        let mut host = Host::new(Mode::Auto, &[]);
        fs::create_dir(host.folder.path().join("sub")).unwrap();
        fs::create_dir(host.folder.path().join("other")).unwrap();
        let script = host.folder.path().join("sub/s.sh");
        write_script(&script, "#!/bin/sh\necho shown >> ran\n");
        host.pipeline = host.pipeline.approver(Swaps(script));
        let error = host.error(tool, arguments.clone()).await;
        assert_eq!(error.kind(), ErrorKind::Denied, "{arguments}");
        assert!(error.message().contains("changed while it waited for approval"), "{error}");
        for ran in ["ran", "sub/ran"] {
            assert!(!host.folder.path().join(ran).exists(), "{arguments}");
        }
    }
}

/// Approves, after another action.
struct After<F>(F);

impl<F: Fn() + Send + Sync + 'static> Approver for After<F> {
    fn request_approval(
        &self,
        _: Arc<ApprovalRequest>,
    ) -> Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
        self.0();
        Box::pin(ready(Some(ApprovalResponse::Once)))
    }
}

// F91: the facts cover the target of a link and all of a long script.
#[tokio::test]
async fn approval_is_void_after_folder_or_long_script_changes() {
    for (arguments, why) in [
        (json!({ "cmd": "make", "workdir": "w" }), "`w` leads to another folder"),
        (json!({ "cmd": "sh long.sh" }), "changed while it waited for approval"),
    ] {
        let mut host = Host::new(Mode::Auto, &[]);
        let root = host.folder.path().to_owned();
        for folder in ["a", "b"] {
            fs::create_dir(root.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink("a", root.join("w")).unwrap();
        let long = format!("echo shown >> ran\n#{}\n", "x".repeat(300 << 10));
        fs::write(root.join("long.sh"), format!("{long}true\n")).unwrap();
        host.pipeline = host.pipeline.approver(After(move || {
            fs::remove_file(root.join("w")).unwrap();
            std::os::unix::fs::symlink("b", root.join("w")).unwrap();
            fs::write(root.join("long.sh"), format!("{long}rm x\n")).unwrap();
        }));
        let error = host.error("exec_command", arguments).await;
        assert!(error.message().contains(why), "{error}");
    }
}

async fn fingerprint(pipeline: &Pipeline, session: &Session, arguments: &Value) -> String {
    let call = Call::new("exec_command", arguments.to_string());
    pipeline.check(session, call).await.unwrap().fingerprint.into()
}

// F91: the same words in another directory are another command.
#[tokio::test]
async fn folder_and_environment_are_bound() {
    let host = Host::new(Mode::Auto, &[]);
    let sub = host.folder.path().join("sub");
    fs::create_dir(&sub).unwrap();
    fs::write(host.folder.path().join("s.sh"), "one").unwrap();
    let make = json!({ "cmd": "make all" });
    let of = async |session: &Session, arguments: &Value| {
        fingerprint(&host.pipeline, session, arguments).await
    };
    let lent = |policy: SandboxPolicy| host.session.clone().with_service(policy);
    let elsewhere = tempfile::tempdir().unwrap();
    let other_root =
        host.session.clone().with_service(Workspace::open([elsewhere.path()]).unwrap());
    let confined = lent(SandboxPolicy::new(SandboxMode::Required, SandboxLevel::WorkspaceWrite));
    let narrower = lent(SandboxPolicy::new(SandboxMode::Required, SandboxLevel::ReadOnly));

    let first = of(&host.session, &make).await;
    assert_eq!(of(&host.session, &make).await, first);
    let mut all = vec![first];
    for session in [&other_root, &confined, &narrower] {
        all.push(of(session, &make).await);
    }
    all.push(of(&host.session, &json!({ "cmd": "make all", "workdir": "sub" })).await);
    let script = json!({ "cmd": "sh s.sh" });
    all.push(of(&host.session, &script).await);
    fs::write(host.folder.path().join("s.sh"), "two").unwrap();
    all.push(of(&host.session, &script).await);
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count);
}

// Too many files take no longer, and invalidate the approval.
#[tokio::test]
async fn approval_is_void_if_inspection_was_incomplete() {
    let host = Host::new(Mode::Auto, &[]);
    for number in 0..600 {
        fs::write(host.folder.path().join(format!("f{number}.txt")), "").unwrap();
    }
    let programs: String = (0..200).map(|number| format!("p{number};")).collect();
    for (cmd, holds) in [
        ("perl f1*.txt".to_owned(), true),
        ("perl f*.txt".to_owned(), false),
        ("p0; ./p1; p2".to_owned(), true),
        (programs, false),
    ] {
        let arguments = json!({ "cmd": cmd });
        let seen = [
            fingerprint(&host.pipeline, &host.session, &arguments).await,
            fingerprint(&host.pipeline, &host.session, &arguments).await,
        ];
        assert_eq!(seen[0] == seen[1], holds, "{cmd}");
        // No approval is requested, and the error tells the model what to send instead.
        if !holds {
            let call = Call::new("exec_command", arguments.to_string());
            let pipeline = host
                .pipeline
                .clone()
                .approver(ScriptedApprover::always_respond(ApprovalResponse::Once));
            let error = pipeline.call(&host.session, call).await.result.unwrap_err();
            assert!(error.message().starts_with("approval is not possible"), "{error}");
        }
    }
}

/// Keeps the audit records.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Value>>>);

impl AuditSink for Kept {
    fn record(&self, record: &AuditRecord<'_>) -> std::io::Result<()> {
        self.0.lock().unwrap().push(serde_json::to_value(record).unwrap());
        Ok(())
    }
}

/// Approves, and names the approver.
struct Ada;

impl Approver for Ada {
    fn request_approval(
        &self,
        ask: Arc<ApprovalRequest>,
    ) -> Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
        ask.set_responder("Ada");
        Box::pin(ready(Some(ApprovalResponse::Once)))
    }
}

// P6: the record names the approver and the program that ran.
#[tokio::test]
async fn audit_record_names_program_and_approver() {
    let mut host = Host::new(Mode::Auto, &["ask exec_command"]);
    let kept = Kept::default();
    host.pipeline = host.pipeline.approver(Ada).audit(kept.clone());
    host.call("exec_command", json!({ "cmd": "echo one", "env": ["NOTE=hunter2"] })).await;
    host.call("shell", json!({ "command": ["echo", "two"] })).await;
    let records = kept.0.lock().unwrap();
    let folder = host.folder.path().canonicalize().unwrap();
    for (at, argv) in [(0, &["echo", "one"][..]), (2, &["echo", "two"])] {
        let (decided, ran) = (&records[at], &records[at + 1]);
        assert_eq!((&decided["answer"]["who"], &decided["by"]), (&json!("Ada"), &json!("reply")));
        assert_eq!(decided["reason"], "`Ada` approved it");
        let facts = &ran["facts"];
        assert_eq!(facts["argv"], json!(argv));
        assert_eq!(facts["folder"], json!(folder));
        assert_eq!(facts["exit_code"], 0);
        let variables = facts["variables"].as_array().unwrap();
        assert!(variables.contains(&json!("PATH")));
        assert_eq!(variables.contains(&json!("NOTE")), at == 0);
    }
    assert!(!json!(*records).to_string().replace("NOTE=hunter2", "").contains("hunter2"));
}

/// Rejects, and keeps the preview.
#[derive(Clone, Default)]
struct Reads(Arc<Mutex<Vec<String>>>);

impl Approver for Reads {
    fn request_approval(
        &self,
        ask: Arc<ApprovalRequest>,
    ) -> Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
        self.0.lock().unwrap().push(ask.prompt().text);
        Box::pin(ready(Some(ApprovalResponse::Reject)))
    }
}

// PR1: the approver sees the directory and the program files.
#[tokio::test]
async fn a_prompt_shows_the_folder_and_the_programs() {
    for (tool, arguments) in [
        ("exec_command", json!({ "cmd": "cd deep && ./s.sh | touch x", "workdir": "sub" })),
        ("shell_command", json!({ "command": "cd sub/deep && ./s.sh | touch x" })),
        ("shell", json!({ "command": ["deep/s.sh"], "workdir": "sub" })),
    ] {
        let mut host = Host::new(Mode::Auto, &[]);
        let root = host.folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("sub/deep")).unwrap();
        write_script(&root.join("sub/deep/s.sh"), "#!/bin/sh\n");
        let reads = Reads::default();
        host.pipeline = host.pipeline.approver(reads.clone());
        host.error(tool, arguments.clone()).await;
        let shown = reads.0.lock().unwrap().concat();
        let script = root.join("sub/deep/s.sh").display().to_string();
        assert!(shown.contains(&script), "{arguments}: {shown}");
        assert!(tool == "shell" || shown.contains("/touch'"), "{arguments}: {shown}");
        assert!(shown.contains("\nruns\n  | folder: '/"), "{arguments}: {shown}");
    }
}
