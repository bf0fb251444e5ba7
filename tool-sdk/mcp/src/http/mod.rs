//! The MCP server over streamable HTTP, as a tower service.
//!
//! The host that mounts the service authenticates its clients first, and hands over the principal of each
//! request. rmcp implements the protocol; this service lets only its owner use a session and
//! validates messages. It answers simple requests of an initialized session itself, and resumes
//! lost event streams.

mod batch;
mod event_log;
mod event_logs;
mod keep_alive;
mod request_head;
mod responses;
mod resume;
mod sessions;
mod stateless_sessions;

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes};
use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tool_sdk_core::Principal;

use self::event_logs::EventLogs;
use self::request_head::{RequestHead, SESSION_ID};
use self::responses::{
    HttpResponse, JSON, error_response, full_response, hold_until_end, is_event_stream,
    text_response,
};
pub(super) use self::sessions::{HttpSessions, PrincipalKey};
pub(super) use self::stateless_sessions::StatelessSessions;
use tokio_util::sync::{CancellationToken, DropGuard};
use tower_service::Service;

use super::Server;
use super::connection::Connection;
use super::fast_path::{FastResponse, InFlightGuard, id_json};
use super::json_rpc_batch;
use super::message::{self, MessageError, MessageKind};

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type RmcpService = StreamableHttpService<Connection, LocalSessionManager>;

/// The longest body that is read.
const MAX_BODY_BYTES: usize = 1024 * 1024;
/// How long a client may take for the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// How much is read of what is too long, and for how long, before it is refused.
const MAX_DRAINED_BYTES: usize = 8 * MAX_BODY_BYTES;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// How often expired sessions are removed.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(60);
/// What is said where there is no room for another session.
const TOO_MANY_SESSIONS: &str =
    "all your sessions here have calls that run: end one, or come later";

/// The MCP server over streamable HTTP, as a tower service; see [`Server::http_service`].
///
/// Cheap to clone; clones share their sessions.
#[derive(Clone)]
pub struct HttpService(Arc<HttpHandler>);

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService").finish_non_exhaustive()
    }
}

impl HttpService {
    pub(super) fn new(server: Arc<Server>) -> Self {
        Self(Arc::new(HttpHandler::new(server)))
    }
}

impl<B> Service<Request<B>> for HttpService
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = HttpResponse;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let handler = Arc::clone(&self.0);
        Box::pin(async move { Ok(handler.handle(request).await) })
    }
}

/// Handles the requests of all clients.
struct HttpHandler {
    sessions: Arc<HttpSessions>,
    stateless_sessions: Arc<StatelessSessions>,
    event_logs: Arc<EventLogs>,
    service: RmcpService,
    /// Ends the task that removes what is idle; it begins with the first request.
    cleanup: OnceLock<DropGuard>,
}

impl HttpHandler {
    fn new(server: Arc<Server>) -> Self {
        let config = StreamableHttpServerConfig::default()
            // The host of this service checks both, and knows the port.
            .disable_allowed_hosts()
            .disable_allowed_origins()
            // An event id that leads to nothing: the response to `initialize` is not kept.
            .with_sse_retry(None)
            .with_max_request_body_bytes(MAX_BODY_BYTES);
        let mut manager = LocalSessionManager::default();
        manager.session_config = SessionConfig::default();
        // rmcp cannot distinguish a session with a pending request from an idle one.
        manager.session_config.keep_alive = None;
        let manager = Arc::new(manager);
        let sessions = Arc::new(HttpSessions::new(Arc::clone(&manager)));
        let stateless_sessions = Arc::<StatelessSessions>::default();
        let (known, lasting) = (Arc::clone(&sessions), Arc::clone(&stateless_sessions));
        let connect = move || {
            let connection = Connection::new(Arc::clone(&server))?;
            Ok(connection.with_http_sessions(Arc::clone(&lasting), Arc::clone(&known)))
        };
        let service = StreamableHttpService::new(connect, manager, config);
        let (event_logs, cleanup) = Default::default();
        Self { sessions, stateless_sessions, event_logs, service, cleanup }
    }

    async fn handle<B>(self: &Arc<Self>, request: Request<B>) -> HttpResponse
    where
        B: Body<Data = Bytes, Error: Into<BoxError>>,
    {
        self.cleanup.get_or_init(|| self.spawn_cleanup());
        let owner = request.extensions().get::<Arc<Principal>>().cloned();
        if !self.owns_session(&request, &owner) {
            return text_response(StatusCode::NOT_FOUND, "there is no such session");
        }
        self.handle_authorized(request, owner).await.unwrap_or_else(|refused| refused)
    }

    /// Returns whether the session that the request names, if any, belongs to its principal.
    fn owns_session<B>(&self, request: &Request<B>, owner: &PrincipalKey) -> bool {
        let head = RequestHead::from_headers(request.headers());
        let is_own = |id| self.sessions.touch(id, owner, Instant::now());
        request_head::is_stateless(request.method(), request.headers())
            || !head.session.is_present()
            || head.session.as_text().is_some_and(is_own)
    }

    /// Removes idle sessions and old events for as long as the returned guard exists.
    fn spawn_cleanup(&self) -> DropGuard {
        let stateless_sessions = Arc::clone(&self.stateless_sessions);
        let (sessions, event_logs) = (Arc::clone(&self.sessions), Arc::clone(&self.event_logs));
        let end = CancellationToken::new();
        tokio::spawn(end.clone().run_until_cancelled_owned(async move {
            loop {
                tokio::time::sleep(CLEANUP_INTERVAL).await;
                stateless_sessions.remove_idle(Instant::now());
                sessions.close_expired(Instant::now()).await;
                event_logs.remove_expired(Instant::now());
            }
        }));
        end.drop_guard()
    }

    /// Answers an authorized request.
    async fn handle_authorized<B>(
        self: &Arc<Self>,
        request: Request<B>,
        owner: PrincipalKey,
    ) -> Result<HttpResponse, HttpResponse>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>>,
    {
        let (mut head, body) = read_request(request).await?;
        if request_head::is_stateless(&head.method, &head.headers) {
            head.headers.remove(SESSION_ID);
        }
        if head.method == Method::POST && json_rpc_batch::is_batch(&body) {
            return Box::pin(self.handle_batch(head, body, owner)).await;
        }
        if head.method == Method::GET && head.headers.contains_key(resume::LAST_EVENT_ID) {
            return Box::pin(self.resume_stream(head, body, owner)).await;
        }
        self.handle_message(head, body, owner, true).await
    }

    /// Answers one message. `keeps` says whether the response is logged for resumption.
    async fn handle_message(
        self: &Arc<Self>,
        mut head: Parts,
        body: Bytes,
        owner: PrincipalKey,
        keeps: bool,
    ) -> Result<HttpResponse, HttpResponse> {
        let ticket = match self.try_fast_path(&head, &body).await {
            FastResponse::Complete(answer) => {
                return Ok(full_response(StatusCode::OK, answer.into(), JSON));
            }
            FastResponse::HandedOff(call, ticket) => {
                head.extensions.insert(call);
                Some(ticket)
            }
            FastResponse::NotHandled => {
                self.register_request(&head, &body).map_err(|fault| error_response(&fault))?
            }
        };
        // Apart, so that requests that need no rmcp have no room for it.
        Box::pin(async move {
            let is_kept = keeps && head.method == Method::POST;
            let session = head.headers.get(SESSION_ID).filter(|_| is_kept).cloned();
            let is_older = request_head::predates_empty_events(&head.headers);
            let answer = self.forward_to_rmcp(head, body, owner.clone()).await?;
            let answer = match ticket {
                Some(ticket) => answer.map(|body| hold_until_end(body, ticket)),
                None => answer,
            };
            Ok(match session.filter(|_| is_event_stream(&answer)) {
                Some(id) => {
                    answer.map(|body| self.event_logs.record(id.as_bytes(), owner, is_older, body))
                }
                None => answer,
            })
        })
        .await
    }

    /// Lets rmcp answer.
    async fn forward_to_rmcp(
        self: &Arc<Self>,
        head: Parts,
        body: Bytes,
        owner: PrincipalKey,
    ) -> Result<HttpResponse, HttpResponse> {
        let (is_end, hello) = (head.method == Method::DELETE, body.clone());
        let id = session_id(&head.headers).map(str::to_owned);
        let judged = validate_request(head, body, owner.clone());
        let (request, kind) = judged.map_err(|fault| error_response(&fault))?;
        let mut answer = match kind {
            MessageKind::Initialize => {
                self.open_session(request, owner, json_rpc_batch::allows_batches(&hello)).await
            }
            MessageKind::ToolCall(_) | MessageKind::InvalidResponse(_) | MessageKind::Other => {
                let door = Arc::clone(self);
                let coming = async move { door.service.handle(request).await };
                keep_alive::with_keep_alive(coming).await
            }
        };
        if let Some(id) = id.filter(|_| is_end) {
            self.sessions.remove(&id);
            // It is over by now; some clients warn of an end that is only accepted.
            if answer.status() == StatusCode::ACCEPTED {
                *answer.status_mut() = StatusCode::NO_CONTENT;
            }
        }
        Ok(answer)
    }

    /// Answers a request of a session that is open, where nothing has to be waited for.
    async fn try_fast_path(&self, parts: &Parts, body: &[u8]) -> FastResponse {
        let head = RequestHead::from_headers(&parts.headers);
        let id = head.session.as_text().filter(|_| head.is_fast_path(&parts.method));
        match id.and_then(|id| self.sessions.responder(id)) {
            Some(single) => single.respond(body).await,
            None => FastResponse::NotHandled,
        }
    }

    /// Takes the id of a request; nothing where there is none to take. rmcp would answer only
    /// the last of several requests of a session that have one id.
    fn register_request(
        &self,
        head: &Parts,
        body: &[u8],
    ) -> Result<Option<InFlightGuard>, MessageError> {
        let asked = session_id(&head.headers).and_then(|id| self.sessions.in_flight(id));
        let (Some(asked), Some(id)) = (asked, message::request_id(body)) else { return Ok(None) };
        match asked.insert_guarded(&id_json(&id)) {
            Some(ticket) => Ok(Some(ticket)),
            None => Err(MessageError::duplicate_id(Some(id))),
        }
    }

    /// Opens a session. The session is registered even if the client disconnects before the
    /// response.
    async fn open_session(
        self: &Arc<Self>,
        request: Request<Full<Bytes>>,
        owner: PrincipalKey,
        with_batches: bool,
    ) -> HttpResponse {
        let door = Arc::clone(self);
        let opening = tokio::spawn(async move {
            let answer = door.service.handle(request).await;
            if let Some(id) = session_id(answer.headers()) {
                if door.sessions.register(id, owner, Instant::now()).await.is_err() {
                    return text_response(StatusCode::SERVICE_UNAVAILABLE, TOO_MANY_SESSIONS);
                }
                if with_batches {
                    door.sessions.allow_batches(id);
                }
            }
            answer
        });
        let broken =
            |_| text_response(StatusCode::INTERNAL_SERVER_ERROR, "the session did not open");
        opening.await.unwrap_or_else(broken)
    }
}

fn session_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION_ID)?.to_str().ok()
}

/// Reads the whole of a request.
async fn read_request<B>(request: Request<B>) -> Result<(Parts, Bytes), HttpResponse>
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    let (head, body) = request.into_parts();
    let mut body = pin!(body);
    let whole = {
        let mut reading = pin!(read_body(Limited::new(body.as_mut(), MAX_BODY_BYTES)));
        // Most bodies come with their head, and need no timer.
        match reading.as_mut().now_or_never() {
            Some(whole) => whole,
            None => match tokio::time::timeout(BODY_TIMEOUT, reading).await {
                Ok(whole) => whole,
                Err(_) => {
                    let late = "the message did not come in time";
                    return Err(text_response(StatusCode::REQUEST_TIMEOUT, late));
                }
            },
        }
    };
    match whole {
        Ok(body) => Ok((head, body)),
        Err(error) if error.is::<LengthLimitError>() => {
            // A peer that still writes when the connection ends may never read why.
            let _ = tokio::time::timeout(DRAIN_TIMEOUT, drain_body(body.as_mut())).await;
            Err(text_response(StatusCode::PAYLOAD_TOO_LARGE, "the message is longer than 1 MiB"))
        }
        Err(_) => Err(text_response(StatusCode::BAD_REQUEST, "the message did not come whole")),
    }
}

/// All of a body, which mostly comes in one piece.
async fn read_body<B>(mut body: Limited<Pin<&mut B>>) -> Result<Bytes, BoxError>
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    let (mut first, mut all) = (Bytes::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame?.into_data() else { continue };
        if first.is_empty() {
            first = piece;
            continue;
        }
        if all.is_empty() {
            all.extend_from_slice(&first);
        }
        all.extend_from_slice(&piece);
    }
    Ok(if all.is_empty() { first } else { all.into() })
}

/// Reads on, and keeps nothing of it.
async fn drain_body<B: Body<Data = Bytes>>(mut body: Pin<&mut B>) {
    let mut read = 0;
    while let Some(Ok(frame)) = body.frame().await {
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > MAX_DRAINED_BYTES {
            return;
        }
    }
}

/// A request as rmcp reads it, with whose it is and what was written there.
fn validate_request(
    mut head: Parts,
    body: Bytes,
    owner: PrincipalKey,
) -> Result<(Request<Full<Bytes>>, MessageKind), MessageError> {
    let kind = match head.method {
        Method::POST => message::validate_message(&body)?,
        _ => MessageKind::Other,
    };
    let body = match message::normalize_for_rmcp(&body, &kind) {
        Cow::Borrowed(_) => body,
        Cow::Owned(body) => body.into(),
    };
    match serde_json::from_slice(&body) {
        Ok(message) => message::reject_invalid_params(&message)?,
        Err(_) => message::undecodable_error(&body).map_or(Ok(()), Err)?,
    }
    if let MessageKind::ToolCall(written) = &kind {
        head.extensions.insert(written.clone());
    }
    if let Some(principal) = owner {
        head.extensions.insert(principal);
    }
    Ok((Request::from_parts(head, Full::new(body)), kind))
}
