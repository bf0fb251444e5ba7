//! The sandbox, with the program as its own helper and as the helper of another host.
//!
//! A test that the machine cannot enforce is skipped and counted; with
//! `TOOL_SDK_SANDBOX_TESTS=required` that is a failure.

#![cfg(all(feature = "application", target_os = "linux"))]
#![expect(clippy::print_stdout, reason = "what is skipped is told, and why")]

mod auto_allow;
mod leftovers;
mod reads;
mod servers;
mod working_folder;

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};
use tool_sdk::process::sandbox::{SandboxLevel, SandboxMode, SandboxPolicy};
use tool_sdk::{
    ApprovalResponse, Call, Mode, Pipeline, Registry, ScriptedApprover, Session, Workspace, tools,
};
use tool_std::exec::{exec_command, write_stdin};

/// What a sandbox cannot protect.
const UNPROTECTED: &str = "protected files that do not exist yet, or are deeply nested, can be \
                           created; created ones are reported with the result";

const PROGRAM: &str = env!("CARGO_BIN_EXE_tool-std");

fn run(root: &Path, args: &[&str]) -> Output {
    run_keeping(Path::new(env!("CARGO_TARGET_TMPDIR")), root, args)
}

/// The same with the state folder of the program at `state`.
fn run_keeping(state: &Path, root: &Path, args: &[&str]) -> Output {
    Command::new(PROGRAM)
        .arg("--root")
        .arg(root)
        .arg("--state-dir")
        .arg(state)
        .env("XDG_CONFIG_HOME", env!("CARGO_TARGET_TMPDIR"))
        .env("PLANTED_SECRET", "canary")
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("the program runs")
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr))
    })
}

/// Runs `line` with these options; returns the report and its data.
fn confined(root: &Path, options: &[&str], line: &str) -> (String, Value) {
    let call = ["--yes", "call", "exec_command", "--json", "--yield-time-ms=30000", "--cmd", line];
    let result = json(&run(root, &[options, &call].concat()));
    let text = result["output"].as_str().unwrap_or_else(|| panic!("{line}: {result}"));
    (text.to_owned(), result["display"].clone())
}

/// The features of the kernel that matter here.
struct Machine(Value);

impl Machine {
    fn new() -> Self {
        Self(json(&run(Path::new("."), &["doctor", "--json"]))["sandbox"].clone())
    }

    /// Whether everything can be enforced; prints the reason when it cannot.
    fn is_whole(&self) -> bool {
        let parts = ["filesystem", "network", "processes"];
        let whole = parts.iter().all(|part| self.0[part] == "full");
        let required =
            std::env::var_os("TOOL_SDK_SANDBOX_TESTS").is_some_and(|it| it == "required");
        assert!(whole || !required, "the sandbox is required here: {}", self.0);
        if !whole {
            println!("sandbox tests: 0 run, 1 skipped ({})", self.0["reasons"]);
        }
        whole
    }
}

/// Runs the program where no new `/proc` can be mounted, because a part of the old one is hidden;
/// `None` where nothing can be hidden.
fn run_behind_a_masked_proc(args: &[&str]) -> Option<Output> {
    const HIDE: &str = r#"mount --bind /dev/null /proc/version && exec "$@""#;
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", HIDE, "sh", PROGRAM])
        .args(["--state-dir", env!("CARGO_TARGET_TMPDIR")])
        .env("XDG_CONFIG_HOME", env!("CARGO_TARGET_TMPDIR"))
        .args(args)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    let is_hidden = !complaints.contains("mount:") && !complaints.contains("unshare:");
    is_hidden.then_some(output)
}

// SB1, SB8: when processes outside are visible, the report says so, and `required` runs nothing.
#[test]
fn reports_visible_processes_of_the_host() {
    if !Machine::new().is_whole() {
        return;
    }
    let Some(doctor) = run_behind_a_masked_proc(&["doctor", "--self-test", "--json"]) else {
        println!("sandbox tests: 0 run, 1 skipped (nothing can be hidden here)");
        return;
    };
    let doctor = json(&doctor);
    assert_eq!(doctor["sandbox"]["processes"], "partial", "{doctor:#}");
    assert!(doctor["sandbox"]["reasons"].to_string().contains("cannot mount `/proc`"));
    assert_eq!(doctor["self_test"]["passed"], true, "{doctor:#}");
    let call = ["--sandbox", "required", "--yes", "call", "exec_command", "--cmd", "echo r''an"];
    let output = run_behind_a_masked_proc(&call).expect("as before");
    assert!(!output.status.success());
    assert!(!String::from_utf8_lossy(&output.stdout).contains("ran"), "{output:?}");
}

// SB6: every access to the outside fails, and other work is possible.
#[test]
fn a_sandboxed_child_cannot_escape() {
    let machine = Machine::new();
    let output = run(Path::new("."), &["doctor", "--self-test", "--json"]);
    if machine.0["landlock"].is_null() && machine.0["user_namespaces"] == false {
        assert!(!machine.is_whole());
        return;
    }
    let test = &json(&output)["self_test"];
    let attempts = test["attempts"].as_array().expect("a list");
    let skipped: Vec<&str> = attempts
        .iter()
        .filter(|attempt| attempt["passed"].is_null())
        .map(|attempt| attempt["detail"].as_str().expect("a reason"))
        .collect();
    let why = if skipped.is_empty() { String::new() } else { format!(" ({})", skipped.join("; ")) };
    println!("sandbox tests: {} run, {} skipped{why}", test["tried"], skipped.len());
    assert_eq!(test["passed"], true, "{test:#}");
    assert_eq!(output.status.code(), Some(0));
    assert!(attempts.len() >= 41, "{}", attempts.len());
    let all = machine.0["landlock"].as_i64().is_some_and(|version| version >= 6)
        && machine.0["user_namespaces"] == true
        && machine.0["seccomp"] == true;
    assert!(!all || skipped.is_empty(), "what can be enforced here is skipped: {skipped:?}");
    machine.is_whole();
}

// SB3: also when the workspace is in a folder for temporary files, which is writable.
#[test]
fn protected_files_in_a_writable_folder_are_kept() {
    if !Machine::new().is_whole() {
        return;
    }
    let outer = tempfile::tempdir().expect("a folder");
    let outer_path = outer.path().canonicalize().expect("it is there");
    let root = outer_path.join("inner/project");
    fs::create_dir_all(root.join(".git/hooks")).expect("it is made");
    fs::write(root.join("AGENTS.md"), "kept").expect("it is written");
    let required = ["--sandbox", "required"];
    for line in [
        "echo x > .git/hooks/pre-commit",
        "mv .git gone",
        "mv AGENTS.md gone",
        "ln -sf /etc/passwd AGENTS.md",
        "mv ../project ../gone",
        "mv ../../inner ../../gone",
        "rm -rf .git",
        "chmod 777 .git",
        "cd / && echo x > $OLDPWD/.git/hooks/x",
        "unshare -Urm umount .git",
        "unshare -Urm mount -o remount,rw .git",
    ] {
        let (text, display) = confined(&root, &required, line);
        assert_ne!(display["exit_code"], 0, "{line}: {text}");
    }
    assert!(root.join(".git/hooks").read_dir().expect("it is there").next().is_none());
    assert_eq!(fs::read_to_string(root.join("AGENTS.md")).expect("it is there"), "kept");

    let (text, _) =
        confined(&root, &required, "echo x > new && mkdir -p a/b && mv new a/b && ls a/b");
    // SB2: the report names the sandbox where commands cannot write.
    let status =
        "Sandbox: required, workspace_write: filesystem full, network full, processes full";
    assert!(text.ends_with(&format!("\n{status}\nOutput:\nnew\n")), "{text}");
}

// SB3: a protected file that does not exist is not created, even by a process that a command left
// behind.
#[test]
fn a_repository_cannot_be_created() {
    if !Machine::new().is_whole() {
        return;
    }
    let root = tempfile::tempdir().expect("a folder");
    let plant = "(while ! mkdir .git/hooks .git/x 2>/dev/null; do test -e stop && exit; \
                 sleep 0.01; done; touch planted) </dev/null >/dev/null 2>&1 & echo started";
    let calls = [
        json!({"id": "1", "name": "exec_command", "arguments": {"cmd": plant}}),
        json!({"id": "2", "name": "exec_command", "arguments": {"cmd": "sleep 0.3; mkdir -p .git/hooks"}}),
        json!({"id": "3", "name": "exec_command", "arguments": {"cmd": "sleep 0.3; touch stop; ls -A"}}),
    ];
    let lines: Vec<String> = calls.iter().map(Value::to_string).collect();
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), lines.join("\n")).expect("it is written");
    let path = file.path().to_str().expect("it is text");
    let ran = run(root.path(), &["--sandbox=required", "--yes", "batch", path]);
    // The second command fails.
    assert_eq!(ran.status.code(), Some(1), "{}", String::from_utf8_lossy(&ran.stdout));
    assert!(!root.path().join("planted").exists());
    assert!(!root.path().join(".git").exists(), "nothing stands in for it any more");
}

#[test]
fn the_level_limits_writes() {
    if !Machine::new().is_whole() {
        return;
    }
    let root = tempfile::tempdir().expect("a folder");
    let touch =
        "touch a; touch ${TMPDIR:-/tmp}/tool-sdk-level-$$ && rm ${TMPDIR:-/tmp}/tool-sdk-level-$$";
    for (options, workspace, exit) in [
        (&["--sandbox=required", "--sandbox-level=read_only"][..], false, 1),
        (&["--sandbox=required"], true, 0),
        (&["--sandbox=required", "--sandbox-level=full"], true, 0),
        (&["--sandbox=off", "--sandbox-level=read_only"], true, 0),
        (&[], true, 0),
    ] {
        let (text, display) = confined(root.path(), options, touch);
        assert_eq!(display["exit_code"], exit, "{options:?}: {text}");
        let file = root.path().join("a");
        assert_eq!(file.exists(), workspace, "{options:?}: {text}");
        let _ = fs::remove_file(file);
    }
}

// SB2: every report says what the sandbox may have prevented.
#[test]
fn results_report_sandbox_restrictions() {
    if !Machine::new().is_whole() {
        return;
    }
    let root = tempfile::tempdir().expect("a folder");
    let (text, display) = confined(root.path(), &["--sandbox=best_effort"], "touch /etc/x");
    let remark = "The sandbox may have caused this: only the workspace";
    assert!(text.lines().last().is_some_and(|line| line.starts_with(remark)), "{text}");
    let expected = json!({
        "mode": "best_effort", "level": "workspace_write",
        "filesystem": "full", "network": "full", "processes": "full", "reasons": [UNPROTECTED],
        "planted": [],
    });
    assert_eq!(display["sandbox"], expected);

    let (text, _) = confined(root.path(), &["--sandbox=best_effort"], "false");
    assert!(!text.contains("sandbox"), "{text}");
    let (text, display) = confined(root.path(), &[], "true");
    assert_eq!(display["sandbox"], json!({"mode": "off"}));
    assert!(!text.contains("Sandbox"), "{text}");
    let options = ["--sandbox=required", "--sandbox-level=full"];
    let (text, display) = confined(root.path(), &options, "true");
    assert!(text.contains("Sandbox: required, full: nothing is confined\n"), "{text}");
    assert_eq!(display["sandbox"], json!({"mode": "required", "level": "full"}));
}

// SB4: the network is unreachable unless the configuration allows it.
#[test]
fn the_network_is_reachable_only_when_allowed() {
    if !Machine::new().is_whole() {
        return;
    }
    let root = tempfile::tempdir().expect("a folder");
    let listener = TcpListener::bind("127.0.0.1:0").expect("it listens");
    let port = listener.local_addr().expect("it has one").port();
    let config = tempfile::NamedTempFile::new().expect("a file");
    let path = config.path().to_str().expect("it is text");
    for (network, exit) in [("false", 1), ("true", 0)] {
        let text = format!("sandbox = \"required\"\nsandbox_network = {network}\n");
        fs::write(config.path(), text).expect("it is written");
        let line = format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'");
        let (text, display) = confined(root.path(), &["--config", path], &line);
        assert_eq!(display["exit_code"], exit, "{network}: {text}");
        assert_eq!(text.contains("`--sandbox-network`"), exit != 0, "{network}: {text}");
    }
    let line = format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'");
    let options = ["--sandbox=required", "--sandbox-network"];
    let (text, display) = confined(root.path(), &options, &line);
    assert_eq!(display["exit_code"], 0, "{text}");
}

// SB5: neither the environment of the child nor a second helper weakens the sandbox.
#[test]
fn a_model_cannot_disable_the_sandbox() {
    if !Machine::new().is_whole() {
        return;
    }
    let root = tempfile::tempdir().expect("a folder");
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let file = outside.path().join("x");
    let order = r#"{"level":"full","network":true,"unix_sockets":true,"writable":["/"],"protected":{"near":[],"deep":[]},"floor":{"filesystem":"none","network":"none","processes":"none","reasons":[]}}"#;
    for line in [
        format!("TOOL_SDK_SANDBOX=off touch {}", file.display()),
        format!("{PROGRAM} __tool-sdk-sandbox '{order}' touch {}", file.display()),
        format!("{PROGRAM} --sandbox off --yes call exec_command --cmd 'touch {}'", file.display()),
    ] {
        confined(root.path(), &["--sandbox=required"], &line);
        assert!(!file.exists(), "{line}");
    }
    let arguments =
        json!({"cmd": format!("touch {}", file.display()), "env": ["TOOL_SDK_SANDBOX=off"]});
    run(
        root.path(),
        &["--sandbox=required", "--yes", "call", "exec_command", &arguments.to_string()],
    );
    assert!(!file.exists());
}

// SB2, fault 16: when a feature is missing, as inside another sandbox, `required` rejects the
// command, `best_effort` runs it and says what is missing, and `doctor` reports it.
#[test]
fn required_fails_on_a_partial_sandbox() {
    if !Machine::new().is_whole() {
        return;
    }
    let root = tempfile::tempdir().expect("a folder");
    let inner = |command: &str| format!("{PROGRAM} --state-dir state --sandbox {command}");
    let (text, _) = confined(
        root.path(),
        &["--sandbox=required"],
        &inner("required --yes call exec_command --cmd 'touch ran'"),
    );
    assert!(text.contains("the sandbox cannot enforce the required policy"), "{text}");
    assert!(!root.path().join("ran").exists());

    let (text, display) =
        confined(root.path(), &["--sandbox=required"], &inner("required doctor --json"));
    assert_eq!(display["exit_code"], 1, "{text}");
    assert!(text.contains(r#""filesystem": "partial""#), "{text}");

    let line = inner("best_effort --yes call exec_command --json --cmd 'touch ran'");
    let (text, _) = confined(root.path(), &["--sandbox=required"], &line);
    assert!(
        text.contains(r#""filesystem":"partial""#) && text.contains("no mount namespace"),
        "{text}"
    );
    assert!(root.path().join("ran").exists(), "{text}");
}

// Plan mode changes nothing, at any sandbox level.
#[test]
fn plan_mode_is_read_only() {
    if !Machine::new().is_whole() {
        return;
    }
    let root = tempfile::tempdir().expect("a folder");
    for mode in ["plan", "explore"] {
        let mode = format!("--mode={mode}");
        let (_, display) = confined(root.path(), &["--sandbox=required", &mode], "ls");
        assert_eq!(display["sandbox"]["level"], "read_only", "{mode}");
    }
}

// PR1: the approval prompt says how far the command is confined. A host with its own `main` names
// the program as the helper.
#[tokio::test]
async fn a_host_can_set_the_helper() {
    if !Machine::new().is_whole() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let registry =
        Registry::builder().add(tools![exec_command, write_stdin]).build().expect("no conflict");
    let approver = Arc::new(ScriptedApprover::always_respond(ApprovalResponse::Once));
    let pipeline =
        Pipeline::new(registry).mode(Mode::Auto).shared_approver(Arc::clone(&approver) as _);
    let policy = SandboxPolicy::new(SandboxMode::Required, SandboxLevel::WorkspaceWrite)
        .with_helper(PROGRAM);
    let session = Session::new("test")
        .with_service(Workspace::open([folder.path()]).expect("it is there"))
        .with_service(policy);
    let call = |arguments: Value| {
        pipeline.call(&session, Call::new("exec_command", arguments.to_string()))
    };

    let outcome = call(json!({"cmd": "mkdir -p .git/hooks; touch made"})).await;
    assert!(outcome.text().contains("exited with code 0"), "{}", outcome.text());
    assert!(folder.path().join("made").exists() && !folder.path().join(".git/hooks").exists());

    let asked = approver.requests();
    let preview = asked[0].preview.as_ref().expect("there is one");
    let status = "filesystem full, network full, processes full";
    assert_eq!(preview["sandbox"], format!("required, workspace_write: {status} ({UNPROTECTED})"));
    drop(session);
}

// CH1: a command cannot read a variable from its host that it does not have itself.
#[test]
fn a_command_cannot_read_the_secrets_of_its_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(folder.path(), all).expect("it is ours");
    // With full access, all files are readable.
    let reads = r#"id -u; cat "/proc/$PPID/environ" | tr '\0' '\n'; echo end"#;
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", PROGRAM, "--state-dir"])
        .arg(folder.path().join("state"))
        .arg("--root")
        .arg(folder.path())
        .args(["--yes", "call", "exec_command", "--cmd", reads])
        .env("HOME", folder.path())
        .env("XDG_CONFIG_HOME", folder.path())
        .env("PLANTED_SECRET", "canary")
        .stdin(Stdio::null())
        .output();
    let told = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let Some(told) = told.ok().filter(|told| told.contains("65534\n")) else {
        println!("sandbox tests: 0 run, 1 skipped (nobody else can be had here)");
        return;
    };
    assert!(told.contains("Permission denied") && told.contains("end"), "{told}");
    assert!(!told.contains("canary"), "{told}");
}
