//! Remote workers on the command line: `serve nats`, `workers`, and hosts that use the tools of workers.
//!
//! The variable `NATS_SERVER` names the program of the NATS server; without it these tests are skipped,
//! and a line says so. `.ci/remote/run` installs it.
//!
//! **Invariant:** servers and workers listen on the loopback interface, and end with their test.

#![cfg(all(feature = "application", feature = "remote", unix))]

use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long a process may take for what it is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A process that ends with this value, and the lines that it prints on one of its streams.
struct RunningProgram {
    child: Child,
    lines: Receiver<String>,
}

impl RunningProgram {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the program runs");
        let lines = lines_of(child.stderr.take().expect("it is piped"));
        Self { child, lines }
    }

    /// Waits for a line with these words.
    #[track_caller]
    fn wait_for_line(&self, words: &str) -> String {
        wait_for_line(&self.lines, words)
    }

    /// Waits until the process has ended; returns its exit code.
    #[track_caller]
    fn wait_for_end(&mut self) -> Option<i32> {
        // Standard error ends with the process.
        while self.lines.recv_timeout(PATIENCE).is_ok() {}
        self.child.wait().expect("it was started here").code()
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        self.kill();
    }
}

fn lines_of(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (send, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            // Read on, so that the program can write.
            let _ = send.send(line);
        }
    });
    lines
}

#[track_caller]
fn wait_for_line(lines: &Receiver<String>, words: &str) -> String {
    let (end, mut seen) = (Instant::now() + PATIENCE, Vec::new());
    while let Ok(line) = lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
        if line.contains(words) {
            return line;
        }
        seen.push(line);
    }
    panic!("no line has `{words}`: {seen:#?}");
}

/// A NATS server, and a host that is configured for it.
struct RemoteSetup {
    program: PathBuf,
    folder: tempfile::TempDir,
    port: u16,
    /// What the server accepts, as options of `nats-server`.
    access: &'static [&'static str],
    server: Option<Child>,
}

impl RemoteSetup {
    /// A setup whose server is not started yet. Without a program of the server, prints why the test is
    /// skipped.
    fn new() -> Option<Self> {
        let Some(program) = std::env::var_os("NATS_SERVER") else {
            eprintln!("skipped: NATS_SERVER does not name a program of the NATS server");
            return None;
        };
        let folder = tempfile::tempdir().expect("there is room");
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("an address").port();
        let setup = Self { program: program.into(), folder, port, access: &[], server: None };
        let key = setup.path("permit.key");
        fs::write(&key, "a secret of the tests, 32 bytes or more\n").expect("there is room");
        fs::create_dir(setup.path("host")).expect("there is room");
        let config =
            format!("[workers.demo]\nurl = '{}'\nkey_file = '{}'\n", setup.url(), key.display());
        fs::write(setup.path("config.toml"), config).expect("there is room");
        Some(setup)
    }

    fn with_server() -> Option<Self> {
        let mut setup = Self::new()?;
        setup.start_server();
        Some(setup)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    fn start_server(&mut self) {
        let server = Command::new(&self.program)
            .args(["--addr", "127.0.0.1", "--port", &self.port.to_string()])
            .args(self.access)
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        self.server = Some(server);
        for _ in 0..500 {
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return;
            }
            // The server does not tell when it listens.
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the NATS server does not listen");
    }

    /// The program with a folder, a state and no settings of the user.
    fn program(&self, root: &str, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tool-std"));
        command
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", "/usr/bin:/bin")
            .arg("--root")
            .arg(self.path(root))
            .arg("--state-dir")
            .arg(self.path(&format!("state-{root}")))
            .args(args)
            .stdin(Stdio::null());
        command
    }

    /// A command line of the host, which knows the workers of `demo`.
    fn host_command(&self, args: &[&str]) -> Command {
        let config = self.path("config.toml").display().to_string();
        self.program("host", &[&["--config", &config], args].concat())
    }

    fn host(&self, args: &[&str]) -> Output {
        self.host_command(args).output().expect("the program runs")
    }

    #[track_caller]
    fn host_json(&self, args: &[&str]) -> Value {
        let ran = self.host(args);
        assert_eq!(ran.status.code(), Some(0), "{}", err(&ran));
        serde_json::from_slice(&ran.stdout).expect("standard output is one JSON value")
    }

    /// Starts a worker with a folder of its own, in which a file has the name of the folder.
    fn start_worker(&self, root: &str, args: &[&str]) -> RunningProgram {
        fs::create_dir_all(self.path(root)).expect("there is room");
        fs::write(self.path(root).join("name.txt"), root).expect("there is room");
        let (key, url) = (self.path("permit.key").display().to_string(), self.url());
        let serve = ["serve", "nats", "--url", &url, "--namespace", "demo", "--permit-key", &key];
        RunningProgram::start(&mut self.program(root, &[&serve[..], args].concat()))
    }
}

impl Drop for RemoteSetup {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// Waits until the worker serves, and returns its id.
#[track_caller]
fn worker_id(worker: &RunningProgram) -> String {
    let line = worker.wait_for_line("serving as the worker ");
    line.split(' ').nth(4).expect("the id").to_owned()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn two_workers_serve_a_host_until_one_is_drained_and_one_is_killed() {
    let Some(setup) = RemoteSetup::with_server() else { return };
    let mut workers = ["one", "two"].map(|root| setup.start_worker(root, &["--max-calls", "3"]));
    let mut ids = workers.each_ref().map(worker_id);

    let listed = setup.host_json(&["workers", "list", "--json"]);
    assert_eq!(listed[0]["namespace"], "demo");
    assert_eq!(listed[0]["url"], setup.url());
    assert_eq!((&listed[0]["connected"], &listed[0]["error"]), (&json!(true), &json!(null)));
    let found = listed[0]["workers"].as_array().expect("a list");
    let mut found_ids: Vec<_> = found.iter().map(|worker| worker["id"].clone()).collect();
    found_ids.sort_by_key(ToString::to_string);
    ids.sort();
    assert_eq!(json!(found_ids), json!(ids));
    assert_eq!(found[0]["program"], "tool-std");
    assert!(found[0]["tools"].as_array().expect("a list").contains(&json!("read_file")));
    let lines = out(&setup.host(&["workers", "list"]));
    assert_eq!(lines.lines().count(), 2, "{lines}");
    assert!(lines.contains(&format!("demo  {}  tool-std  ", ids[0])), "{lines}");
    let verbose = out(&setup.host(&["--verbose", "workers", "list"]));
    assert!(verbose.contains(&format!("demo  {}  read_file\n", ids[1])), "{verbose}");

    // The tools are listed beside those of the host.
    let tools = out(&setup.host(&["list"]));
    for name in ["read_file ", "remote__demo__read_file "] {
        assert!(tools.lines().any(|line| line.starts_with(name)), "{tools}");
    }

    // A call runs in one of the workers, and its output arrives while it runs.
    let read = ["--yes", "call", "remote__demo__read_file", "--path", "name.txt"];
    let ran = setup.host(&read);
    assert_eq!(ran.status.code(), Some(0), "{}", err(&ran));
    let text = out(&ran);
    assert!(["1: one\n", "1: two\n"].iter().any(|it| text.starts_with(it)), "{text}");
    let count = ["--yes", "call", "remote__demo__exec_command", "--events", "--cmd"];
    let counted = setup.host(&[&count[..], &["echo first; sleep 0.3; echo second"]].concat());
    assert_eq!(counted.status.code(), Some(0), "{}", err(&counted));
    let events = err(&counted);
    let outputs = events.lines().filter(|line| line.contains("\"type\":\"output\""));
    assert!(outputs.count() >= 2, "{events}");

    let stats = setup.host_json(&["workers", "stats", "--json"]);
    let stats = stats[0]["workers"].as_array().expect("a list").clone();
    assert_eq!(stats.iter().map(|worker| &worker["limit"]).collect::<Vec<_>>(), [3, 3]);
    let calls: u64 = stats.iter().filter_map(|worker| worker["calls"].as_u64()).sum();
    assert_eq!(calls, 2, "{stats:?}");
    let lines = out(&setup.host(&["workers", "stats"]));
    assert!(lines.contains("  0 of 3 running  "), "{lines}");
    assert!(lines.contains(" ms on average, 0 failed)  refused: 0 busy, 0 other"), "{lines}");

    // A worker that is drained ends; the other one goes on.
    let unknown = setup.host(&["workers", "drain", "missing"]);
    assert_eq!(unknown.status.code(), Some(1), "{}", err(&unknown));
    assert!(err(&unknown).contains("there is no worker `missing`"), "{}", err(&unknown));
    let first = drain_first(&setup, &mut workers, &ids);
    workers[first].wait_for_line("a host drained the worker");
    assert_eq!(workers[first].wait_for_end(), Some(0));
    let ran = setup.host(&read);
    assert_eq!(ran.status.code(), Some(0), "{}", err(&ran));

    // A call whose worker is killed is told, and not run again.
    let second = 1 - first;
    let mark = setup.path("mark");
    let append = format!("echo run >> {}; echo begun; sleep 30", mark.display());
    let mut command = setup.host_command(&[&count[..], &[&append]].concat());
    let mut lost = RunningProgram::start(command.stdout(Stdio::null()));
    lost.wait_for_line("\"type\":\"output\"");
    workers[second].kill();
    lost.wait_for_line("may have run");
    assert_eq!(lost.wait_for_end(), Some(1));
    assert_eq!(fs::read_to_string(&mark).expect("it was written"), "run\n");

    let gone = setup.host(&read);
    assert_eq!(gone.status.code(), Some(1), "{}", err(&gone));
    assert!(err(&gone).contains("`demo` has no workers now"), "{}", err(&gone));
    assert_eq!(out(&setup.host(&["workers", "list"])), "demo  no workers\n");
}

/// Drains the worker with the first id, and returns its position in `workers`.
fn drain_first(setup: &RemoteSetup, workers: &mut [RunningProgram; 2], ids: &[String; 2]) -> usize {
    let drained = setup.host(&["workers", "drain", &ids[0]]);
    assert_eq!(drained.status.code(), Some(0), "{}", err(&drained));
    assert!(err(&drained).contains("ends after its running calls"), "{}", err(&drained));
    let end = Instant::now() + PATIENCE;
    loop {
        for (position, worker) in workers.iter_mut().enumerate() {
            if worker.child.try_wait().expect("it was started here").is_some() {
                return position;
            }
        }
        assert!(Instant::now() < end, "no worker has ended");
        std::thread::yield_now();
    }
}

#[test]
fn host_and_worker_may_start_before_the_server() {
    let Some(mut setup) = RemoteSetup::new() else { return };
    let worker = setup.start_worker("one", &[]);
    let waiting = worker.wait_for_line("cannot connect to the NATS server");
    assert!(waiting.ends_with("; trying again until it answers"), "{waiting}");

    let mut serve = setup.host_command(&["serve", "mcp"]);
    let mut host = RunningProgram::start(serve.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut requests = host.child.stdin.take().expect("it is piped");
    let answers = lines_of(host.child.stdout.take().expect("it is piped"));
    let warning = host.wait_for_line("warning: the workers of `demo` are not connected");
    assert!(warning.ends_with("; trying again in the background"), "{warning}");

    // Commands that end say what is missing, and do not wait.
    let listed = setup.host(&["workers", "list"]);
    assert_eq!(listed.status.code(), Some(0));
    let line = out(&listed);
    assert!(line.starts_with("demo  not connected: cannot connect to the NATS server"), "{line}");
    for command in ["list", "stats"] {
        let told = setup.host_json(&["workers", command, "--json"]);
        assert_eq!((&told[0]["connected"], &told[0]["workers"]), (&json!(false), &json!([])));
        let error = told[0]["error"].as_str().expect("a reason");
        assert!(error.contains(&setup.url()), "{error}");
    }
    let called = setup.host(&["call", "remote__demo__read_file", "--path", "name.txt"]);
    assert_eq!(called.status.code(), Some(1), "{}", err(&called));
    assert!(err(&called).contains("the workers of `demo` are not connected"), "{}", err(&called));
    let drained = setup.host(&["workers", "drain", "abc"]);
    assert_eq!(drained.status.code(), Some(1));
    assert!(err(&drained).contains("the workers of `demo` are not connected"), "{}", err(&drained));

    let mut request = |id: u64, method: &str, params: Value| {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(requests, "{message}").expect("the server reads");
        let answer = wait_for_line(&answers, &format!("\"id\":{id}"));
        serde_json::from_str::<Value>(&answer).expect("JSON")
    };
    let client = json!({ "name": "by-hand", "version": "1" });
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    request(1, "initialize", hello);
    let has_tool = |listed: &Value| {
        let tools = listed["result"]["tools"].as_array().expect("a list");
        tools.iter().any(|tool| tool["name"] == "remote__demo__read_file")
    };
    assert!(!has_tool(&request(2, "tools/list", json!({}))));

    setup.start_server();
    worker_id(&worker);
    host.wait_for_line("the workers of `demo` are connected");
    let end = Instant::now() + PATIENCE;
    let is_listed = (3..).map(|id| has_tool(&request(id, "tools/list", json!({}))));
    let mut is_listed = is_listed.take_while(|_| Instant::now() < end);
    assert!(is_listed.any(|it| it), "the tools of the worker do not come");
}

#[test]
fn a_worker_that_the_server_refuses_ends() {
    let Some(mut setup) = RemoteSetup::new() else { return };
    setup.access = &["--user", "ada", "--pass", "a password of the tests"];
    setup.start_server();
    let mut worker = setup.start_worker("one", &[]);
    let line = worker.wait_for_line("authorization violation");
    assert!(line.contains("no connection to the NATS server nats://127.0.0.1:"), "{line}");
    assert_eq!(worker.wait_for_end(), Some(1));
    let listed = out(&setup.host(&["workers", "list"]));
    assert!(listed.starts_with("demo  not connected: no connection to the NATS"), "{listed}");
}

/// Replaces words in the only file of a folder.
#[track_caller]
fn edit_pins(folder: &Path, old: &str, new: &str) {
    let files = folder.read_dir().expect("the pins are there").flatten();
    let mut files = files
        .map(|entry| entry.path())
        .filter(|path| fs::read_to_string(path).is_ok_and(|text| text.contains(old)));
    let path = files.next().expect("a file with the words");
    let text = fs::read_to_string(&path).expect("it can be read");
    fs::write(&path, text.replace(old, new)).expect("it can be written");
}

// RW9
#[test]
fn new_and_changed_definitions_are_reviewed_and_trusted() {
    let Some(setup) = RemoteSetup::with_server() else { return };
    let worker = setup.start_worker("one", &[]);
    worker_id(&worker);
    let read = ["--allow", "remote__*", "call", "remote__demo__read_file", "--path", "name.txt"];
    let asks = setup.host(&read);
    assert_eq!(asks.status.code(), Some(3), "{}", err(&asks));

    let inspected = out(&setup.host(&["workers", "inspect", "demo", "read_file"]));
    assert!(inspected.starts_with("remote__demo__read_file  new\n"), "{inspected}");
    assert!(inspected.contains("\"description\": \"Read a text file"), "{inspected}");
    let refused = setup.host(&["workers", "trust", "demo", "read_file"]);
    assert_eq!(refused.status.code(), Some(3), "{}", err(&refused));
    assert!(err(&refused).contains("remote__demo__read_file  new      read "), "{}", err(&refused));
    let trusted = setup.host(&["--yes", "workers", "trust", "demo", "remote__demo__read_file"]);
    assert_eq!(trusted.status.code(), Some(0), "{}", err(&trusted));
    assert!(err(&trusted).contains("trusted: 1 definition of `demo`"), "{}", err(&trusted));
    let runs = setup.host(&read);
    assert_eq!(runs.status.code(), Some(0), "{}", err(&runs));

    // As if another definition had been trusted.
    edit_pins(&setup.path("state-host").join("remote"), "Read a text file", "Read some text");
    assert_eq!(setup.host(&read).status.code(), Some(3));
    let reviews = setup.host_json(&["workers", "inspect", "demo", "read_file", "--json"]);
    assert_eq!((&reviews[0]["is_pinned"], &reviews[0]["is_first"]), (&json!(false), &json!(false)));
    let shown = err(&setup.host(&["workers", "trust", "demo", "read_file"]));
    assert!(shown.contains("remote__demo__read_file  changed"), "{shown}");
    assert!(shown.contains("-  \"description\": \"Read some text"), "{shown}");
    assert!(shown.contains("+  \"description\": \"Read a text file"), "{shown}");
    let all = setup.host(&["--yes", "workers", "trust", "demo"]);
    assert_eq!(all.status.code(), Some(0), "{}", err(&all));
    assert_eq!(setup.host(&read).status.code(), Some(0));
    let again = setup.host(&["workers", "trust", "demo"]);
    assert_eq!(again.status.code(), Some(0));
    assert_eq!(err(&again), "the definitions of `demo` are trusted already\n");

    for (args, words) in [
        (["workers", "inspect", "other", "a"], "no workers of `other` are configured"),
        (["workers", "trust", "demo", "nothing"], "no worker of `demo` offers `nothing` now"),
    ] {
        let wrong = setup.host(&args);
        assert_eq!(wrong.status.code(), Some(2), "{}", err(&wrong));
        assert!(err(&wrong).contains(words), "{}", err(&wrong));
    }
}
