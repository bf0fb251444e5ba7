//! Tests of background processes, many of which misbehave.
//!
//! A pipe that a whole process tree holds open shows when its last process has exited, so no
//! test measures time.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::*;
#[cfg(target_os = "linux")]
use crate::has_rlimit_tags;
use crate::{ExitOutcome, ResourceLimits};

/// A timeout that only a hanging test reaches.
const HANGS: Duration = Duration::from_secs(60);

fn bash(script: &str) -> BackgroundCommand {
    BackgroundCommand::new("bash", ["--noprofile", "--norc", "-c", script]).title(script)
}

/// A command that reacts to `SIGINT`, also where the test runner ignores that signal.
fn interruptible<const N: usize>(words: [&str; N]) -> BackgroundCommand {
    let words = std::iter::once("--default-signal=INT").chain(words);
    BackgroundCommand::new("env", words)
}

async fn finished(spawn: &BackgroundCommand) -> ProcessOutput {
    let look =
        BackgroundProcesses::default().spawn(spawn).unwrap().read_output(HANGS, |_| {}).await;
    assert!(look.exit.is_some(), "{spawn:?}");
    look
}

/// A pipe that a process tree holds open as descriptor 3 until its last process exits.
struct Held {
    folder: tempfile::TempDir,
}

impl Held {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        assert!(Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap().success());
        Self { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("pipe")
    }

    fn by(&self, script: &str) -> BackgroundCommand {
        let script = format!("exec 3>'{}'; {script}", self.path().display());
        bash(&script).grace_period(Duration::from_millis(100))
    }

    /// Waits until the tree has opened it.
    async fn open(&self) -> File {
        let path = self.path();
        let opened = spawn_blocking(move || File::open(path));
        timeout(HANGS, opened).await.expect("the tree opens the pipe").unwrap().unwrap()
    }
}

async fn let_go(mut held: File) {
    let ended = spawn_blocking(move || held.read_to_end(&mut Vec::new()));
    timeout(HANGS, ended).await.expect("the tree closes the pipe").unwrap().unwrap();
}

/// Process trees that are hard to kill. Each prints `ready` when it is complete.
const ESCAPES: &[&str] = &[
    "sleep 300 & echo ready; wait",
    "trap '' TERM; sleep 300 & echo ready; wait; sleep 300",
    "setsid sleep 300 & echo ready; wait",
    "setsid setsid -f sleep 300; echo ready; sleep 300",
    "(setsid bash -c 'trap \"\" TERM; sleep 300 & wait; sleep 300' &) ; echo ready; sleep 300",
    "setsid -f bash -c 'echo ready; trap \"\" TERM HUP; while :; do sleep 1; done'; sleep 300",
    "env -i PATH=\"$PATH\" setsid sleep 300 & echo ready; wait",
];

/// The same, and a process drops its environment, session and parents.
#[cfg(target_os = "linux")]
const HIDDEN: &[&str] = &[
    "(env -i PATH=\"$PATH\" setsid sleep 300 &); echo ready; sleep 300",
    "env -i PATH=\"$PATH\" setsid -f bash -c 'trap \"\" TERM; (setsid sleep 300 &); sleep 300'; \
     echo ready; sleep 300",
];

// fault 6, F59, CH6: the whole tree is killed, and the call returns.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn nothing_survives_the_end_of_its_tree() {
    for terminal in [false, true] {
        for script in ESCAPES.iter().chain(hidden()) {
            let held = Held::new();
            let processes = BackgroundProcesses::default();
            let process = processes.spawn(&held.by(script).terminal(terminal)).unwrap();
            let pipe = held.open().await;
            heard(&process, "ready").await;
            timeout(HANGS, process.kill()).await.expect("it is back");
            let_go(pipe).await;
        }
    }
}

/// The trees that drop everything, where they can be tracked.
#[cfg(target_os = "linux")]
fn hidden() -> &'static [&'static str] {
    if has_rlimit_tags() {
        return HIDDEN;
    }
    eprintln!("skipped hidden trees: the rlimit for process tags cannot be set");
    &[]
}

/// A shell command that leaves such a process behind.
#[cfg(target_os = "linux")]
fn hide() -> &'static str {
    if hidden().is_empty() { "true" } else { "env -i PATH=\"$PATH\" setsid -f sleep 300" }
}

/// Waits until the process has written `text`.
async fn heard(process: &BackgroundProcess, text: &str) {
    let (start, mut seen) = (Instant::now(), String::new());
    while start.elapsed() < HANGS {
        let look = process.read_output(Duration::from_millis(50), |_| {}).await;
        seen += &look.output.to_text();
        if seen.contains(text) {
            return;
        }
        assert_eq!(look.exit, None, "it ended before it said {text}: {seen}");
    }
    panic!("it never said {text}: {seen}");
}

// fault 15: dropping the store kills everything, also descendants of exited processes.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn nothing_outlives_the_store() {
    let held = Held::new();
    let processes = BackgroundProcesses::default();
    let running = processes.spawn(&held.by("sleep 300 & wait")).unwrap();
    let ended = processes.spawn(&held.by(&format!("setsid sleep 300 & {}", hide()))).unwrap();
    let pipe = held.open().await;
    assert_eq!(ended.read_output(HANGS, |_| {}).await.exit, Some(ExitOutcome::Code(0)));
    drop((running, ended));
    drop(processes);
    let_go(pipe).await;

    // A host may also terminate them and go on.
    let processes = BackgroundProcesses::default();
    let script = format!("setsid sleep 300 & {}; sleep 300", hide());
    processes.spawn(&held.by(&script)).unwrap();
    let pipe = held.open().await;
    processes.end_all();
    assert!(processes.list().is_empty());
    let_go(pipe).await;
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_outlives_the_runtime() {
    let held = Held::new();
    let script = format!("trap '' TERM; setsid sleep 300 & {}; wait; sleep 300", hide());
    let spawn = held.by(&script);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let processes = BackgroundProcesses::default();
    let _process = runtime.block_on(async { processes.spawn(&spawn) }).unwrap();
    let mut pipe = runtime.block_on(held.open());
    drop(runtime);
    pipe.read_to_end(&mut Vec::new()).unwrap();
}

// fault 5: dropping a read loses no output and kills nothing.
#[tokio::test]
async fn a_wait_that_is_dropped_takes_nothing() {
    let processes = BackgroundProcesses::default();
    let process = processes.spawn(&bash("echo one; sleep 1; echo two")).unwrap();
    for _ in 0..3 {
        let _ = timeout(Duration::from_millis(50), process.read_output(HANGS, |_| {})).await;
    }
    let look = process.read_output(HANGS, |_| {}).await;
    assert_eq!(
        (look.output.to_text().as_str(), look.exit),
        ("one\ntwo\n", Some(ExitOutcome::Code(0)))
    );
    let again = process.read_output(HANGS, |_| {}).await;
    assert_eq!((again.output.to_text().as_str(), again.exit), ("", Some(ExitOutcome::Code(0))));
}

// fault 7, CH8: omitted output is counted, and the buffer does not grow.
#[tokio::test]
async fn floods_are_counted_and_not_kept() {
    let million = 1_000_000;
    for (script, total, lines) in [
        ("yes | head -c 20000000", 20 * million, 10 * million),
        ("head -c 20000000 /dev/zero", 20 * million, 0),
        ("head -c 3000000 /dev/zero | tr '\\0' x", 3 * million, 0),
        ("head -c 3000000 /dev/zero | tr '\\0' '\\377'", 3 * million, 0),
    ] {
        let output = finished(&bash(script)).await.output;
        assert_eq!((output.head.len(), output.tail.len()), (512 << 10, 512 << 10), "{script}");
        assert_eq!(output.omitted_bytes, total - (1 << 20), "{script}");
        let kept = output.head.iter().chain(&output.tail).filter(|&&byte| byte == b'\n').count();
        assert_eq!(output.omitted_lines, lines - kept as u64, "{script}");
    }
}

#[tokio::test]
async fn slow_output_comes_as_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    // Each part is written once the one before it was heard.
    let script = "for i in a b c; do printf $i; until [ -e $i ]; do sleep 0.05; done; done";
    let processes = BackgroundProcesses::default();
    let process = processes.spawn(&bash(script).current_dir(folder.path())).unwrap();
    let parts = Arc::new(Mutex::new(Vec::new()));
    let (heard, heard_files) = (Arc::clone(&parts), folder.path().to_owned());
    let listener = move |part: &[u8]| {
        std::fs::write(heard_files.join(String::from_utf8_lossy(part).as_ref()), "").unwrap();
        heard.lock().unwrap().push(part.to_vec());
    };
    let look = process.read_output(HANGS, listener).await;
    assert_eq!(look.output.to_text(), "abc");
    assert_eq!(*parts.lock().unwrap(), [b"a", b"b", b"c"]);
}

// F138: a new listener first receives the unread output.
#[tokio::test]
async fn what_waits_is_heard_first() {
    let processes = BackgroundProcesses::default();
    let process = processes.spawn(&bash("echo one; exec sleep 300")).unwrap();
    for _ in 0..2 {
        let (said, mut heard) = tokio::sync::mpsc::unbounded_channel();
        tokio::select! {
            () = process.wait_for_exit(move |part| said.send(part.to_vec()).unwrap()) => panic!("it sleeps"),
            part = timeout(HANGS, heard.recv()) => assert_eq!(part.unwrap().unwrap(), b"one\n"),
        }
    }
    assert_eq!(process.read_output(Duration::ZERO, |_| {}).await.output.to_text(), "one\n");
}

// F138: an incomplete sequence is passed on with its end.
#[tokio::test]
async fn what_has_begun_is_heard_with_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let script = r"printf 'a\033[3'; until [ -e go ]; do sleep 0.05; done; printf '1mb\303'";
    let processes = BackgroundProcesses::default();
    let process = processes.spawn(&bash(script).current_dir(folder.path())).unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = || {
        let heard = Arc::clone(&heard);
        move |part: &[u8]| heard.lock().unwrap().push(part.to_vec())
    };
    let start = Instant::now();
    let first = loop {
        let look = process.read_output(Duration::from_millis(50), listener()).await;
        if !look.output.head.is_empty() {
            break look;
        }
        assert!(start.elapsed() < HANGS, "it never said anything");
    };
    assert_eq!((&first.output.head[..], first.exit), (&b"a"[..], None));
    std::fs::write(folder.path().join("go"), "").unwrap();
    let last = process.read_output(HANGS, listener()).await;
    assert_eq!(
        (&last.output.head[..], last.exit),
        (&b"\x1b[31mb\xc3"[..], Some(ExitOutcome::Code(0)))
    );
    assert_eq!(*heard.lock().unwrap(), [&b"a"[..], b"\x1b[31mb", b"\xc3"]);
}

// A listener that panics does not affect the process or its output.
#[tokio::test]
async fn a_listener_that_panics_ends_nothing() {
    let processes = BackgroundProcesses::default();
    let script = "echo one; sleep 0.3; echo two; sleep 0.3; exit 3";
    let process = processes.spawn(&bash(script)).unwrap();
    let look = process.read_output(HANGS, |_| panic!("at once")).await;
    assert_eq!(
        (look.output.to_text().as_str(), look.exit),
        ("one\ntwo\n", Some(ExitOutcome::Code(3)))
    );
}

// Standard output and standard error keep their order.
#[tokio::test]
async fn output_and_complaints_keep_their_order() {
    let look = finished(&bash("for i in 1 2 3; do echo o$i; echo e$i >&2; done")).await;
    assert_eq!(look.output.to_text(), "o1\ne1\no2\ne2\no3\ne3\n");
}

// CH7
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_daemon_that_holds_the_pipe_is_not_waited_for() {
    let look = finished(&bash("sleep 300 & echo started")).await;
    assert_eq!(
        (look.output.to_text().as_str(), look.exit),
        ("started\n", Some(ExitOutcome::Code(0)))
    );
}

// F138: a terminal echoes its input, and Ctrl-C interrupts.
#[tokio::test]
async fn a_terminal_can_be_typed_into() {
    let processes = BackgroundProcesses::default();
    let cat = interruptible(["cat", "-"]).terminal(true);
    let cat = processes.spawn(&cat).unwrap();
    cat.type_text("hel").await.unwrap();
    assert_eq!(cat.pending_input(), "hel");
    cat.type_text("lo\n").await.unwrap();
    assert_eq!(cat.pending_input(), "");
    heard(&cat, "hello\r\nhello").await;
    // The pending input is still the start of a line.
    for (text, expected) in
        [("a \\\n", "a \\\n"), ("b\n", ""), ("c\u{4}", "c\u{4}"), ("\nd\n\ne", "e")]
    {
        cat.type_text(text).await.unwrap();
        assert_eq!(cat.pending_input(), expected, "{text:?}");
    }
    cat.type_text("\u{3}").await.unwrap();
    assert_eq!(cat.read_output(HANGS, |_| {}).await.exit, Some(ExitOutcome::Signal(2)));

    let terminal = bash("tty && stty size").terminal(true);
    let told = finished(&terminal).await.output.to_text();
    assert!(told.contains("/dev/") && told.contains("40 200"), "{told}");
}

// F138: some programs ask for a password on `/dev/tty` when their stdio is redirected.
#[tokio::test]
async fn a_terminal_that_is_opened_again_is_heard() {
    let script = "exec <&- >&- 2>&-; sleep 0.3; seq 20000 > /dev/tty";
    let look = finished(&bash(script).terminal(true)).await;
    assert_eq!(look.exit, Some(ExitOutcome::Code(0)));
    assert!(look.output.to_text().ends_with("\r\n20000\r\n"));
}

// CH3: typing into a program that does not read times out, and the part it got is recorded.
#[tokio::test]
async fn typing_has_an_end() {
    let processes = BackgroundProcesses::default();
    let sleep = processes.spawn(&BackgroundCommand::new("sleep", ["300"]).terminal(true)).unwrap();
    let lines = format!("{}\n", "x".repeat(500)).repeat(60) + "end";
    let typed = timeout(HANGS, sleep.type_text(&lines)).await.expect("it comes back");
    assert!(matches!(typed, Err(PtyInputError::NotReading)), "{typed:?}");
    assert!("x".repeat(500).starts_with(&sleep.pending_input()));
    sleep.kill().await;
}

// F138: Ctrl-C interrupts, also when the input buffer of the terminal is full.
#[tokio::test]
async fn an_interrupt_reaches_a_full_terminal() {
    let lines = format!("{}\n", "x".repeat(500));
    for typed in [vec![lines.repeat(60), "\u{3}".into()], vec![lines.repeat(60) + "\u{3}"]] {
        // In canonical and noncanonical mode.
        for modes in ["icanon", "-icanon"] {
            let script = format!("stty {modes}; echo ready; exec sleep 300");
            let sleep = interruptible(["bash", "-c", &script]).terminal(true);
            let processes = BackgroundProcesses::default();
            let sleep = processes.spawn(&sleep).unwrap();
            heard(&sleep, "ready").await;
            for text in &typed {
                let typed = timeout(HANGS, sleep.type_text(text)).await.expect("it comes back");
                assert!(typed.is_ok() || !text.contains('\u{3}'), "{typed:?}");
            }
            assert_eq!(sleep.pending_input(), "");
            assert_eq!(
                sleep.read_output(HANGS, |_| {}).await.exit,
                Some(ExitOutcome::Signal(2)),
                "{modes}"
            );
        }
    }
}

// F138: a program in raw mode receives Ctrl-C as a character, after all earlier input.
#[tokio::test]
async fn a_program_that_reads_keys_gets_ctrl_c() {
    let processes = BackgroundProcesses::default();
    let script = "stty raw -echo; echo ready; sleep 0.3; head -c 7 | od -An -c";
    let keys = processes.spawn(&bash(script).terminal(true)).unwrap();
    heard(&keys, "ready").await;
    keys.type_text("abc\u{3}def").await.unwrap();
    // Nothing was discarded.
    assert_eq!(keys.pending_input(), "abcdef");
    let look = keys.read_output(HANGS, |_| {}).await;
    assert_eq!(look.exit, Some(ExitOutcome::Code(0)));
    let words = look.output.to_text();
    assert_eq!(words.split_whitespace().collect::<String>(), "abc003def");
}

// F138: text after Ctrl-C is typed after the interrupt.
#[tokio::test]
async fn text_goes_on_behind_an_interrupt() {
    let processes = BackgroundProcesses::default();
    let script = "trap 'hit=1; echo interrupted' INT; echo ready
        until [[ $hit ]]; do sleep 0.05; done; head -n 1";
    let script = interruptible(["bash", "--noprofile", "--norc", "-c", script]);
    let bash = processes.spawn(&script.terminal(true)).unwrap();
    heard(&bash, "ready").await;
    bash.type_text("before\n\u{3}after\n").await.unwrap();
    let look = bash.read_output(HANGS, |_| {}).await;
    let text = look.output.to_text();
    assert!(text.contains("interrupted") && text.ends_with("after\r\n"), "{text}");
    // It may be echoed but is never read.
    assert!(
        look.exit == Some(ExitOutcome::Code(0)) && text.matches("before").count() < 2,
        "{text}"
    );
}

#[tokio::test]
async fn without_a_terminal_there_is_nothing_to_read() {
    let processes = BackgroundProcesses::default();
    let script = "cat; echo end; exec sleep 300";
    let script = interruptible(["bash", "--noprofile", "--norc", "-c", script]);
    let process = processes.spawn(&script).unwrap();
    heard(&process, "end").await;
    assert!(matches!(process.type_text("x").await, Err(PtyInputError::NoTerminal)));
    process.interrupt();
    assert_eq!(process.read_output(HANGS, |_| {}).await.exit, Some(ExitOutcome::Signal(2)));
    // Interrupting an exited process does nothing.
    process.interrupt();
}

// CH4, CH5: no descriptor of the host is inherited, with or without close-on-exec, and the child
// leads a session of its own.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_child_gets_its_three_descriptors_only() {
    let open = tempfile::tempfile().unwrap();
    let handed_down = rustix::io::dup(&open).unwrap();
    assert!(!rustix::io::fcntl_getfd(&handed_down).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
    for terminal in [false, true] {
        // The listing itself opens one.
        let listing = BackgroundCommand::new("ls", ["/proc/self/fd"]).terminal(terminal);
        let listed = finished(&listing).await.output.to_text();
        assert_eq!(listed.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2", "3"]);

        let told = finished(&bash("echo $$; ps -o pgid=,sid= -p $$").terminal(terminal)).await;
        let told = told.output.to_text();
        let numbers: Vec<_> = told.split_whitespace().collect();
        assert!(numbers.len() == 3 && numbers.iter().all(|it| *it == numbers[0]), "{told}");
    }
}

// CH5: the child cannot open the terminal of the host, only its own.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_terminal_of_the_host_is_out_of_reach() {
    let tells = "if : 2>/dev/null </dev/tty; then echo one; else echo none; fi";
    for (terminal, expected) in [(false, "none"), (true, "one")] {
        let told = finished(&bash(tells).terminal(terminal)).await.output.to_text();
        assert_eq!(told.trim(), expected);
    }
}

// CH9
#[cfg(target_os = "linux")]
#[tokio::test]
async fn limits_hold_for_the_child_and_not_for_the_host() {
    let limits = ResourceLimits::default()
        .open_files(30)
        .processes(5_000)
        .file_bytes(1 << 20)
        .memory_bytes(1 << 30)
        .niceness(19);
    let tells = "ulimit -n; ulimit -u; ulimit -f; ulimit -v; nice";
    let own = finished(&bash(tells)).await.output.to_text();
    let told = finished(&bash(tells).limits(limits)).await.output.to_text();
    assert_eq!(told, "30\n5000\n1024\n1048576\n19\n");
    assert_eq!(finished(&bash(tells)).await.output.to_text(), own);

    // A lower limit is not raised.
    let again = bash("ulimit -n 20; exec bash -c 'ulimit -n'")
        .limits(ResourceLimits::default().open_files(30));
    assert_eq!(finished(&again).await.output.to_text(), "20\n");
    let full = bash("head -c 2000000 /dev/zero > big; echo $?; wc -c < big");
    let folder = tempfile::tempdir().unwrap();
    let told = finished(&full.current_dir(folder.path()).limits(limits)).await.output.to_text();
    assert!(told.ends_with("1048576\n") && !told.starts_with("0\n"), "{told}");
}

// CH9: at the limit, exited and least recently used processes are evicted first.
#[tokio::test(flavor = "multi_thread")]
async fn the_least_used_make_room() {
    let processes = BackgroundProcesses::default();
    let sleep = BackgroundCommand::new("sleep", ["300"]);
    let first: Vec<u32> =
        (0..MAX_PROCESSES).map(|_| processes.spawn(&sleep).unwrap().id()).collect();
    assert!(first.iter().all(|id| ID_RANGE.contains(id)));

    // The fourth has exited, and the first was used again.
    processes.list()[3].clone().kill().await;
    processes.get(first[0]).unwrap();
    let ids = |processes: &BackgroundProcesses| -> Vec<u32> {
        processes.list().iter().map(|process| process.id()).collect()
    };
    processes.spawn(&sleep).unwrap();
    assert!(!ids(&processes).contains(&first[3]));
    processes.spawn(&sleep).unwrap();
    assert!(ids(&processes).contains(&first[0]) && !ids(&processes).contains(&first[1]));

    // A recently used process is not evicted, even if it has exited.
    let last = processes.list().pop().unwrap().id();
    processes.get(last).unwrap().kill().await;
    processes.spawn(&sleep).unwrap();
    assert_eq!(processes.list().len(), MAX_PROCESSES);
    assert!(processes.get(last).is_some());

    // A process with another handle is not evicted.
    let waited_for = processes.list();
    assert!(matches!(processes.spawn(&sleep), Err(RunError::Spawn { .. })));
    drop(waited_for);
    processes.spawn(&sleep).unwrap();

    // However many calls wait for processes, there is room for one more.
    let mut waited_for = processes.list();
    waited_for.truncate(MAX_ATTENDED - 1 + MAX_CONCURRENT);
    processes.spawn(&sleep).unwrap();
    drop(waited_for);

    // The most recently used stay, even if all others are in use.
    let mut waited_for = processes.list();
    waited_for.truncate(MAX_PROCESSES - NEVER_EVICTED);
    assert!(matches!(processes.spawn(&sleep), Err(RunError::Spawn { .. })));
}

#[tokio::test]
async fn what_cannot_be_started_is_an_error() {
    for terminal in [false, true] {
        for spawn in [
            BackgroundCommand::new("no-such-program-anywhere", ["x"]),
            BackgroundCommand::new("true", ["x"]).current_dir(Path::new("/no/such/folder")),
        ] {
            let started = BackgroundProcesses::default().spawn(&spawn.terminal(terminal));
            assert!(matches!(started, Err(RunError::Spawn { .. })));
        }
    }
}

#[test]
fn handles_can_be_sent() {
    fn is_send<T: Send + Sync>() {}
    is_send::<BackgroundProcess>();
    is_send::<BackgroundProcesses>();
}
