//! CORS: preflight responses, and the headers that let a script of another web site read a
//! response.
//!
//! Only origins that [`auth`](super::auth) accepts get CORS headers (RS3), and their requests still
//! need the token.

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, CACHE_CONTROL, HeaderName, HeaderValue, ORIGIN, VARY,
};
use hyper::{HeaderMap, Method, StatusCode};

use super::responses::{HttpResponse, text_response};

/// How a browser says that the site is further out than the server.
const PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
/// What a client sends; what begins with `mcp-` is of the protocol.
const REQUEST_HEADERS: &[&str] = &["accept", "authorization", "content-type", "last-event-id"];
/// What a client reads, beside what every script may.
const EXPOSED_HEADERS: HeaderValue =
    HeaderValue::from_static("mcp-protocol-version, mcp-session-id, www-authenticate");
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
/// How long a browser need not ask again, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// An answer is for one peer at one time. A browser that keeps one, such as a stream of events that
/// was given up, may also send the next request for that address twice; the end of a session was.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// Whether a browser asks if a script may send something. That a site on the net may reach into
/// a private network is never said.
pub(super) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS
        && [ORIGIN, ACCESS_CONTROL_REQUEST_METHOD].iter().all(|name| headers.contains_key(name))
        && !headers.contains_key(PRIVATE_NETWORK)
}

/// What a script may send.
pub(super) fn preflight_response(asked: &HeaderMap) -> HttpResponse {
    let mut answer = text_response(StatusCode::NO_CONTENT, "");
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    if let Some(names) = allowed_headers(asked) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, names);
    }
    answer
}

/// Of the headers that are asked about, those that a client sends.
fn allowed_headers(asked: &HeaderMap) -> Option<HeaderValue> {
    let names = asked.get(ACCESS_CONTROL_REQUEST_HEADERS)?.to_str().ok()?;
    let names: Vec<_> = names
        .split(',')
        .map(|name| name.trim().to_ascii_lowercase())
        .filter(|name| REQUEST_HEADERS.contains(&&**name) || name.starts_with("mcp-"))
        .collect();
    HeaderValue::try_from(names.join(", ")).ok()
}

/// Lets the script of a site that was let in read the answer.
pub(super) fn allow_origin(answer: &mut HttpResponse, site: HeaderValue) {
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, site);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    headers.append(VARY, HeaderValue::from_static("origin"));
    headers.insert(CACHE_CONTROL, NO_STORE);
}
