//! Adds REST, OpenAPI, live events and approvals to an axum application, for its own users.
//!
//! ```text
//! cargo run -p tool-examples --example rest_api
//! curl -H 'Authorization: Bearer ada-calls-0123456789abcdef01234567' http://127.0.0.1:8080/v1/tools
//! ```
//!
//! The application knows the tokens of its users: with one of them a program calls tools, with the
//! other one the user approves what needs an approval.

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;
use tool_sdk::http::{
    self, HttpOptions, RestOptions, Token, TokenIdentity, TokenScope, TokenVerifier,
};
use tool_sdk::{Context, Pipeline, Principal, Registry, tool, tools};

/// Look up what a book costs.
#[tool(read, register = false)]
fn find_price(
    /// The title.
    title: String,
) -> String {
    format!("{title} costs {} euros", 10 + title.len() % 20)
}

/// Order a book.
#[tool(write, register = false)]
fn order_book(
    /// The title.
    title: String,
    /// How many.
    #[arg(default = 1, range = 1..=10)]
    count: u32,
    cx: &Context,
) -> String {
    let user = cx.session().user().unwrap_or("the owner").to_owned();
    format!("ordered {count} × {title} for {user}")
}

/// The tokens of the users, which an application has in its database.
struct UserTokens;

impl TokenVerifier for UserTokens {
    fn verify_token(&self, token: &str) -> Option<TokenIdentity> {
        let (user, scope) = match token {
            "ada-calls-0123456789abcdef01234567" => ("ada", TokenScope::Tools),
            "ada-approves-0123456789abcdef0123" => ("ada", TokenScope::Approvals),
            "bob-calls-0123456789abcdef01234567" => ("bob", TokenScope::Tools),
            _ => return None,
        };
        Some(TokenIdentity { principal: Some(Principal::new(user)), scopes: scope.into() })
    }

    // Bob has no approver, so his orders are denied at once.
    fn has_approver(&self, principal: Option<&Principal>) -> bool {
        principal.is_some_and(|principal| principal.name() == "ada")
    }
}

/// The application: its own routes, and the tools.
fn app(pipeline: Pipeline, address: &str) -> std::io::Result<Router> {
    // The owner's own token; this application gives it to no client.
    let http =
        HttpOptions::new(Token::random()?).with_token_verifier(UserTokens).allow_host(address);
    let options = RestOptions::new(http).with_name("Book shop", "1.0.0");
    Ok(Router::new()
        .route("/", get(|| async { "a book shop" }))
        .merge(http::router(pipeline, options)))
}

fn pipeline() -> Pipeline {
    let registry = Registry::builder().add(tools![find_price, order_book]).build();
    Pipeline::new(registry.expect("two tools"))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    axum::serve(listener, app(pipeline(), "127.0.0.1:8080")?).await
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    const ADA: &str = "ada-calls-0123456789abcdef01234567";
    const ADA_APPROVES: &str = "ada-approves-0123456789abcdef0123";
    const BOB: &str = "bob-calls-0123456789abcdef01234567";

    /// Sends one request; returns its status and its body.
    async fn send(address: &str, token: &str, line: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let length = body.len();
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Connection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or_else(|_| body.into()))
    }

    /// Waits for the one open request, and approves it.
    async fn approve(address: &str) -> Value {
        let request = loop {
            let list = send(address, ADA_APPROVES, "GET /v1/approvals", &Value::Null).await.1;
            match list["approvals"].get(0) {
                Some(request) => break request.clone(),
                None => tokio::task::yield_now().await,
            }
        };
        let line = format!("POST /v1/approvals/{}", request["id"].as_str().unwrap());
        let answer = json!({ "reply": "once", "fingerprint": request["fingerprint"] });
        assert_eq!(send(address, ADA_APPROVES, &line, &answer).await.0, 204);
        request
    }

    // F183: an application adds the API beside its own routes, for its own users.
    #[tokio::test]
    async fn users_call_tools_and_approve_their_own_orders() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = &*listener.local_addr().unwrap().to_string();
        let app = app(pipeline(), address).unwrap();
        let serving = tokio::spawn(axum::serve(listener, app).into_future());

        assert_eq!(send(address, "", "GET /", &Value::Null).await, (200, json!("a book shop")));
        assert_eq!(send(address, "", "GET /v1/tools", &Value::Null).await.0, 401);
        let dune = json!({ "title": "Dune" });
        let (status, price) = send(address, BOB, "POST /v1/tools/find_price", &dune).await;
        assert_eq!((status, &price["text"]), (200, &json!("Dune costs 14 euros")));

        let order = "POST /v1/tools/order_book";
        assert_eq!(send(address, BOB, order, &dune).await.0, 403);
        let (ordered, request) = tokio::join!(send(address, ADA, order, &dune), approve(address));
        assert_eq!(request["arguments"], dune);
        assert_eq!((ordered.0, &ordered.1["text"]), (200, &json!("ordered 1 × Dune for ada")));
        serving.abort();
    }
}
