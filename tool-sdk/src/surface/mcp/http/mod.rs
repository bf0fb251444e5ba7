//! The server over streamable HTTP, at one path.
//!
//! rmcp speaks the protocol; this is the door in front of it. Who may not enter is sent away
//! before a body is read, see [`guard`].

mod guard;
mod principal;
mod token;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use self::guard::{Guard, Refused};
pub use self::principal::Principal;
pub use self::token::{InvalidToken, Token};
use super::Server;
use super::connection::Connection;

type Service = StreamableHttpService<Connection, LocalSessionManager>;
type Answer = Response<BoxBody<Bytes, Infallible>>;

/// Where the protocol is spoken.
const PATH: &str = "/mcp";
/// The longest body that is read.
const MAX_BODY: usize = 1024 * 1024;
/// How long a peer may take for the head of a request, and how long it may do nothing.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How many connections are held at a time; further ones wait.
const MAX_CONNECTIONS: usize = 256;
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
    /// Lets in who has the token and reached the server by its own address.
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

    /// Lets in who reached the server under this name, as `HOST` or `HOST:PORT`.
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

/// Accepts connections for as long as that works.
pub(super) async fn serve(
    server: Arc<Server>,
    listener: TcpListener,
    http: Http,
) -> io::Result<()> {
    let guard = Arc::new(Guard::new(&http, listener.local_addr()?));
    let service = service(server);
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let place = Arc::clone(&room).acquire_owned().await.map_err(io::Error::other)?;
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) if is_lasting(&error) => return Err(error),
            Err(_) => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let (guard, service) = (Arc::clone(&guard), service.clone());
        tokio::spawn(async move {
            hold(stream, guard, service).await;
            drop(place);
        });
    }
}

/// Whether accepting will never work again.
fn is_lasting(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

fn service(server: Arc<Server>) -> Service {
    let config = StreamableHttpServerConfig::default()
        // The guard has looked already, and knows the port.
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(MAX_BODY);
    StreamableHttpService::new(move || Connection::new(Arc::clone(&server)), Arc::default(), config)
}

/// Serves one connection until one of the two sides ends it.
async fn hold(stream: TcpStream, guard: Arc<Guard>, service: Service) {
    let answer = service_fn(|request: Request<Incoming>| {
        let (guard, service) = (Arc::clone(&guard), service.clone());
        async move { Ok::<_, Infallible>(answer(request, &guard, &service).await) }
    });
    // A connection that breaks concerns nobody else.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
}

async fn answer(mut request: Request<Incoming>, guard: &Guard, service: &Service) -> Answer {
    match guard.admit(request.headers()) {
        Err(refused) => return refuse(refused),
        Ok(Some(principal)) => drop(request.extensions_mut().insert(principal)),
        Ok(None) => {}
    }
    if request.uri().path() != PATH {
        return said(StatusCode::NOT_FOUND, "the protocol is spoken at /mcp");
    }
    service.handle(request).await
}

fn refuse(refused: Refused) -> Answer {
    let mut answer = said(refused.status(), refused.words());
    if refused == Refused::Token {
        let value = header::HeaderValue::from_static("Bearer");
        answer.headers_mut().insert(header::WWW_AUTHENTICATE, value);
    }
    answer
}

fn said(status: StatusCode, words: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from_static(words.as_bytes())).boxed());
    *answer.status_mut() = status;
    let kind = header::HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}
