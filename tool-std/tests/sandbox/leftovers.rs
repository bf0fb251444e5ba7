//! What sandboxed programs leave behind: processes, files, text on terminals.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command as StdCommand, Stdio};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;
use tool_sdk::mcp::{ServerCommand, ServerConfig, ServerManager};
use tool_sdk::process::sandbox::{EnforcementLevel, SandboxLevel, SandboxMode, SandboxPolicy};
use tool_sdk::process::{self, BackgroundCommand, BackgroundProcesses, Command, ExitOutcome};
use tool_sdk::{Action, Call, Pipeline, Registry, Rule, Session};

use super::{Machine, PROGRAM, confined};

/// A time limit that means failure.
const HANGS: Duration = Duration::from_secs(60);

/// The time that a sandboxed program has for its clean-up.
const GRACE: Duration = Duration::from_millis(200);

/// Ways to escape from parent, session and environment; all of them hold descriptor 3.
const ORPHANS: &[&str] = &[
    "env -i PATH=$PATH setsid -f sh -c 'while :; do sleep 1; done'",
    "env -i PATH=$PATH setsid -f setsid -f sh -c 'trap \"\" TERM HUP INT; while :; do sleep 1; done'",
    "(env -i PATH=$PATH setsid sh -c '(sleep 300 &); (setsid sleep 300 &)' &)",
];

fn policy(root: &Path) -> SandboxPolicy {
    SandboxPolicy::new(SandboxMode::Required, SandboxLevel::WorkspaceWrite)
        .with_helper(PROGRAM)
        .with_writable(root)
}

/// A folder with a pipe that a process tree holds open until its last process ends.
struct Held {
    folder: tempfile::TempDir,
    root: PathBuf,
    both: File,
}

impl Held {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("it is there");
        let pipe = root.join("pipe");
        assert!(StdCommand::new("mkfifo").arg(&pipe).status().expect("it runs").success());
        // Both ends are opened at once, so that neither open blocks.
        let both = File::options().read(true).write(true).open(pipe).expect("it opens");
        Self { folder, root, both }
    }

    /// Starts orphans that hold the pipe.
    fn script(&self, orphans: usize) -> String {
        let pipe = self.root.join("pipe");
        let all: Vec<&str> = ORPHANS.iter().copied().cycle().take(orphans).collect();
        format!("exec 3>'{}' </dev/null >/dev/null 2>&1; {}", pipe.display(), all.join("; "))
    }

    /// Waits until no process holds the pipe.
    async fn let_go(self) {
        let mut end = File::open(self.root.join("pipe")).expect("it opens");
        drop(self.both);
        let ended = tokio::task::spawn_blocking(move || end.read_to_end(&mut Vec::new()));
        let ended = tokio::time::timeout(HANGS, ended).await.expect("nobody holds the pipe");
        ended.expect("no panic").expect("it can be read");
        drop(self.folder);
    }
}

// fault 6, CH6: no process of a sandboxed program outlives the call, whether the call ends by
// itself, by its time limit or by cancellation.
#[tokio::test(flavor = "multi_thread")]
async fn no_orphan_outlives_its_call() {
    if !Machine::new().is_whole() {
        return;
    }
    let soon = Duration::from_secs(5);
    for (rest, exit, limit) in
        [("exit 3", ExitOutcome::Code(3), HANGS), ("sleep 300", ExitOutcome::TimedOut, soon)]
    {
        let held = Held::new();
        let script = format!("{}; {rest}", held.script(50));
        let limited = Command::new("sh", ["-c", &script]).timeout(limit).grace_period(GRACE);
        let started = Instant::now();
        let finished = process::run(limited.sandbox(policy(&held.root))).await.expect("it starts");
        assert_eq!(finished.exit, exit, "{}", finished.stderr.to_text());
        assert!(!held.root.join(".git").exists(), "what stood in for it is gone");
        held.let_go().await;
        println!("50 orphans after {exit:?}: gone {:?} after the start", started.elapsed());
    }

    let held = Held::new();
    let script = format!("{}; touch ready; sleep 300", held.script(50));
    let confined = Command::new("sh", ["-c", &script]).current_dir(&held.root).grace_period(GRACE);
    let call = tokio::spawn(process::run(confined.sandbox(policy(&held.root))));
    while !held.root.join("ready").exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    call.abort();
    assert!(call.await.is_err());
    held.let_go().await;
}

// fault 6: the same for background commands.
#[tokio::test(flavor = "multi_thread")]
async fn no_orphan_outlives_a_background_command() {
    if !Machine::new().is_whole() {
        return;
    }
    for terminal in [false, true] {
        let held = Held::new();
        let processes = BackgroundProcesses::default();
        let script = held.script(5);
        let ends =
            BackgroundCommand::new("sh", ["-c", &script]).terminal(terminal).grace_period(GRACE);
        let ended = processes.spawn(&ends.sandbox(policy(&held.root))).expect("it starts");
        assert_eq!(ended.read_output(HANGS, |_| {}).await.exit, Some(ExitOutcome::Code(0)));
        held.let_go().await;

        let held = Held::new();
        let script = format!("{}; sleep 300", held.script(5));
        let stays =
            BackgroundCommand::new("sh", ["-c", &script]).terminal(terminal).grace_period(GRACE);
        let stays = processes.spawn(&stays.sandbox(policy(&held.root))).expect("it starts");
        stays.read_output(GRACE, |_| {}).await;
        stays.kill().await;
        held.let_go().await;
    }
}

// F59: a sandboxed program is ended like any other.
#[tokio::test(flavor = "multi_thread")]
async fn reports_the_exit_of_a_sandboxed_program() {
    if !Machine::new().is_whole() {
        return;
    }
    let root = tempfile::tempdir().expect("a folder");
    for (script, expected) in [
        ("exit 7", ExitOutcome::Code(7)),
        ("kill -TERM $$", ExitOutcome::Signal(15)),
        ("kill -KILL $$", ExitOutcome::Signal(9)),
        ("ulimit -c 0; kill -SEGV $$", ExitOutcome::Signal(11)),
        ("exit 137", ExitOutcome::Code(137)),
    ] {
        let run = Command::new("bash", ["-c", script]).sandbox(policy(root.path()));
        assert_eq!(process::run(run).await.expect("it starts").exit, expected, "{script}");
    }
    let processes = BackgroundProcesses::default();
    let words = ["--default-signal=INT", "sh", "-c", "echo ready; exec sleep 300"];
    let spawn = BackgroundCommand::new("env", words).sandbox(policy(root.path()));
    let sleeps = processes.spawn(&spawn).expect("it starts");
    while sleeps.read_output(Duration::from_millis(20), |_| {}).await.output.to_text().is_empty() {}
    sleeps.interrupt();
    assert_eq!(sleeps.read_output(HANGS, |_| {}).await.exit, Some(ExitOutcome::Signal(2)));
}

// CH5: a sandboxed program can only open its own terminal and new ones.
#[tokio::test(flavor = "multi_thread")]
async fn no_other_terminal_can_be_written_to() {
    if !Machine::new().is_whole() {
        return;
    }
    let other = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there is one");
    grantpt(&other).expect("it is ours");
    unlockpt(&other).expect("it is ours");
    let name = ptsname(&other, Vec::new()).expect("it has a name");
    let name = name.to_str().expect("it is text");
    let root = tempfile::tempdir().expect("a folder");
    let script = format!(
        "echo x > {name} && echo reached; echo own > /dev/tty; \
         script -qc 'test -t 0 && echo new' /dev/null </dev/null"
    );
    let spawn =
        BackgroundCommand::new("bash", ["-c", &script]).terminal(true).sandbox(policy(root.path()));
    let processes = BackgroundProcesses::default();
    let process = processes.spawn(&spawn).expect("it starts");
    let text = process.read_output(HANGS, |_| {}).await.output.to_text();
    assert!(!text.contains("reached") && text.contains("own"), "{text}");
    assert!(text.contains("new") || text.contains("not found"), "{text}");
}

// SB3: existing protected files cannot be changed, also in subfolders; new ones are reported.
#[test]
fn protected_files_cannot_be_changed_and_new_ones_are_reported() {
    if !Machine::new().is_whole() {
        return;
    }
    let root = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(root.path().join("sub/.git/hooks")).expect("it is made");
    fs::create_dir_all(root.path().join("sub/deeper/.vscode")).expect("it is made");
    let required = ["--sandbox", "required"];
    for line in [
        "echo x > sub/.git/hooks/pre-commit",
        "touch sub/deeper/.vscode/tasks.json",
        "rm -r sub/.git",
        "mv sub/.git sub/gone",
    ] {
        let (text, display) = confined(root.path(), &required, line);
        assert_ne!(display["exit_code"], 0, "{line}: {text}");
        assert_eq!(display["sandbox"]["planted"], json!([]), "{line}");
    }
    // Other work in the folder is possible.
    let (text, display) = confined(root.path(), &required, "touch a && mv a sub/b && mv sub/b c");
    assert_eq!(display["exit_code"], 0, "{text}");

    for (line, name) in [
        ("touch .envrc", ".envrc"),
        ("mkdir .vscode && touch .vscode/tasks.json", ".vscode"),
        ("mkdir -p sub/new/.git/hooks", "sub/new/.git"),
        ("mv sub moved", "moved/.git"),
    ] {
        let (text, display) = confined(root.path(), &required, line);
        let told = display["sandbox"]["planted"].as_array().expect("a list");
        assert!(told.contains(&json!(name)), "{line}: {told:?} {text}");
        assert!(text.contains("New files that other programs run or obey later: `"), "{text}");
    }
    let (text, display) = confined(root.path(), &required, "ls -A");
    assert!(display["sandbox"]["planted"] == json!([]) && !text.contains("new here"), "{text}");
}

// SB2, MC5: an external server is sandboxed as well, and its leftovers end with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_stdio_server_is_sandboxed() {
    if !Machine::new().is_whole() {
        return;
    }
    let held = Held::new();
    // Not a folder for temporary files of the sandbox.
    let outside = tempfile::tempdir_in("/var/tmp").expect("a folder");
    let script = format!(
        "{}; exec '{PROGRAM}' --root '{}' --state-dir '{}/state' --allow exec_command --allow edit --allow external_directory serve mcp",
        held.script(5).replace("</dev/null >/dev/null 2>&1", ""),
        held.root.display(),
        held.root.display(),
    );
    let allow = |rule| Rule::parse(Action::Allow, rule).expect("a rule");
    let pipeline = Pipeline::new(Registry::default())
        .rules([allow("mcp(held/*)"), allow("mcp_definition(held/*)")]);
    let upstreams = ServerManager::for_pipeline(&pipeline);
    let launch = ServerCommand::new("bash", ["-c", &script]).sandbox(policy(&held.root));
    upstreams.add(ServerConfig::new("held", launch).expect("a name")).expect("it is new");
    upstreams.connect("held").await.expect("it answers");

    let file = outside.path().join("reached");
    let line = format!("touch {}; echo x > inside; echo done", file.display());
    let arguments = json!({ "cmd": line }).to_string();
    let call = Call::new("mcp__held__exec_command", arguments);
    let outcome = pipeline.call(&Session::default(), call).await;
    let text = outcome.text();
    assert!(text.contains("Read-only file system") && text.contains("done"), "{text}");
    assert!(held.root.join("inside").exists() && !file.exists());
    upstreams.close();
    held.let_go().await;

    // Where the policy cannot be enforced, nothing is started.
    let policy = SandboxPolicy::new(SandboxMode::Required, SandboxLevel::WorkspaceWrite)
        .with_helper("/bin/true");
    assert_eq!(policy.status().processes, EnforcementLevel::None);
    let launch = ServerCommand::new("touch", [file.display().to_string()]).sandbox(policy);
    upstreams.add(ServerConfig::new("refused", launch).expect("a name")).expect("it is new");
    assert!(upstreams.connect("refused").await.is_err());
    assert!(!file.exists());
}

// SB2: without namespaces `required` rejects the command, and says what is missing.
#[test]
fn required_fails_without_namespaces() {
    if !Machine::new().is_whole() {
        return;
    }
    let root = tempfile::tempdir().expect("a folder");
    let limited = |sandbox: &str, file: &Path| {
        let script = "echo 0 > /proc/sys/user/max_pid_namespaces && exec \"$@\"";
        StdCommand::new("unshare")
            .args(["-Ur", "sh", "-c", script, "sh", PROGRAM, "--root"])
            .arg(root.path())
            .args(["--sandbox", sandbox, "--state-dir", env!("CARGO_TARGET_TMPDIR"), "--yes"])
            .args(["call", "exec_command", "--json", "--cmd"])
            .arg(format!("touch {}", file.display()))
            .stdin(Stdio::null())
            .output()
            .expect("it runs")
    };
    let output = limited("best_effort", Path::new("ran"));
    let text = String::from_utf8_lossy(&output.stdout);
    if !text.contains("no PID namespace") {
        println!("sandbox tests: 0 run, 1 skipped (namespaces cannot be limited here: {text})");
        return;
    }
    assert!(text.contains(r#""filesystem":"full""#), "{text}");
    assert!(text.contains(r#""processes":"partial""#) && root.path().join("ran").exists());
    let output = limited("required", Path::new("refused"));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("no PID namespace") && !root.path().join("refused").exists());
}
