//! Tests with real programs that misbehave.
//!
//! A pipe that a process tree holds open reaches end of file when its last process exits, so no
//! test measures time.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::process::Command as StdCommand;

use tokio::task::spawn_blocking;

use super::*;

/// A timeout that only a hanging test reaches.
const HANGS: Duration = Duration::from_secs(60);

async fn shell(line: &str) -> CommandOutput {
    run(Command::shell(line).timeout(HANGS)).await.unwrap()
}

#[tokio::test]
async fn an_exit_says_how_it_came() {
    let cases = [
        ("true", ExitOutcome::Code(0)),
        ("exit 2", ExitOutcome::Code(2)),
        ("no-such-program-anywhere", ExitOutcome::Code(127)),
        ("kill -9 $$", ExitOutcome::Signal(9)),
        ("kill -TERM $$", ExitOutcome::Signal(15)),
    ];
    for (line, expected) in cases {
        assert_eq!(shell(line).await.exit, expected, "{line}");
    }
}

#[tokio::test]
async fn what_cannot_be_started_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    fs::write(&plain, "#!/bin/sh\n").unwrap();
    let none: [&str; 0] = [];
    for run_it in [
        Command::new(folder.path().join("missing"), none),
        Command::new(&plain, none),
        Command::shell("true").current_dir(folder.path().join("missing")),
    ] {
        assert!(matches!(run(run_it).await, Err(RunError::Spawn { .. })));
    }
}

#[tokio::test]
async fn a_child_need_not_read_what_it_is_told() {
    for line in ["true", "exec 0<&-; echo on", "head -c 1 >/dev/null"] {
        let finished = run(Command::shell(line).stdin(vec![b'x'; 1 << 20]).timeout(HANGS)).await;
        assert_eq!(finished.unwrap().exit, ExitOutcome::Code(0), "{line}");
    }
    let echoed =
        run(Command::new("cat", ["-"]).stdin(vec![b'x'; 1 << 20]).output_limit(16)).await.unwrap();
    assert_eq!(echoed.stdout.omitted_bytes, (1 << 20) - 16);
}

// CH8, fault 7: a flood of output is drained and counted, on both pipes at once.
#[tokio::test]
async fn a_flood_is_counted_and_not_kept() {
    let flood = shell("yes | head -c 200000000; yes | head -c 100000000 >&2").await;
    assert_eq!(flood.exit, ExitOutcome::Code(0));
    for (captured, total) in [(&flood.stdout, 200_000_000), (&flood.stderr, 100_000_000)] {
        let kept = captured.head.len() + captured.tail.len();
        assert_eq!(kept, 64 << 10);
        assert_eq!(kept as u64 + captured.omitted_bytes, total);
        assert!(captured.head.starts_with(b"y\ny\n") && captured.tail.ends_with(b"y\n"));
    }
}

// CH7: descendants may hold the pipes open after the exit.
#[tokio::test]
async fn a_daemon_that_holds_the_pipe_is_not_waited_for() {
    let finished = shell("sleep 300 & echo $!").await;
    assert_eq!((finished.exit, finished.output_left_open), (ExitOutcome::Code(0), true));

    let pid =
        finished.stdout.to_text().trim().parse().ok().and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(pid.unwrap(), rustix::process::Signal::KILL).unwrap();
}

// CH6: the whole group is killed, also when it ignores SIGTERM.
#[tokio::test]
async fn the_time_limit_ends_the_grandchildren_too() {
    for line in [
        "sleep 300 & echo started; wait",
        "trap '' TERM; sleep 300 & echo started; wait; sleep 300",
    ] {
        let mut limit = Duration::from_millis(500);
        loop {
            let limited = Command::shell(line).timeout(limit);
            let finished = run(limited.grace_period(Duration::from_millis(50))).await.unwrap();
            assert_eq!((finished.exit, finished.output_left_open), (ExitOutcome::TimedOut, false));
            if finished.stdout.to_text() == "started\n" {
                break;
            }
            // The shell had not come so far when its time was up.
            limit *= 2;
            assert!(limit < HANGS, "{line}: {}", finished.stdout.to_text());
        }
    }
}

/// A named pipe that a process tree holds open until its last process exits.
fn named_pipe(folder: &Path) -> PathBuf {
    let pipe = folder.join("pipe");
    assert!(StdCommand::new("mkfifo").arg(&pipe).status().unwrap().success());
    pipe
}

fn holding(pipe: &Path, stubborn: bool) -> Command {
    let trap = if stubborn { "trap '' TERM; " } else { "" };
    Command::shell(format!("{trap}exec 3>'{}'; sleep 300 & sleep 300", pipe.display()))
        .timeout(HANGS)
}

#[tokio::test]
async fn dropping_the_future_ends_the_group() {
    for stubborn in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let pipe = named_pipe(folder.path());
        let running = run(holding(&pipe, stubborn));
        let mut held = tokio::select! {
            finished = running => panic!("it ended by itself: {finished:?}"),
            opened = spawn_blocking(move || File::open(pipe)) => opened.unwrap().unwrap(),
        };
        let ended = spawn_blocking(move || held.read_to_end(&mut Vec::new()));
        timeout(HANGS, ended).await.expect("the tree closes the pipe").unwrap().unwrap();
    }
}

#[test]
fn nothing_outlives_the_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = named_pipe(folder.path());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.spawn(run(holding(&pipe, true)));
    let mut held = File::open(pipe).unwrap();
    drop(runtime);
    held.read_to_end(&mut Vec::new()).unwrap();
}

// CH1: the test runs itself with a secret, and its child must not see it.
#[tokio::test]
async fn a_secret_of_the_parent_does_not_reach_the_child() {
    const CANARY: &str = "TOOL_SDK_CANARY";
    if std::env::var_os(CANARY).is_some() {
        let finished = shell("env").await;
        let seen = finished.stdout.to_text();
        assert!(seen.contains("PATH="), "{seen}");
        assert!(!seen.contains("feathers"), "{seen}");
        return;
    }
    let name = "tests::a_secret_of_the_parent_does_not_reach_the_child";
    let again = StdCommand::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(CANARY, "feathers")
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&again.stdout);
    assert!(again.status.success() && report.contains("1 passed"), "{report}");
}

// CH4
#[cfg(target_os = "linux")]
#[tokio::test]
async fn open_files_are_not_handed_down() {
    let open = tempfile::tempfile().unwrap();
    let _handed_down = rustix::io::dup(&open).unwrap();
    for stdin in ["", "x"] {
        let listing = Command::new("ls", ["/proc/self/fd"]).stdin(stdin);
        assert_eq!(run(listing).await.unwrap().stdout.to_text(), "0\n1\n2\n3\n");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn programs_are_found_in_the_childs_own_path() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    for (name, text, mode) in [
        ("plain", "#!/bin/sh\n", 0o644),
        ("tell", "#!/bin/sh\necho told $1\n", 0o755),
        ("unmarked", "echo unmarked $1\n", 0o755),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
        let file = folder.path().join(name);
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    }
    let path = format!("relative:{}:/usr/bin:/bin", folder.path().display());
    let told = |name: &str, folder: &Path| {
        let env = ChildEnv::default().with_var("PATH", &path);
        run(Command::new(name, ["it"]).env(env).current_dir(folder))
    };
    let root = Path::new("/");
    assert_eq!(told("tell", root).await.unwrap().stdout.to_text(), "told it\n");
    // A script without `#!` is run by the shell.
    assert_eq!(told("unmarked", root).await.unwrap().stdout.to_text(), "unmarked it\n");
    assert_eq!(told("./tell", folder.path()).await.unwrap().stdout.to_text(), "told it\n");
    for missing in ["plain", "./tell", "nothing", "", "te\0ll"] {
        assert!(matches!(told(missing, root).await, Err(RunError::Spawn { .. })), "{missing}");
    }
}

// SH8: a child starts with default signal actions and no blocked signals.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_signal_is_blocked_or_ignored() {
    let told = shell("grep -E '^Sig(Blk|Ign)' /proc/self/status").await.stdout.to_text();
    let sets: Vec<_> = told.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(sets, ["0000000000000000"; 2], "{told}");
}

/// Waits until a file contains a line.
#[cfg(target_os = "linux")]
fn said(file: &Path) -> String {
    for _ in 0..1200 {
        let text = fs::read_to_string(file).unwrap_or_default();
        if text.ends_with('\n') {
            return text;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("it never said anything");
}

/// Starts a process that drops its environment, session and parents.
#[cfg(target_os = "linux")]
const HIDE: &str = "(env -i PATH=\"$PATH\" setsid sleep 300 &)";

// fault 15: the test runs itself as a host, which is killed; all its children are killed.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn nothing_outlives_a_host_that_is_killed() {
    const FOLDER: &str = "TOOL_SDK_TEST_FOLDER";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let pipe = Path::new(&folder).join("pipe");
        // A child, one in a session of its own, one without the environment, one whose parents
        // have exited, and one to which all of that applies.
        let line = format!(
            "trap '' TERM HUP; exec 3>'{}'; sleep 300 & setsid sleep 300 & \
             env -i /bin/sleep 300 & (setsid sleep 300 &); {}; echo ready > '{}'; sleep 300",
            pipe.display(),
            if has_rlimit_tags() { HIDE } else { "true" },
            Path::new(&folder).join("ready").display(),
        );
        let kept = BackgroundProcesses::default();
        // A child that clears its environment at once and leaves a child of its own behind.
        let bare = format!("exec 3>'{}'; (sleep 300 &); sleep 300", pipe.display());
        let spawn = BackgroundCommand::new("env", ["-i", "PATH=/usr/bin:/bin", "sh", "-c", &bare]);
        kept.spawn(&spawn).unwrap();
        let spawn = BackgroundCommand::new("sh", ["-c", &line]);
        kept.spawn(&spawn.terminal(std::env::var_os("TERMINAL").is_some())).unwrap();
        let _ = run(Command::new("sleep", ["300"]).timeout(HANGS * 10)).await;
        return;
    }
    for terminal in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let pipe = named_pipe(folder.path());
        let name = "tests::nothing_outlives_a_host_that_is_killed";
        let mut host = StdCommand::new(std::env::current_exe().unwrap());
        host.args(["--exact", name]).env(FOLDER, folder.path());
        if terminal {
            host.env("TERMINAL", "1");
        }
        let mut host = host.stdout(std::process::Stdio::null()).spawn().unwrap();
        let opened = spawn_blocking(move || File::open(pipe));
        let mut held = timeout(HANGS, opened).await.unwrap().unwrap().unwrap();
        said(&folder.path().join("ready"));
        host.kill().unwrap();
        host.wait().unwrap();
        let ended = spawn_blocking(move || held.read_to_end(&mut Vec::new()));
        timeout(HANGS, ended).await.expect("the tree closes the pipe").unwrap().unwrap();
    }
}
