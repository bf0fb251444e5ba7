//! `serve http` and `token`, as a person and a program use them over HTTP.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStderr};

use serde_json::json;

use super::*;

/// A project with the state of its user beside it.
struct ProjectFolder {
    folder: tempfile::TempDir,
}

impl ProjectFolder {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("there is room");
        fs::create_dir(folder.path().join("project")).expect("there is room");
        let project = Self { folder };
        fs::write(project.file("notes.txt"), "one\ntwo\n").expect("there is room");
        project
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("project").join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tool-std"));
        command
            .arg("--root")
            .arg(self.folder.path().join("project"))
            .arg("--state-dir")
            .arg(self.folder.path().join("state"))
            .args(args)
            .env("XDG_CONFIG_HOME", self.folder.path().join("config"))
            .env_remove("TOOL_SDK_TOKEN")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the program runs")
    }

    /// Makes a token with a scope.
    fn token(&self, args: &[&str]) -> String {
        let made = self.run(&[&["token", "create"], args].concat());
        assert!(made.status.success(), "{}", err(&made));
        out(&made).trim().to_owned()
    }

    fn serve(&self) -> ServerProcess {
        let mut child = self
            .command(&["serve", "http", "127.0.0.1:0"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut said = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut line = || {
            let mut line = String::new();
            said.read_line(&mut line).expect("the program says where it listens");
            assert!(!line.is_empty(), "the program ended");
            line.trim_end().to_owned()
        };
        let (mut address, mut token, mut link) = (None, None, None);
        while link.is_none() {
            let line = line();
            address = address.or(line.strip_prefix("listening on http://").map(str::to_owned));
            if let Some(path) = line.strip_prefix("the token is in ") {
                token = Some(fs::read_to_string(path).expect("the token").trim().to_owned());
            }
            let (_, printed) = line.rsplit_once(": ").unwrap_or_default();
            link = line.starts_with("console, ").then(|| printed.to_owned());
        }
        let (address, token) = (address.expect("an address"), token.expect("a token"));
        ServerProcess { child, address, token, link: link.expect("a link"), _said: said }
    }
}

/// The program while it serves.
struct ServerProcess {
    child: Child,
    address: String,
    token: String,
    /// To the console.
    link: String,
    /// Open, so that the program can write.
    _said: BufReader<ChildStderr>,
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl ServerProcess {
    /// Sends a request; returns the status and the body.
    fn send(&self, token: &str, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).expect("the server listens");
        let body = body.map(Value::to_string).unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).expect("the server reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the server answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).expect("a status").parse().expect("a number");
        (status, serde_json::from_str(body).unwrap_or_else(|_| body.into()))
    }

    fn get(&self, token: &str, path: &str) -> (u16, Value) {
        self.send(token, "GET", path, None)
    }

    fn call(&self, tool: &str, arguments: &Value) -> (u16, Value) {
        self.send(&self.token, "POST", &format!("/v1/tools/{tool}"), Some(arguments))
    }

    /// Waits for the one open approval request.
    fn wait_for_request(&self, token: &str) -> Value {
        loop {
            let (status, list) = self.get(token, "/v1/approvals");
            assert_eq!(status, 200, "{list}");
            if let Some(request) = list["approvals"].as_array().and_then(|all| all.first()) {
                return request.clone();
            }
            std::thread::yield_now();
        }
    }
}

#[test]
fn the_printed_link_signs_in_to_the_console_once() {
    let project = ProjectFolder::new();
    let server = project.serve();
    let (base, code) = server.link.split_once("/#").expect("a link with a code");
    assert_eq!(base, format!("http://{}", server.address));
    let body = json!({ "code": code });
    let (status, session) = server.send("", "POST", "/console/sign-in", Some(&body));
    assert_eq!((status, &session["title"]), (200, &json!("tool-std")), "{session}");
    assert_eq!(server.send("", "POST", "/console/sign-in", Some(&body)).0, 401);
    let (status, page) = server.get("", "/");
    assert!(status == 200 && page.as_str().is_some_and(|page| page.contains("/console/main.js")));
}

// The main job: list the tools, read a file, and approve an edit after its diff was shown.
#[test]
fn a_person_approves_an_edit_after_its_diff() {
    let project = ProjectFolder::new();
    let person = project.token(&["--scope", "approvals"]);
    let server = project.serve();
    let (status, list) = server.get(&server.token, "/v1/tools");
    let names = list["tools"].as_array().expect("tools").iter();
    assert!(status == 200 && names.clone().any(|it| it["name"] == "read_file"));
    let (status, read) = server.get(&server.token, "/v1/tools/read_file/call?path=notes.txt");
    assert!(status == 200 && read["text"].as_str().expect("text").contains("two"), "{read}");

    // The client's token may not see the requests, and the person's calls nothing.
    assert_eq!(server.get(&server.token, "/v1/approvals").0, 403);
    assert_eq!(server.get(&person, "/v1/tools/read_file/call?path=notes.txt").0, 403);
    let edit = json!({ "path": "notes.txt", "old_string": "two", "new_string": "TWO" });
    let (status, result) = std::thread::scope(|scope| {
        let called = scope.spawn(|| server.call("edit_file", &edit));
        let request = server.wait_for_request(&person);
        let diff = request["preview"].to_string();
        assert!(diff.contains("-two") && diff.contains("+TWO"), "{request}");
        assert_eq!(fs::read_to_string(project.file("notes.txt")).expect("a file"), "one\ntwo\n");
        let path = format!("/v1/approvals/{}", request["id"].as_str().expect("an id"));
        let mut edited = edit.clone();
        edited["new_string"] = json!("zwei");
        let answer = json!({
            "reply": "once", "fingerprint": request["fingerprint"], "arguments": edited,
        });
        assert_eq!(server.send(&person, "POST", &path, Some(&answer)).0, 204);
        assert_eq!(server.send(&person, "POST", &path, Some(&answer)).0, 409);
        called.join().expect("an answer")
    });
    assert!(status == 200 && result["text"].to_string().contains("zwei"), "{result}");
    assert_eq!(fs::read_to_string(project.file("notes.txt")).expect("a file"), "one\nzwei\n");
}

// A call without a session leaves nothing behind that no later call could reach.
#[test]
fn a_call_without_a_session_is_done_when_it_is_answered() {
    let project = ProjectFolder::new();
    let server = project.serve();
    let (status, ran) =
        server.call("exec_command", &json!({ "cmd": "sleep 1", "yield_time_ms": 250 }));
    let text = ran["text"].as_str().unwrap_or_default();
    assert!(status == 200 && text.contains("Process exited with code 0"), "{ran}");
    let (status, refused) = server.call("plan_enter", &json!({}));
    assert_eq!((status, &refused["category"]), (409, &json!("conflict")), "{refused}");
    assert!(refused["suggestion"].to_string().contains("`Session-Id`"), "{refused}");
}

// Without a token that approves, a call that would be asked about is denied at once, and says why.
#[test]
fn a_server_without_approvers_denies() {
    let project = ProjectFolder::new();
    let server = project.serve();
    let arguments = json!({ "path": "new.txt", "content": "x" });
    let (status, problem) = server.call("write_file", &arguments);
    assert_eq!((status, &problem["category"]), (403, &json!("denied")));
    assert!(problem["suggestion"].as_str().expect("a hint").contains("allow"), "{problem}");
    assert!(!project.file("new.txt").exists());
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.get("none", path).0, 200);
    }
    assert_eq!(server.get("none", "/v1/tools").0, 401);
}

// A running server notices tokens that are made and revoked.
#[test]
fn tokens_are_made_listed_and_revoked() {
    let project = ProjectFolder::new();
    let server = project.serve();
    let listed = || json(&project.run(&["token", "list", "--json"]));
    assert_eq!(listed(), json!([]));
    let token = project.token(&["--scope", "tools", "--scope", "approvals", "--principal", "ada"]);
    let all = listed();
    let entry = &all[0];
    assert_eq!(
        (&entry["scopes"], &entry["principal"]),
        (&json!(["tools", "approvals"]), &json!("ada"))
    );
    assert!(!all.to_string().contains(&token), "the secret is shown once");
    assert!(token.len() >= 32);
    assert_eq!(server.get(&token, "/v1/tools").0, 200);
    assert_eq!(server.get(&token, "/v1/approvals").0, 200);
    assert_eq!(server.get(&token, "/metrics").0, 403);

    let id = entry["id"].as_str().expect("an id");
    assert!(project.run(&["token", "revoke", id]).status.success());
    assert_eq!(server.get(&token, "/v1/tools").0, 401);
    let again = project.run(&["token", "revoke", id]);
    assert_eq!((again.status.code(), err(&again).contains("token list")), (Some(2), true));
    for wrong in [
        &["token", "create"][..],
        &["token", "create", "--scope", "everything"],
        &["token", "create", "--scope", "tools", "--principal", " "],
        &["token", "revoke"],
    ] {
        assert_eq!(project.run(wrong).status.code(), Some(2), "{wrong:?}");
    }
    let made = json(&project.run(&["token", "create", "--scope", "administration", "--json"]));
    assert_eq!(server.get(made["token"].as_str().expect("a token"), "/metrics").0, 200);
}

// No tool runs, so that the current folder does not matter: a state folder below it is trusted.
#[test]
fn tokens_are_made_in_a_folder_around_the_state_folder() {
    let folder = tempfile::tempdir().expect("there is room");
    let token = |args: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_tool-std"))
            .args(["--state-dir", "state", "token"])
            .args(args)
            .env("XDG_CONFIG_HOME", folder.path().join("config"))
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .output()
            .expect("the program runs")
    };
    let made = token(&["create", "--scope", "approvals"]);
    assert!(made.status.success(), "{}", err(&made));
    assert_eq!(json(&token(&["list", "--json"])).as_array().map(Vec::len), Some(1));
}

// RS1
#[test]
fn other_machines_need_a_chosen_token() {
    let project = ProjectFolder::new();
    let refused = project.run(&["serve", "http", "0.0.0.0:0"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(err(&refused).contains("TOOL_SDK_TOKEN"), "{}", err(&refused));
    let mut short = project.command(&["serve", "http", "127.0.0.1:0"]);
    let refused = short.env("TOOL_SDK_TOKEN", "short").output().expect("the program runs");
    assert_eq!(refused.status.code(), Some(2), "{}", err(&refused));
    assert_eq!(project.run(&["serve", "http", "nowhere"]).status.code(), Some(2));
}

// A signal ends the server within its grace time, without an error.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_shuts_the_server_down() {
    use rustix::process::{Pid, Signal, kill_process};

    let project = ProjectFolder::new();
    let mut server = project.serve();
    let pid = Pid::from_child(&server.child);
    kill_process(pid, Signal::TERM).expect("the server runs");
    let ended = server.child.wait().expect("the server ends");
    assert!(ended.success(), "{ended}");
}
