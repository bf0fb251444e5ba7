//! Signs browsers in to the console and out, and serves its page.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{HOST, HeaderName, ORIGIN, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use tool_sdk_core::ErrorKind;

use super::caller::AdministrationCaller;
use super::problem::ProblemDetails;
use super::request::JsonBody;
use super::service::RestService;
use crate::console::{ConsoleAccess, ConsoleUser, cookie_name, get_page, get_page_file};

/// Returns the routes that need no token: the page has no secrets, and the others check the code
/// or the cookie.
pub(super) fn console_routes() -> Router<Arc<RestService>> {
    Router::new()
        .route("/", get(get_page))
        .route("/console/{name}", get(get_page_file))
        .route("/console/sign-in", post(sign_in))
        .route("/console/session", get(get_session))
        .route("/console/sign-out", post(sign_out))
}

/// The body of `POST /console/sign-in`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SignInBody {
    /// The code of the link.
    code: String,
}

/// `POST /console/sign-in`: exchanges a code for a cookie. The body must be JSON, which a form of
/// another site cannot send.
async fn sign_in(
    State(service): State<Arc<RestService>>,
    headers: HeaderMap,
    JsonBody(SignInBody { code }): JsonBody<SignInBody>,
) -> Result<Response, ProblemDetails> {
    let access = find_access(&service)?;
    let redeemed = access.redeem_code(&code).ok_or_else(|| {
        not_signed_in("the link was opened before, or is too old").suggest(
            "print a new link: restart the server, or send `POST /v1/console/links` with a token \
             for `administration`",
        )
    })?;
    let credentials =
        redeemed.map_err(|_| ProblemDetails::busy("the system has no random numbers"))?;
    let cookie = set_cookie(&headers, credentials.cookie.reveal(), "");
    let mut body = session_body(&service, &credentials.user);
    body["request_token"] = credentials.request_token.reveal().into();
    Ok(([cookie], Json(body)).into_response())
}

/// `GET /console/session`: tells the page that was loaded again whether its browser is still signed
/// in. Other servers of this machine get the cookie as well, so it does not suffice.
async fn get_session(
    State(service): State<Arc<RestService>>,
    headers: HeaderMap,
) -> Result<Json<Value>, ProblemDetails> {
    let user = find_access(&service)?.find_user(&headers).ok_or_else(|| {
        not_signed_in("this browser is not signed in")
            .suggest("open the link that the server printed")
    })?;
    Ok(Json(session_body(&service, &user)))
}

/// `POST /console/sign-out`
async fn sign_out(
    State(service): State<Arc<RestService>>,
    headers: HeaderMap,
) -> Result<Response, ProblemDetails> {
    let access = find_access(&service)?;
    if access.find_user(&headers).is_none() {
        return Err(not_signed_in("this browser is not signed in"));
    }
    access.sign_out(&headers);
    let cookie = set_cookie(&headers, "", "; Max-Age=0");
    Ok((StatusCode::NO_CONTENT, [cookie]).into_response())
}

/// `POST /v1/console/links`: makes a further link, to the address that the client used, for the
/// person who has the token.
pub(super) async fn create_link(
    State(service): State<Arc<RestService>>,
    AdministrationCaller(caller): AdministrationCaller,
    headers: HeaderMap,
) -> Result<Json<Value>, ProblemDetails> {
    let access = service.options.console.as_ref();
    let access = access.ok_or_else(|| ProblemDetails::not_found("the server has no console"))?;
    let host = headers.get(HOST).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let scheme = if is_behind_tls(&headers) { "https" } else { "http" };
    let base = format!("{scheme}://{host}");
    let link = match caller.person() {
        Some(person) => access.create_link_for(&base, person),
        None => access.create_link(&base),
    };
    let link = link.map_err(|_| ProblemDetails::busy("the system has no random numbers"))?;
    let lifetime = ConsoleAccess::LINK_LIFETIME.as_secs();
    Ok(Json(json!({ "link": link, "expires_in_s": lifetime })))
}

fn find_access(service: &RestService) -> Result<&ConsoleAccess, ProblemDetails> {
    service.options.console.as_ref().ok_or_else(|| ProblemDetails::not_found("there is no console"))
}

fn not_signed_in(error: &str) -> ProblemDetails {
    ProblemDetails::new(StatusCode::UNAUTHORIZED, ErrorKind::Unauthorized.as_str(), error)
}

fn session_body(service: &RestService, user: &ConsoleUser) -> Value {
    let (title, version) = (&service.options.title, &service.options.version);
    match user.name() {
        Some(user) => json!({ "title": title, "version": version, "user": user }),
        None => json!({ "title": title, "version": version }),
    }
}

/// Whether the client connects to a proxy that ends TLS: its page has an `https` origin. A request
/// with an origin of another host does not get here.
fn is_behind_tls(headers: &HeaderMap) -> bool {
    headers.get(ORIGIN).is_some_and(|it| it.as_bytes().starts_with(b"https://"))
}

/// Returns a cookie that scripts cannot read and that browsers send with requests of this site
/// only; behind TLS, with encrypted ones only.
fn set_cookie(headers: &HeaderMap, value: &str, age: &str) -> (HeaderName, String) {
    let name = cookie_name(headers);
    let secure = if is_behind_tls(headers) { "; Secure" } else { "" };
    (SET_COOKIE, format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{age}"))
}
