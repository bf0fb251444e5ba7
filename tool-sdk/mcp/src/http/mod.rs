//! The MCP server over streamable HTTP, at one path.
//!
//! rmcp implements the protocol; this handler checks every request first. It rejects
//! unauthenticated requests before reading the body, see [`auth`], lets only its owner use a
//! session, and validates messages. It answers simple requests of an initialized session itself,
//! and resumes lost event streams.

mod auth;
mod batch;
mod connection_limiter;
mod cors;
mod event_log;
mod event_logs;
mod keep_alive;
mod listener;
mod principal;
mod request_head;
mod responses;
mod resume;
mod sessions;
#[cfg(unix)]
mod socket;
#[cfg(not(unix))]
#[path = "socket_nothing.rs"]
mod socket;
mod stateless_sessions;
mod token;

use std::borrow::Cow;
use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use self::auth::{Authenticator, HttpRejection};
use self::connection_limiter::{ConnectionLimiter, ConnectionSlot};
use self::event_logs::EventLogs;
pub use self::listener::HttpListener;
use self::listener::HttpStream;
pub use self::principal::Principal;
use self::request_head::{RequestHead, SESSION_ID};
use self::responses::{
    HttpResponse, JSON, error_response, full_response, hold_until_end, is_event_stream,
    rejection_response, text_response,
};
pub(super) use self::sessions::{HttpSessions, PrincipalKey};
pub use self::socket::UnixSocket;
pub(super) use self::stateless_sessions::StatelessSessions;
pub use self::token::{InvalidToken, Token};
use super::Server;
use super::connection::Connection;
use super::fast_path::{FastResponse, InFlightGuard, id_json};
use super::json_rpc_batch;
use super::message::{self, MessageError, MessageKind};

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Service = StreamableHttpService<Connection, LocalSessionManager>;

/// The path of the endpoint.
const MCP_PATH: &str = "/mcp";
/// The longest body that is read.
const MAX_BODY_BYTES: usize = 1024 * 1024;
/// How long a peer may take for the head of a request, and how long it may do nothing.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long it may take for the rest.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// How much is read of what is too long, and for how long, before it is refused.
const MAX_DRAINED_BYTES: usize = 8 * MAX_BODY_BYTES;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// How often expired sessions are removed.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(60);
/// What is said where there is no room for another session.
const TOO_MANY_SESSIONS: &str =
    "all your sessions here have calls that run: end one, or come later";
/// How long accepting rests when the system has no room for another connection.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// The options of an HTTP server: who may use it.
///
/// # Examples
///
/// ```
/// use tool_sdk::mcp::{HttpOptions, Token};
///
/// let token = Token::random()?;
/// let http = HttpOptions::new(token).allow_host("tools.example.com").allow_origin("https://example.com");
/// # let _ = http;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct HttpOptions {
    token: Token,
    principals: Vec<(Token, Principal)>,
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl HttpOptions {
    /// Accepts requests with the token that name a local host, with the port if there is one.
    #[must_use]
    pub fn new(token: Token) -> Self {
        Self { token, principals: Vec::new(), hosts: Vec::new(), origins: Vec::new() }
    }

    /// Accepts a principal with a token of its own.
    #[must_use]
    pub fn with_principal(mut self, token: Token, principal: Principal) -> Self {
        self.principals.push((token, principal));
        self
    }

    /// Returns true if any principal has a token of its own.
    pub(super) fn has_principals(&self) -> bool {
        !self.principals.is_empty()
    }

    /// Accepts requests for this host, as `HOST` or `HOST:PORT`.
    #[must_use]
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Accepts scripts of this web site, such as `https://example.com`.
    #[must_use]
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }
}

/// Serves for as long as connections can be accepted.
pub(super) async fn serve(
    server: Arc<Server>,
    listener: HttpListener,
    http: HttpOptions,
) -> io::Result<()> {
    let lasting = Arc::<StatelessSessions>::default();
    let guard = Authenticator::new(&http, listener.local_hosts()?);
    let door = Arc::new(HttpHandler::new(server, guard, Arc::clone(&lasting)));
    let (sessions, tapes) = (Arc::clone(&door.sessions), Arc::clone(&door.event_logs));
    let rounds = async {
        loop {
            tokio::time::sleep(CLEANUP_INTERVAL).await;
            lasting.remove_idle(Instant::now());
            sessions.close_expired(Instant::now()).await;
            tapes.remove_expired(Instant::now());
        }
    };
    tokio::select! {
        ended = accept_connections(listener, door) => ended,
        () = rounds => Ok(()),
    }
}

async fn accept_connections(listener: HttpListener, door: Arc<HttpHandler>) -> io::Result<()> {
    let room = Arc::<ConnectionLimiter>::default();
    loop {
        let stream = match listener.accept().await {
            Ok(stream) => stream,
            Err(error) if is_permanent(&error) => return Err(error),
            Err(_) => {
                tokio::time::sleep(ACCEPT_BACKOFF).await;
                continue;
            }
        };
        let (door, seat) = (Arc::clone(&door), room.acquire_slot());
        tokio::spawn(async move {
            tokio::select! {
                () = serve_connection(stream, door, &seat) => {}
                () = seat.wait_for_eviction() => {}
            }
        });
    }
}

/// Whether accepting will never work again.
fn is_permanent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

/// Serves one connection until one of the two sides ends it.
async fn serve_connection(stream: HttpStream, door: Arc<HttpHandler>, seat: &Arc<ConnectionSlot>) {
    let answer = service_fn(|request: Request<Incoming>| {
        let (door, seat) = (Arc::clone(&door), Arc::clone(seat));
        async move { Ok::<_, Infallible>(door.handle(request, &seat).await) }
    });
    // A connection error does not concern other connections.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
}

/// What every request comes through.
struct HttpHandler {
    authenticator: Authenticator,
    sessions: Arc<HttpSessions>,
    event_logs: Arc<EventLogs>,
    service: Service,
}

impl HttpHandler {
    fn new(
        server: Arc<Server>,
        authenticator: Authenticator,
        lasting: Arc<StatelessSessions>,
    ) -> Self {
        let config = StreamableHttpServerConfig::default()
            // The guard has looked already, and knows the port.
            .disable_allowed_hosts()
            .disable_allowed_origins()
            // A name that leads back to nothing: the answer to the first message is not kept.
            .with_sse_retry(None)
            .with_max_request_body_bytes(MAX_BODY_BYTES);
        let mut manager = LocalSessionManager::default();
        manager.session_config = SessionConfig::default();
        // rmcp cannot distinguish a session with a pending request from an idle one.
        manager.session_config.keep_alive = None;
        let manager = Arc::new(manager);
        let sessions = Arc::new(HttpSessions::new(Arc::clone(&manager)));
        let known = Arc::clone(&sessions);
        let connect = move || {
            let connection = Connection::new(Arc::clone(&server))?;
            Ok(connection.with_http_sessions(Arc::clone(&lasting), Arc::clone(&known)))
        };
        let service = StreamableHttpService::new(connect, manager, config);
        Self { authenticator, sessions, event_logs: Arc::default(), service }
    }

    /// Rejections get CORS headers as well, unless the origin itself is rejected.
    async fn handle(
        self: &Arc<Self>,
        request: Request<Incoming>,
        seat: &ConnectionSlot,
    ) -> HttpResponse {
        let now = Instant::now();
        let (site, admitted) = {
            let head = RequestHead::from_headers(request.headers());
            let target = request.uri().authority().map(Authority::as_str);
            if let Err(refused) = self.authenticator.check_host_and_origin(&head, target) {
                return rejection_response(refused);
            }
            let admitted = match cors::is_preflight(request.method(), request.headers()) {
                true => Err(cors::preflight_response(request.headers())),
                false => self.authorize(&request, &head, seat, now).map_err(rejection_response),
            };
            (head.origin.value().cloned(), admitted)
        };
        let mut answer = match admitted {
            Ok(owner) => {
                self.handle_authorized(request, owner).await.unwrap_or_else(|refused| refused)
            }
            Err(answer) => answer,
        };
        if let Some(site) = site {
            cors::allow_origin(&mut answer, site);
        }
        answer
    }

    /// Authenticates the request and checks that the session belongs to its principal.
    fn authorize(
        &self,
        request: &Request<Incoming>,
        head: &RequestHead<'_>,
        seat: &ConnectionSlot,
        now: Instant,
    ) -> Result<PrincipalKey, HttpRejection> {
        let owner = self.authenticator.authenticate(head)?;
        seat.mark_authenticated(&owner);
        if request.uri().path() != MCP_PATH {
            return Err(HttpRejection::Path);
        }
        let is_there = |id| self.sessions.touch(id, &owner, now);
        if request_head::is_stateless(request.method(), request.headers()) {
            return Ok(owner);
        }
        if head.session.is_present() && !head.session.as_text().is_some_and(is_there) {
            return Err(HttpRejection::Session);
        }
        Ok(owner)
    }

    /// Answers an authorized request.
    async fn handle_authorized(
        self: &Arc<Self>,
        request: Request<Incoming>,
        owner: PrincipalKey,
    ) -> Result<HttpResponse, HttpResponse> {
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
async fn read_request(request: Request<Incoming>) -> Result<(Parts, Bytes), HttpResponse> {
    let (head, mut body) = request.into_parts();
    let whole = {
        let mut reading = pin!(read_body(Limited::new(&mut body, MAX_BODY_BYTES)));
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
            let _ = tokio::time::timeout(DRAIN_TIMEOUT, drain_body(&mut body)).await;
            Err(text_response(StatusCode::PAYLOAD_TOO_LARGE, "the message is longer than 1 MiB"))
        }
        Err(_) => Err(text_response(StatusCode::BAD_REQUEST, "the message did not come whole")),
    }
}

/// All of a body, which mostly comes in one piece.
async fn read_body(mut body: Limited<&mut Incoming>) -> Result<Bytes, BoxError> {
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
async fn drain_body(body: &mut Incoming) {
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
