//! `GET /v1/calls/ws`: calls over one WebSocket, many at a time, each with its events and its result.
//!
//! ```text
//! client ─▶ {"type": "call", "id": "1", "tool": "add", "arguments": {"a": 1, "b": 2}}
//!           {"type": "cancel", "id": "1"}
//! server ─▶ {"type": "started", "id": "1", "call": "call-…"}
//!           {"type": "event", "id": "1", "event": {…}}
//!           {"type": "result", "id": "1", "status": 200, "result": {…}}     or
//!           {"type": "problem", "id": "1", "status": 404, "problem": {…}}
//! ```
//!
//! **Invariant:** each call is checked as a request of its own, so a token that was revoked and a
//! session that has ended make no further call.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::Response;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tool_sdk_core::ErrorKind;

use super::access_log::RequestId;
use super::call_stream::{CallUpdates, StreamItem};
use super::problem::ProblemDetails;
use super::request::{IDEMPOTENCY_KEY, MAX_BODY_BYTES};
use super::response::CallReply;
use super::running_calls::NewCall;
use super::service::RestService;
use super::sessions::RequestSession;
use super::tools::unknown_tool;
use crate::auth::HttpCaller;
use crate::connection_limiter::ConnectionSlot;

/// Proxies close a connection that is idle for about 60 s, so a ping is sent in between.
const PING_INTERVAL: Duration = Duration::from_secs(15);
/// A client that answers no ping, or reads nothing, for this long is gone.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);
/// How many messages wait for a client that reads slowly. Then its calls wait; their queues of
/// events are bounded as well.
const MAX_QUEUED_MESSAGES: usize = 64;
/// The longest id that a client gives a call.
const MAX_ID_BYTES: usize = 256;

/// `GET /v1/calls/ws`
pub(super) async fn open_socket(
    State(service): State<Arc<RestService>>,
    client: SocketClient,
    slot: Option<Extension<Arc<ConnectionSlot>>>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ProblemDetails> {
    let upgrade = upgrade.map_err(|rejection| {
        let (status, category) = (StatusCode::UPGRADE_REQUIRED, ErrorKind::InvalidArgs.as_str());
        ProblemDetails::new(status, category, rejection.body_text())
            .suggest("open a WebSocket, or send `POST /v1/tools/{name}`")
    })?;
    let upgrade = upgrade.max_message_size(MAX_BODY_BYTES).max_frame_size(MAX_BODY_BYTES);
    Ok(upgrade.on_upgrade(async move |socket| {
        // The connection counts among those of its principal, and is not closed for another one.
        let _running = slot.map(|Extension(slot)| slot.start_running());
        serve_socket(service, client, socket).await;
    }))
}

/// The head of the request that opened a socket, which each call is checked with.
#[derive(Debug)]
pub(super) struct SocketClient {
    headers: HeaderMap,
    caller: HttpCaller,
    request: Option<RequestId>,
}

impl FromRequestParts<Arc<RestService>> for SocketClient {
    type Rejection = ProblemDetails;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Arc<RestService>,
    ) -> Result<Self, ProblemDetails> {
        let RequestSession { caller, .. } =
            RequestSession::from_request_parts(parts, service).await?;
        let mut headers = parts.headers.clone();
        headers.remove(IDEMPOTENCY_KEY);
        Ok(Self { headers, caller, request: parts.extensions.get().cloned() })
    }
}

impl SocketClient {
    /// Returns the session for a call, as if it came with a request of its own.
    async fn session(&self, service: &Arc<RestService>) -> Result<RequestSession, ProblemDetails> {
        if !service.authenticator.is_caller(&self.headers, &self.caller) {
            let (status, category) = (StatusCode::UNAUTHORIZED, ErrorKind::Unauthorized.as_str());
            return Err(ProblemDetails::new(status, category, "the token was revoked"));
        }
        let (mut parts, ()) = Request::new(()).into_parts();
        parts.headers = self.headers.clone();
        parts.extensions.insert(self.caller.clone());
        if let Some(request) = &self.request {
            parts.extensions.insert(request.clone());
        }
        RequestSession::from_request_parts(&mut parts, service).await
    }
}

/// Serves a socket until the client closes it, is gone, or the server shuts down. The calls that
/// run then are cancelled.
async fn serve_socket(service: Arc<RestService>, client: SocketClient, socket: WebSocket) {
    let (sink, stream) = socket.split();
    let (outbox, messages) = mpsc::channel(MAX_QUEUED_MESSAGES);
    let shutdown = service.options.http.shutdown.clone();
    let mut calls =
        SocketCalls { service, client, outbox, running: HashMap::new(), tasks: JoinSet::new() };
    tokio::select! {
        () = calls.read_messages(stream) => {}
        () = write_messages(sink, messages, shutdown.cancelled()) => {}
    }
}

/// Writes messages and pings until the client is gone or the server shuts down.
async fn write_messages(
    mut sink: SplitSink<WebSocket, Message>,
    mut messages: mpsc::Receiver<Value>,
    shutdown: impl Future<Output = ()>,
) {
    let mut pings = interval(PING_INTERVAL);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let message = tokio::select! {
            Some(message) = messages.recv() => Message::text(message.to_string()),
            _ = pings.tick() => Message::Ping(Default::default()),
            () = &mut shutdown => {
                let reason = "the server shuts down".into();
                let close = Some(CloseFrame { code: close_code::AWAY, reason });
                let _ = timeout(PING_INTERVAL, sink.send(Message::Close(close))).await;
                return;
            }
        };
        match timeout(CLIENT_TIMEOUT, sink.send(message)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return,
        }
    }
}

/// A message of the client.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientMessage {
    #[serde(rename = "type")]
    kind: MessageKind,
    /// What the client calls the call.
    id: String,
    tool: Option<String>,
    /// As the client wrote them, so that the tool's parser sees duplicate keys.
    arguments: Option<Box<RawValue>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MessageKind {
    Call,
    Cancel,
}

/// The calls of a socket. Dropping it cancels those that run.
struct SocketCalls {
    service: Arc<RestService>,
    client: SocketClient,
    outbox: mpsc::Sender<Value>,
    /// The ids of the calls that may run, by those of the client.
    running: HashMap<String, String>,
    /// Each returns the client's id of its call.
    tasks: JoinSet<String>,
}

impl SocketCalls {
    /// Handles messages until the client closes the socket or is gone.
    async fn read_messages(&mut self, mut stream: SplitStream<WebSocket>) {
        loop {
            let received = tokio::select! {
                received = timeout(CLIENT_TIMEOUT, stream.next()) => received,
                Some(ended) = self.tasks.join_next() => {
                    self.forget_call(ended);
                    continue;
                }
            };
            // A client that is gone does not even answer pings.
            let Ok(Some(Ok(message))) = received else { return };
            match message {
                Message::Text(text) => self.handle_message(&text).await,
                Message::Binary(_) => {
                    let problem = ProblemDetails::bad_request("a message must be text with JSON");
                    self.send_problem(None, &problem).await;
                }
                Message::Ping(_) | Message::Pong(_) => {}
                Message::Close(_) => return,
            }
        }
    }

    fn forget_call(&mut self, ended: Result<String, tokio::task::JoinError>) {
        if let Ok(id) = ended {
            self.running.remove(&id);
        }
    }

    async fn handle_message(&mut self, text: &str) {
        // A call that has ended frees its id before the next message.
        while let Some(ended) = self.tasks.try_join_next() {
            self.forget_call(ended);
        }
        let message: ClientMessage = match serde_json::from_str(text) {
            Ok(message) => message,
            Err(error) => {
                let problem = ProblemDetails::bad_request(format!("the message: {error}")).suggest(
                    "send `type` `call` with `id`, `tool` and `arguments`, or `cancel` with `id`",
                );
                return self.send_problem(None, &problem).await;
            }
        };
        let id = message.id.clone();
        let handled = match message.kind {
            MessageKind::Call => self.start_call(message).await,
            MessageKind::Cancel => self.cancel_call(&message),
        };
        if let Err(problem) = handled {
            self.send_problem(Some(&id), &problem).await;
        }
    }

    async fn start_call(&mut self, message: ClientMessage) -> Result<(), ProblemDetails> {
        let ClientMessage { id, tool, arguments, .. } = message;
        if id.is_empty() || id.len() > MAX_ID_BYTES {
            let error = format!("`id` must have 1 to {MAX_ID_BYTES} bytes");
            return Err(ProblemDetails::bad_request(error));
        }
        if self.running.contains_key(&id) {
            let problem = ProblemDetails::conflict("a call with this `id` is running");
            return Err(problem.suggest("send an id of its own with each call"));
        }
        let Some(tool) = tool else {
            return Err(ProblemDetails::bad_request("`tool` is missing"));
        };
        let service = &self.service;
        let RequestSession { session, is_named, caller, profile, .. } =
            self.client.session(service).await?;
        let view = service.pipeline.toolset().view_for(&session);
        if view.find(&tool).is_none() {
            return Err(unknown_tool(&view, &tool));
        }
        let session = service.with_approver(session, &caller);
        let arguments = arguments.map_or_else(|| "{}".to_owned(), |it| it.get().to_owned());
        let call = NewCall { session, tool, arguments, is_recorded: is_named, profile };
        let (handle, events) = service.start_call_with_events(call).await?;
        let call = handle.id.clone();
        self.send(json!({ "type": "started", "id": id, "call": call })).await;
        self.running.insert(id.clone(), call);
        let subscriber = self.service.metrics.count_subscriber();
        let updates = CallUpdates::new(handle, events, subscriber);
        self.tasks.spawn(forward_updates(id, updates, self.outbox.clone()));
        Ok(())
    }

    /// Cancels a call; its problem follows as the reply to the call.
    fn cancel_call(&self, message: &ClientMessage) -> Result<(), ProblemDetails> {
        if message.tool.is_some() || message.arguments.is_some() {
            let error = "`tool` and `arguments` belong to `call`";
            return Err(ProblemDetails::bad_request(error));
        }
        let Some(call) = self.running.get(&message.id) else {
            return Err(ProblemDetails::not_found("no call with this `id` is running"));
        };
        if let Some(call) = self.service.running.find(call) {
            call.cancel();
        }
        Ok(())
    }

    async fn send_problem(&self, id: Option<&str>, problem: &ProblemDetails) {
        let status = problem.status().as_u16();
        let mut message = json!({ "type": "problem", "status": status, "problem": problem });
        if let Some(id) = id {
            message["id"] = json!(id);
        }
        self.send(message).await;
    }

    async fn send(&self, message: Value) {
        // The writer ends only with the whole socket.
        let _ = self.outbox.send(message).await;
    }
}

/// Sends the events of a call and its reply; returns the client's id of the call.
async fn forward_updates(
    id: String,
    mut updates: CallUpdates,
    outbox: mpsc::Sender<Value>,
) -> String {
    loop {
        let (message, is_last) = match updates.next().await {
            StreamItem::Event { event, .. } => {
                (json!({ "type": "event", "id": id, "event": event }), false)
            }
            StreamItem::Reply(reply) => (reply_message(&id, &reply), true),
        };
        if outbox.send(message).await.is_err() || is_last {
            return id;
        }
    }
}

fn reply_message(id: &str, reply: &CallReply) -> Value {
    let kind = if reply.is_result() { "result" } else { "problem" };
    let status = reply.status.as_u16();
    json!({ "type": kind, "id": id, "status": status, kind: reply.to_value() })
}
