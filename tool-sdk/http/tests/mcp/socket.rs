//! HTTP over a UNIX socket.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tool_sdk_http::{HttpOptions, UnixSocket, serve_http};

use super::*;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// The status of the answer to a first message, and the rest of it.
async fn ask(path: &std::path::Path, head: &str) -> (u16, String) {
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "by-hand", "version": "1" },
        },
    });
    let body = hello.to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n{head}\r\n{body}",
        body.len()
    );
    let mut stream = UnixStream::connect(path).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    (answer[9..12].parse().unwrap(), answer)
}

// RS1-RS3: a socket keeps other users out, and changes nothing for those who come in.
#[tokio::test]
async fn who_comes_in_at_a_socket_needs_the_token() {
    // The path of a socket is limited.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let socket = UnixSocket::bind(folder.path().join("run/mcp")).await.unwrap();
    let path = socket.path().to_owned();
    let http = HttpOptions::new(TOKEN.parse().unwrap()).allow_host("tools.example.com");
    let server = Server::new(pipeline(), Session::new("test"));
    let serving = tokio::spawn(serve_http(&server, socket, http));

    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    for (host, more, status) in [
        ("localhost", "", 200),
        ("LOCALHOST", "", 200),
        ("127.0.0.1", "", 200),
        ("[::1]", "", 200),
        ("tools.example.com", "", 200),
        ("localhost:80", "", 403),
        ("evil.example", "", 403),
        ("localhost", "Origin: https://evil.example\r\n", 403),
        ("localhost", "Origin: http://localhost\r\n", 403),
    ] {
        let (told, answer) = ask(&path, &format!("Host: {host}\r\n{token}{more}")).await;
        assert_eq!(told, status, "{host} {more}: {answer}");
        assert!(status != 200 || answer.contains("serverInfo"), "{answer}");
    }
    assert_eq!(ask(&path, &token).await.0, 403);
    assert_eq!(ask(&path, "Host: localhost\r\n").await.0, 401);
    let wrong = "Host: localhost\r\nAuthorization: Bearer nonsense\r\n";
    assert_eq!(ask(&path, wrong).await.0, 401);

    serving.abort();
    assert!(serving.await.unwrap_err().is_cancelled());
    assert!(!path.exists(), "it goes with the server");
}
