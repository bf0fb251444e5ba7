//! A secret of the program, planted in a file and passed in arguments, is seen nowhere: not in
//! responses, server-sent events, hook payloads, the audit log, other state, or standard error.

#![cfg(all(feature = "application", unix))]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

const SECRET: &str = "Zx9q8w7e6r5t4y3u2";
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// The folders of a program: a workspace, and a state folder beside it.
struct TestFolders(tempfile::TempDir);

impl TestFolders {
    fn new() -> Self {
        let places = Self(tempfile::tempdir().expect("a folder"));
        std::fs::create_dir(places.work()).expect("a folder in it");
        let leak = format!("first\nkey={SECRET}\nlast\n");
        std::fs::write(places.work().join("leak.txt"), leak).expect("a file in it");
        let hook = format!(
            "[{{ hooks = [{{ type = \"command\", command = \"cat >> {}\" }}] }}]",
            places.0.path().join("payloads").display()
        );
        let config = format!(
            "audit = \"{}\"\n[hooks]\nPreToolUse = {hook}\nPostToolUse = {hook}\n",
            places.0.path().join("audit.jsonl").display()
        );
        std::fs::write(places.0.path().join("config.toml"), config).expect("a file in it");
        places
    }

    fn work(&self) -> std::path::PathBuf {
        self.0.path().join("work")
    }

    fn program(&self, args: &[&str]) -> Command {
        let mut program = Command::new(env!("CARGO_BIN_EXE_tool-std"));
        program
            .arg("--root")
            .arg(self.work())
            .arg("--state-dir")
            .arg(self.0.path().join("state"))
            .arg("--config")
            .arg(self.0.path().join("config.toml"))
            .args(args)
            .env("TOOL_SDK_TOKEN", TOKEN)
            .env("TOOL_SDK_RECORD_SESSIONS", "true")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        program
    }

    fn set_secret(&self) {
        let mut child = self.program(&["secrets", "set", "PLANTED_KEY"]).spawn().expect("it runs");
        let mut input = child.stdin.take().expect("it is piped");
        writeln!(input, "{SECRET}").expect("it reads");
        drop(input);
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{output:?}");
    }
}

/// The program as a server over HTTP.
struct ServerProcess {
    child: Child,
    address: String,
    /// The header of the session, once there is one.
    session_header: String,
    log: BufReader<std::process::ChildStderr>,
}

impl ServerProcess {
    fn start(places: &TestFolders) -> Self {
        let mut child =
            places.program(&["--yes", "serve", "http", "127.0.0.1:0"]).spawn().expect("it runs");
        let mut log = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut line = String::new();
        log.read_line(&mut line).expect("it says where it listens");
        let address = line.trim_end().rsplit("http://").next().unwrap_or_default();
        let address = address.split('/').next().unwrap_or_default().to_owned();
        let mut server = Self { child, address, session_header: String::new(), log };
        let made = server.request("POST /v1/sessions", "{}");
        let made = made.split("\r\n\r\n").nth(1).expect("a body");
        let made: Value = serde_json::from_str(made).expect("JSON");
        server.session_header = format!("Session-Id: {}\r\n", made["id"].as_str().expect("an id"));
        server
    }

    /// Sends a request that accepts events, and returns the whole response.
    fn request(&self, head: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        write!(
            stream,
            "{head} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\n\
             {}Accept: text/event-stream, application/json\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            self.session_header,
            body.len()
        )
        .expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    fn call(&self, tool: &str, arguments: &Value) -> String {
        self.request(&format!("POST /v1/tools/{tool}"), &arguments.to_string())
    }

    fn stop(mut self) -> String {
        let _ = self.child.kill();
        let mut rest = String::new();
        let _ = self.log.read_to_string(&mut rest);
        let _ = self.child.wait();
        rest
    }
}

/// Returns the files below a folder.
fn files_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten().map(|it| it.path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

// A root above the state folder, such as the home folder, gives tools nothing of it.
#[test]
fn tools_do_not_read_the_secrets_of_the_program() {
    let places = TestFolders::new();
    places.set_secret();
    let above = places.0.path().to_str().expect("the path is text");
    let state = format!("{above}/state");
    let stored: Vec<_> = files_below(&places.0.path().join("state/secrets"));
    assert!(!stored.is_empty());
    for file in stored {
        let file = file.to_str().expect("the path is text");
        let command = format!("cat '{file}'");
        for call in [
            &["read_file", "--path", file][..],
            &["grep_files", "--pattern", &SECRET[..8], "--path", &state],
            &["exec_command", "--cmd", &command],
            &["exec_command", "--cmd", &format!("grep -r {} '{state}'", &SECRET[..8])],
        ] {
            let args = [&["--root", above, "--mode", "bypass", "call"], call].concat();
            let output = places.program(&args).output().expect("it runs");
            let shown = String::from_utf8_lossy(&output.stdout);
            assert!(!shown.contains(SECRET), "{call:?}: {shown}");
        }
    }
}

/// Returns the texts of all files but those that hold the secret on purpose.
fn texts_below(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.ends_with("leak.txt") || path.ends_with("secrets") {
            continue;
        }
        text += &match path.is_dir() {
            true => texts_below(&path),
            false => String::from_utf8_lossy(&std::fs::read(&path).expect("a file")).into_owned(),
        };
    }
    text
}

// F154
#[test]
fn a_secret_of_the_program_is_seen_nowhere() {
    let places = TestFolders::new();
    places.set_secret();
    let server = ServerProcess::start(&places);
    let looked_up = server.call("get_env_var", &json!({ "variable_name": "PLANTED_KEY" }));
    assert!(looked_up.contains("set (17 characters, secret, ****y3u2)"), "{looked_up}");
    let mut seen = vec![looked_up];
    let file = server.call("read_file", &json!({ "path": "leak.txt" }));
    assert!(file.contains("key=[redacted]") && file.contains("last"), "{file}");
    let found = server.call("grep_files", &json!({ "pattern": "key=" }));
    let command = json!({ "cmd": "echo begun; env; cat leak.txt; base64 < /dev/null" });
    let ran = server.call("exec_command", &command);
    assert!(ran.contains("begun") && ran.contains("key=[redacted]"), "{ran}");
    let refused = server.call("write_file", &json!({ "path": "b.txt", "content": SECRET }));
    assert!(refused.contains("the value of a secret"), "{refused}");
    let missing = server.call("read_file", &json!({ "path": "no-such-file" }));
    seen.extend([file, found, ran, refused, missing]);
    seen.push(server.request("GET /v1/calls", ""));
    seen.push(server.stop());
    seen.push(texts_below(places.0.path()));
    let all = seen.join("\n");
    for expected in ["event: result", "\"what\":\"ran\"", "PostToolUse", "\"status\":"] {
        assert!(all.contains(expected), "{expected} is read");
    }
    for text in &seen {
        assert!(!text.contains(SECRET), "{text}");
    }
}
