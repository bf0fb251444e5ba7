//! The program as a server of the Model Context Protocol, spoken to by hand: over its
//! standard input and output, and over HTTP.

#![cfg(feature = "application")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use serde_json::{Value, json};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// The program on this package's folder.
fn program(args: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_tool-std"));
    program
        .args(["--root", env!("CARGO_MANIFEST_DIR"), "--state-dir", env!("CARGO_TARGET_TMPDIR")])
        .args(args)
        .env_remove("TOOL_SDK_TOKEN")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    program
}

fn hello(version: &str) -> Value {
    json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": { "name": "by-hand", "version": "1" },
        },
    })
}

fn call(id: u64, tool: &str, arguments: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// A peer over standard input and output.
struct Peer {
    child: Child,
    write: ChildStdin,
    read: BufReader<ChildStdout>,
}

impl Peer {
    fn start() -> Self {
        let mut child = program(&["serve", "mcp"]).spawn().expect("the program runs");
        let write = child.stdin.take().expect("it is piped");
        let read = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut peer = Self { child, write, read };
        peer.send(&hello("2025-06-18"));
        let answer = peer.hear();
        assert_eq!(answer["result"]["protocolVersion"], "2025-06-18", "{answer}");
        assert_eq!(answer["result"]["serverInfo"]["name"], "tool-std");
        peer.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        peer
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.write, "{message}").expect("the program reads");
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.read.read_line(&mut line).expect("the program writes");
        serde_json::from_str(&line).expect("standard output holds the protocol only")
    }

    fn ask(&mut self, message: &Value) -> Value {
        self.send(message);
        let answer = self.hear();
        assert_eq!(answer["id"], message["id"], "{answer}");
        answer
    }

    /// Hangs up; the program has nothing more to say and ends.
    fn hang_up(mut self) -> Output {
        drop(self.write);
        let mut rest = String::new();
        self.read.read_to_string(&mut rest).expect("the program ends");
        assert_eq!(rest, "");
        let output = self.child.wait_with_output().expect("the program ends");
        assert!(output.status.success(), "{output:?}");
        output
    }
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().expect("a text")
}

#[test]
fn tools_are_listed_and_called_over_standard_input_and_output() {
    let mut peer = Peer::start();
    let list = peer.ask(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    let tools = list["result"]["tools"].as_array().expect("a list");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(names.is_sorted() && names.contains(&"read_file"), "{names:?}");

    let read = peer.ask(&call(2, "read_file", json!({ "path": "Cargo.toml", "limit": 1 })));
    assert!(text(&read).starts_with("1: [package]"), "{read}");
    let missing = peer.ask(&call(3, "read_file", json!({ "path": "no/such/file" })));
    assert_eq!(missing["result"]["isError"], true);
    let wrong = peer.ask(&call(4, "read_file", json!({ "pth": "Cargo.toml" })));
    assert_eq!(wrong["result"]["isError"], true);
    assert!(text(&wrong).contains("did you mean `path`?"), "{wrong}");
    let outside = peer.ask(&call(5, "read_file", json!({ "path": "/etc/passwd" })));
    assert_eq!(outside["result"]["isError"], true);
    let unknown = peer.ask(&call(6, "red_file", json!({})));
    assert_eq!(unknown["error"]["code"], -32602);

    writeln!(peer.write, "no JSON at all").expect("the program reads");
    let ping = peer.ask(&json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" }));
    assert_eq!(ping["result"], json!({}));
    assert_eq!(peer.hang_up().stderr, b"");
}

#[test]
fn calls_at_the_same_time_are_all_answered() {
    let mut peer = Peer::start();
    for id in 1..=10 {
        peer.send(&call(
            id,
            "read_file",
            json!({ "path": "Cargo.toml", "offset": id, "limit": 1 }),
        ));
    }
    let mut heard = Vec::new();
    for _ in 0..10 {
        let answer = peer.hear();
        let id = answer["id"].as_u64().expect("a number");
        assert!(text(&answer).starts_with(&format!("{id}: ")), "{answer}");
        heard.push(id);
    }
    heard.sort_unstable();
    assert_eq!(heard, (1..=10).collect::<Vec<_>>());
    peer.hang_up();
}

// The same calls again and again are found out.
#[test]
fn a_peer_that_repeats_itself_is_told_so() {
    let mut peer = Peer::start();
    let answers: Vec<Value> =
        (1..=5).map(|id| peer.ask(&call(id, "list_dir", json!({ "path": "src" })))).collect();
    assert_eq!(answers[0]["result"]["isError"], false);
    assert!(answers.iter().any(|answer| text(answer) != text(&answers[0])), "{answers:?}");
    peer.hang_up();
}

#[test]
fn everything_that_was_asked_before_hanging_up_is_answered() {
    let mut child = program(&["serve", "mcp"]).spawn().expect("the program runs");
    let mut stdin = child.stdin.take().expect("it is piped");
    let read = call(1, "read_file", json!({ "path": "Cargo.toml", "limit": 1 }));
    write!(stdin, "{}\n{read}", hello("2024-11-05")).expect("the program reads");
    drop(stdin);
    let output = child.wait_with_output().expect("the program ends");
    let lines = String::from_utf8_lossy(&output.stdout);
    let answers: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(answers.len(), 2, "{lines}");
    assert_eq!(answers[0]["result"]["protocolVersion"], "2024-11-05");
    assert_eq!(answers[1]["id"], 1);
}

#[test]
fn a_peer_that_says_nothing_is_no_failure() {
    let output = program(&["serve", "mcp"]).stdin(Stdio::null()).output().expect("it runs");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b""[..]));
}

/// A server over HTTP, ended when the test is.
struct Http {
    child: Child,
    address: String,
}

impl Http {
    fn start() -> Self {
        let mut child = program(&["serve", "mcp", "--http", "127.0.0.1:0"])
            .env("TOOL_SDK_TOKEN", TOKEN)
            .spawn()
            .expect("the program runs");
        let mut said = String::new();
        let stderr = child.stderr.as_mut().expect("it is piped");
        BufReader::new(stderr).read_line(&mut said).expect("it says where it listens");
        let address = said.trim_end().strip_prefix("listening on http://").expect("an address");
        let address = address.strip_suffix("/mcp").expect("a path").to_owned();
        assert!(!said.contains(TOKEN));
        Self { child, address }
    }

    /// The whole answer to one request on a connection of its own.
    fn post(&self, headers: &[(&str, &str)], body: &Value) -> String {
        let body = body.to_string();
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let mut head = format!(
            "POST /mcp HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n",
            body.len()
        );
        if headers.iter().all(|(name, _)| *name != "Host") {
            head += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        write!(stream, "{head}\r\n{body}").expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The message in a stream of events.
fn message(answer: &str) -> Value {
    let data = answer.lines().filter_map(|line| line.strip_prefix("data: "));
    let message = data.filter_map(|data| serde_json::from_str(data).ok()).next();
    message.unwrap_or_else(|| panic!("no message in {answer}"))
}

// RS2, RS3
#[test]
fn http_is_for_those_who_may_enter() {
    let server = Http::start();
    let bearer = format!("Bearer {TOKEN}");
    let token = ("Authorization", bearer.as_str());
    for (headers, status) in [
        (&[][..], "401 "),
        (&[("Authorization", "Bearer nonsense")], "401 "),
        (&[token, ("Origin", "https://evil.example")], "403 "),
        (&[token, ("Host", "evil.example")], "403 "),
        (&[token], "200 "),
    ] {
        let answer = server.post(headers, &hello("2025-11-25"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{headers:?}: {answer}");
    }
    let large = json!({ "large": "x".repeat(2 * 1024 * 1024) });
    assert!(server.post(&[token], &large).starts_with("HTTP/1.1 413 "));
}

#[test]
fn tools_are_called_over_http() {
    let server = Http::start();
    let bearer = format!("Bearer {TOKEN}");
    let token = ("Authorization", bearer.as_str());
    let hello = server.post(&[token], &hello("2025-11-25"));
    assert_eq!(message(&hello)["result"]["serverInfo"]["name"], "tool-std");
    let session = hello
        .lines()
        .find_map(|line| line.split_once(": ").filter(|(name, _)| *name == "mcp-session-id"))
        .map(|(_, id)| id)
        .expect("a session");
    let headers = [token, ("Mcp-Session-Id", session), ("MCP-Protocol-Version", "2025-11-25")];
    let read = call(2, "read_file", json!({ "path": "Cargo.toml", "limit": 1 }));
    let read = server.post(&headers, &read);
    assert!(text(&message(&read)).starts_with("1: [package]"), "{read}");
}

// A request of 2026-07-28 needs no session.
#[test]
fn requests_stand_for_themselves() {
    let server = Http::start();
    let bearer = format!("Bearer {TOKEN}");
    let mut read = call(1, "read_file", json!({ "path": "Cargo.toml", "limit": 1 }));
    read["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "by-hand", "version": "1" },
    });
    let headers = [
        ("Authorization", bearer.as_str()),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "read_file"),
    ];
    let answer = server.post(&headers, &read);
    assert!(answer.contains("1: [package]") && answer.starts_with("HTTP/1.1 200 "), "{answer}");
}
