//! What running commands costs, beside the same programs started by hand.
//!
//! ```text
//! processes             all tables
//! processes start       only those of one kind: start, kept, confine, drain, check
//! ```
//!
//! `docs/PERFORMANCE.md` says how to read the figures.

#![expect(clippy::unwrap_used, reason = "a benchmark that fails should stop")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

#[path = "../files/measure.rs"]
mod measure;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command as StdCommand, Stdio};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tool_sdk::process::sandbox::{self, SandboxLevel, SandboxMode as Confining, SandboxPolicy};
use tool_sdk::process::{Command, run};
use tool_sdk::{Call, Mode, Pipeline, Registry, Session, Workspace, tools};
use tool_std::exec::{exec_command, shell, shell_command, write_stdin};

use self::measure::{Lane, ROUNDS, table};

/// Commands a turn, where one takes about a millisecond.
const STARTS: usize = 20;

/// Bytes that are drained in one turn.
const FLOOD: usize = 100_000_000;

fn main() {
    sandbox::run_helper_if_asked();
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let host = Host::new();
    let tables: [(&str, Table); 5] = [
        ("start", start),
        ("kept", kept),
        ("confine", confine),
        ("drain", drain),
        ("check", check),
    ];
    for (name, table) in tables {
        if wanted.is_empty() || wanted.iter().any(|it| it == name) {
            table(&host);
        }
    }
}

/// Measures and prints.
type Table = fn(&Host);

/// Our tools, as a host calls them.
struct Host {
    runtime: Runtime,
    pipeline: Pipeline,
    session: Session,
    folder: tempfile::TempDir,
}

impl Host {
    fn new() -> Self {
        let tools = tools![exec_command, shell, shell_command, write_stdin];
        let registry = Registry::builder().add(tools);
        let folder = tempfile::tempdir().unwrap();
        Self {
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
            pipeline: Pipeline::new(registry.build().unwrap()).mode(Mode::Bypass),
            session: Session::new("bench").with_service(Workspace::open([folder.path()]).unwrap()),
            folder,
        }
    }

    /// Calls a tool again and again.
    fn call(&self, tool: &'static str, arguments: &Value) -> usize {
        let arguments = arguments.to_string();
        for _ in 0..STARTS {
            let call = self.pipeline.call(&self.session, Call::new(tool, arguments.clone()));
            let output = self.runtime.block_on(call).result.unwrap();
            assert!(output.as_text().contains("code"));
        }
        STARTS
    }

    /// Calls a tool once.
    fn one(&self, tool: &'static str, arguments: &Value) -> String {
        let call = self.pipeline.call(&self.session, Call::new(tool, arguments.to_string()));
        let output = self.runtime.block_on(call).result.unwrap();
        output.as_text().to_owned()
    }

    fn run(&self, program: &str, args: &[&str]) -> usize {
        for _ in 0..STARTS {
            self.runtime.block_on(run(Command::new(program, args.iter().copied()))).unwrap();
        }
        STARTS
    }

    /// What is written as arguments that hold the command line.
    fn judge(&self, arguments: &str) -> usize {
        let call = Call::new("exec_command", arguments);
        // What is too long to be a command is told without a decision.
        let checked = self.runtime.block_on(self.pipeline.check(&self.session, call));
        checked.map_or(0, |checked| checked.decision.subjects.len())
    }
}

/// Starts a program by hand, with nothing to read and nowhere to write.
fn by_hand(program: &str, args: &[&str]) -> usize {
    for _ in 0..STARTS {
        let mut command = StdCommand::new(program);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(command.status().unwrap().success());
    }
    STARTS
}

/// S8: the first lane of each table is the floor.
fn start(host: &Host) {
    let script = ["--noprofile", "--norc", "-c", "true; true"];
    let mut lanes = vec![
        Lane::new("bash by hand", || by_hand("/bin/bash", &script)),
        Lane::new("process::run", || host.run("/bin/bash", &script)),
        Lane::new("exec_command", || host.call("exec_command", &json!({ "cmd": "true; true" }))),
        Lane::new("shell_command", || {
            host.call("shell_command", &json!({ "command": "true; true" }))
        }),
    ];
    table(&format!("S8: a script, {STARTS} times"), &mut lanes);
    let mut lanes = vec![
        Lane::new("true by hand", || by_hand("/bin/true", &[])),
        Lane::new("process::run", || host.run("/bin/true", &[])),
        Lane::new("exec_command", || host.call("exec_command", &json!({ "cmd": "true" }))),
        Lane::new("shell", || host.call("shell", &json!({ "command": ["true"] }))),
    ];
    table(&format!("S8: one plain command, {STARTS} times"), &mut lanes);
    // A host of some size: whoever copies it to start a child pays for that.
    let large = vec![1_u8; 300 << 20];
    let mut lanes = vec![
        Lane::new("bash by hand", || by_hand("/bin/bash", &script)),
        Lane::new("exec_command", || host.call("exec_command", &json!({ "cmd": "true; true" }))),
    ];
    table(&format!("S8: a script from a host of 300 MiB, {STARTS} times"), &mut lanes);
    drop(std::hint::black_box(large));
}

/// What a shell says that is done.
const PROMPT: &str = "done> ";

/// Commands a turn that a kept shell reads.
const LINES: usize = 200;

/// S9: a line for a shell that is kept, until its prompt comes again.
fn kept(host: &Host) {
    let mut shell = Shell::start();
    let cmd = format!("PS1='{PROMPT}' exec bash --noprofile --norc");
    let started = host.one(
        "exec_command",
        &json!({ "cmd": cmd, "tty": true, "yield_time_ms": 30_000, "wait_for": PROMPT }),
    );
    let (_, session) = started.split_once("session ID ").unwrap();
    let session: u32 = session.split_whitespace().next().unwrap().parse().unwrap();
    let line = json!({
        "session_id": session, "chars": "true\n", "yield_time_ms": 30_000, "wait_for": PROMPT,
    });
    let mut lanes = vec![
        Lane::new("a kept bash by hand", || {
            (0..LINES).for_each(|_| shell.line("true\n"));
            LINES
        }),
        Lane::new("write_stdin", || {
            for _ in 0..LINES {
                assert!(host.one("write_stdin", &line).contains("has come"));
            }
            LINES
        }),
    ];
    table(&format!("S9: a line for a kept shell, {LINES} times"), &mut lanes);
}

/// A bash with a terminal, by hand.
struct Shell {
    terminal: File,
    child: Child,
}

impl Shell {
    fn start() -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        let end = || File::options().read(true).write(true).open(&name).unwrap();
        let mut bash = StdCommand::new("setsid");
        bash.args(["--ctty", "bash", "--noprofile", "--norc"]);
        bash.env("PS1", PROMPT).env("TERM", "dumb");
        let child = bash.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let mut shell = Self { terminal: terminal.into(), child };
        shell.wait();
        shell
    }

    fn line(&mut self, line: &str) {
        self.terminal.write_all(line.as_bytes()).unwrap();
        self.wait();
    }

    fn wait(&mut self) {
        let (mut seen, mut part) = (Vec::new(), [0; 4096]);
        while !seen.ends_with(PROMPT.as_bytes()) {
            let count = self.terminal.read(&mut part).unwrap();
            seen.extend_from_slice(&part[..count]);
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.terminal.write_all(b"exit\n");
        let _ = self.child.wait();
    }
}

/// What the sandbox adds to a command.
fn confine(host: &Host) {
    let policy = |level| SandboxPolicy::new(Confining::BestEffort, level);
    let confined = |policy: &SandboxPolicy| {
        for _ in 0..STARTS {
            let command = Command::new("/bin/true", [""; 0]).sandbox(policy.clone());
            host.runtime.block_on(run(command)).unwrap();
        }
        STARTS
    };
    let read_only = policy(SandboxLevel::ReadOnly);
    let empty = policy(SandboxLevel::WorkspaceWrite).with_writable(host.folder.path());
    // Four names in each of two hundred folders.
    let large = tempfile::tempdir().unwrap();
    for number in 0..800 {
        let folder = large.path().join(format!("{}", number / 4));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{number}.rs")), "").unwrap();
    }
    let many = policy(SandboxLevel::WorkspaceWrite).with_writable(large.path());
    println!("\nconfined: {}", read_only.status());
    let mut lanes = vec![
        Lane::new("process::run", || host.run("/bin/true", &[])),
        Lane::new("read only", || confined(&read_only)),
        Lane::new("an empty workspace", || confined(&empty)),
        Lane::new("200 folders", || confined(&many)),
    ];
    table(&format!("a confined command, {STARTS} times"), &mut lanes);
}

/// S10: what is written faster than anybody reads it.
fn drain(host: &Host) {
    let count = FLOOD.to_string();
    let piped = format!("head -c {count} /dev/zero | cat >/dev/null");
    let mut lanes = vec![
        Lane::new("head | cat", || {
            assert!(StdCommand::new("/bin/sh").args(["-c", &piped]).status().unwrap().success());
            FLOOD
        }),
        Lane::new("process::run", || {
            let flood = Command::new("head", ["-c", &count, "/dev/zero"]).output_limit(1 << 20);
            let flood = host.runtime.block_on(run(flood.timeout(Duration::from_mins(1)))).unwrap();
            let output = flood.stdout;
            output.head.len() + output.tail.len() + usize::try_from(output.omitted_bytes).unwrap()
        }),
        Lane::new("exec_command", || {
            let arguments = json!({ "cmd": format!("head -c {count} /dev/zero") }).to_string();
            let call = Call::new("exec_command", arguments);
            let output = host.runtime.block_on(host.pipeline.call(&host.session, call));
            assert!(output.text().contains("code 0"));
            FLOOD
        }),
    ];
    table("S10: 100 MB drained", &mut lanes);
}

/// What it costs to say what a command would do, without doing it.
fn check(host: &Host) {
    let judged = |times: usize, cmd: &str| {
        let arguments = json!({ "cmd": cmd }).to_string();
        move || (0..times).map(|_| host.judge(&arguments)).sum()
    };
    let long = "git status && ls -la src; ".repeat(100);
    let hostile = format!("echo {}", "$(".repeat(30_000));
    let mut lanes = vec![
        Lane::new("git status", judged(100, "git status")),
        Lane::new("with a redirection", judged(100, "ls > out")),
        Lane::new("200 commands", judged(1, long.trim_end_matches("; "))),
        Lane::new("60 KB of brackets", judged(1, &hostile)),
    ];
    for (name, piece) in [
        // Only what it takes to understand them, without rules.
        ("64 KB of `sudo a@ `", "sudo a@ "),
        ("64 KB of `python -c a@ `", "python -c a@ "),
        ("64 KB of `eval @ `", "eval @ "),
        ("64 KB of `env -S@ `", "env -S@ "),
        ("64 KB of `a>b@ `", "a>b@ "),
        ("64 KB of `A=a@ `", "A=a@ "),
        ("64 KB of `find -exec @ `", "find -exec @ "),
        ("64 KB of `ls a@;`", "ls a@;"),
        ("64 KB of `sudo -x a@ `", "sudo -x a@ "),
    ] {
        let script = repeated(piece, 64 * 1024);
        lanes.push(Lane::new(name, move || read(&script)));
    }
    for (name, piece, size) in [
        // As much as is listed, and judged with rules.
        ("judged: `python -c a@ `", "python -c a@ ", 20 << 10),
        ("judged: `a>b@ `", "a>b@ ", 10 << 10),
        ("judged: `cat ../a@;`", "cat ../a@;", 4 << 10),
        ("judged: 64 KB in a word", "x@", 64 << 10),
    ] {
        let script = repeated(piece, size);
        lanes.push(Lane::new(name, judged(1, &script)));
    }
    for (name, script) in [
        ("judged: 128 KB of commands", repeated("ls a@;", 128 << 10)),
        ("judged: 1 MB of commands", repeated("ls a@;", 1_000_000)),
        ("judged: 512 KB of wide letters", "\u{1f600}".repeat(128 << 10)),
        // Each six bytes as it is written.
        ("judged: 875 KB of escapes", "\u{1}".repeat(146_000)),
    ] {
        lanes.push(Lane::new(name, judged(1, &script)));
    }
    // As many files as are looked at, more than that, and more names than are listed.
    for (name, cmd, folder) in [
        ("judged: 512 of 2,000 files", "perl few*.txt", fill(host, "large", 512, 1488)),
        ("judged: 2,000 of 2,000 files", "perl *.txt", "large".to_owned()),
        ("judged: one of 60,000 files", "python3 few0.txt", fill(host, "huge", 1, 59_999)),
    ] {
        let arguments = json!({ "cmd": cmd, "workdir": folder }).to_string();
        lanes.push(Lane::new(name, move || host.judge(&arguments)));
    }
    table(&format!("check exec_command (the first two 100 times), {ROUNDS} rounds"), &mut lanes);
}

/// Makes a folder with files of two names, and gives back what it is called.
fn fill(host: &Host, folder: &str, few: usize, others: usize) -> String {
    let place = host.folder.path().join(folder);
    std::fs::create_dir(&place).unwrap();
    for (name, count) in [("few", few), ("other", others)] {
        for number in 0..count {
            std::fs::write(place.join(format!("{name}{number}.txt")), "x").unwrap();
        }
    }
    folder.to_owned()
}

/// What it costs to understand a script, without rules.
fn read(script: &str) -> usize {
    tool_std::shell::analyze_script(script).commands.len()
}

/// `piece` again and again, each time with another number for `@`.
fn repeated(piece: &str, size: usize) -> String {
    let pieces = (0..).map(|number: usize| piece.replace('@', &number.to_string()));
    let mut script = String::new();
    for piece in pieces {
        if script.len() + piece.len() > size {
            break;
        }
        script.push_str(&piece);
    }
    script
}
