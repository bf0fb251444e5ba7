//! Configured MCP servers: cancellation, and servers that hang.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::peer::{Peer, program};

/// The time limit of every wait.
const LIMIT: Duration = Duration::from_secs(60);

/// Starts a server over HTTP with one tool that never returns; returns its address and the received
/// requests.
fn hanging() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let (tell, heard) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let tell = tell.clone();
            thread::spawn(move || answer(stream, &tell));
        }
    });
    (url, heard)
}

fn answer(stream: TcpStream, tell: &Sender<String>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        stream.read_line(&mut head).ok().filter(|read| *read > 0)?;
    }
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or_default()];
    stream.read_exact(&mut body).ok()?;
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let verb = head.split(' ').next()?.to_owned();
    tell.send(message["method"].as_str().map_or(verb, str::to_owned)).ok()?;
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "serverInfo": { "name": "x", "version": "1" },
        }),
        Some("tools/list") => {
            json!({ "tools": [{ "name": "hang", "inputSchema": { "type": "object" } }] })
        }
        // Until the client closes the connection.
        Some("tools/call") => return stream.read(&mut [0]).ok().map(drop),
        _ => Value::Null,
    };
    let body = match (&message["id"], result) {
        (Value::Null, _) => String::new(),
        (id, Value::Null) => {
            let error = json!({ "code": -32601, "message": "no" });
            json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()
        }
        (id, result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string(),
    };
    let status = if body.is_empty() { "202 Accepted" } else { "200 OK" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nMcp-Session-Id: a\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.get_mut().write_all(format!("{head}{body}").as_bytes()).ok()
}

/// Waits until the server has received this.
fn until(heard: &Receiver<String>, wanted: &str) {
    loop {
        let said = heard.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("nothing of {wanted}"));
        if said == wanted {
            return;
        }
    }
}

fn interrupt(child: &Child) {
    let told = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(told.expect("kill runs").success());
}

/// A configuration of one server.
fn config(folder: &tempfile::TempDir, server: &str) -> String {
    let path = folder.path().join("config.toml");
    std::fs::write(&path, format!("[mcp.servers.far]\n{server}\n")).expect("it can be written");
    path.to_str().expect("a plain path").to_owned()
}

// F122: Ctrl-C cancels the call at the server, and ends its session.
#[test]
fn an_interrupted_call_is_cancelled() {
    let (url, heard) = hanging();
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(&folder, &format!("url = {url:?}"));
    let args = ["--config", &config, "--yes", "call", "mcp__far__hang", "{}"];
    let child = program(&args).spawn().expect("the program runs");
    until(&heard, "tools/call");
    interrupt(&child);
    until(&heard, "notifications/cancelled");
    until(&heard, "delete");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(4), "{output:?}");
}

// A hanging server delays nothing, and a late one is announced.
#[test]
fn a_hanging_server_does_not_delay_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = config(&folder, "command = \"sleep\"\nargs = [\"100\"]");
    let begun = Instant::now();
    let mut peer = Peer::greet(program(&["--config", &config, "serve", "mcp"]), json!({}));
    let list = peer.ask(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    assert!(list["result"]["tools"].is_array(), "{list}");
    assert!(begun.elapsed() < LIMIT, "{:?}", begun.elapsed());
    peer.hang_up();
}

#[test]
fn late_tools_are_announced() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = r#"until [ -e "$1" ]; do sleep 0.05; done
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) say '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}' ;;
    *server/discover*) say '"error":{"code":-32601,"message":"no"}' ;;
    *tools/list*) say '"result":{"tools":[{"name":"late","inputSchema":{"type":"object"}}]}' ;;
  esac
done
"#;
    let path = folder.path().join("late.sh");
    std::fs::write(&path, script).expect("it can be written");
    let go = folder.path().join("go");
    let config = config(&folder, &format!("command = \"sh\"\nargs = [{path:?}, {go:?}]"));
    let mut peer = Peer::greet(program(&["--config", &config, "serve", "mcp"]), json!({}));
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    assert!(!peer.ask(&list).to_string().contains("mcp__far__late"), "it is not there yet");
    std::fs::write(&go, "").expect("it can be written");
    assert_eq!(peer.hear()["method"], "notifications/tools/list_changed");
    assert!(peer.ask(&list).to_string().contains("mcp__far__late"), "it has come");
    peer.hang_up();
}
