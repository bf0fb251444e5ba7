//! A server at an address of its own, and a client for it.

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{HeaderMap, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tool_sdk::http::{self, HttpOptions, RestOptions, TokenScope};
use tool_sdk::{Pipeline, Principal, Session};

use crate::tools::{ToolSignals, registry};

/// The token of the start, which calls tools.
pub(crate) const CLIENT: &str = "client-0123456789abcdef0123456789abcdef";
/// The token of the person who approves.
pub(crate) const PERSON: &str = "person-0123456789abcdef0123456789abcdef";
/// The token of the administrator.
pub(crate) const ADMIN: &str = "admin-0123456789abcdef0123456789abcdef";
/// The tokens of two other principals.
pub(crate) const ADA: &str = "ada-0123456789abcdef0123456789abcdef";
pub(crate) const BOB: &str = "bob-0123456789abcdef0123456789abcdef";
pub(crate) const BOB_APPROVES: &str = "bob-approves-0123456789abcdef0123456789";

/// A server; it ends with the test.
pub(crate) struct TestServer {
    pub(crate) address: String,
    pub(crate) signals: ToolSignals,
    pub(crate) pipeline: Pipeline,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A response whose body was read.
#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl TestResponse {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |it| it.to_str().unwrap())
    }

    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }
}

/// A response whose body is read event by event.
pub(crate) struct TestEvents {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    text: String,
}

/// One server-sent event.
#[derive(Debug)]
pub(crate) struct TestEvent {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl TestEvents {
    /// Returns the next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<TestEvent> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let event = parse_event(event);
                self.text = rest.to_owned();
                match event {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            let frame = self.body.frame().await?.unwrap();
            if let Ok(bytes) = frame.into_data() {
                self.text.push_str(std::str::from_utf8(&bytes).unwrap());
            }
        }
    }

    /// Returns the next event with this name.
    pub(crate) async fn next_named(&mut self, name: &str) -> TestEvent {
        loop {
            let event = self.next().await.unwrap_or_else(|| panic!("no event `{name}`"));
            if event.name == name {
                return event;
            }
        }
    }

    /// Returns the names of all events until the end.
    pub(crate) async fn names(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        while let Some(event) = self.next().await {
            names.push(event.name);
        }
        names
    }
}

/// Returns the event; `None` for a comment.
fn parse_event(text: &str) -> Option<TestEvent> {
    let field = |name: &str| {
        let start = format!("{name}: ");
        text.lines().find_map(|line| line.strip_prefix(&start)).map(str::to_owned)
    };
    let data = field("data")?;
    Some(TestEvent {
        id: field("id").unwrap_or_default(),
        name: field("event").unwrap_or_default(),
        data: serde_json::from_str(&data).unwrap(),
    })
}

/// A request to make.
pub(crate) struct TestRequest<'s> {
    server: &'s TestServer,
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl TestRequest<'_> {
    /// Adds a header, or replaces it.
    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.retain(|(other, _)| other != name);
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(other, _)| other != name);
        self
    }

    pub(crate) fn token(self, token: &str) -> Self {
        self.header("authorization", format!("Bearer {token}"))
    }

    pub(crate) fn session(self, session: &str) -> Self {
        self.header("session-id", session)
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.text(body.to_string())
    }

    pub(crate) fn text(mut self, body: impl Into<String>) -> Self {
        self.body = body.into();
        self.header("content-type", "application/json")
    }

    async fn start(self) -> hyper::Response<Incoming> {
        let stream = TcpStream::connect(&self.server.address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder().method(self.method).uri(self.path);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        sender.send_request(request.body(Full::new(Bytes::from(self.body))).unwrap()).await.unwrap()
    }

    /// Returns the response with its whole body.
    pub(crate) async fn send(self) -> TestResponse {
        let (parts, body) = self.start().await.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let body = String::from_utf8(body.into()).unwrap();
        TestResponse { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    /// Returns the response as a stream of events.
    pub(crate) async fn events(self) -> TestEvents {
        let response = self.header("accept", "text/event-stream").start().await;
        let (parts, body) = response.into_parts();
        TestEvents { status: parts.status, headers: parts.headers, body, text: String::new() }
    }
}

impl TestServer {
    /// Starts a server with one owner.
    pub(crate) async fn start() -> Self {
        Self::start_with(|pipeline| pipeline, |options| options).await
    }

    /// Starts a server whose calls may be approved over HTTP, and that has several principals.
    pub(crate) async fn start_with_approvals() -> Self {
        Self::start_with(|pipeline| pipeline, with_people).await
    }

    pub(crate) async fn start_with(
        change_pipeline: impl FnOnce(Pipeline) -> Pipeline,
        change_options: impl FnOnce(HttpOptions) -> HttpOptions,
    ) -> Self {
        let signals = ToolSignals::default();
        let session = Session::default().with_service(signals.clone());
        let http = change_options(HttpOptions::new(CLIENT.parse().unwrap()));
        let options = RestOptions::new(http).with_session(session);
        Self::start_options(change_pipeline(Pipeline::new(registry())), options, signals).await
    }

    pub(crate) async fn start_options(
        pipeline: Pipeline,
        options: RestOptions,
        signals: ToolSignals,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let serving = tokio::spawn(http::serve(pipeline.clone(), listener, options));
        Self { address, signals, pipeline, serving }
    }

    pub(crate) fn request(&self, method: &'static str, path: impl Into<String>) -> TestRequest<'_> {
        let (headers, body) = (Vec::new(), String::new());
        let request = TestRequest { server: self, method, path: path.into(), headers, body };
        request.header("host", &self.address).token(CLIENT)
    }

    pub(crate) fn get(&self, path: impl Into<String>) -> TestRequest<'_> {
        self.request("GET", path)
    }

    pub(crate) fn delete(&self, path: impl Into<String>) -> TestRequest<'_> {
        self.request("DELETE", path)
    }

    pub(crate) fn post(&self, path: impl Into<String>, body: &Value) -> TestRequest<'_> {
        self.request("POST", path).json(body)
    }

    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> TestRequest<'_> {
        self.post(format!("/v1/tools/{tool}"), arguments)
    }

    /// Makes a session with a token, and returns its id.
    pub(crate) async fn new_session(&self, token: &str) -> String {
        let made = self.post("/v1/sessions", &serde_json::json!({})).token(token).send().await;
        made.expect(201).json()["id"].as_str().unwrap().to_owned()
    }
}

/// Adds the tokens of several people.
pub(crate) fn with_people(http: HttpOptions) -> HttpOptions {
    let token = |text: &str| text.parse().unwrap();
    http.with_token(token(PERSON), TokenScope::Approvals)
        .with_token(token(ADMIN), TokenScope::Administration)
        .with_principal(token(ADA), Principal::new("ada"))
        .with_principal(token(BOB), Principal::new("bob"))
        .with_principal_scopes(token(BOB_APPROVES), Principal::new("bob"), TokenScope::Approvals)
}
