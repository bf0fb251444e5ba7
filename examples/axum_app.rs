//! Embeds tools in an axum application: routes of its own, its own authentication, MCP at `/mcp`.
//!
//! ```text
//! cargo run --example axum_app
//! curl -H 'x-api-key: sesame-0123' http://127.0.0.1:8080/health
//! ```
//!
//! The layer in front of the tools decides who a request is from, and hands the principal over. It
//! also checks the host header, so that a web page cannot reach a local port by DNS rebinding.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tool_sdk::mcp::{Principal, Server};
use tool_sdk::{Context, Pipeline, Registry, Session, tool, tools};

/// Greet the user.
#[tool(read, register = false)]
async fn greet(cx: &Context) -> String {
    format!("Good day, {}.", cx.session().user().unwrap_or("stranger"))
}

/// The application: its own routes, and the tools behind its own authentication.
fn app(pipeline: Pipeline) -> Router {
    let tools = Server::new(pipeline, Session::default())
        .with_name("axum-app", "1.0.0")
        .shared_by_principals()
        .http_service();
    Router::new()
        .nest_service("/mcp", tools)
        .layer(middleware::from_fn(authenticate))
        .route("/health", get(|| async { "ok" }))
}

/// Refuses requests without a known key; the others carry their principal.
async fn authenticate(mut request: Request, next: Next) -> Response {
    match find_user(request.headers()) {
        Ok(user) => {
            request.extensions_mut().insert(Arc::new(Principal::new(user)));
            next.run(request).await
        }
        Err(status) => status.into_response(),
    }
}

fn find_user(headers: &HeaderMap) -> Result<&'static str, StatusCode> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if text("host").and_then(|host| host.split(':').next()) != Some("127.0.0.1") {
        return Err(StatusCode::FORBIDDEN);
    }
    match text("x-api-key") {
        Some("sesame-0123") => Ok("ada"),
        Some("poppy-4567") => Ok("bob"),
        _ => Err(StatusCode::UNAUTHORIZED),
    }
}

fn pipeline() -> Pipeline {
    Pipeline::new(Registry::builder().add(tools![greet]).build().expect("one tool"))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    let (pipeline, shutdown) = (pipeline(), CancellationToken::new());
    let stop = shutdown.clone();
    tokio::spawn(async move {
        let _ = tokio::signal::ctrl_c().await;
        stop.cancel();
    });
    axum::serve(listener, app(pipeline.clone()))
        .with_graceful_shutdown(shutdown.cancelled_owned())
        .await?;
    // Calls that still run are cancelled.
    pipeline.close().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    /// Sends one request and returns its whole response.
    async fn send(address: &str, head: &str, body: &str) -> String {
        let length = body.len();
        let request = format!(
            "{head}\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response
    }

    fn call(user_agent: &str) -> Value {
        json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {
                "name": "greet", "arguments": {},
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {},
                    "io.modelcontextprotocol/clientInfo": { "name": user_agent, "version": "1" },
                },
            },
        })
    }

    // F130: the host's own authentication says who calls.
    #[tokio::test]
    async fn serves_its_own_routes_and_the_tools_of_each_principal() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let serving = tokio::spawn(axum::serve(listener, app(pipeline())).into_future());

        let health = send(&address, "GET /health HTTP/1.1", "").await;
        assert!(health.starts_with("HTTP/1.1 200") && health.contains("ok"), "{health}");

        let head = "POST /mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\n\
                    Mcp-Method: tools/call\r\nMcp-Name: greet";
        let refused = send(&address, head, &call("a").to_string()).await;
        assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
        for (key, user) in [("sesame-0123", "ada"), ("poppy-4567", "bob")] {
            let head = format!("{head}\r\nX-Api-Key: {key}");
            let greeted = send(&address, &head, &call("a").to_string()).await;
            assert!(greeted.contains(&format!("Good day, {user}.")), "{greeted}");
        }
        serving.abort();
    }
}
