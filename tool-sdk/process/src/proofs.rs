//! Stress tests with programs that misbehave.
//!
//! Each test always runs in a small form, and in full with:
//!
//! ```text
//! cargo test -p tool-sdk --features process --release --lib process::proofs -- --ignored
//! ```

use std::fs::{self, File};
use std::future::{Future, poll_fn};
use std::io::Read as _;
use std::pin::pin;
use std::process::Command as StdCommand;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream;
use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::{
    BackgroundCommand, BackgroundProcesses, Command, ExitOutcome, RunError, has_rlimit_tags, run,
};

/// A timeout that only a hanging test reaches.
const HANGS: Duration = Duration::from_secs(60);

/// Process trees that are hard to kill; all their processes hold `$pipe` open.
const TREES: &[&str] = &[
    "trap '' TERM; sleep 300; sleep 300",
    "sleep 300 & sleep 300 & wait",
    "trap '' TERM HUP; setsid sleep 300 & sleep 300",
    "setsid setsid -f sleep 300; sleep 300",
    "(setsid sh -c 'trap \"\" TERM; (sleep 300 &); sleep 300' &); sleep 300",
    "env -i PATH=\"$PATH\" setsid sleep 300 & sleep 300",
];

/// The same, and a process drops its environment, session and parents: each with the program
/// that it needs.
const HIDDEN: &[(&str, &str)] = &[
    ("setsid", "(env -i PATH=\"$PATH\" setsid sleep 300 &); sleep 300"),
    ("setsid", "(env -i PATH=\"$PATH\" setsid sh -c '(setsid sleep 300 &)' &); sleep 300"),
    ("nohup", "(env -i PATH=\"$PATH\" nohup setsid sleep 300 >&3 2>&1 &); sleep 300"),
    (
        "perl",
        "env -i PATH=\"$PATH\" perl -MPOSIX -e 'fork and exit; POSIX::setsid(); fork and exit; \
         POSIX::close($_) for 0..255; open my $held, \">\", $ARGV[0]; sleep 300' \"$pipe\"; \
         sleep 300",
    ),
    (
        "python3",
        "env -i PATH=\"$PATH\" python3 -c 'import os, sys, time\n\
         if os.fork(): os._exit(0)\n\
         os.setsid()\n\
         if os.fork(): os._exit(0)\n\
         os.closerange(0, 256); os.open(sys.argv[1], os.O_WRONLY); time.sleep(300)' \"$pipe\"; \
         sleep 300",
    ),
];

/// Returns all trees that can be tested on this system.
fn trees() -> Vec<&'static str> {
    let mut trees = TREES.to_vec();
    if !has_rlimit_tags() {
        eprintln!("skipped hidden trees: the rlimit for process tags cannot be set");
        return trees;
    }
    for &(program, tree) in HIDDEN {
        match StdCommand::new(program).arg("--version").output() {
            Ok(_) => trees.push(tree),
            Err(error) => eprintln!("skipped the hidden tree of {program}: {error}"),
        }
    }
    trees
}

/// A pipe that a process tree holds open as descriptor 3 until its last process exits.
struct Held {
    folder: tempfile::TempDir,
    /// Both ends at once, so that opening the other end does not block.
    both: File,
}

impl Held {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(StdCommand::new("mkfifo").arg(&pipe).status().unwrap().success());
        let both = File::options().read(true).write(true).open(pipe).unwrap();
        Self { folder, both }
    }

    fn script(&self, tree: &str) -> String {
        format!("pipe='{}'; exec 3>\"$pipe\"; {tree}", self.folder.path().join("pipe").display())
    }

    /// Waits until every process has closed it.
    async fn let_go(self) {
        let mut end = File::open(self.folder.path().join("pipe")).unwrap();
        drop(self.both);
        let ended = spawn_blocking(move || end.read_to_end(&mut Vec::new()));
        timeout(HANGS, ended).await.expect("the tree closes the pipe").unwrap().unwrap();
    }
}

/// Returns the zombies among the children of this process.
fn zombies() -> Vec<String> {
    let own = std::process::id().to_string();
    let listed = StdCommand::new("ps").args(["-o", "stat=,pid=", "--ppid", &own]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    listed.lines().filter(|line| line.starts_with('Z')).map(str::to_owned).collect()
}

/// Waits until no zombie remains; those of other tests come and go.
fn no_zombie_stays() {
    let (start, mut left) = (Instant::now(), zombies());
    while start.elapsed() < HANGS {
        if left.is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
        let now = zombies();
        left.retain(|zombie| now.contains(zombie));
    }
    panic!("zombies remain: {left:?}");
}

const TIMEOUT: Duration = Duration::from_millis(300);
const GRACE: Duration = Duration::from_millis(200);

/// Terminates `count` trees by a timeout, `at_once` at a time; returns for each the duration of
/// the call and the time until its last process had exited.
async fn end_trees(count: usize, at_once: usize) -> Vec<(Duration, Duration)> {
    let trees = trees().into_iter().cycle().take(count);
    let ended = stream::iter(trees).map(|tree| async move {
        let held = Held::new();
        let script = held.script(tree);
        let started = Instant::now();
        let limited = Command::new("sh", ["-c", &script]).timeout(TIMEOUT).grace_period(GRACE);
        assert_eq!(run(limited).await.unwrap().exit, ExitOutcome::TimedOut, "{script}");
        let call = started.elapsed();
        held.let_go().await;
        (call, started.elapsed())
    });
    ended.buffer_unordered(at_once).collect().await
}

// fault 6, CH6: the whole tree is killed, and no zombie remains.
#[tokio::test(flavor = "multi_thread")]
async fn every_tree_is_gone() {
    // In a process of its own, without the zombies of other tests.
    if std::env::var_os(VARIABLE).is_none() {
        return again("proofs::every_tree_is_gone", "1");
    }
    assert_eq!(end_trees(24, 4).await.len(), 24);
    no_zombie_stays();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it measures time, so it wants a machine for itself"]
async fn every_tree_is_gone_in_time() {
    let ended = end_trees(200, 2).await;
    let longest_call = ended.iter().map(|times| times.0).max().unwrap();
    let longest_tree = ended.iter().map(|times| times.1).max().unwrap();
    eprintln!("200 of 200 trees gone: calls {longest_call:?}, trees {longest_tree:?} at most");
    assert!(longest_call <= TIMEOUT + GRACE + Duration::from_millis(500), "{longest_call:?}");
    assert!(longest_tree <= TIMEOUT + GRACE + Duration::from_secs(1), "{longest_tree:?}");
    no_zombie_stays();
}

/// Drops `future` after `count` polls; returns its output if it was ready before.
async fn polled<F: Future>(future: F, count: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut polls = 0;
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => {
            polls += 1;
            if polls == count { Poll::Ready(None) } else { Poll::Pending }
        }
    })
    .await
}

// fault 5: a call that is dropped at any await leaves no process behind.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_dropped_anywhere_leaves_nothing() {
    if std::env::var_os(VARIABLE).is_none() {
        return again("proofs::a_call_that_is_dropped_anywhere_leaves_nothing", "1");
    }
    let tree = "trap '' TERM; setsid sleep 0.3 & echo a; echo b >&2; read line; echo c; sleep 0.1";
    for count in 1.. {
        let held = Held::new();
        let call = Command::new("sh", ["-c", &held.script(tree)]).stdin("x\n").grace_period(GRACE);
        let done = polled(run(call), count).await;
        held.let_go().await;
        // A thread that was held up finds several steps done at once, so one short call proves nothing.
        if done.is_some() && count > 3 {
            break;
        }
        assert!(count < 1000, "it has no end");
    }
    no_zombie_stays();
}

// fault 5: the same for reads of a background process, which runs until its store is dropped.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_that_is_dropped_anywhere_takes_nothing() {
    let mut counts = 1..;
    loop {
        let held = Held::new();
        let processes = BackgroundProcesses::default();
        let script =
            held.script("echo a; sleep 0.05; echo b; setsid sleep 300 & sleep 0.05; echo c");
        let process = processes
            .spawn(&BackgroundCommand::new("sh", ["-c", &script]).grace_period(GRACE))
            .unwrap();
        let done = polled(process.read_output(HANGS, |_| {}), counts.next().unwrap()).await;
        let is_done = done.is_some();
        let look = match done {
            Some(look) => look,
            None => process.read_output(HANGS, |_| {}).await,
        };
        assert_eq!(
            (look.output.to_text().as_str(), look.exit),
            ("a\nb\nc\n", Some(ExitOutcome::Code(0)))
        );
        drop((process, processes));
        held.let_go().await;
        if is_done {
            break;
        }
    }
}

// fault 5: after a dropped write or kill, the whole tree can still be killed.
#[tokio::test(flavor = "multi_thread")]
async fn typing_and_ending_that_is_dropped_anywhere_leaves_nothing() {
    for is_typing in [true, false] {
        for count in 1.. {
            let held = Held::new();
            let processes = BackgroundProcesses::default();
            let script = held.script("trap '' TERM; sleep 300 & sleep 300");
            let spawn =
                BackgroundCommand::new("sh", ["-c", &script]).terminal(true).grace_period(GRACE);
            let process = processes.spawn(&spawn).unwrap();
            // More than the input buffer of a terminal.
            let text = "x".repeat(20_000);
            let is_done = match is_typing {
                true => polled(process.type_text(&text), count).await.is_some(),
                false => polled(process.kill(), count).await.is_some(),
            };
            if is_typing {
                process.kill().await;
            }
            // A kill that was started completes in the background.
            held.let_go().await;
            drop((process, processes));
            if is_done {
                break;
            }
        }
    }
}

/// Runs the test `name` again in a process of its own, with `VARIABLE` set to `value`.
fn again(name: &str, value: &str) {
    let again = StdCommand::new(std::env::current_exe().unwrap())
        .args(["--exact", "--include-ignored", "--nocapture", name])
        .env(VARIABLE, value)
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&again.stdout).into_owned();
    eprint!("{}", String::from_utf8_lossy(&again.stderr));
    assert!(again.status.success() && report.contains("1 passed"), "{report}");
}

const VARIABLE: &str = "TOOL_SDK_PROOF";

/// Returns a value of `/proc/self/status` in KiB.
fn memory(what: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
}

/// Returns the number of newlines in so many bytes of a flood.
type Lines = fn(u64) -> u64;

const FLOODS: &[(&str, Lines)] = &[
    ("head -c $N /dev/zero", |_| 0),
    ("head -c $N /dev/zero | tr '\\0' x", |_| 0),
    ("yes | head -c $N", |bytes| bytes / 2),
    ("head -c $N /dev/zero | tr '\\0' '\\377'", |_| 0),
    ("yes \"$(printf '\\033[31m')\" | head -c $N", |bytes| bytes / 6),
];

const KEEP: usize = 1 << 20;

/// Floods a foreground command and a background process with `bytes` each.
async fn flood(bytes: u64) {
    for (flood, lines) in FLOODS {
        let script = flood.replace("$N", &bytes.to_string());
        let spawn = BackgroundCommand::new("sh", ["-c", &script]).output_limit(KEEP);
        let kept = BackgroundProcesses::default()
            .spawn(&spawn)
            .unwrap()
            .read_output(HANGS * 10, |_| {})
            .await
            .output;
        let run = Command::new("sh", ["-c", &script]).output_limit(KEEP).timeout(HANGS * 10);
        for output in [kept, run_now(run).await] {
            let left = (output.head.len() + output.tail.len()) as u64;
            assert!(left <= KEEP as u64 && left + output.omitted_bytes == bytes, "{flood}");
            let kept = output.head.iter().chain(&output.tail).filter(|&&byte| byte == b'\n');
            assert_eq!(output.omitted_lines + kept.count() as u64, lines(bytes), "{flood}");
        }
    }
}

async fn run_now(run_it: Command) -> super::CapturedOutput {
    run(run_it).await.unwrap().stdout
}

/// Runs the flood in a process of its own and checks its memory.
fn floods_cost_no_memory(name: &str, bytes: u64) {
    if std::env::var_os(VARIABLE).is_none() {
        return again(name, "1");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // Exclude memory that is allocated once.
    runtime.block_on(flood(2 * KEEP as u64 / 6 * 6));
    let before = memory("VmRSS");
    let started = Instant::now();
    runtime.block_on(flood(bytes));
    let total = 2 * FLOODS.len() as u64 * bytes;
    let grown = memory("VmHWM").saturating_sub(before);
    let rate = total as f64 / 1e6 / started.elapsed().as_secs_f64();
    eprintln!("{total} bytes: memory grew by {grown} KiB at most, {rate:.0} MB/s");
    assert!(grown <= (KEEP as u64 >> 10) + (8 << 10), "it grew by {grown} KiB");
}

// fault 7, CH8: memory is bounded by the output limit, for any output.
#[test]
fn a_flood_costs_no_memory() {
    floods_cost_no_memory("proofs::a_flood_costs_no_memory", 12 << 20);
}

#[test]
#[ignore = "it takes a minute"]
fn a_gibibyte_costs_no_memory() {
    // The first multiple of six after one GiB.
    floods_cost_no_memory("proofs::a_gibibyte_costs_no_memory", (1 << 30) + 2);
}

/// Returns the number of open descriptors of this process.
fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

// fault 8, fault 14: exited programs leave no descriptor and no zombie.
#[test]
fn a_thousand_programs_leave_nothing() {
    if std::env::var_os(VARIABLE).is_none() {
        return again("proofs::a_thousand_programs_leave_nothing", "1");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        run(Command::shell("true")).await.unwrap();
        let before = open_descriptors();
        let all = stream::iter(0..1000).map(|number| async move {
            let echoed = run(Command::new("echo", [number.to_string()])).await.unwrap();
            assert_eq!(echoed.stdout.to_text(), format!("{number}\n"));
        });
        all.buffer_unordered(100).collect::<()>().await;
        assert_eq!(open_descriptors(), before);
        assert_eq!(zombies(), [""; 0]);
    });
}

// fault 14: running out of descriptors is an error, from which the host recovers.
#[test]
fn descriptors_that_run_out_are_an_error() {
    if std::env::var_os(VARIABLE).is_none() {
        return again("proofs::descriptors_that_run_out_are_an_error", "1");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for terminal in [false, true] {
            let spawn = BackgroundCommand::new("cat", ["-"]).terminal(terminal);
            let processes = BackgroundProcesses::default();
            processes.spawn(&spawn).unwrap();
            let most = open_descriptors() as u64 + 8;
            setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: Some(4096) })
                .unwrap();
            let mut kept = Vec::new();
            let error = loop {
                match processes.spawn(&spawn) {
                    Ok(process) => kept.push(process),
                    Err(error) => break error,
                }
                assert!(kept.len() < 8, "there is no end");
            };
            let RunError::Spawn { source, .. } = error else { panic!("{error}") };
            assert_eq!(source.raw_os_error(), Some(libc::EMFILE), "{source}");
            assert!(matches!(
                run(Command::shell("true")).await,
                Err(RunError::Spawn { .. }) | Ok(_)
            ));
            setrlimit(Resource::Nofile, Rlimit { current: Some(4096), maximum: Some(4096) })
                .unwrap();
            assert_eq!(run(Command::shell("exit 3")).await.unwrap().exit, ExitOutcome::Code(3));
        }
    });
    drop(runtime);
    no_zombie_stays();
}

/// Ignores `SIGCHLD` from now on.
fn ignore_children() {
    #[expect(unsafe_code, reason = "no safe API sets a signal action")]
    // SAFETY: no handler of this process is installed.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
    }
}

// F59: with an ignored SIGCHLD the exit is unknown or an error, never invented.
#[test]
fn no_exit_is_made_up() {
    if std::env::var_os(VARIABLE).is_none() {
        return again("proofs::no_exit_is_made_up", "1");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let processes = BackgroundProcesses::default();
        let sleep = BackgroundCommand::new("sleep", ["0.3"]);
        let early = processes.spawn(&sleep).unwrap();
        let called = tokio::spawn(run(Command::new("sleep", ["0.3"])));
        tokio::task::yield_now().await;
        ignore_children();
        assert_eq!(early.read_output(HANGS, |_| {}).await.exit, Some(ExitOutcome::Unknown));
        assert!(matches!(called.await.unwrap(), Err(RunError::Wait(_))));

        let refused = [
            run(Command::shell("exit 3")).await.map(drop).unwrap_err(),
            processes.spawn(&sleep).map(drop).unwrap_err(),
        ];
        for error in refused {
            let RunError::Spawn { source, .. } = error else { panic!("{error}") };
            assert!(source.to_string().contains("SIGCHLD"), "{source}");
        }
        super::restore_sigchld();
        assert_eq!(run(Command::shell("exit 3")).await.unwrap().exit, ExitOutcome::Code(3));
    });
    no_zombie_stays();
}

// No signal is sent to a pid that may have been reused.
#[tokio::test]
async fn no_signal_goes_to_a_number_that_was_given_back() {
    let processes = BackgroundProcesses::default();
    let process = processes.spawn(&BackgroundCommand::new("true", ["x"])).unwrap();
    process.read_output(HANGS, |_| {}).await;
    let start = Instant::now();
    while process.pgid().is_some() {
        assert!(start.elapsed() < HANGS, "its group is still open");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    process.interrupt();
}
