//! Real programs that misbehave.
//!
//! Whether something has ended is seen from a pipe that it held open: the pipe ends when
//! its last holder does, so nothing here measures time.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use tokio::task::spawn_blocking;

use super::*;

/// Long enough to be a failure.
const HANGS: Duration = Duration::from_secs(30);

async fn shell(line: &str) -> Finished {
    run(Run::shell(line).timeout(HANGS)).await.unwrap()
}

#[tokio::test]
async fn an_exit_says_how_it_came() {
    let cases = [
        ("true", Exit::Code(0)),
        ("exit 2", Exit::Code(2)),
        ("no-such-program-anywhere", Exit::Code(127)),
        ("kill -9 $$", Exit::Signal(9)),
        ("kill -TERM $$", Exit::Signal(15)),
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
        Run::exec(folder.path().join("missing"), none),
        Run::exec(&plain, none),
        Run::shell("true").folder(folder.path().join("missing")),
    ] {
        assert!(matches!(run(run_it).await, Err(RunError::Spawn { .. })));
    }
}

#[tokio::test]
async fn a_child_need_not_read_what_it_is_told() {
    for line in ["true", "exec 0<&-; echo on", "head -c 1 >/dev/null"] {
        let finished = run(Run::shell(line).stdin(vec![b'x'; 1 << 20]).timeout(HANGS)).await;
        assert_eq!(finished.unwrap().exit, Exit::Code(0), "{line}");
    }
    let echoed = run(Run::exec("cat", ["-"]).stdin(vec![b'x'; 1 << 20]).keep(16)).await.unwrap();
    assert_eq!(echoed.stdout.omitted, (1 << 20) - 16);
}

// CH8, F7: a flood is drained and counted, on both pipes at once.
#[tokio::test]
async fn a_flood_is_counted_and_not_kept() {
    let flood = shell("yes | head -c 200000000; yes | head -c 100000000 >&2").await;
    assert_eq!(flood.exit, Exit::Code(0));
    for (captured, total) in [(&flood.stdout, 200_000_000), (&flood.stderr, 100_000_000)] {
        let kept = captured.head.len() + captured.tail.len();
        assert_eq!(kept, 64 << 10);
        assert_eq!(kept as u64 + captured.omitted, total);
        assert!(captured.head.starts_with(b"y\ny\n") && captured.tail.ends_with(b"y\n"));
    }
}

// CH7: what a child leaves behind may hold its pipes open.
#[tokio::test]
async fn a_daemon_that_holds_the_pipe_is_not_waited_for() {
    let finished = shell("sleep 300 & echo $!").await;
    assert_eq!((finished.exit, finished.held), (Exit::Code(0), true));

    let pid = finished.stdout.text().trim().parse().ok().and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(pid.unwrap(), rustix::process::Signal::KILL).unwrap();
}

// CH6: the whole group goes, also where it does not want to.
#[tokio::test]
async fn the_time_limit_ends_the_grandchildren_too() {
    let short = |line: &str| {
        let limited = Run::shell(line).timeout(Duration::from_secs(1));
        run(limited.grace(Duration::from_millis(50)))
    };
    let (willing, stubborn) = tokio::join!(
        short("sleep 300 & echo started; wait"),
        short("trap '' TERM; sleep 300 & echo started; wait; sleep 300"),
    );
    for finished in [willing.unwrap(), stubborn.unwrap()] {
        assert_eq!((finished.exit, finished.held), (Exit::TimedOut, false));
        assert_eq!(finished.stdout.text(), "started\n");
    }
}

/// A pipe with a name, which a tree of processes holds open until its last one ends.
fn named_pipe(folder: &Path) -> PathBuf {
    let pipe = folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    pipe
}

fn holding(pipe: &Path, stubborn: bool) -> Run {
    let trap = if stubborn { "trap '' TERM; " } else { "" };
    Run::shell(format!("{trap}exec 3>'{}'; sleep 300 & sleep 300", pipe.display())).timeout(HANGS)
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
        timeout(HANGS, ended).await.expect("nobody holds the pipe").unwrap().unwrap();
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

// CH1, F17: the test runs itself with a secret, and its child must not see it.
#[tokio::test]
async fn a_secret_of_the_parent_does_not_reach_the_child() {
    const CANARY: &str = "TOOL_SDK_CANARY";
    if std::env::var_os(CANARY).is_some() {
        let finished = shell("env").await;
        let seen = finished.stdout.text();
        assert!(seen.contains("PATH="), "{seen}");
        assert!(!seen.contains("feathers"), "{seen}");
        return;
    }
    let name = "process::tests::a_secret_of_the_parent_does_not_reach_the_child";
    let again = Command::new(std::env::current_exe().unwrap())
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
    let secret = tempfile::NamedTempFile::new().unwrap();
    let listed = shell("ls -l /proc/self/fd").await.stdout.text();
    assert!(listed.contains(" 0 -> "), "{listed}");
    assert!(!listed.contains(secret.path().to_str().unwrap()), "{listed}");
}
