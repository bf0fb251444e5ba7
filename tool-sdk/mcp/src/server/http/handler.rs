//! From an HTTP request to its response: `POST` with a message, `GET` for an event stream, `DELETE`
//! for a session.

use std::future::poll_fn;
use std::io;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant};

use hyper::body::{Body, Bytes};
use hyper::header::HeaderValue;
use hyper::{Method, Request, StatusCode};
use rmcp::model::{ErrorCode, ErrorData, ProtocolVersion, RequestId};
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};
use tool_sdk_core::Principal;

use super::event_logs::EventLogs;
use super::event_stream::{EventId, EventNames, EventReader, EventStream, KEEP_ALIVE_INTERVAL};
use super::request_body::{BoxError, read_body};
use super::request_head::{HeaderField, RequestHead, SESSION_ID};
use super::responses::{
    EVENT_STREAM, HttpResponse, JSON, bad_request, empty_response, event_stream_response,
    full_response, json_response, method_not_allowed, text_response,
};
use super::sessions::{HttpSession, HttpSessions, PrincipalKey};
use super::standard_headers;
use super::stateless_sessions::StatelessSessions;
use crate::json_rpc::is_batch;
use crate::server::Server;
use crate::server::batch::{Batch, unsupported_error};
use crate::server::connection::{ClientTransport, Connection};
use crate::server::dispatch::DispatchedRequest;
use crate::server::message::{ClientMessage, ClientRequest, MessageParams, parse_message};
use crate::server::message_sink::MessageSink;
use crate::server::request_context::CancelOnDrop;
use crate::server::response::JsonRpcResponse;

/// The interval at which expired sessions are removed.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(60);

const NO_SESSION: &str = "there is no such session";
const SESSION_REQUIRED: &str = "the request must name its session in `Mcp-Session-Id`";
const TOO_MANY_SESSIONS: &str =
    "all your sessions have requests in flight; close one or retry later";
/// The status is not 404, which would mean that the session has ended.
const NO_EVENT: &str = "there is no such event, or it is too long ago";

/// Handles the requests of all clients.
pub(super) struct HttpHandler {
    server: Arc<Server>,
    sessions: Arc<HttpSessions>,
    stateless_sessions: Arc<StatelessSessions>,
    event_logs: Arc<EventLogs>,
    /// Ends the task that removes what is idle; the first request starts it.
    cleanup: OnceLock<DropGuard>,
}

/// A response, or the one that refuses the request.
type HttpResult = Result<HttpResponse, Box<HttpResponse>>;

impl HttpHandler {
    pub(super) fn new(server: Arc<Server>) -> Self {
        Self {
            server,
            sessions: Arc::default(),
            stateless_sessions: Arc::default(),
            event_logs: Arc::default(),
            cleanup: OnceLock::new(),
        }
    }

    /// Handles one request; a refusal is a response as well.
    pub(super) async fn handle<B>(&self, request: Request<B>) -> HttpResult
    where
        B: Body<Data = Bytes, Error: Into<BoxError>>,
    {
        self.cleanup.get_or_init(|| self.spawn_cleanup());
        let principal = request.extensions().get::<Arc<Principal>>().cloned();
        let (parts, body) = request.into_parts();
        let head = RequestHead::new(&parts.headers);
        // Read before the session is looked up, because that may end meanwhile.
        let body = match parts.method {
            Method::POST => read_body(body).await?,
            _ => Bytes::new(),
        };
        // Stateless requests have no session, even if they name one.
        let is_stateless = parts.method == Method::POST && head.is_modern();
        let session = match head.session {
            HeaderField::Missing => None,
            _ if is_stateless => None,
            HeaderField::Text(id) => self.sessions.find(id, &principal, Instant::now()),
            HeaderField::Invalid => None,
        };
        if session.is_none() && !is_stateless && head.session != HeaderField::Missing {
            return Err(text_response(StatusCode::NOT_FOUND, NO_SESSION).into());
        }
        match parts.method {
            Method::POST => self.post(&head, body, principal, session).await,
            Method::GET => self.get(&head, session),
            Method::DELETE => self.delete(&head, session),
            _ => Err(method_not_allowed("GET, POST, DELETE").into()),
        }
    }

    /// Removes idle sessions and old events for as long as the returned guard exists.
    fn spawn_cleanup(&self) -> DropGuard {
        let stateless_sessions = Arc::clone(&self.stateless_sessions);
        let (sessions, event_logs) = (Arc::clone(&self.sessions), Arc::clone(&self.event_logs));
        let end = CancellationToken::new();
        tokio::spawn(end.clone().run_until_cancelled_owned(async move {
            loop {
                tokio::time::sleep(CLEANUP_INTERVAL).await;
                let now = Instant::now();
                stateless_sessions.remove_idle(now);
                close_sessions(sessions.remove_expired(now), &event_logs);
                event_logs.remove_expired(now);
            }
        }));
        end.drop_guard()
    }

    /// Opens the stream of messages that belong to no request, or resumes a stream.
    fn get(&self, head: &RequestHead<'_>, session: Option<Arc<HttpSession>>) -> HttpResult {
        if !head.accepts(EVENT_STREAM) {
            let words = "the client must accept text/event-stream";
            return Err(text_response(StatusCode::NOT_ACCEPTABLE, words).into());
        }
        if head.is_modern() {
            return Err(method_not_allowed("POST").into());
        }
        head.check_version(false)?;
        let session = session.ok_or_else(|| bad_request(SESSION_REQUIRED))?;
        let reader = match head.last_event_id() {
            HeaderField::Missing => Some(self.until_shutdown(session.events.read())),
            HeaderField::Invalid => None,
            HeaderField::Text(id) => EventId::parse(id).and_then(|id| match id.request {
                None => session.events.read_after(id.index).map(|it| self.until_shutdown(it)),
                Some(request) => {
                    let stream = self.event_logs.find(&session.id, request)?;
                    let reader = stream.read_after(id.index)?;
                    Some(reader.end_after(self.server.stream_polling))
                }
            }),
        };
        reader.map(event_stream_response).ok_or_else(|| bad_request(NO_EVENT).into())
    }

    fn until_shutdown(&self, reader: EventReader) -> EventReader {
        reader.end_on_shutdown(&self.server.shutdown)
    }

    /// Ends a session.
    fn delete(&self, head: &RequestHead<'_>, session: Option<Arc<HttpSession>>) -> HttpResult {
        if head.is_modern() {
            return Err(method_not_allowed("POST").into());
        }
        head.check_version(false)?;
        let session = session.ok_or_else(|| bad_request(SESSION_REQUIRED))?;
        close_sessions(self.sessions.remove(&session.id), &self.event_logs);
        Ok(empty_response(StatusCode::NO_CONTENT))
    }

    /// Handles a message.
    async fn post(
        &self,
        head: &RequestHead<'_>,
        body: Bytes,
        principal: PrincipalKey,
        session: Option<Arc<HttpSession>>,
    ) -> HttpResult {
        if !head.accepts(JSON) || !head.accepts(EVENT_STREAM) {
            let words = "the client must accept both application/json and text/event-stream";
            return Err(text_response(StatusCode::NOT_ACCEPTABLE, words).into());
        }
        if !head.has_content_type(JSON) {
            let words = "the Content-Type must be application/json";
            return Err(text_response(StatusCode::UNSUPPORTED_MEDIA_TYPE, words).into());
        }
        if is_batch(&body) {
            return self.post_batch(head, &body, session);
        }
        let refuse = |error| json_response(StatusCode::BAD_REQUEST, JsonRpcResponse::from(error));
        match parse_message(&body).map_err(refuse)? {
            ClientMessage::Request(request) if request.method == "initialize" => {
                self.post_initialize(head, request, principal, session)
            }
            ClientMessage::Request(request) => {
                head.check_version(request.meta.protocol_version().is_some())?;
                check_stated_version(head, &request)
                    .map_err(|error| refuse_request(&request.id, &error))?;
                if is_stateless(head, &request) {
                    return self.post_stateless(head, request, principal).await;
                }
                let session = session.ok_or_else(|| bad_request(SESSION_REQUIRED))?;
                Ok(self.respond_in_session(head, &session, request).await)
            }
            other => {
                head.check_version(false)?;
                if let ClientMessage::Notification { method, params } = &other {
                    check_headers(head, method, params, None).map_err(|error| {
                        json_response(StatusCode::BAD_REQUEST, JsonRpcResponse::error(None, &error))
                    })?;
                }
                match (session, &other) {
                    (Some(session), _) => session.connection.handle_other(other),
                    (None, ClientMessage::Notification { .. }) if head.is_modern() => {}
                    (None, _) => return Err(bad_request(SESSION_REQUIRED).into()),
                }
                Ok(empty_response(StatusCode::ACCEPTED))
            }
        }
    }

    /// Opens a session.
    fn post_initialize(
        &self,
        head: &RequestHead<'_>,
        request: ClientRequest,
        principal: PrincipalKey,
        session: Option<Arc<HttpSession>>,
    ) -> HttpResult {
        let id = request.id.clone();
        check_headers(head, &request.method, &request.params, None)
            .and_then(|()| check_initialize_version(head, &request.params))
            .map_err(|error| refuse_request(&id, &error))?;
        let session = match session {
            Some(session) => session,
            None => HttpSession::new(Arc::clone(&self.server), principal)
                .map(Arc::new)
                .map_err(|error| internal_error(&id, &error))?,
        };
        let sink = session.connection.sink.clone();
        let response = match session.connection.begin_request(request, sink, head.user_agent()) {
            DispatchedRequest::Answered(response) => response,
            DispatchedRequest::Running { .. } => return Err(bad_request(SESSION_REQUIRED).into()),
        };
        if let Some(error) = response.error {
            let status = match error {
                ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
                _ => StatusCode::BAD_REQUEST,
            };
            return Err(json_response(status, response).into());
        }
        let session_id = HeaderValue::from_str(&session.id)
            .map_err(|error| internal_error(&id, &io::Error::other(error)))?;
        let removed = self
            .sessions
            .insert(session, Instant::now())
            .map_err(|_| text_response(StatusCode::SERVICE_UNAVAILABLE, TOO_MANY_SESSIONS))?;
        close_sessions(removed, &self.event_logs);
        let mut response = json_response(StatusCode::OK, response);
        response.headers_mut().insert(SESSION_ID, session_id);
        Ok(response)
    }

    /// Responds to a request of a session: with JSON if it need not wait, otherwise with an event
    /// stream that can be resumed.
    async fn respond_in_session(
        &self,
        head: &RequestHead<'_>,
        session: &HttpSession,
        request: ClientRequest,
    ) -> HttpResponse {
        let number = session.next_request();
        let stream = EventStream::new(EventNames::OfRequest(number));
        // Older clients do not resume a stream that has ended.
        let is_resumed = !head.predates_empty_events();
        if is_resumed {
            stream.send_resume_hint();
        }
        let sink = MessageSink::Events(Arc::clone(&stream));
        match session.connection.begin_request(request, sink, head.user_agent()) {
            DispatchedRequest::Answered(response) => session_response(response),
            DispatchedRequest::Running { mut request, .. } => {
                let polled = poll_fn(|cx| Poll::Ready(request.as_mut().poll(cx))).await;
                match polled {
                    Poll::Ready(Some(response)) if !stream.has_message() => {
                        return session_response(response);
                    }
                    Poll::Ready(response) => request = Box::pin(std::future::ready(response)),
                    Poll::Pending => {}
                }
                let limit = self.server.stream_polling.filter(|_| is_resumed);
                let reader = stream.read().end_after(limit);
                let logs = Arc::clone(&self.event_logs);
                let principal = session.connection.principal.clone();
                logs.insert(&session.id, principal.clone(), number, Arc::clone(&stream));
                tokio::spawn(async move {
                    send_response(request, stream).await;
                    logs.enforce_limits(&principal, Instant::now());
                });
                event_stream_response(reader)
            }
        }
    }

    /// Handles a batch of a session: responds with an array if no request has to wait, otherwise
    /// with an event stream.
    fn post_batch(
        &self,
        head: &RequestHead<'_>,
        body: &[u8],
        session: Option<Arc<HttpSession>>,
    ) -> HttpResult {
        head.check_version(false)?;
        let refuse = |error| json_response(StatusCode::BAD_REQUEST, JsonRpcResponse::from(error));
        let Some(session) = session else { return Err(refuse(unsupported_error(body)).into()) };
        let stream = EventStream::new(EventNames::None);
        let sink = MessageSink::Events(Arc::clone(&stream));
        let batch = Batch::dispatch(&session.connection, body, &sink, head.user_agent());
        let mut batch = batch.map_err(refuse)?;
        batch.start();
        if batch.is_finished() && !stream.has_message() {
            return Ok(match (batch.take_array(), batch.has_request) {
                (Some(array), true) => full_response(StatusCode::OK, array.into(), JSON),
                (Some(array), false) => full_response(StatusCode::BAD_REQUEST, array.into(), JSON),
                (None, true) => empty_response(StatusCode::OK),
                (None, false) => empty_response(StatusCode::ACCEPTED),
            });
        }
        let reader = stream.read();
        tokio::spawn(async move {
            let stream = CloseOnDrop(stream);
            while let Some(response) = batch.next_response().await {
                // The requests run to their end, also when the client has disconnected.
                let _ = stream.0.send(&response).await;
            }
        });
        Ok(event_stream_response(reader))
    }

    /// Responds to a request that stands alone: with JSON if nothing is sent before its response,
    /// and the response comes soon enough for proxies. It is cancelled when the client disconnects.
    async fn post_stateless(
        &self,
        head: &RequestHead<'_>,
        request: ClientRequest,
        principal: PrincipalKey,
    ) -> HttpResult {
        let is_malformed =
            !request.meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty();
        let id = request.id.clone();
        let connection = self.stateless_sessions.get_or_create(&principal, Instant::now(), || {
            let sink = MessageSink::Events(EventStream::new(EventNames::OfSession));
            let server = Arc::clone(&self.server);
            Connection::new(server, principal.clone(), ClientTransport::Stateless, sink)
        });
        let connection = connection.map_err(|error| internal_error(&id, &error))?;
        check_headers(head, &request.method, &request.params, Some(&connection))
            .map_err(|error| refuse_request(&id, &error))?;
        let stream = EventStream::new(EventNames::None);
        let sink = MessageSink::Events(Arc::clone(&stream));
        let (mut request, mut cancel) =
            match connection.begin_request(request, sink, head.user_agent()) {
                DispatchedRequest::Answered(response) => {
                    return Ok(stateless_response(response, is_malformed));
                }
                DispatchedRequest::Running { request, cancel } => {
                    (request, CancelOnDrop::new(cancel))
                }
            };
        let polled = poll_fn(|cx| Poll::Ready(request.as_mut().poll(cx))).await;
        if let Poll::Ready(response) = polled {
            cancel.disarm();
            if !stream.has_message() {
                return Ok(stateless_response(
                    response.unwrap_or_else(|| cancelled(&id)),
                    is_malformed,
                ));
            }
            request = Box::pin(std::future::ready(response));
        }
        // A task of its own ends a call properly when the client disconnects.
        let (answered, mut answer) = oneshot::channel();
        let events = Arc::clone(&stream);
        tokio::spawn(async move {
            let response = request.await;
            if let Err(response) = answered.send(response) {
                send_response(std::future::ready(response), events).await;
            }
        });
        tokio::select! {
            biased;
            () = stream.wait_for_message() => {}
            response = &mut answer => {
                cancel.disarm();
                let response = response.ok().flatten().unwrap_or_else(|| cancelled(&id));
                return Ok(stateless_response(response, is_malformed));
            }
            () = tokio::time::sleep(KEEP_ALIVE_INTERVAL) => {}
        }
        let reader = stream.read().with_cancel(cancel);
        // From now on the task sends the response to the stream, unless it came just before.
        answer.close();
        if let Ok(response) = answer.try_recv() {
            send_response(std::future::ready(response), stream).await;
        }
        Ok(event_stream_response(reader))
    }
}

/// Returns the response to a request that was cancelled, although its client still waits for it.
fn cancelled(id: &RequestId) -> JsonRpcResponse {
    let error = ErrorData::internal_error("the request was cancelled", None);
    JsonRpcResponse::error(Some(id), &error)
}

/// Fails if the standard headers contradict the message. `connection` knows the tools that a call
/// may name.
fn check_headers(
    head: &RequestHead<'_>,
    method: &str,
    params: &MessageParams,
    connection: Option<&Connection>,
) -> Result<(), ErrorData> {
    let view = connection.map(Connection::toolset_view);
    let schema = |name: &str| Some(view.as_ref()?.definition(name)?.parameters.as_map());
    standard_headers::check_headers(head, method, params, schema)
        .map_err(|words| ErrorData::header_mismatch(words, None))
}

/// Waits for the response to a request and sends it as the last event of its stream.
async fn send_response(
    request: impl Future<Output = Option<JsonRpcResponse>>,
    stream: Arc<EventStream>,
) {
    let stream = CloseOnDrop(stream);
    if let Some(response) = request.await {
        // The session may have ended.
        let _ = stream.0.send(&response.text).await;
    }
}

/// Ends a stream, also when its request panics.
struct CloseOnDrop(Arc<EventStream>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Cancels the requests of sessions and forgets their events.
fn close_sessions(sessions: impl IntoIterator<Item = Arc<HttpSession>>, event_logs: &EventLogs) {
    for session in sessions {
        session.close();
        event_logs.remove_session(&session.id);
    }
}

/// Returns true if a request stands alone.
fn is_stateless(head: &RequestHead<'_>, request: &ClientRequest) -> bool {
    head.is_modern()
        || request.method == "server/discover"
        || request.meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
}

/// Fails if a request and its head state different versions, or if one states none where it must.
fn check_stated_version(head: &RequestHead<'_>, request: &ClientRequest) -> Result<(), ErrorData> {
    let stated = request.meta.protocol_version();
    let must_state = head.is_modern() || request.method == "server/discover";
    match (stated, head.version()) {
        (None, _) if must_state => {
            let missing = request.meta.missing_required_keys(&ProtocolVersion::V_2026_07_28);
            let missing = missing.join(", ");
            let words =
                format!("request _meta is missing or has malformed required fields: {missing}");
            Err(ErrorData::invalid_params(words, None))
        }
        (None, _) => Ok(()),
        (Some(_), None) => {
            let words = "a request that states its protocol version needs the header \
                         `MCP-Protocol-Version`";
            Err(ErrorData::header_mismatch(words, None))
        }
        (Some(stated), Some(version)) if stated.as_str() != version => {
            let words = format!(
                "`MCP-Protocol-Version` ({version}) does not match the version of the request \
                 ({stated})"
            );
            Err(ErrorData::header_mismatch(words, None))
        }
        _ => Ok(()),
    }
}

/// Fails if the head of `initialize` states another version than its parameters.
fn check_initialize_version(
    head: &RequestHead<'_>,
    params: &MessageParams,
) -> Result<(), ErrorData> {
    let requested = params.member::<String>("protocolVersion")?;
    match (head.version(), requested) {
        (Some(version), Some(requested)) if version != requested => {
            let words = format!(
                "`MCP-Protocol-Version` ({version}) does not match `protocolVersion` ({requested})"
            );
            Err(ErrorData::invalid_request(words, None))
        }
        _ => Ok(()),
    }
}

fn refuse_request(id: &RequestId, error: &ErrorData) -> HttpResponse {
    json_response(StatusCode::BAD_REQUEST, JsonRpcResponse::error(Some(id), error))
}

fn internal_error(id: &RequestId, error: &io::Error) -> HttpResponse {
    let error = ErrorData::internal_error(format!("cannot open a connection: {error}"), None);
    json_response(StatusCode::INTERNAL_SERVER_ERROR, JsonRpcResponse::error(Some(id), &error))
}

/// Returns the response to a request of a session. Errors of a method are not errors of HTTP.
fn session_response(response: JsonRpcResponse) -> HttpResponse {
    let status = match response.error {
        Some(ErrorCode::INVALID_REQUEST) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    };
    json_response(status, response)
}

/// Returns the response to a stateless request. Its status lets proxies see the kind of error.
fn stateless_response(response: JsonRpcResponse, is_malformed: bool) -> HttpResponse {
    let status = match response.error {
        Some(
            ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
            | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
            | ErrorCode::HEADER_MISMATCH,
        ) => StatusCode::BAD_REQUEST,
        Some(ErrorCode::INVALID_PARAMS) if is_malformed => StatusCode::BAD_REQUEST,
        Some(ErrorCode::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    };
    json_response(status, response)
}
