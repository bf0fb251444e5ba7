//! A kept shell, and scripts that misbehave.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::Runtime;

use super::super::super::RunError;
use super::super::{Processes, Spawn};
use super::*;

/// Long enough to be a failure.
const HANGS: Duration = Duration::from_secs(30);

fn script(text: &str) -> Spawn {
    Spawn::exec("bash", ["--noprofile", "--norc", "-c", text]).folder("/").over_kept_shell(text)
}

/// Tells which shell runs it.
fn which() -> Spawn {
    script("true; sh -c 'echo $PPID'; true")
}

async fn end_of(processes: &Processes, spawn: &Spawn) -> (Exit, String) {
    let process = processes.start(spawn).unwrap();
    let look = process.look(HANGS, |_| {}).await;
    processes.forget(process.id());
    (look.exit.expect("it ends"), look.output.text())
}

async fn number(processes: &Processes) -> i32 {
    let (exit, number) = end_of(processes, &which()).await;
    assert_eq!(exit, Exit::Code(0));
    number.trim().parse().unwrap()
}

fn is_there(number: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{number}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}

/// Waits until a process has ended.
async fn gone(number: i32) {
    let ended = async {
        while is_there(number) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(HANGS, ended).await.expect("it ends");
}

/// A pipe that something holds open until it ends.
struct Held(tempfile::TempDir);

impl Held {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("pipe")
    }

    /// A part of a script that leaves something behind, which writes into the pipe, and nowhere
    /// else unless `also` says so.
    fn left(&self, also: &str) -> String {
        let path = self.path();
        format!(
            "sh -c 'exec 3>{}; setsid -f sh -c \"echo up >&3; exec sleep 300\" {also}'",
            path.display()
        )
    }

    async fn read(&self) -> File {
        let path = self.path();
        let opened = tokio::task::spawn_blocking(move || {
            let mut pipe = File::open(path)?;
            pipe.read_exact(&mut [0; 3]).map(|()| pipe)
        });
        timeout(HANGS, opened).await.expect("somebody writes").unwrap().unwrap()
    }
}

async fn let_go(mut held: File) {
    let ended = tokio::task::spawn_blocking(move || held.read_to_end(&mut Vec::new()));
    timeout(HANGS, ended).await.expect("nobody holds the pipe").unwrap().unwrap();
}

#[tokio::test]
async fn one_shell_runs_one_script_after_another() {
    let processes = Processes::default();
    let first = number(&processes).await;
    for (text, exit, said) in [
        ("echo a; false", 1, "a\n"),
        ("pwd", 0, "/\n"),
        ("none-of-this-name", 127, "bash: line 1: none-of-this-name: command not found\n"),
        ("echo 'a\nb'; sh -c 'exit 255'", 255, "a\nb\n"),
        ("-x; echo ü", 0, "bash: line 1: -x: command not found\nü\n"),
    ] {
        let end = end_of(&processes, &script(text)).await;
        assert_eq!(end, (Exit::Code(exit), said.to_owned()), "{text}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let (_, said) = end_of(&processes, &script("pwd; sh -c 'echo [$OLDPWD]'").folder(&path)).await;
    assert_eq!(said, format!("{}\n[]\n", path.display()));
    assert_eq!(number(&processes).await, first);
    assert!(processes.list().is_empty());
}

#[tokio::test]
async fn only_what_is_meant_for_it_gets_there() {
    let processes = Processes::default();
    let first = number(&processes).await;
    let without_folder = Spawn::exec("sh", ["-c", "echo $$"]).over_kept_shell("exit 1");
    for other in [without_folder, which().terminal(true), which().folder("relative")] {
        let ended = processes.start(&other).map(|process| process.id());
        assert_eq!(is_for_kept_shell(&other), false, "{ended:?}");
    }
    assert!(!is_for_kept_shell(&script("a\0b")));
    assert!(!is_for_kept_shell(&Spawn::exec("bash", [""; 0]).folder("/")));
    assert_eq!(number(&processes).await, first);
    // Another environment and other limits are other shells.
    let env = ChildEnv::inherited().with("OTHER", "1");
    let (_, other) = end_of(&processes, &which().env(env)).await;
    assert_ne!(other.trim(), first.to_string());
    let limits = Limits::default().open_files(99);
    let (_, limit) = end_of(&processes, &script("sh -c 'ulimit -n'; true").limits(limits)).await;
    assert_eq!(limit, "99\n");
}

// CH7: what lives on is not waited for, not ended by a later call, and ended with the store.
#[tokio::test(flavor = "multi_thread")]
async fn what_lives_on_has_its_shell_let_go() {
    let processes = Processes::default();
    for also in [">/dev/null 2>&1", ""] {
        let first = number(&processes).await;
        let held = Held::new();
        let text = format!("echo begun; {}", held.left(also));
        let spawn = script(&text);
        let ended = end_of(&processes, &spawn);
        let (ended, pipe) = tokio::join!(ended, held.read());
        assert_eq!(ended, (Exit::Code(0), "begun\n".to_owned()));
        assert_ne!(number(&processes).await, first);
        gone(first).await;
        let endless = processes.start(&script("sleep 300; true")).unwrap();
        assert_eq!(endless.kill().await, Exit::Signal(15));
        assert_eq!(number_of_writers(&pipe), 1, "{also}");
        processes.end_all();
        let_go(pipe).await;
    }
}

/// Whether somebody could still write.
fn number_of_writers(pipe: &File) -> usize {
    use rustix::event::{PollFd, PollFlags, poll};
    let mut poll_fd = [PollFd::new(pipe, PollFlags::IN)];
    poll(&mut poll_fd, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap();
    usize::from(!poll_fd[0].revents().contains(PollFlags::HUP))
}

// CH6
#[tokio::test]
async fn a_script_that_is_ended_takes_its_shell_with_it() {
    let processes = Processes::default();
    let first = number(&processes).await;
    let endless = processes.start(&script("echo up; sleep 300; true")).unwrap();
    assert_eq!(endless.kill().await, Exit::Signal(15));
    gone(first).await;
    let second = number(&processes).await;
    assert_ne!(second, first);
    let dropped = processes.start(&script("sleep 300; true")).unwrap();
    processes.forget(dropped.id());
    drop(dropped);
    gone(second).await;
    number(&processes).await;
}

#[tokio::test]
async fn a_script_may_end_its_shell() {
    let processes = Processes::default();
    for (signal, number) in [("KILL", 9), ("TERM", 15)] {
        let text = format!("echo a; sh -c 'kill -{signal} $PPID; sleep 300'; echo never");
        let ended = end_of(&processes, &script(&text)).await;
        assert_eq!(ended, (Exit::Signal(number), "a\n".to_owned()));
    }
    let idle = number(&processes).await;
    kill_process(Pid::from_raw(idle).unwrap(), Signal::KILL).unwrap();
    gone(idle).await;
    assert_ne!(number(&processes).await, idle);
}

// The end of a call is known: nothing that is done to it reaches the shell.
#[tokio::test]
async fn a_call_that_is_over_interrupts_nobody() {
    let processes = Processes::default();
    let first = number(&processes).await;
    let process = processes.start(&script("true; true")).unwrap();
    process.look(HANGS, |_| {}).await;
    assert_eq!(process.group_number(), None);
    process.interrupt();
    assert_eq!(process.kill().await, Exit::Code(0));
    assert_eq!(number(&processes).await, first);
}

#[tokio::test]
async fn folders_are_where_they_are_now() {
    let processes = Processes::default();
    let outer = tempfile::tempdir().unwrap();
    let path = outer.path().canonicalize().unwrap().join("folder");
    for name in ["one", "two"] {
        fs::create_dir_all(path.join(name)).unwrap();
        let (_, said) = end_of(&processes, &script("ls; pwd").folder(&path)).await;
        assert_eq!(said, format!("{name}\n{}\n", path.display()));
        fs::rename(&path, outer.path().join(name)).unwrap();
    }
    let failed = processes.start(&script("ls; pwd").folder(&path));
    assert!(matches!(failed, Err(RunError::Spawn { .. })), "{failed:?}");
    fs::write(&path, "").unwrap();
    assert!(processes.start(&script("ls; pwd").folder(&path)).is_err());
}

/// Another program in the place of a shell.
fn impostor(words: &[&str]) -> Shell {
    let mut program = Program::new(words[0], words[1..].iter().copied());
    program.folder = Some("/".into());
    let mark = Mark::fresh().unwrap();
    let (talk, ends) = Talk::new().unwrap();
    Shell {
        tree: Tree::start_on(&program, mark, &ends, Duration::from_millis(50)).unwrap(),
        talk,
        env: program.env,
        limits: program.limits,
        runtime: Handle::current().id(),
        idle_since: Instant::now(),
    }
}

#[tokio::test]
async fn a_shell_that_does_not_begin_is_replaced() {
    let talker = "read -r -N 48 x; printf 'this is none of what was asked for\\n' >&0; sleep 300";
    for words in [&["head", "-c", "1"][..], &["bash", "-c", talker], &["cat"]] {
        let processes = Processes::default();
        processes.0.shells.put(impostor(words));
        let text = "echo a; false\n";
        let ended = end_of(&processes, &script(text)).await;
        assert_eq!(ended, (Exit::Code(1), "a\n".to_owned()), "{words:?}");
        processes.0.shells.put(impostor(words));
        let endless = processes.start(&script("sleep 300; true")).unwrap();
        assert!(!matches!(endless.kill().await, Exit::Code(_)), "{words:?}");
    }
}

// Characters are counted as bash counts them, or nothing is run.
#[tokio::test]
async fn no_script_is_cut_short() {
    let processes = Processes::default();
    let text = "echo grün 日本 😀 end; true";
    for locale in ["C", "C.UTF-8", "POSIX"] {
        let env = ChildEnv::inherited().with("LC_ALL", locale);
        let ended = end_of(&processes, &script(text).env(env)).await;
        assert_eq!(ended, (Exit::Code(0), "grün 日本 😀 end\n".to_owned()), "{locale}");
    }
    let long = format!("echo '{}'; true", "ü".repeat(40_000));
    let (exit, said) = end_of(&processes, &script(&long)).await;
    assert_eq!((exit, said.chars().count()), (Exit::Code(0), 40_001));
}

// Nothing that a script starts can speak for the shell, or to it.
#[tokio::test]
async fn the_socket_is_for_nobody_else() {
    let processes = Processes::default();
    let first = number(&processes).await;
    let text = "sh -c 'for fd in /proc/$PPID/fd/*; do test -S $fd && echo x 0 >$fd && echo written; \
                done 2>/dev/null; exit 3'";
    let ended = end_of(&processes, &script(&format!("true; {text}"))).await;
    assert_eq!(ended, (Exit::Code(3), String::new()));
    let (_, open) = end_of(&processes, &script("true; ls /proc/self/fd")).await;
    assert_eq!(open, "0\n1\n2\n3\n");
    assert_eq!(number(&processes).await, first);
}

#[tokio::test]
async fn a_late_writer_does_not_reach_the_next_output() {
    let processes = Processes::default();
    let held = Held::new();
    let late = format!(
        "sh -c 'setsid -f sh -c \"read x <{}; echo late\"'; echo first",
        held.path().display()
    );
    assert_eq!(end_of(&processes, &script(&late)).await.1, "first\n");
    let next = processes.start(&script("echo second; sleep 300; true")).unwrap();
    let path = held.path();
    tokio::task::spawn_blocking(move || fs::write(path, "now\n")).await.unwrap().unwrap();
    let mut said = next.look(Duration::from_millis(300), |_| {}).await.output.text();
    next.kill().await;
    said += &next.look(HANGS, |_| {}).await.output.text();
    assert_eq!(said, "second\n");
}

// F5: wherever a call is dropped, the next one is as if it had never been.
#[tokio::test]
async fn a_call_that_is_dropped_anywhere_spoils_nothing() {
    let processes = Processes::default();
    for step in 0..60_u64 {
        let process = processes.start(&script("echo a; sh -c 'echo b'; echo c")).unwrap();
        let waited = Duration::from_micros(step * step * 3);
        let _ = timeout(waited, process.ended(|_| {})).await;
        processes.forget(process.id());
        drop(process);
        let next = end_of(&processes, &script("echo next; false")).await;
        assert_eq!(next, (Exit::Code(1), "next\n".to_owned()), "after {waited:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_have_a_shell_each() {
    let processes = Processes::default();
    for _ in 0..3 {
        let calls = (0..12).map(|number| {
            let text = format!("echo {number}; sleep 0.02; echo {number}");
            let processes = processes.clone();
            async move { (number, end_of(&processes, &script(&text)).await) }
        });
        for (number, (exit, said)) in futures_util::future::join_all(calls).await {
            assert_eq!((exit, said), (Exit::Code(0), format!("{number}\n{number}\n")));
        }
    }
    assert!(processes.0.shells.waiting() <= 2);
}

#[test]
fn another_runtime_has_another_shell() {
    let processes = Processes::default();
    let in_runtime = || Runtime::new().unwrap().block_on(number(&processes));
    assert_ne!(in_runtime(), in_runtime());
}

// F15
#[tokio::test]
async fn shells_that_wait_end_with_their_store_and_in_time() {
    let processes = Processes::default();
    let first = number(&processes).await;
    processes.0.shells.age();
    assert!(is_there(first) && !processes.0.shells.end_old());
    gone(first).await;
    let second = number(&processes).await;
    processes.end_all();
    gone(second).await;
    let third = number(&processes).await;
    drop(processes);
    gone(third).await;
}
