//! The routes, and the checks that every request passes before them.

use tool_sdk_mcp::Server;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::header::{self, CACHE_CONTROL, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use axum::http::{Method, StatusCode};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};
use tower_http::set_header::SetResponseHeaderLayer;

use super::HttpOptions;
use super::auth::{self, Authenticator};
use super::resource_metadata::metadata_routes;

/// The path of the MCP endpoint.
const MCP_PATH: &str = "/mcp";
/// How long a browser need not repeat a preflight request.
const PREFLIGHT_MAX_AGE: Duration = Duration::from_secs(600);
/// What a script may read beside the headers that every script may.
const EXPOSED_HEADERS: [HeaderName; 8] = [
    HeaderName::from_static("call-id"),
    header::LOCATION,
    header::RETRY_AFTER,
    HeaderName::from_static("preference-applied"),
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("mcp-protocol-version"),
    HeaderName::from_static("mcp-session-id"),
    WWW_AUTHENTICATE,
];

/// Returns the routes of a server, with all checks of its options: host, origin and token. Other
/// routes of an application that merges it are not checked.
///
/// `hosts` are the names under which clients reach the server, as `HOST:PORT`, beside those of the
/// options. A response is for one client at one time, so none is stored by caches. The limits on
/// connections, heads and idle time are those of [`serve_http`](super::serve_http); a server of the
/// host sets its own.
///
/// # Examples
///
/// In a server of the host, beside its own routes:
///
/// ```no_run
/// use axum::{Router, routing::get};
/// use tool_sdk::mcp::{HttpOptions, Server, Token, router};
/// use tool_sdk::{Pipeline, Registry, Session};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::new(Pipeline::new(Registry::linked()?), Session::default());
/// let tools = router(&server, &HttpOptions::new(Token::random()?), ["127.0.0.1:8080"]);
/// let app = Router::new().route("/health", get(|| async { "ok" })).merge(tools);
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
/// axum::serve(listener, app).await?;
/// # Ok(())
/// # }
/// ```
pub fn router(
    server: &Server,
    options: &HttpOptions,
    hosts: impl IntoIterator<Item = impl Into<String>>,
) -> Router {
    let hosts = hosts.into_iter().map(Into::into).collect();
    let authenticator = Arc::new(Authenticator::new(options, hosts));
    let routes = with_token_check(mcp_route(server, options), &authenticator);
    // Layers cover the answer to unknown paths, which is the application's own.
    with_host_checks(routes, options, authenticator).reset_fallback()
}

/// Returns the routes of a server that has no others: every request passes the checks, also one to
/// another path.
pub(super) fn whole_router(server: &Server, options: &HttpOptions, hosts: Vec<String>) -> Router {
    let authenticator = Arc::new(Authenticator::new(options, hosts));
    let routes = mcp_route(server, options).fallback(reject_path);
    with_host_checks(with_token_check(routes, &authenticator), options, authenticator)
}

/// Returns the route of the MCP endpoint.
pub(super) fn mcp_route(server: &Server, options: &HttpOptions) -> Router {
    let service = match options.has_principals() {
        true => server.clone().shared_by_principals().http_service(),
        false => server.http_service(),
    };
    Router::new()
        .route_service(MCP_PATH, service)
        .route_layer(middleware::from_fn(auth::require_tools_scope))
}

/// Adds the metadata of the protected resource, which needs no token.
fn with_resource_metadata(router: Router, options: &HttpOptions) -> Router {
    match &options.issuer {
        Some(issuer) => router.merge(metadata_routes(issuer)),
        None => router,
    }
}

/// Adds the check of the token to routes.
pub(super) fn with_token_check(router: Router, authenticator: &Arc<Authenticator>) -> Router {
    router.layer(middleware::from_fn_with_state(Arc::clone(authenticator), auth::require_token))
}

/// Adds what needs no token, and the checks of host and origin, which come before all others. The last layer is the first
/// that a request passes.
pub(super) fn with_host_checks(
    router: Router,
    options: &HttpOptions,
    authenticator: Arc<Authenticator>,
) -> Router {
    with_resource_metadata(router, options)
        .layer(cors_layer(options))
        .layer(SetResponseHeaderLayer::overriding(
            CACHE_CONTROL,
            HeaderValue::from_static("no-store"),
        ))
        .layer(middleware::from_fn_with_state(authenticator, auth::check_host_and_origin))
}

async fn reject_path() -> Response {
    (StatusCode::NOT_FOUND, "the protocol is spoken at /mcp").into_response()
}

/// Lets the scripts of accepted web sites send the headers that `auth` left in their preflight
/// request, and read responses. They still need the token, and browsers send no cookies.
fn cors_layer(options: &HttpOptions) -> CorsLayer {
    let origins = options.origins.iter().filter_map(|origin| HeaderValue::try_from(origin).ok());
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(EXPOSED_HEADERS)
        .vary([header::ORIGIN])
        .max_age(PREFLIGHT_MAX_AGE)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;
    use tool_sdk_core::{Pipeline, Registry, Session};
    use tower::ServiceExt as _;

    use super::*;
    use crate::Token;

    // An application keeps its own routes and its own answer to unknown paths.
    #[tokio::test]
    async fn checks_its_own_routes_and_no_others() {
        let server = Server::new(Pipeline::new(Registry::default()), Session::default());
        let token = Token::random().unwrap();
        let bearer = format!("Bearer {}", token.reveal());
        let tools = router(&server, &HttpOptions::new(token), ["127.0.0.1:80"]);
        let plain = Router::new().merge(tools.clone());
        let unknown = Request::get("/other").body(Body::empty()).unwrap();
        let response = plain.oneshot(unknown).await.unwrap();
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "the application's own answer");
        let app = Router::new().fallback(|| async { StatusCode::IM_A_TEAPOT }).merge(tools);
        for (path, host, token, status) in [
            ("/other", "evil.example", "", StatusCode::IM_A_TEAPOT),
            ("/mcp", "evil.example", &*bearer, StatusCode::FORBIDDEN),
            ("/mcp", "127.0.0.1:80", "", StatusCode::UNAUTHORIZED),
            ("/mcp", "127.0.0.1:80", &*bearer, StatusCode::NOT_ACCEPTABLE),
        ] {
            let request = Request::get(path).header("host", host).header("authorization", token);
            let response = app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
            assert_eq!(response.status(), status, "{path} {host}");
        }
    }
}
