//! Several people at one server over HTTP.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::surface::mcp::{Http, Principal, Token};

const ADA: &str = "ada-0123456789abcdef0123456789abcdef";
const BOB: &str = "bob-0123456789abcdef0123456789abcdef";

/// The whole answer to one request.
async fn post(address: &str, token: &str, session: Option<&str>, message: Value) -> String {
    let body = message.to_string();
    let session = session.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{session}\
         Authorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

// F130, MS3: calls are made on behalf of whoever has the token, and a session is not shared.
#[tokio::test]
async fn a_session_belongs_to_whoever_opened_it() {
    let who =
        DynamicTool::new(definition("who", RiskClass::Read), |_: Value, cx: Context| async move {
            cx.require("notes:write")?;
            Ok::<_, ToolError>(format!("it is {}", cx.session().user().unwrap_or("nobody")))
        });
    let registry = Registry::builder().add(who).build().unwrap();
    let server = Server::new(Pipeline::new(registry), Session::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let http = Http::new(Token::random().unwrap())
        .principal(ADA.parse().unwrap(), Principal::new("ada").with_permission("notes:write"))
        .principal(BOB.parse().unwrap(), Principal::new("bob"));
    let serving = tokio::spawn(server.serve_http(listener, http));

    let hello = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "by-hand", "version": "1" },
        },
    });
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "who", "arguments": {} },
    });
    let mut answers = Vec::new();
    for (opens, calls) in [(ADA, ADA), (BOB, BOB), (ADA, BOB)] {
        let opened = post(&address, opens, None, hello.clone()).await;
        let id = opened
            .lines()
            .find_map(|line| line.split_once(": ").filter(|(name, _)| *name == "mcp-session-id"))
            .map(|(_, id)| id.to_owned())
            .unwrap();
        answers.push(post(&address, calls, Some(&id), call.clone()).await);
    }
    assert!(answers[0].contains("it is ada"), "{}", answers[0]);
    assert!(answers[1].contains("needs the permission"), "{}", answers[1]);
    assert!(answers[2].contains("belongs to somebody else"), "{}", answers[2]);
    serving.abort();
}
