//! A server under load: two hundred clients that follow events and do not read them, and steady
//! calls of a small tool beside them. Nothing is lost, and what the load took is given back.
//!
//! `TOOL_SDK_TEST_LOAD_SECONDS` makes a thousand calls a second for that long; without it, there are
//! so few calls that every follower gets every event.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "what these tests are made of unwraps as they do")]

use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::interval;
use tool_sdk::http::{self, HttpOptions, TokenScope, TokenScopes};
use tool_sdk::{Pipeline, Registry, tool, tools};

const TOKEN: &str = "load-0123456789abcdef0123456789abcdef01";
const FOLLOWERS: usize = 200;
const CALLERS: usize = 20;
/// Each call has three events, and a log keeps 8,192.
const FEW_CALLS: usize = 200;
/// More memory than this after the load is a leak.
const MAX_GROWTH_MIB: usize = 96;

/// Add two numbers.
#[tool(read)]
fn add(
    /// The first.
    a: i64,
    /// The second.
    b: i64,
) -> String {
    (a + b).to_string()
}

/// Starts a server; returns its address.
async fn serve() -> String {
    let pipeline = Pipeline::new(Registry::builder().add(tools![add]).build().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let scopes = TokenScopes::from_iter(TokenScope::ALL);
    let options = HttpOptions::new(TOKEN.parse().unwrap())
        .with_token(TOKEN.parse().unwrap(), scopes)
        .max_connections(FOLLOWERS + CALLERS + 8);
    tokio::spawn(http::serve(pipeline, listener, options));
    address
}

/// A connection that is kept.
struct Client {
    sender: SendRequest<Full<Bytes>>,
    address: String,
}

impl Client {
    async fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self { sender, address: address.to_owned() }
    }

    async fn send(&mut self, method: &str, path: &str, body: String) -> hyper::Response<Incoming> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", &self.address)
            .header("authorization", format!("Bearer {TOKEN}"))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        self.sender.ready().await.unwrap();
        self.sender.send_request(request).await.unwrap()
    }

    async fn read(&mut self, method: &str, path: &str, body: String) -> String {
        let response = self.send(method, path, body).await;
        assert_eq!(response.status(), StatusCode::OK);
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.into()).unwrap()
    }

    /// Calls the tool, and checks the result.
    async fn add(&mut self, a: usize) {
        let body = format!(r#"{{"a":{a},"b":1}}"#);
        let text = self.read("POST", "/v1/tools/add", body).await;
        assert!(text.contains(&format!(r#""text":"{}""#, a + 1)), "{text}");
    }
}

/// Returns the value of a metric without labels, over a connection of its own: the server closes
/// one that is idle for ten seconds.
async fn metric(address: &str, name: &str) -> usize {
    let text = Client::connect(address).await.read("GET", "/metrics", String::new()).await;
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("{name} in {text}")).parse().unwrap()
}

/// Follows events, and reads none of them before the load has ended.
struct EventFollower {
    body: Incoming,
    _client: Client,
}

impl EventFollower {
    async fn start(address: &str) -> Self {
        let mut client = Client::connect(address).await;
        let response = client.send("GET", "/v1/events", String::new()).await;
        assert_eq!(response.status(), StatusCode::OK);
        Self { body: response.into_body(), _client: client }
    }

    /// Reads until the last of `calls` calls has ended; returns how many ended, and whether there
    /// was a gap.
    async fn read_all(mut self, last: String) -> (usize, bool) {
        let (mut text, mut ended, mut has_gap) = (String::new(), 0, false);
        loop {
            let frame = self.body.frame().await.expect("the stream does not end").unwrap();
            text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
            while let Some((event, rest)) = text.split_once("\n\n") {
                has_gap |= event.contains("event: gap");
                ended += usize::from(event.contains("event: completed"));
                if event.contains("event: completed") && event.contains(&last) {
                    return (ended, has_gap);
                }
                text = rest.to_owned();
            }
        }
    }
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn resident_mib() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096 / (1024 * 1024)
}

/// Makes all calls: as fast as they go, or a thousand a second.
async fn make_calls(address: &str, seconds: Option<usize>) -> usize {
    let total = seconds.map_or(FEW_CALLS, |seconds| seconds * 1000);
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let mut client = Client::connect(address).await;
        callers.spawn(async move {
            let mut pace = interval(Duration::from_millis(CALLERS as u64));
            for at in 0..total / CALLERS {
                if seconds.is_some() {
                    pace.tick().await;
                }
                client.add(at * CALLERS + caller).await;
            }
        });
    }
    while let Some(done) = callers.join_next().await {
        done.unwrap();
    }
    total
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn followers_that_do_not_read_disturb_no_call() {
    let seconds = std::env::var("TOOL_SDK_TEST_LOAD_SECONDS").ok().map(|it| it.parse().unwrap());
    let address = serve().await;
    let mut first = Client::connect(&address).await;
    for at in 0..100 {
        first.add(at).await;
    }
    let (descriptors, memory) = (open_descriptors(), resident_mib());

    let mut followers = Vec::new();
    for _ in 0..FOLLOWERS {
        followers.push(EventFollower::start(&address).await);
    }
    assert_eq!(metric(&address, "tool_event_subscribers").await, FOLLOWERS);
    let total = make_calls(&address, seconds).await;
    let mut client = Client::connect(&address).await;
    let last = client.send("POST", "/v1/tools/add", r#"{"a":1,"b":1}"#.into()).await;
    let last = last.headers()["call-id"].to_str().unwrap().to_owned();
    drop(client);

    let mut reading = JoinSet::new();
    for follower in followers {
        reading.spawn(follower.read_all(last.clone()));
    }
    while let Some(read) = reading.join_next().await {
        let (ended, has_gap) = read.unwrap();
        if seconds.is_none() {
            assert_eq!((ended, has_gap), (total + 1, false));
        }
    }
    assert_eq!(metric(&address, "tool_lost_events_total").await, 0);
    assert_eq!(metric(&address, "tool_running_calls").await, 0);
    // A connection that was closed is noticed by the server a moment later.
    while metric(&address, "tool_event_subscribers").await > 0 || open_descriptors() > descriptors {
        tokio::task::yield_now().await;
    }
    let grown = resident_mib().saturating_sub(memory);
    assert!(grown < MAX_GROWTH_MIB, "{grown} MiB more than before");
    eprintln!("{total} calls beside {FOLLOWERS} followers, {grown} MiB more than before");
}
