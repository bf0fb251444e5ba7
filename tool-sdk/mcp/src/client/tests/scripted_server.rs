//! A server whose responses a test scripts, over an in-memory pipe.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::client::{ClientFeatures, RemoteConnection, RemoteError, connect_streams};

/// What the server does on a message.
#[derive(Clone, Debug)]
pub(super) enum ServerAct {
    /// Returns a result.
    Answer(Value),
    /// Returns an error.
    Refuse(i64, &'static str),
    /// Sends a message; `ID` stands for the id of the request, `TOKEN` for its progress token.
    Say(Value),
    /// Writes these bytes.
    Write(Vec<u8>),
    /// Disconnects.
    Leave,
}

type ActFn = Box<dyn Fn(&Value) -> Vec<ServerAct> + Send + Sync>;

/// A server with scripted responses; it answers the handshake by itself.
pub(super) struct ScriptedServer {
    act: ActFn,
    /// Every message received, in order.
    heard: Mutex<Vec<Value>>,
    begun: AtomicUsize,
    /// Whether it knows the 2026 protocol.
    is_modern: bool,
    to_all: tokio::sync::broadcast::Sender<Value>,
}

impl ScriptedServer {
    pub(super) fn new(act: impl Fn(&Value) -> Vec<ServerAct> + Send + Sync + 'static) -> Arc<Self> {
        let to_all = tokio::sync::broadcast::channel(64).0;
        let (heard, begun) = (Mutex::default(), AtomicUsize::new(0));
        Arc::new(Self { act: Box::new(act), heard, begun, is_modern: false, to_all })
    }

    /// The same for a 2026 server.
    pub(super) fn modern(
        act: impl Fn(&Value) -> Vec<ServerAct> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let mut script = Self::new(act);
        Arc::get_mut(&mut script).expect("it is not shared yet").is_modern = true;
        script
    }

    /// How many connections were opened.
    pub(super) fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    /// Sends a message on all connections.
    pub(super) fn say(&self, message: Value) {
        let _ = self.to_all.send(message);
    }

    /// The messages received for `method`.
    pub(super) fn heard(&self, method: &str) -> Vec<Value> {
        let heard = self.heard.lock().unwrap();
        heard.iter().filter(|message| message["method"] == method).cloned().collect()
    }

    /// Waits until a message for `method` is received.
    pub(super) async fn until_heard(&self, method: &str) {
        while self.heard(method).is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    /// Opens a connection.
    pub(super) async fn serve(
        self: Arc<Self>,
        questions: ClientFeatures,
    ) -> Result<Arc<dyn RemoteConnection>, RemoteError> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        tokio::spawn(self.run(theirs));
        let (read, write) = tokio::io::split(ours);
        connect_streams(read, write, questions).await
    }

    async fn run(self: Arc<Self>, stream: tokio::io::DuplexStream) {
        let (read, mut write) = tokio::io::split(stream);
        let mut lines = BufReader::new(read).lines();
        let mut news = self.to_all.subscribe();
        loop {
            let line = tokio::select! {
                line = lines.next_line() => line,
                Ok(message) = news.recv() => {
                    let _ = write.write_all(format!("{message}\n").as_bytes()).await;
                    continue;
                }
            };
            let Ok(Some(line)) = line else { return };
            let message: Value = serde_json::from_str(&line).unwrap();
            self.heard.lock().unwrap().push(message.clone());
            for act in self.acts(&message) {
                let bytes = match act {
                    ServerAct::Leave => return,
                    ServerAct::Write(bytes) => bytes,
                    ServerAct::Answer(result) => {
                        said(json!({ "id": message["id"], "result": result }))
                    }
                    ServerAct::Refuse(code, words) => said(json!({
                        "id": message["id"], "error": { "code": code, "message": words },
                    })),
                    ServerAct::Say(mut value) => {
                        fill(&mut value, &message);
                        said(value)
                    }
                };
                if write.write_all(&bytes).await.is_err() {
                    return;
                }
            }
        }
    }

    fn acts(&self, message: &Value) -> Vec<ServerAct> {
        let acts = (self.act)(message);
        if !acts.is_empty() {
            return acts;
        }
        match message["method"].as_str() {
            Some("initialize") => vec![ServerAct::Answer(json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": { "listChanged": true } },
                "serverInfo": { "name": "script", "version": "1" },
            }))],
            Some("server/discover") if self.is_modern => vec![ServerAct::Answer(json!({
                "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
                "serverInfo": { "name": "script", "version": "1" },
            }))],
            Some("server/discover") => vec![ServerAct::Refuse(-32601, "no such method")],
            _ => Vec::new(),
        }
    }
}

fn said(mut message: Value) -> Vec<u8> {
    message["jsonrpc"] = "2.0".into();
    format!("{message}\n").into_bytes()
}

/// Fills in the id and the progress token of `message`.
fn fill(value: &mut Value, message: &Value) {
    match value {
        Value::String(text) if text == "ID" => *value = message["id"].clone(),
        Value::String(text) if text == "TOKEN" => {
            *value = message["params"]["_meta"]["progressToken"].clone();
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, message)),
        Value::Object(members) => members.values_mut().for_each(|item| fill(item, message)),
        _ => {}
    }
}
