//! The program as an MCP server over HTTP at a Unix socket.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command};

use serde_json::Value;

use crate::peer::{hello, program};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A server at a socket, which ends with the test.
struct Server {
    child: Child,
    said: BufReader<ChildStderr>,
    path: PathBuf,
}

impl Server {
    fn start(path: &Path, token: Option<&str>) -> Self {
        let state = path.with_file_name("state");
        let at = format!("unix:{}", path.display());
        let state = state.to_str().expect("a plain path");
        let mut program = program(&["serve", "mcp", "--state-dir", state, "--http", &at]);
        program.envs(token.map(|token| ("TOOL_SDK_TOKEN", token)));
        let mut child = program.spawn().expect("the program runs");
        let said = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut server = Self { child, said, path: path.to_owned() };
        let line = server.next_line();
        assert_eq!(line, format!("listening on {at}, as http://localhost/mcp"));
        server
    }

    fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("it says more");
        line.trim_end().to_owned()
    }

    /// Returns curl's output for a first request: the body, followed by the status.
    fn curl(&self, more: &[&str]) -> String {
        let output = Command::new("curl")
            .args(["--silent", "--max-time", "20", "--unix-socket"])
            .arg(&self.path)
            .args(["--header", "Content-Type: application/json"])
            .args(["--header", "Accept: application/json, text/event-stream"])
            .args(["--write-out", "\n%{http_code}", "--data", &hello("2025-11-25").to_string()])
            .args(more)
            .arg("http://localhost/mcp")
            .output()
            .expect("curl runs");
        String::from_utf8(output.stdout).expect("it is text")
    }

    /// Sends SIGTERM like a service manager, and waits.
    fn end(mut self) {
        let told = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(told.expect("kill runs").success());
        self.child.wait().expect("it ends");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("it is there").permissions().mode() & 0o777
}

// RS1
#[test]
fn a_socket_serves_clients_with_the_token() {
    let outer = tempfile::tempdir().expect("a folder");
    let outer = outer.path().canonicalize().expect("it is there");
    let path = outer.join("run/mcp.sock");
    let server = Server::start(&path, Some(TOKEN));
    assert_eq!((mode(&outer.join("run")), mode(&path)), (0o700, 0o600));

    let bearer = format!("Authorization: Bearer {TOKEN}");
    let token = ["--header", bearer.as_str()];
    let answer = server.curl(&token);
    let message = answer.lines().find(|line| line.starts_with('{')).expect("a message");
    let message: Value = serde_json::from_str(message).expect("it is JSON");
    assert_eq!(message["result"]["serverInfo"]["name"], "tool-std");
    assert!(answer.ends_with("\n200"), "{answer}");
    for (more, status) in [
        (&[][..], "401"),
        (&["--header", "Authorization: Bearer nonsense"], "401"),
        (&[&token[..], &["--header", "Origin: https://evil.example"]].concat(), "403"),
        (&[&token[..], &["--header", "Host: evil.example"]].concat(), "403"),
        (&[&token[..], &["--header", "Host: localhost"]].concat(), "200"),
    ] {
        let answer = server.curl(more);
        assert!(answer.ends_with(&format!("\n{status}")), "{more:?}: {answer}");
    }
    server.end();
    assert!(!path.exists(), "it goes with the server");
}

// RS2: the same rules as at a loopback address.
#[test]
fn stores_the_socket_token_in_a_private_file() {
    let outer = tempfile::tempdir().expect("a folder");
    let outer = outer.path().canonicalize().expect("it is there");
    let mut server = Server::start(&outer.join("run/mcp.sock"), None);
    let line = server.next_line();
    let path = Path::new(line.strip_prefix("the token is in ").expect("a path"));
    assert_eq!(mode(path), 0o600);
    let token = fs::read_to_string(path).expect("it is there");
    let bearer = format!("Authorization: Bearer {}", token.trim());
    assert!(server.curl(&["--header", &bearer]).ends_with("\n200"));
    assert!(server.curl(&[]).ends_with("\n401"));
}

#[test]
fn replaces_a_stale_socket() {
    let outer = tempfile::tempdir().expect("a folder");
    let path = outer.path().canonicalize().expect("it is there").join("run/mcp.sock");
    drop(Server::start(&path, Some(TOKEN)));
    assert!(path.exists(), "it had no time to take it away");
    let server = Server::start(&path, Some(TOKEN));
    let bearer = format!("Authorization: Bearer {TOKEN}");
    assert!(server.curl(&["--header", &bearer]).ends_with("\n200"));
}

/// Returns the error of a server that cannot listen there.
fn refused(path: &str) -> String {
    let at = format!("unix:{path}");
    let mut program = program(&["serve", "mcp", "--http", &at]);
    let mut child = program.env("TOOL_SDK_TOKEN", TOKEN).spawn().expect("the program runs");
    let mut said = String::new();
    child.stderr.take().expect("it is piped").read_to_string(&mut said).expect("it ends");
    let ended = child.wait().expect("it ends");
    assert_eq!(ended.code(), Some(1), "{said}");
    said
}

#[test]
fn rejects_a_shared_socket_folder() {
    let outer = tempfile::tempdir().expect("a folder");
    let outer = outer.path();
    let at = |name: &str| outer.join(name).to_str().expect("a plain path").to_owned();
    let folder = |name: &str, mode: u32| {
        fs::create_dir(at(name)).expect("it is made");
        fs::set_permissions(at(name), PermissionsExt::from_mode(mode)).expect("it is ours");
    };
    folder("open", 0o755);
    folder("shared", 0o777);
    folder("own", 0o700);
    symlink(at("own"), at("link")).expect("it is made");
    fs::write(at("own/file"), "kept").expect("it is written");
    symlink(at("own/nothing"), at("own/link")).expect("it is made");
    let _alive = UnixListener::bind(at("own/alive")).expect("it is made");
    for (path, words) in [
        ("open/s", "others may enter it"),
        ("shared/s", "others may write to it"),
        ("link/s", "it is a link"),
        ("own/file", "there is something else already"),
        ("own/link", "there is something else already"),
        ("own/alive", "a program listens there already"),
        ("own/file/s", "it is not a folder"),
    ] {
        let said = refused(&at(path));
        assert!(said.contains("cannot serve: `") && said.contains(words), "{path}: {said}");
    }
    assert_eq!(fs::read_to_string(at("own/file")).expect("it is there"), "kept");
    // Tools may write into the working directory, so they could replace the socket.
    let said = refused("target/run/mcp.sock");
    assert!(said.contains("tools may write to it"), "{said}");
}
