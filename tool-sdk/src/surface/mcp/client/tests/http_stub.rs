//! An HTTP server whose responses a test scripts, on its own threads.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A request, as it was received.
#[derive(Clone, Debug)]
pub(crate) struct RecordedRequest {
    pub(crate) method: String,
    /// The lines of the head, in lower case.
    pub(crate) head: Vec<String>,
    /// The body, where it is JSON.
    pub(crate) message: Value,
}

impl RecordedRequest {
    pub(crate) fn is(&self, method: &str) -> bool {
        self.message["method"] == method
    }

    pub(crate) fn has(&self, line: &str) -> bool {
        self.head.iter().any(|known| known == line)
    }
}

/// What the server does on a request.
#[derive(Clone, Debug)]
pub(crate) enum StubReply {
    /// Returns a JSON-RPC result.
    Result(Value),
    /// Writes these bytes after `HTTP/1.1 `: status, head and body.
    Raw(String),
    /// Writes these bytes, and then up to 1 GiB while the client reads; counts the bytes.
    Flood(String, Arc<AtomicUsize>),
    /// Waits until the client disconnects.
    Hang,
    /// The default response of a 2025 server with an `echo` tool.
    Usual,
}

type StubHandler = dyn Fn(&RecordedRequest) -> StubReply + Send + Sync;

/// A server on a loopback port, until it is dropped.
pub(crate) struct HttpStub {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
    over: Arc<AtomicBool>,
}

impl Drop for HttpStub {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Wakes the accept loop.
        drop(TcpStream::connect(self.address));
    }
}

impl HttpStub {
    pub(crate) fn start(
        act: impl Fn(&RecordedRequest) -> StubReply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, over) =
            (Arc::<Mutex<Vec<RecordedRequest>>>::default(), Arc::<AtomicBool>::default());
        let (act, heard, ended): (Arc<StubHandler>, _, _) =
            (Arc::new(act), requests.clone(), over.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let (act, heard) = (Arc::clone(&act), Arc::clone(&heard));
                // Errors of the connection are not part of the test.
                thread::spawn(move || stream.and_then(|stream| answer(stream, &*act, &heard)));
            }
        });
        Self { address, requests, over }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The requests received so far.
    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// How many messages for `method` were received.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.requests().iter().filter(|asked| asked.is(method)).count()
    }

    /// Waits until a request that matches was received.
    pub(crate) fn until(&self, wanted: impl Fn(&RecordedRequest) -> bool) {
        let begun = Instant::now();
        while !self.requests().iter().any(&wanted) {
            assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", self.requests());
            thread::sleep(Duration::from_millis(2));
        }
    }
}

fn answer(
    stream: TcpStream,
    act: &StubHandler,
    heard: &Mutex<Vec<RecordedRequest>>,
) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_lowercase()),
        }
    }
    let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or_default()];
    stream.read_exact(&mut body)?;
    let method = head.first().and_then(|line| line.split(' ').next()).unwrap_or_default();
    let (method, message) = (method.to_uppercase(), serde_json::from_slice(&body));
    let asked = RecordedRequest { method, head, message: message.unwrap_or_default() };
    heard.lock().unwrap().push(asked.clone());
    let reply = match act(&asked) {
        StubReply::Usual => usual(&asked),
        reply => reply,
    };
    let reply = match reply {
        StubReply::Raw(reply) => reply,
        StubReply::Result(result) => said(&json!({
            "jsonrpc": "2.0", "id": asked.message["id"], "result": result,
        })),
        StubReply::Flood(head, count) => {
            let stream = stream.get_mut();
            stream.write_all(format!("HTTP/1.1 {head}").as_bytes())?;
            let part = [b'x'; 1 << 16];
            while count.load(Ordering::Relaxed) < 1 << 30 {
                stream.write_all(&part)?;
                count.fetch_add(part.len(), Ordering::Relaxed);
            }
            return Ok(());
        }
        StubReply::Hang | StubReply::Usual => {
            // Blocks until the client disconnects.
            return stream.read(&mut [0]).map(drop);
        }
    };
    stream.get_mut().write_all(format!("HTTP/1.1 {reply}").as_bytes())
}

/// A response with a message, in a session.
pub(crate) fn said(message: &Value) -> String {
    let body = message.to_string();
    format!(
        "200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: first\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A response without a body.
pub(crate) fn status(line: &str) -> StubReply {
    StubReply::Raw(format!("{line}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"))
}

/// The default response of a 2025 server with an `echo` tool.
fn usual(asked: &RecordedRequest) -> StubReply {
    let message = &asked.message;
    match (asked.method.as_str(), message["method"].as_str()) {
        ("GET", _) => status("405 Method Not Allowed"),
        ("DELETE", _) => status("200 OK"),
        (_, Some("initialize")) => StubReply::Result(json!({
            "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "serverInfo": { "name": "web", "version": "1" },
        })),
        (_, Some("tools/list")) => {
            let tool = json!({ "name": "echo", "inputSchema": { "type": "object" } });
            StubReply::Result(json!({ "tools": [tool] }))
        }
        (_, Some("tools/call")) => {
            let text = message["params"]["arguments"]["text"].as_str().unwrap_or("nothing");
            StubReply::Result(json!({ "content": [{ "type": "text", "text": text }] }))
        }
        (_, Some(_)) if !message["id"].is_null() => StubReply::Raw(said(&json!({
            "jsonrpc": "2.0", "id": message["id"],
            "error": { "code": -32601, "message": "no such method" },
        }))),
        _ => status("202 Accepted"),
    }
}
