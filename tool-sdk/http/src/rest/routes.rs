//! The routes of the API.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::middleware;
use axum::routing::{delete, get, post};
use tool_sdk_core::{Approver, Pipeline};
use tool_sdk_mcp::Server;

use super::access_log::log_request;
use super::options::RestOptions;
use super::plain_errors::replace_plain_errors;
use super::problem::ProblemDetails;
use super::service::{ApproverById, RestService};
use super::{
    approvals, audit, batch, call_socket, calls, console_sign_in, events, grants, health, metrics,
    openapi, questions, rules, servers, sessions, tools, workers,
};
use crate::auth::Authenticator;
use crate::router::{mcp_route, with_host_checks, with_token_check};
use crate::server::accept_connections;
use crate::{HttpListener, HttpOptions};

/// Returns the routes of a server for the tools of `pipeline`: REST below `/v1`, OpenAPI, live
/// events, approvals, metrics, and the Model Context Protocol at `/mcp`, with all checks of the
/// options. Other routes of an application that merges it are not checked.
///
/// The names under which clients reach the server are [allowed](HttpOptions::allow_host) by the
/// options. The limits on connections, heads and idle time are those of [`serve`]; a server of the
/// host sets its own.
///
/// # Examples
///
/// In a server of the host, beside its own routes:
///
/// ```no_run
/// use axum::{Router, routing::get};
/// use tool_sdk::http::{self, HttpOptions, Token, TokenScope};
/// use tool_sdk::{Pipeline, Registry};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let pipeline = Pipeline::new(Registry::linked()?);
/// // The first token calls tools; a person approves calls with the second.
/// let options = HttpOptions::new(Token::random()?)
///     .with_token(Token::random()?, TokenScope::Approvals)
///     .allow_host("127.0.0.1:8080");
///
/// let app = Router::new()
///     .route("/hello", get(|| async { "hello" }))
///     .merge(http::router(pipeline, options));
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
/// axum::serve(listener, app).await?;
/// # Ok(())
/// # }
/// ```
pub fn router(pipeline: Pipeline, options: impl Into<RestOptions>) -> Router {
    let options = options.into();
    let http = options.http.clone();
    // Layers cover the answer to unknown paths, which is the application's own.
    with_all_checks(pipeline, options, &http, Vec::new(), |routes| routes).reset_fallback()
}

/// Serves the tools of `pipeline` at a TCP listener or a [`UnixSocket`](crate::UnixSocket), whose
/// clients send `localhost` as the host: the routes of [`router`], with limits on connections,
/// heads and idle time.
///
/// # Errors
///
/// Fails when connections cannot be accepted.
///
/// # Examples
///
/// ```no_run
/// use tool_sdk::http::{self, HttpOptions, Token};
/// use tool_sdk::{Pipeline, Registry};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let token = Token::random()?;
/// println!("curl -H 'Authorization: Bearer {}' http://127.0.0.1:8080/v1/tools", token.reveal());
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
/// http::serve(Pipeline::new(Registry::linked()?), listener, HttpOptions::new(token)).await?;
/// # Ok(())
/// # }
/// ```
pub fn serve<L: Into<HttpListener>>(
    pipeline: Pipeline,
    listener: L,
    options: impl Into<RestOptions>,
) -> impl Future<Output = io::Result<()>> + Send {
    let (listener, options): (HttpListener, RestOptions) = (listener.into(), options.into());
    async move {
        let http = options.http.clone();
        let hosts = listener.local_hosts()?;
        let whole = |routes: Router| routes.fallback(reject_path);
        let router = with_all_checks(pipeline, options, &http, hosts, whole);
        accept_connections(listener, router, &http).await
    }
}

/// Returns the routes with their checks; `extend` adds routes that need a token.
fn with_all_checks(
    pipeline: Pipeline,
    options: RestOptions,
    http: &HttpOptions,
    hosts: Vec<String>,
    extend: impl FnOnce(Router) -> Router,
) -> Router {
    let console = options.console.clone();
    let authenticator = Arc::new(Authenticator::new(http, hosts).with_console(console.clone()));
    let mcp = mcp_route(&with_console_approvals(mcp_server(&pipeline, &options), &options), http);
    let service = RestService::new(pipeline, options, Arc::clone(&authenticator));
    let api = extend(api_routes().with_state(Arc::clone(&service)).merge(mcp));
    let open = match console {
        Some(_) => open_routes().merge(console_sign_in::console_routes()),
        None => open_routes(),
    };
    let open = open.with_state(Arc::clone(&service));
    let routes = with_token_check(api, &authenticator).merge(open);
    let routes = with_host_checks(routes, http, authenticator);
    let routes = routes.layer(middleware::from_fn(replace_plain_errors));
    routes.layer(middleware::from_fn_with_state(service, log_request))
}

/// Returns the server at `/mcp`.
fn mcp_server(pipeline: &Pipeline, options: &RestOptions) -> Server {
    if let Some(server) = &options.mcp_server {
        return server.clone();
    }
    let server = Server::new(pipeline.clone(), options.session.clone());
    let server = server.with_name(&options.title, &options.version);
    match options.session_setup.clone() {
        Some(setup) => server.with_session_setup(move |session| setup(session)),
        None => server,
    }
}

/// Lets the calls of MCP clients that ask no user wait for the console, while a page of it is open.
fn with_console_approvals(server: Server, options: &RestOptions) -> Server {
    let Some(console) = options.console.clone().filter(|_| options.asks_approvers) else {
        return server;
    };
    let approver: Arc<dyn Approver> = Arc::new(ApproverById);
    server.with_fallback_approver(move || console.has_open_page().then(|| Arc::clone(&approver)))
}

fn api_routes() -> Router<Arc<RestService>> {
    Router::new()
        .route("/openapi.json", get(openapi::get_tools_document))
        .route("/v1/openapi.json", get(openapi::get_full_document))
        .route("/v1/tools", get(tools::list_tools))
        .route("/v1/tools/{name}", get(tools::get_tool).post(calls::call_tool))
        .route("/v1/tools/{name}/call", get(calls::call_read_tool))
        .route("/v1/batch", post(batch::call_batch))
        .route("/v1/calls", get(calls::list_calls))
        .route("/v1/calls/ws", get(call_socket::open_socket))
        .route("/v1/calls/{id}", get(calls::get_call).delete(calls::cancel_call))
        .route("/v1/sessions", post(sessions::create_session))
        .route("/v1/sessions/{id}", get(sessions::get_session).delete(sessions::end_session))
        .route("/v1/events", get(events::stream_events))
        .route("/v1/approvals", get(approvals::list_approvals))
        .route("/v1/approvals/{id}", get(approvals::get_approval).post(approvals::answer_approval))
        .route("/v1/questions", get(questions::list_questions))
        .route("/v1/questions/{id}", post(questions::answer_question))
        .route("/v1/rules", get(rules::list_rules))
        .route("/v1/grants", get(grants::list_grants))
        .route("/v1/grants/{id}", delete(grants::revoke_grant))
        .route("/v1/servers", get(servers::list_servers))
        .route("/v1/servers/{id}/connection", post(servers::connect_server))
        .route("/v1/servers/{id}/pins", post(servers::pin_tools))
        .route("/v1/workers", get(workers::list_workers))
        .route("/v1/audit", get(audit::list_records))
        .route("/v1/console/links", post(console_sign_in::create_link))
        .route("/metrics", get(metrics::get_metrics))
}

/// The routes for supervisors, which need no token.
fn open_routes() -> Router<Arc<RestService>> {
    Router::new()
        .route("/healthz", get(health::get_health))
        .route("/readyz", get(health::get_readiness))
}

async fn reject_path() -> ProblemDetails {
    ProblemDetails::not_found("there is nothing at this path")
        .suggest("read `/v1/openapi.json` for the paths of the API")
}
