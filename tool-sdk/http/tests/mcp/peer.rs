//! A hand-written test client: JSON-RPC over an in-memory pipe.

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::task::JoinHandle;
use tool_sdk_mcp::Server;

pub(crate) struct Peer {
    write: WriteHalf<DuplexStream>,
    read: Lines<BufReader<ReadHalf<DuplexStream>>>,
    serving: JoinHandle<std::io::Result<()>>,
    next: u64,
    /// What was said that nobody waited for.
    heard: Vec<Value>,
    /// What goes with every request.
    meta: Option<Value>,
}

impl Peer {
    fn start(server: &Server, meta: Option<Value>) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (read, write) = tokio::io::split(theirs);
        let server = server.clone();
        let serving = tokio::spawn(async move { server.serve(read, write).await });
        let (read, write) = tokio::io::split(ours);
        let read = BufReader::new(read).lines();
        Self { write, read, serving, next: 1, heard: Vec::new(), meta }
    }

    /// A peer that has said nothing yet.
    pub(crate) fn uninitialized(server: &Server) -> Self {
        Self::start(server, None)
    }

    /// A peer that begins with the handshake.
    pub(crate) async fn legacy(server: &Server, capabilities: Value) -> Self {
        Self::legacy_named("by-hand", server, capabilities).await
    }

    /// The same under another name.
    pub(crate) async fn legacy_named(name: &str, server: &Server, capabilities: Value) -> Self {
        Self::initialize(("2025-11-25", name), server, capabilities).await
    }

    /// The same of another version.
    pub(crate) async fn legacy_version(
        version: &str,
        server: &Server,
        capabilities: Value,
    ) -> Self {
        Self::initialize((version, "by-hand"), server, capabilities).await
    }

    async fn initialize(
        (version, name): (&str, &str),
        server: &Server,
        capabilities: Value,
    ) -> Self {
        let mut peer = Self::start(server, None);
        let hello = json!({
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": { "name": name, "version": "1" },
        });
        let answer = peer.request("initialize", hello).await;
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        peer.notify("notifications/initialized", json!({})).await;
        peer
    }

    /// A peer whose requests stand for themselves.
    pub(crate) fn modern(server: &Server, capabilities: Value) -> Self {
        Self::modern_named("by-hand", server, capabilities)
    }

    pub(crate) fn modern_named(name: &str, server: &Server, capabilities: Value) -> Self {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
            "io.modelcontextprotocol/clientInfo": { "name": name, "version": "2" },
        });
        Self::start(server, Some(meta))
    }

    pub(crate) async fn send_line(&mut self, line: &str) {
        self.write.write_all(line.as_bytes()).await.unwrap();
        self.write.write_all(b"\n").await.unwrap();
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.send_line(&message.to_string()).await;
    }

    /// Sends a request and does not wait; gives its id.
    pub(crate) async fn send(&mut self, method: &str, mut params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        for (key, value) in self.meta.iter().flat_map(|meta| meta.as_object().unwrap()) {
            params["_meta"][key] = value.clone();
        }
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send_line(&message.to_string()).await;
        id
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.receive_response(id).await
    }

    /// The result of a call that is a result.
    pub(crate) async fn call(&mut self, name: &str, arguments: Value) -> Value {
        let params = json!({ "name": name, "arguments": arguments });
        let mut answer = self.request("tools/call", params).await;
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].take()
    }

    pub(crate) async fn receive_response(&mut self, id: u64) -> Value {
        self.receive_matching(|message| message["id"] == id && message["method"].is_null()).await
    }

    /// The answer to a request that was written by hand.
    pub(crate) async fn receive_response_to(&mut self, id: &str) -> Value {
        self.receive_matching(|message| message["id"] == id && message["method"].is_null()).await
    }

    /// The next error.
    pub(crate) async fn receive_error(&mut self) -> Value {
        self.receive_matching(|message| !message["error"].is_null()).await
    }

    /// The next answers that come together.
    pub(crate) async fn receive_batch(&mut self) -> Vec<Value> {
        match self.receive_matching(Value::is_array).await {
            Value::Array(answers) => answers,
            other => unreachable!("{other}"),
        }
    }

    /// The next request or notification that the server sends under this name.
    pub(crate) async fn receive_method(&mut self, method: &str) -> Value {
        self.receive_matching(|message| message["method"] == method).await
    }

    /// Answers a request of the server.
    pub(crate) async fn reply(&mut self, request: &Value, result: Value) {
        let message = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        self.send_line(&message.to_string()).await;
    }

    /// How often the server has sent this until now.
    pub(crate) fn count_received(&self, method: &str) -> usize {
        self.heard.iter().filter(|message| message["method"] == method).count()
    }

    async fn receive_matching(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.heard.iter().position(&wanted) {
            return self.heard.remove(at);
        }
        loop {
            let line = self.read.next_line().await.unwrap().expect("the server is still there");
            let message: Value = serde_json::from_str(&line).unwrap();
            if wanted(&message) {
                return message;
            }
            self.heard.push(message);
        }
    }

    /// Hangs up and waits until the server has noticed; gives what it still said.
    pub(crate) async fn hang_up(mut self) -> Vec<Value> {
        self.write.shutdown().await.unwrap();
        let mut rest = self.heard;
        while let Some(line) = self.read.next_line().await.unwrap() {
            rest.push(serde_json::from_str(&line).unwrap());
        }
        self.serving.await.unwrap().unwrap();
        rest
    }
}
