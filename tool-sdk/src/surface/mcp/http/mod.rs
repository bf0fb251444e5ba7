//! The server over streamable HTTP, at one path.
//!
//! rmcp speaks the protocol; this is the door in front of it. Who may not enter is sent away
//! before a body is read, see [`guard`], a session is there for whoever opened it, and what
//! is no message does not come in. What an open session asks for that needs no stream of
//! events is answered at the door, and who lost such a stream takes it up again there.

mod again;
mod cors;
mod guard;
mod head;
mod lasting;
mod listener;
mod principal;
mod reply;
mod room;
mod sessions;
mod silence;
#[cfg(unix)]
mod socket;
#[cfg(not(unix))]
#[path = "socket_nothing.rs"]
mod socket;
mod tape;
mod tapes;
mod together;
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

use self::guard::{Guard, Refused};
use self::head::{Head, SESSION};
pub(super) use self::lasting::Lasting;
pub use self::listener::Listener;
use self::listener::Stream;
pub use self::principal::Principal;
use self::reply::{Answer, JSON, is_stream, refuse, said, told, until_its_end, wrong};
use self::room::{Room, Seat};
pub(super) use self::sessions::{Owner, Sessions};
pub use self::socket::Socket;
use self::tapes::Tapes;
pub use self::token::{InvalidToken, Token};
use super::Server;
use super::batch;
use super::connection::Connection;
use super::direct::{Ticket, Told, written};
use super::message::{self, Fault, Kind};

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Service = StreamableHttpService<Connection, LocalSessionManager>;

/// Where the protocol is spoken.
const PATH: &str = "/mcp";
/// The longest body that is read.
const MAX_BODY: usize = 1024 * 1024;
/// How long a peer may take for the head of a request, and how long it may do nothing.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long it may take for the rest.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// How much is read of what is too long, and for how long, before it is refused.
const MOST_OF_REST: usize = 8 * MAX_BODY;
const REST_TIMEOUT: Duration = Duration::from_secs(2);
/// How often is looked for sessions that nobody uses any more.
const ROUND: Duration = Duration::from_secs(60);
/// What is said where there is no room for another session.
const CROWDED: &str = "all your sessions here have calls that run: end one, or come later";
/// How long accepting rests when the system has no room for another connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Who may use a server over HTTP.
///
/// # Examples
///
/// ```
/// use tool_sdk::mcp::{Http, Token};
///
/// let token = Token::random()?;
/// let http = Http::new(token).allow_host("tools.example.com").allow_origin("https://example.com");
/// # let _ = http;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Http {
    token: Token,
    principals: Vec<(Token, Principal)>,
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Http {
    /// Lets in who has the token and reached the server by a name of this machine, with the port
    /// where there is one.
    #[must_use]
    pub fn new(token: Token) -> Self {
        Self { token, principals: Vec::new(), hosts: Vec::new(), origins: Vec::new() }
    }

    /// Lets in somebody with a token of their own.
    #[must_use]
    pub fn principal(mut self, token: Token, principal: Principal) -> Self {
        self.principals.push((token, principal));
        self
    }

    /// Whether there are people with tokens of their own.
    pub(super) fn has_principals(&self) -> bool {
        !self.principals.is_empty()
    }

    /// Lets in who reached the server under this name, as `HOST_DIGITS` or `HOST_DIGITS:PORT`.
    #[must_use]
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Lets in scripts of this web site, such as `https://example.com`.
    #[must_use]
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }
}

/// Serves for as long as connections can be accepted.
pub(super) async fn serve(server: Arc<Server>, listener: Listener, http: Http) -> io::Result<()> {
    let lasting = Arc::<Lasting>::default();
    let guard = Guard::new(&http, listener.names()?);
    let door = Arc::new(Door::new(server, guard, Arc::clone(&lasting)));
    let (sessions, tapes) = (Arc::clone(&door.sessions), Arc::clone(&door.tapes));
    let rounds = async {
        loop {
            tokio::time::sleep(ROUND).await;
            lasting.forget(Instant::now());
            sessions.forget(Instant::now()).await;
            tapes.forget(Instant::now());
        }
    };
    tokio::select! {
        ended = accept(listener, door) => ended,
        () = rounds => Ok(()),
    }
}

async fn accept(listener: Listener, door: Arc<Door>) -> io::Result<()> {
    let room = Arc::<Room>::default();
    loop {
        let stream = match listener.accept().await {
            Ok(stream) => stream,
            Err(error) if is_lasting(&error) => return Err(error),
            Err(_) => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let (door, seat) = (Arc::clone(&door), room.seat());
        tokio::spawn(async move {
            tokio::select! {
                () = hold(stream, door, &seat) => {}
                () = seat.gone() => {}
            }
        });
    }
}

/// Whether accepting will never work again.
fn is_lasting(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

/// Serves one connection until one of the two sides ends it.
async fn hold(stream: Stream, door: Arc<Door>, seat: &Arc<Seat>) {
    let answer = service_fn(|request: Request<Incoming>| {
        let (door, seat) = (Arc::clone(&door), Arc::clone(seat));
        async move { Ok::<_, Infallible>(door.answer(request, &seat).await) }
    });
    // A connection that breaks concerns nobody else.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
}

/// What every request comes through.
struct Door {
    guard: Guard,
    sessions: Arc<Sessions>,
    tapes: Arc<Tapes>,
    service: Service,
}

impl Door {
    fn new(server: Arc<Server>, guard: Guard, lasting: Arc<Lasting>) -> Self {
        let config = StreamableHttpServerConfig::default()
            // The guard has looked already, and knows the port.
            .disable_allowed_hosts()
            .disable_allowed_origins()
            // A name that leads back to nothing: the answer to the first message is not kept.
            .with_sse_retry(None)
            .with_max_request_body_bytes(MAX_BODY);
        let mut manager = LocalSessionManager::default();
        manager.session_config = SessionConfig::default();
        // It cannot tell a session that waits for an answer from one that nobody uses.
        manager.session_config.keep_alive = None;
        let manager = Arc::new(manager);
        let sessions = Arc::new(Sessions::new(Arc::clone(&manager)));
        let known = Arc::clone(&sessions);
        let connect = move || {
            let connection = Connection::new(Arc::clone(&server))?;
            Ok(connection.over_http(Arc::clone(&lasting), Arc::clone(&known)))
        };
        let service = StreamableHttpService::new(connect, manager, config);
        Self { guard, sessions, tapes: Arc::default(), service }
    }

    /// Whatever keeps a request out is an answer as well, and one that its site may read unless
    /// the site itself is kept out.
    async fn answer(self: &Arc<Self>, request: Request<Incoming>, seat: &Seat) -> Answer {
        let now = Instant::now();
        let (site, admitted) = {
            let head = Head::of(request.headers());
            let target = request.uri().authority().map(Authority::as_str);
            if let Err(refused) = self.guard.knows(&head, target) {
                return refuse(refused);
            }
            let admitted = match cors::is_preflight(request.method(), request.headers()) {
                true => Err(cors::preflight(request.headers())),
                false => self.admit(&request, &head, seat, now).map_err(refuse),
            };
            (head.origin.value().cloned(), admitted)
        };
        let mut answer = match admitted {
            Ok(owner) => self.enter(request, owner).await.unwrap_or_else(|refused| refused),
            Err(answer) => answer,
        };
        if let Some(site) = site {
            cors::let_read(&mut answer, site);
        }
        answer
    }

    /// Says who it is that enters: whoever has a token, and comes for a session of their own.
    fn admit(
        &self,
        request: &Request<Incoming>,
        head: &Head<'_>,
        seat: &Seat,
        now: Instant,
    ) -> Result<Owner, Refused> {
        let owner = self.guard.admit(head)?;
        seat.admit(&owner);
        if request.uri().path() != PATH {
            return Err(Refused::Path);
        }
        let is_there = |id| self.sessions.enter(id, &owner, now);
        if head::stands_alone(request.method(), request.headers()) {
            return Ok(owner);
        }
        if head.session.is_there() && !head.session.text().is_some_and(is_there) {
            return Err(Refused::Session);
        }
        Ok(owner)
    }

    /// Answers what somebody sends who was admitted.
    async fn enter(
        self: &Arc<Self>,
        request: Request<Incoming>,
        owner: Owner,
    ) -> Result<Answer, Answer> {
        let (mut head, body) = whole(request).await?;
        if head::stands_alone(&head.method, &head.headers) {
            head.headers.remove(SESSION);
        }
        if head.method == Method::POST && batch::is_one(&body) {
            return Box::pin(self.together(head, body, owner)).await;
        }
        if head.method == Method::GET && head.headers.contains_key(again::LAST) {
            return Box::pin(self.again(head, body, owner)).await;
        }
        self.single(head, body, owner, true).await
    }

    /// Answers one message; `keeps` the answer for whoever loses it.
    async fn single(
        self: &Arc<Self>,
        mut head: Parts,
        body: Bytes,
        owner: Owner,
        keeps: bool,
    ) -> Result<Answer, Answer> {
        let ticket = match self.directly(&head, &body).await {
            Told::Whole(answer) => return Ok(told(StatusCode::OK, answer.into(), JSON)),
            Told::Begun(call, ticket) => {
                head.extensions.insert(call);
                Some(ticket)
            }
            Told::Nothing => self.ticket(&head, &body).map_err(|fault| wrong(&fault))?,
        };
        // Apart, so that requests that need no rmcp have no room for it.
        Box::pin(async move {
            let is_kept = keeps && head.method == Method::POST;
            let session = head.headers.get(SESSION).filter(|_| is_kept).cloned();
            let is_older = head::is_older(&head.headers);
            let answer = self.pass(head, body, owner.clone()).await?;
            let answer = match ticket {
                Some(ticket) => answer.map(|body| until_its_end(body, ticket)),
                None => answer,
            };
            Ok(match session.filter(|_| is_stream(&answer)) {
                Some(id) => {
                    answer.map(|body| self.tapes.keep(id.as_bytes(), owner, is_older, body))
                }
                None => answer,
            })
        })
        .await
    }

    /// Lets rmcp answer.
    async fn pass(
        self: &Arc<Self>,
        head: Parts,
        body: Bytes,
        owner: Owner,
    ) -> Result<Answer, Answer> {
        let (is_end, hello) = (head.method == Method::DELETE, body.clone());
        let id = session(&head.headers).map(str::to_owned);
        let judged = judged(head, body, owner.clone());
        let (request, kind) = judged.map_err(|fault| wrong(&fault))?;
        let mut answer = match kind {
            Kind::Hello => self.open(request, owner, batch::may_follow(&hello)).await,
            Kind::Call(_) | Kind::Broken(_) | Kind::Other => {
                let door = Arc::clone(self);
                let coming = async move { door.service.handle(request).await };
                silence::broken(coming).await
            }
        };
        if let Some(id) = id.filter(|_| is_end) {
            self.sessions.closed(&id);
            // It is over by now; some clients warn of an end that is only accepted.
            if answer.status() == StatusCode::ACCEPTED {
                *answer.status_mut() = StatusCode::NO_CONTENT;
            }
        }
        Ok(answer)
    }

    /// Answers a request of a session that is open, where nothing has to be waited for.
    async fn directly(&self, parts: &Parts, body: &[u8]) -> Told {
        let head = Head::of(&parts.headers);
        let id = head.session.text().filter(|_| head.is_plain(&parts.method));
        match id.and_then(|id| self.sessions.single(id)) {
            Some(single) => single.answer(body).await,
            None => Told::Nothing,
        }
    }

    /// Takes the id of a request; nothing where there is none to take. rmcp would answer only
    /// the last of several requests of a session that have one id.
    fn ticket(&self, head: &Parts, body: &[u8]) -> Result<Option<Ticket>, Fault> {
        let asked = session(&head.headers).and_then(|id| self.sessions.asked(id));
        let (Some(asked), Some(id)) = (asked, message::request(body)) else { return Ok(None) };
        match asked.ticket(&written(&id)) {
            Some(ticket) => Ok(Some(ticket)),
            None => Err(Fault::taken(Some(id))),
        }
    }

    /// Opens a session, which is written down also when nobody waits for the answer any more.
    async fn open(
        self: &Arc<Self>,
        request: Request<Full<Bytes>>,
        owner: Owner,
        with_batches: bool,
    ) -> Answer {
        let door = Arc::clone(self);
        let opening = tokio::spawn(async move {
            let answer = door.service.handle(request).await;
            if let Some(id) = session(answer.headers()) {
                if door.sessions.opened(id, owner, Instant::now()).await.is_err() {
                    return said(StatusCode::SERVICE_UNAVAILABLE, CROWDED);
                }
                if with_batches {
                    door.sessions.take_batches(id);
                }
            }
            answer
        });
        let broken = |_| said(StatusCode::INTERNAL_SERVER_ERROR, "the session did not open");
        opening.await.unwrap_or_else(broken)
    }
}

fn session(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION)?.to_str().ok()
}

/// Reads the whole of a request.
async fn whole(request: Request<Incoming>) -> Result<(Parts, Bytes), Answer> {
    let (head, mut body) = request.into_parts();
    let whole = {
        let mut reading = pin!(pieces(Limited::new(&mut body, MAX_BODY)));
        // Most bodies come with their head, and need no timer.
        match reading.as_mut().now_or_never() {
            Some(whole) => whole,
            None => match tokio::time::timeout(BODY_TIMEOUT, reading).await {
                Ok(whole) => whole,
                Err(_) => {
                    let late = "the message did not come in time";
                    return Err(said(StatusCode::REQUEST_TIMEOUT, late));
                }
            },
        }
    };
    match whole {
        Ok(body) => Ok((head, body)),
        Err(error) if error.is::<LengthLimitError>() => {
            // A peer that still writes when the connection ends may never read why.
            let _ = tokio::time::timeout(REST_TIMEOUT, leave(&mut body)).await;
            Err(said(StatusCode::PAYLOAD_TOO_LARGE, "a message has at most 1 MiB"))
        }
        Err(_) => Err(said(StatusCode::BAD_REQUEST, "the message did not come whole")),
    }
}

/// All of a body, which mostly comes in one piece.
async fn pieces(mut body: Limited<&mut Incoming>) -> Result<Bytes, BoxError> {
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
async fn leave(body: &mut Incoming) {
    let mut read = 0;
    while let Some(Ok(frame)) = body.frame().await {
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > MOST_OF_REST {
            return;
        }
    }
}

/// A request as rmcp reads it, with whose it is and what was written there.
fn judged(
    mut head: Parts,
    body: Bytes,
    owner: Owner,
) -> Result<(Request<Full<Bytes>>, Kind), Fault> {
    let kind = match head.method {
        Method::POST => message::judge(&body)?,
        _ => Kind::Other,
    };
    let body = match message::readable(&body, &kind) {
        Cow::Borrowed(_) => body,
        Cow::Owned(body) => body.into(),
    };
    match serde_json::from_slice(&body) {
        Ok(message) => message::known(&message)?,
        Err(_) => message::unread(&body).map_or(Ok(()), Err)?,
    }
    if let Kind::Call(written) = &kind {
        head.extensions.insert(written.clone());
    }
    if let Some(principal) = owner {
        head.extensions.insert(principal);
    }
    Ok((Request::from_parts(head, Full::new(body)), kind))
}
