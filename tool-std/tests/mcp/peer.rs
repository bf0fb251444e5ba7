//! A hand-written client, and the program as its server.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use serde_json::{Value, json};

/// Starts the program on this package's folder.
pub(crate) fn program(args: &[&str]) -> Command {
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

pub(crate) fn hello(version: &str) -> Value {
    hello_with(version, json!({}))
}

fn hello_with(version: &str, capabilities: Value) -> Value {
    json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": { "name": "by-hand", "version": "1" },
        },
    })
}

pub(crate) fn call(id: u64, tool: &str, arguments: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// A client over stdio.
pub(crate) struct Peer {
    child: Child,
    pub(crate) write: ChildStdin,
    read: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts the program, without a handshake.
    pub(crate) fn silent(mut program: Command) -> Self {
        let mut child = program.spawn().expect("the program runs");
        let write = child.stdin.take().expect("it is piped");
        let read = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, write, read }
    }

    pub(crate) fn start() -> Self {
        Self::greet(program(&["serve", "mcp"]), json!({}))
    }

    /// Starts a client that completes the handshake.
    pub(crate) fn greet(program: Command, capabilities: Value) -> Self {
        let mut peer = Self::silent(program);
        peer.send(&hello_with("2025-06-18", capabilities));
        let answer = peer.hear();
        assert_eq!(answer["result"]["protocolVersion"], "2025-06-18", "{answer}");
        let info = &answer["result"]["serverInfo"];
        assert_eq!((&info["name"], &info["title"]), (&json!("tool-std"), &json!("Standard tools")));
        assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(info["icons"][0]["mimeType"], "image/svg+xml");
        peer.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        peer
    }

    pub(crate) fn send(&mut self, message: &Value) {
        writeln!(self.write, "{message}").expect("the program reads");
    }

    pub(crate) fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.read.read_line(&mut line).expect("the program writes");
        serde_json::from_str(&line).expect("standard output holds the protocol only")
    }

    pub(crate) fn ask(&mut self, message: &Value) -> Value {
        self.send(message);
        let answer = self.hear();
        assert_eq!(answer["id"], message["id"], "{answer}");
        answer
    }

    /// Kills the program in the middle of its work.
    #[cfg(unix)]
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Closes the connection; the program must end without further output.
    pub(crate) fn hang_up(mut self) -> Output {
        drop(self.write);
        let mut rest = String::new();
        self.read.read_to_string(&mut rest).expect("the program ends");
        assert_eq!(rest, "");
        let output = self.child.wait_with_output().expect("the program ends");
        assert!(output.status.success(), "{output:?}");
        output
    }
}

pub(crate) fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().expect("a text")
}
