//! Receives the redirect of the user's browser on a port of this machine (RFC 8252).
//!
//! **Invariant:** the listener accepts connections of this machine only, answers without repeating
//! anything of the request, and ends with the flow.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderValue,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::error::AuthorizationError;
use super::flow::{PendingAuthorization, RedirectVerdict};
use super::prompt::PromptFailure;

const PATH: &str = "/callback";

/// How many connections are served at once; browsers open some without a request.
const MAX_CONNECTIONS: usize = 32;

/// How long the browser may take to read the last response.
const LAST_RESPONSE_TIMEOUT: Duration = Duration::from_secs(1);

const ARRIVED: &str = "The answer arrived. Return to the program; this page can be closed.\n";
const UNRELATED: &str = "This is not the answer to a login that is waiting.\n";

/// A listener for one redirect.
#[derive(Debug)]
pub(super) struct LoopbackListener {
    listener: TcpListener,
    address: SocketAddr,
}

/// The outcome of the redirect that was waited for.
type ReceivedCode = Result<String, AuthorizationError>;

/// Answers the requests of one connection.
struct RedirectHandler<'a> {
    pending: &'a PendingAuthorization,
    /// The value of the `Host` header, which no page of another host can send.
    host: String,
    codes: mpsc::Sender<ReceivedCode>,
    has_code: AtomicBool,
}

impl LoopbackListener {
    /// Listens on `127.0.0.1`, on a free port unless one is given.
    pub(super) async fn bind(port: Option<u16>) -> Result<Self, AuthorizationError> {
        let unavailable = |error: std::io::Error| {
            let place = port.map(|port| format!(" on port {port}")).unwrap_or_default();
            PromptFailure::Unavailable(format!("cannot listen on 127.0.0.1{place}: {error}"))
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or_default()))
            .await
            .map_err(unavailable)?;
        let address = listener.local_addr().map_err(unavailable)?;
        Ok(Self { listener, address })
    }

    /// Returns the redirect URI of this listener.
    pub(super) fn redirect_uri(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Waits for the redirect of `pending`. Others are refused and change nothing.
    pub(super) async fn receive_code(&self, pending: &PendingAuthorization) -> ReceivedCode {
        // A second redirect finds the channel full or closed, and is not used.
        let (codes, mut received) = mpsc::channel(1);
        let mut connections = FuturesUnordered::new();
        let code = loop {
            tokio::select! {
                Some(code) = received.recv() => break code,
                Some(_) = connections.next(), if !connections.is_empty() => {}
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                    let Ok((stream, _)) = accepted else { continue };
                    let handler = RedirectHandler {
                        pending,
                        host: self.address.to_string(),
                        codes: codes.clone(),
                        has_code: AtomicBool::new(false),
                    };
                    connections.push(handler.serve(stream));
                }
            }
        };
        let answered = async { while connections.next().await == Some(false) {} };
        // A browser that does not read it gets no page, but the flow goes on.
        let _ = timeout(LAST_RESPONSE_TIMEOUT, answered).await;
        code
    }
}

impl RedirectHandler<'_> {
    /// Serves a connection; returns whether the redirect came over it.
    async fn serve(self, stream: TcpStream) -> bool {
        let answer = |request: Request<Incoming>| {
            let response = self.answer_request(&request);
            async move { Ok::<_, Infallible>(response) }
        };
        // A broken connection is not an answer.
        let _ = http1::Builder::new()
            .max_buf_size(32 << 10)
            .serve_connection(TokioIo::new(stream), service_fn(answer))
            .await;
        self.has_code.load(Ordering::Relaxed)
    }

    fn answer_request(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let is_ours = request.method() == Method::GET
            && request.uri().path() == PATH
            && request.headers().get(HOST).is_some_and(|host| host == self.host.as_str());
        if !is_ours {
            return text_response(StatusCode::NOT_FOUND, UNRELATED);
        }
        let code = match self.pending.judge_redirect(request.uri().query().unwrap_or_default()) {
            RedirectVerdict::Unrelated => {
                return text_response(StatusCode::BAD_REQUEST, UNRELATED);
            }
            RedirectVerdict::Code(code) => Ok(code),
            RedirectVerdict::Rejected(error) => Err(error),
        };
        self.has_code.store(true, Ordering::Relaxed);
        match self.codes.try_send(code) {
            Ok(()) => text_response(StatusCode::OK, ARRIVED),
            Err(_) => text_response(StatusCode::CONFLICT, UNRELATED),
        }
    }
}

fn text_response(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    let headers = [
        (CONTENT_TYPE, "text/plain; charset=utf-8"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (CACHE_CONTROL, "no-store"),
        (CONNECTION, "close"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
