//! The program as an MCP server over HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command};

use serde_json::{Value, json};

use crate::peer::{call, hello, program, text};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A server over HTTP, which ends with the test.
struct Http {
    child: Child,
    said: BufReader<ChildStderr>,
    address: String,
}

impl Http {
    fn start() -> Self {
        Self::run(program(&["serve", "mcp", "--http", "127.0.0.1:0"]).env("TOOL_SDK_TOKEN", TOKEN))
    }

    fn run(program: &mut Command) -> Self {
        let mut child = program.spawn().expect("the program runs");
        let mut said = String::new();
        let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        stderr.read_line(&mut said).expect("it says where it listens");
        let address = said.trim_end().strip_prefix("listening on http://").expect("an address");
        let address = address.strip_suffix("/mcp").expect("a path").to_owned();
        assert!(!said.contains(TOKEN));
        Self { child, said: stderr, address }
    }

    /// Returns the next line of the server's standard error.
    fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("it says more");
        line.trim_end().to_owned()
    }

    /// Returns the whole response to one request on its own connection.
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

    /// Sends a request without a session.
    fn ask(&self, token: &str, mut request: Value) -> String {
        request["params"]["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "by-hand", "version": "1" },
        });
        let bearer = format!("Bearer {token}");
        let method = request["method"].as_str().expect("a method").to_owned();
        let mut headers = vec![
            ("Authorization", bearer.as_str()),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", &method),
        ];
        let name = request["params"]["name"].as_str().map(str::to_owned);
        headers.extend(name.as_deref().map(|name| ("Mcp-Name", name)));
        self.post(&headers, &request)
    }

    fn lists(&self, token: &str, tool: &str) -> bool {
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
        self.ask(token, list).contains(&format!("\"name\":\"{tool}\""))
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the message of a response, which is JSON or an event stream.
fn message(answer: &str) -> Value {
    let data = answer.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    let data = data.filter(|line| line.starts_with('{'));
    let message = data.filter_map(|data| serde_json::from_str(data).ok()).next();
    message.unwrap_or_else(|| panic!("no message in {answer}"))
}

// RS2, RS3
#[test]
fn http_requires_a_token() {
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
fn calls_tools_over_http() {
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

// F130: the configuration names the clients, but not their tokens.
#[test]
fn the_configuration_names_the_clients() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (config, secret) = (folder.join("principals.toml"), folder.join("principals.token"));
    let bob = "bob-0123456789abcdef0123456789abcdef";
    std::fs::write(&secret, format!("{bob}\n")).expect("it can be written");
    let entries = format!(
        "[serve.mcp.principals.ada]\ntoken_env = \"ADA_TOKEN\"\n\
         [serve.mcp.principals.bob]\ntoken_file = {:?}\npermissions = [\"p\"]\n",
        secret.display().to_string()
    );
    std::fs::write(&config, entries).expect("it can be written");
    let config = config.to_str().expect("a name");
    let args = ["--config", config, "serve", "mcp", "--http", "127.0.0.1:0"];

    let output = program(&args).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("`ADA_TOKEN`, the token of `ada`, is not set"), "{said}");

    let server = Http::run(program(&args).env("ADA_TOKEN", TOKEN));
    assert!(!server.lists(TOKEN, "register_mcp_server"), "one would add tools to all");
    assert!(server.lists(TOKEN, "debug_mcp_server"));
    for (token, status) in [(TOKEN, "200 "), (bob, "200 "), (&TOKEN[1..], "401 ")] {
        let bearer = format!("Bearer {token}");
        let answer = server.post(&[("Authorization", &bearer)], &hello("2025-11-25"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
}

// A request of protocol 2026-07-28 needs no session.
#[test]
fn serves_requests_without_a_session() {
    let server = Http::start();
    let read = call(1, "read_file", json!({ "path": "Cargo.toml", "limit": 1 }));
    let answer = server.ask(TOKEN, read);
    assert!(answer.contains("1: [package]") && answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

// A background command is available to the next request of the same principal only.
#[cfg(unix)]
#[test]
fn background_commands_outlive_their_request() {
    let args = ["--yes", "serve", "mcp", "--http", "127.0.0.1:0"];
    let server = Http::run(program(&args).env("TOOL_SDK_TOKEN", TOKEN));
    let started =
        json!({ "cmd": "read -r line; echo got $line", "tty": true, "yield_time_ms": 250 });
    let started = server.ask(TOKEN, call(1, "exec_command", started));
    let started = message(&started);
    let (_, id) = text(&started).split_once("session ID ").expect("it runs on");
    let id: u32 = id.lines().next().and_then(|id| id.trim().parse().ok()).expect("a number");
    let typed = json!({ "session_id": id, "chars": "word\n", "yield_time_ms": 30_000 });
    let typed = server.ask(TOKEN, call(2, "write_stdin", typed));
    assert!(text(&message(&typed)).contains("got word"), "{typed}");
}

// RS2: a generated token is stored readable by the user only, and nowhere else.
#[cfg(unix)]
#[test]
fn stores_the_token_in_a_private_file() {
    use std::os::unix::fs::PermissionsExt as _;

    let state = tempfile::tempdir().expect("a folder");
    let folder = state.path().join("state");
    let place = folder.to_str().expect("a name");
    let args = ["serve", "mcp", "--state-dir", place, "--http", "127.0.0.1:0"];
    let mut server = Http::run(&mut program(&args));
    let path = server.next_line();
    let path = path.strip_prefix("the token is in ").expect("a path").to_owned();
    let token = std::fs::read_to_string(&path).expect("it is there");
    let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(server.lists(token.trim(), "read_file"));
}

// Remote clients must be configured.
#[test]
fn remote_clients_use_configured_host_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("config.toml");
    let entry =
        "[serve.mcp]\nhosts = [\"tools.example.com\"]\norigins = [\"https://example.com\"]\n";
    std::fs::write(&config, entry).expect("it can be written");
    let config = config.to_str().expect("a name");
    let args = ["--config", config, "serve", "mcp", "--http", "0.0.0.0:0"];
    let mut server = Http::run(program(&args).env("TOOL_SDK_TOKEN", TOKEN));
    assert_eq!(server.next_line(), "other machines can connect as tools.example.com");
    let (_, port) = server.address.rsplit_once(':').expect("a port");
    let port = port.to_owned();
    server.address = format!("127.0.0.1:{port}");
    let bearer = format!("Bearer {TOKEN}");
    for (host, origin, status) in [
        (format!("tools.example.com:{port}"), "https://example.com", "200 "),
        ("tools.example.com".to_owned(), "https://example.com", "200 "),
        (format!("tools.example.com:{port}"), "https://evil.example", "403 "),
        (format!("evil.example:{port}"), "https://example.com", "403 "),
    ] {
        let headers = [("Host", host.as_str()), ("Origin", origin), ("Authorization", &bearer)];
        let answer = server.post(&headers, &hello("2025-11-25"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{host} {origin}: {answer}");
    }
}
