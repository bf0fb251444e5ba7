//! A server on this machine for tests.

use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tool_sdk::net::{GuardedClient, WebSettings};

/// Answers a request, given as its path and its whole text.
type Answer = dyn Fn(&str, &str) -> Vec<u8> + Send + Sync;

/// Answers one request per connection.
pub(crate) struct TestServer {
    pub(crate) port: u16,
}

impl TestServer {
    pub(crate) async fn start(
        answer: impl Fn(&str, &str) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let answer: Arc<Answer> = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve_connection(stream, Arc::clone(&answer)));
            }
        });
        Self { port }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

async fn serve_connection(mut stream: TcpStream, answer: Arc<Answer>) {
    let (mut request, mut chunk) = (String::new(), [0; 4096]);
    while !is_complete(&request) {
        match stream.read(&mut chunk).await {
            Ok(read @ 1..) => request.push_str(&String::from_utf8_lossy(&chunk[..read])),
            _ => return,
        }
    }
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let _ = stream.write_all(&answer(&path, &request)).await;
}

fn is_complete(request: &str) -> bool {
    let Some((head, body)) = request.split_once("\r\n\r\n") else { return false };
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.parse().unwrap())
}

/// Returns a response with this status, content type and body.
pub(crate) fn reply(status: u16, content_type: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

pub(crate) fn redirect(to: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 X\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        .into_bytes()
}

/// Returns a client that reaches these hosts on this machine.
pub(crate) fn local_client(hosts: &[&str]) -> GuardedClient {
    let mut settings = WebSettings::default();
    settings.urls.named_hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
    GuardedClient::new(settings)
}
