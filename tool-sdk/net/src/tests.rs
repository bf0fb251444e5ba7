//! The client against servers on this machine. Hosts that are named in the settings may be here; no
//! other address is connected to.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::{
    FetchError, FetchOutcome, GuardedClient, HostResolver, RedirectDecision, RedirectHop,
    RedirectJudge, UrlPolicy, WebRequest, WebResponse, WebSettings, is_public_address,
};

/// What a server answers to the request with this path and these header lines.
type Answer = dyn Fn(&str, &str) -> Vec<u8> + Send + Sync;

/// A server on this machine that answers one request per connection.
struct TestServer {
    port: u16,
    requests: Arc<AtomicUsize>,
}

impl TestServer {
    async fn start(answer: impl Fn(&str, &str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(AtomicUsize::new(0));
        let (answer, count): (Arc<Answer>, _) = (Arc::new(answer), Arc::clone(&requests));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve_connection(stream, Arc::clone(&answer)));
            }
        });
        Self { port, requests }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

async fn serve_connection(mut stream: tokio::net::TcpStream, answer: Arc<Answer>) {
    let (mut head, mut chunk) = (Vec::new(), [0; 4096]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut chunk).await {
            Ok(read @ 1..) => head.extend_from_slice(&chunk[..read]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let reply = answer(&path, &head.to_ascii_lowercase());
    let _ = stream.write_all(&reply).await;
    if path.contains("hold") {
        // Until the client goes away.
        let _ = stream.read(&mut chunk).await;
    }
}

fn reply(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn redirect(to: &str) -> Vec<u8> {
    reply(302, &format!("location: {to}\r\n"), b"")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A resolver that knows the names of its table, and counts look-ups.
#[derive(Clone, Default)]
struct TableResolver {
    table: Arc<HashMap<&'static str, Vec<&'static str>>>,
    lookups: Arc<Mutex<Vec<String>>>,
}

impl TableResolver {
    fn new(table: &[(&'static str, &[&'static str])]) -> Self {
        let table = table.iter().map(|(host, addresses)| (*host, addresses.to_vec())).collect();
        Self { table: Arc::new(table), lookups: Arc::default() }
    }
}

impl HostResolver for TableResolver {
    async fn resolve_host(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        self.lookups.lock().unwrap().push(host.to_owned());
        let known = self.table.get(host).ok_or(io::ErrorKind::NotFound)?;
        Ok(known.iter().map(|address| address.parse().unwrap()).collect())
    }
}

/// Follows every redirect, and remembers the targets.
#[derive(Default)]
struct FollowAll(Mutex<Vec<String>>);

impl RedirectJudge for FollowAll {
    async fn judge_redirect(&self, hop: RedirectHop<'_>) -> RedirectDecision {
        self.0.lock().unwrap().push(hop.to.to_string());
        RedirectDecision::Follow
    }
}

struct StopAll;

impl RedirectJudge for StopAll {
    async fn judge_redirect(&self, _: RedirectHop<'_>) -> RedirectDecision {
        RedirectDecision::Stop
    }
}

fn settings(named: &[&str]) -> WebSettings {
    let mut settings = WebSettings::default();
    settings.urls.named_hosts = named.iter().map(|host| host.parse().unwrap()).collect();
    settings.limits.total_timeout = Duration::from_secs(20);
    settings
}

fn local_client() -> GuardedClient {
    GuardedClient::with_resolver(settings(&["127.0.0.1"]), TableResolver::default())
}

async fn fetch(client: &GuardedClient, url: &str) -> Result<WebResponse, FetchError> {
    match client.fetch(client.parse_url(url)?, "*/*", &FollowAll::default()).await? {
        FetchOutcome::Response(response) => Ok(response),
        FetchOutcome::Redirect { .. } => unreachable!("every redirect is followed"),
    }
}

// F147, WF2, WF3: each address is judged, and one that is not public refuses the host.
#[tokio::test]
async fn names_that_lead_into_a_private_network_are_refused() {
    let resolver = TableResolver::new(&[
        ("rebound.test", &["127.0.0.1"]),
        ("half.test", &["93.184.216.34", "10.0.0.1"]),
        ("six.test", &["fd00::1"]),
        ("mapped.test", &["::ffff:169.254.169.254"]),
        ("nothing.test", &[]),
    ]);
    let client = GuardedClient::with_resolver(WebSettings::default(), resolver);
    for (host, address) in [
        ("rebound.test", "127.0.0.1"),
        ("half.test", "10.0.0.1"),
        ("six.test", "fd00::1"),
        ("mapped.test", "::ffff:169.254.169.254"),
    ] {
        let error = fetch(&client, &format!("https://{host}/")).await.unwrap_err();
        assert_eq!(error.to_string(), format!("`{host}` leads to {address}, which is not public"));
    }
    for unknown in ["nothing.test", "other.test"] {
        let error = fetch(&client, &format!("https://{unknown}/")).await.unwrap_err();
        assert!(matches!(error, FetchError::UnknownHost { .. }), "{error}");
    }
}

// F147, WF2: a host that is named with a port is reached on that port only.
#[tokio::test]
async fn a_named_port_opens_no_other_port() {
    let server = TestServer::start(|_, _| reply(200, "", b"inside")).await;
    let resolver = TableResolver::new(&[("intra.test", &["127.0.0.1"])]);
    let named = format!("intra.test:{}", server.port);
    let client = GuardedClient::with_resolver(settings(&[&named]), resolver);
    let page = fetch(&client, &format!("http://{named}/")).await.unwrap();
    assert_eq!(&**page.body(), b"inside");
    for other in ["https://intra.test/", "https://intra.test:8443/"] {
        let error = fetch(&client, other).await.unwrap_err().to_string();
        assert_eq!(error, "`intra.test` leads to 127.0.0.1, which is not public");
    }
}

// F147, WF4: every hop is judged, by its URL and by its addresses.
#[tokio::test]
async fn redirects_do_not_lead_into_a_private_network() {
    let server = TestServer::start(|path, _| match path {
        "/literal" => redirect("http://169.254.169.254/latest/meta-data/"),
        "/name" => redirect("https://rebound.test/"),
        "/far" => redirect("/far2"),
        "/far2" => redirect("//localhost/"),
        "/file" => redirect("file:///etc/passwd"),
        "/user" => redirect("https://ada:secret@example.com/"),
        "/port" => redirect("https://example.com:22/"),
        "/none" => reply(302, "", b""),
        _ => redirect("/again"),
    })
    .await;
    let resolver = TableResolver::new(&[("rebound.test", &["192.168.1.1"])]);
    let client = GuardedClient::with_resolver(settings(&["127.0.0.1"]), resolver);
    for (path, why) in [
        ("/literal", "`169.254.169.254` is not public"),
        ("/name", "`rebound.test` leads to 192.168.1.1"),
        ("/far", "`localhost` is not public"),
        ("/file", "not a scheme of the web"),
        ("/user", "a user name or a password"),
        ("/port", "port 22"),
        ("/none", "without a target"),
        ("/again", "more than 5 times"),
    ] {
        let error = fetch(&client, &server.url(path)).await.unwrap_err().to_string();
        assert!(error.contains(why), "{path}: {error}");
    }
}

#[tokio::test]
async fn redirects_are_judged_by_the_caller() {
    let server = TestServer::start(|path, _| match path {
        "/a" => redirect("/b"),
        "/b" => redirect("c?d#e"),
        _ => reply(200, "", b"here"),
    })
    .await;
    let client = local_client();
    let (url, judge) = (client.parse_url(&server.url("/a")).unwrap(), FollowAll::default());
    match client.fetch(url.clone(), "*/*", &judge).await.unwrap() {
        FetchOutcome::Response(page) => assert_eq!(page.url().as_str(), server.url("/c?d")),
        other => panic!("{other:?}"),
    }
    assert_eq!(*judge.0.lock().unwrap(), [server.url("/b"), server.url("/c?d")]);
    match client.fetch(url, "*/*", &StopAll).await.unwrap() {
        FetchOutcome::Redirect { to, .. } => assert_eq!(to.as_str(), server.url("/b")),
        other => panic!("{other:?}"),
    }
}

// WF3: there is one look-up for a connection, and the client connects to its answer.
#[tokio::test]
async fn a_host_is_resolved_once() {
    let server = TestServer::start(|_, head| reply(200, "", head.as_bytes())).await;
    let resolver = TableResolver::new(&[("own.test", &["127.0.0.1"])]);
    let named = format!("own.test:{}", server.port);
    let client = GuardedClient::with_resolver(settings(&[&named]), resolver.clone());
    let page = fetch(&client, &format!("http://{named}/")).await.unwrap();
    assert_eq!(*resolver.lookups.lock().unwrap(), ["own.test"]);
    let head = String::from_utf8_lossy(page.body()).into_owned();
    assert!(head.contains(&format!("host: {named}")) && head.contains("user-agent: tool-sdk/"));
    assert!(!head.contains("cookie") && !head.contains("referer"), "{head}");
}

// WF6: what a body becomes is limited, not what it is on the wire.
#[tokio::test]
async fn bodies_are_limited_after_decompression() {
    let bomb = gzip(&vec![b'a'; 20 << 20]);
    let small = bomb.len();
    let server = TestServer::start(move |path, _| match path {
        "/bomb" => reply(200, "content-encoding: gzip\r\n", &bomb),
        "/long" => reply(200, "", &vec![b'a'; 2 << 20]),
        "/chunked" => {
            let mut body = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
            for _ in 0..40 {
                body.extend(b"10000\r\n");
                body.extend(vec![b'a'; 0x10000]);
                body.extend(b"\r\n");
            }
            [body, b"0\r\n\r\n".to_vec()].concat()
        }
        "/gzip" => reply(200, "content-encoding: gzip\r\n", &gzip(b"hello")),
        "/broken" => reply(200, "content-encoding: gzip\r\n", b"hello"),
        "/br" => reply(200, "content-encoding: br\r\n", b"\x0b\x02\x80hello\x03"),
        "/twice" => reply(200, "content-encoding: gzip, gzip\r\n", &gzip(&gzip(b"hello"))),
        _ => reply(200, &format!("x: {}\r\n", "a".repeat(70_000)), b""),
    })
    .await;
    let mut limited = settings(&["127.0.0.1"]);
    limited.limits.body_bytes = 1 << 20;
    let client = GuardedClient::with_resolver(limited, TableResolver::default());
    assert!(small < 1 << 20);
    for (path, why) in [
        ("/bomb", "over 1048576 bytes long"),
        ("/long", "over 1048576 bytes long"),
        ("/chunked", "over 1048576 bytes long"),
        ("/broken", "cannot be decompressed"),
        ("/br", "encoded with `br`"),
        ("/twice", "encoded with `gzip, gzip`"),
        ("/headers", "over 65536 bytes long"),
    ] {
        let error = fetch(&client, &server.url(path)).await.unwrap_err().to_string();
        assert!(error.contains(why), "{path}: {error}");
    }
    assert_eq!(&**fetch(&client, &server.url("/gzip")).await.unwrap().body(), b"hello");
}

// WF6
#[tokio::test]
async fn a_body_that_does_not_end_times_out() {
    let server = TestServer::start(|path, _| match path {
        "/hold-body" => b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf".to_vec(),
        _ => Vec::new(),
    })
    .await;
    let mut limited = settings(&["127.0.0.1"]);
    limited.limits.total_timeout = Duration::from_millis(300);
    let client = GuardedClient::with_resolver(limited, TableResolver::default());
    for path in ["/hold-body", "/hold-headers"] {
        let error = fetch(&client, &server.url(path)).await.unwrap_err();
        assert!(matches!(error, FetchError::Timeout(_)), "{path}: {error}");
    }
}

#[tokio::test]
async fn responses_are_cached_and_revalidated() {
    let server = TestServer::start(|path, head| match path {
        "/fresh" => reply(200, "", b"fresh"),
        "/never" => reply(200, "cache-control: no-store\r\netag: \"1\"\r\n", b"never"),
        _ if head.contains("if-none-match: \"1\"") => reply(304, "", b""),
        _ => reply(200, "cache-control: max-age=0\r\netag: \"1\"\r\n", b"checked"),
    })
    .await;
    let client = local_client();
    for (path, requests) in [("/fresh", 1), ("/never", 2), ("/checked", 2)] {
        let before = server.requests.load(Ordering::SeqCst);
        for _ in 0..2 {
            let page = fetch(&client, &server.url(path)).await.unwrap();
            assert_eq!(&page.body()[..], &path.as_bytes()[1..]);
            assert_eq!(page.status(), 200);
        }
        assert_eq!(server.requests.load(Ordering::SeqCst) - before, requests, "{path}");
    }
}

#[tokio::test]
async fn an_endpoint_of_the_configuration_is_reached() {
    let server = TestServer::start(|_, head| {
        let has_key = head.contains("x-api-key: k");
        reply(if has_key { 307 } else { 401 }, "location: /elsewhere\r\n", b"")
    })
    .await;
    let url = reqwest::Url::parse(&server.url("/search")).unwrap();
    let client = GuardedClient::with_resolver(WebSettings::default(), TableResolver::default());
    let request = WebRequest::post_json(url.clone(), "{}").header("x-api-key", "k");
    assert!(!format!("{request:?}").contains("\"k\""));
    assert!(matches!(client.send(request.clone()).await, Err(FetchError::Refused(_))));
    // A redirect is not followed, so that no other place gets the key.
    let response = client.for_endpoint(&url).send(request).await.unwrap();
    assert_eq!((response.status(), response.header("location")), (307, Some("/elsewhere")));
}

/// FetchCases of another project: `tests/fixtures/gemini-webfetch/SOURCE.txt`.
#[derive(Deserialize)]
struct FetchCases {
    private_addresses: Vec<AddressCase>,
    private_urls: Vec<UrlCase>,
    normalize_url: Vec<NormalCase>,
}

#[derive(Deserialize)]
struct AddressCase {
    address: String,
    private: bool,
}

#[derive(Deserialize)]
struct UrlCase {
    url: String,
    private: bool,
}

#[derive(Deserialize)]
struct NormalCase {
    url: String,
    normalized: String,
}

// F147
#[test]
fn addresses_are_judged_as_elsewhere() {
    let cases = include_str!("../tests/fixtures/gemini-webfetch/cases.json");
    let cases: FetchCases = serde_json::from_str(cases).unwrap();
    let policy = UrlPolicy::default();
    for AddressCase { address, private } in cases.private_addresses {
        let is_public = match address.parse() {
            Ok(address) => is_public_address(address),
            Err(_) => policy.parse_url(&format!("https://{address}/")).is_ok(),
        };
        assert_eq!(is_public, !private, "{address}");
    }
    for UrlCase { url, private } in cases.private_urls {
        assert_eq!(policy.parse_url(&url).is_err(), private, "{url}");
    }
    for NormalCase { url, normalized } in cases.normalize_url {
        // A slash at the end is kept: it can lead to another page.
        let expected = if url.ends_with("path/") { &url } else { &normalized };
        match policy.parse_url(&url) {
            Ok(parsed) => {
                assert_eq!(
                    parsed.as_str().replace("http://", "https://"),
                    expected.replace("http://", "https://")
                );
            }
            Err(_) => assert_eq!(url, "not-a-url"),
        }
    }
}
