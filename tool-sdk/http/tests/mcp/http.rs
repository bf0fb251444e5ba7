//! Several principals at one HTTP server.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tool_sdk_core::{ErrorKind, EventKind, Principal};
use tool_sdk_http::{HttpOptions, Token, serve_http};

use super::*;

pub(crate) const ADA: &str = "ada-0123456789abcdef0123456789abcdef";
pub(crate) const BOB: &str = "bob-0123456789abcdef0123456789abcdef";

/// A web site whose scripts are let in.
const SITE: &str = "https://site.example";

const MODERN: &str =
    "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: add\r\n";

/// A server at an address of its own; it ends with the test.
pub(crate) struct Served {
    address: String,
    /// The token that names no principal.
    pub(crate) shared_token: String,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Served {
    pub(crate) async fn start(server: &Server) -> Self {
        Self::start_with(server, |http| http).await
    }

    /// Starts a server with changed options.
    pub(crate) async fn start_with(
        server: &Server,
        change: impl FnOnce(HttpOptions) -> HttpOptions,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let token = Token::random().unwrap();
        let shared_token = token.reveal().to_owned();
        let http = HttpOptions::new(token)
            .with_principal(
                ADA.parse().unwrap(),
                Principal::new("ada").with_permission("notes:write"),
            )
            .with_principal(BOB.parse().unwrap(), Principal::new("bob"))
            .allow_origin(SITE);
        let http = change(http);
        Self { address, shared_token, serving: tokio::spawn(serve_http(server, listener, http)) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).await.unwrap()
    }

    /// The whole answer to one request; `more` are further lines of its head.
    pub(crate) async fn ask(&self, method: &str, token: &str, more: &str, body: &str) -> String {
        let address = &self.address;
        let head = format!(
            "{method} /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{more}\
             Authorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = self.connect().await;
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    pub(crate) async fn post(&self, token: &str, session: Option<&str>, message: &Value) -> String {
        let session = session.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
        self.ask("POST", token, &session, &message.to_string()).await
    }

    /// What a session is told beside its answers, from now on, line by line.
    pub(crate) async fn listen(&self, token: &str, session: &str) -> Lines<BufReader<TcpStream>> {
        let head = format!(
            "GET /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\
             Accept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n",
            self.address
        );
        self.stream(&head).await
    }

    /// What a session is told in the answer to a message, line by line.
    pub(crate) async fn begin(
        &self,
        token: &str,
        session: &str,
        message: &Value,
    ) -> Lines<BufReader<TcpStream>> {
        let body = message.to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nMcp-Session-Id: {session}\r\n\
             MCP-Protocol-Version: 2025-11-25\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.stream(&head).await
    }

    /// The event stream of a stateless request, line by line; `more` are further lines of its head.
    pub(crate) async fn begin_stateless(
        &self,
        token: &str,
        more: &str,
        message: &Value,
    ) -> Lines<BufReader<TcpStream>> {
        let body = message.to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n{more}\
             Content-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.stream(&head).await
    }

    /// What a session was told after an event, line by line; the status comes first.
    pub(crate) async fn take_up(
        &self,
        session: &str,
        last: &str,
    ) -> (String, Lines<BufReader<TcpStream>>) {
        let head = format!(
            "GET /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {ADA}\r\n\
             Accept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\
             Last-Event-ID: {last}\r\n\r\n",
            self.address
        );
        self.answered(&head).await
    }

    async fn stream(&self, request: &str) -> Lines<BufReader<TcpStream>> {
        self.answered(request).await.1
    }

    /// The status of an answer, and its body.
    async fn answered(&self, request: &str) -> (String, Lines<BufReader<TcpStream>>) {
        let mut stream = self.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut lines = BufReader::new(stream).lines();
        let first = lines.next_line().await.unwrap().unwrap();
        while lines.next_line().await.unwrap().is_some_and(|line| !line.is_empty()) {}
        (status(&first).to_owned(), lines)
    }

    /// The id of a new session.
    pub(crate) async fn open(&self, token: &str) -> String {
        self.open_with(token, json!({})).await
    }

    /// The id of a new session of a client that can do this.
    pub(crate) async fn open_with(&self, token: &str, capabilities: Value) -> String {
        self.open_as("2025-11-25", token, capabilities).await
    }

    /// The same of a client of this version.
    pub(crate) async fn open_as(&self, version: &str, token: &str, can: Value) -> String {
        let hello = json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {
                "protocolVersion": version, "capabilities": can,
                "clientInfo": { "name": "by-hand", "version": "1" },
            },
        });
        let opened = self.post(token, None, &hello).await;
        let id = opened
            .lines()
            .find_map(|line| line.split_once(": ").filter(|(name, _)| *name == "mcp-session-id"))
            .map(|(_, id)| id.to_owned())
            .unwrap();
        self.post(
            token,
            Some(&id),
            &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        )
        .await;
        id
    }
}

/// The next message of a stream.
pub(crate) async fn next(lines: &mut Lines<BufReader<TcpStream>>) -> Value {
    loop {
        let line = lines.next_line().await.unwrap().expect("the stream is still there");
        if let Some(Ok(message)) = line.strip_prefix("data: ").map(serde_json::from_str) {
            return message;
        }
    }
}

#[track_caller]
pub(crate) fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap()
}

fn call(name: &str) -> Value {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": name, "arguments": {} },
    })
}

fn who() -> Server {
    let who =
        DynamicTool::new(definition("who", RiskClass::Read), |_: Value, cx: Context| async move {
            cx.require_permission("notes:write")?;
            Ok::<_, ToolError>(format!("it is {}", cx.session().user().unwrap_or("nobody")))
        });
    let registry = Registry::builder().add(who).build().unwrap();
    Server::new(Pipeline::new(registry), Session::default())
}

// F130, MS3: a call has the principal of its token.
#[tokio::test]
async fn a_call_has_the_principal_of_its_token() {
    let served = Served::start(&who()).await;
    let ada = served.open(ADA).await;
    let bob = served.open(BOB).await;
    let answer = served.post(ADA, Some(&ada), &call("who")).await;
    assert!(answer.contains("it is ada"), "{answer}");
    let answer = served.post(BOB, Some(&bob), &call("who")).await;
    assert!(answer.contains("needs the permission"), "{answer}");
}

// F130: where principals have tokens of their own, the shared token is a principal without a name,
// and not the host.
#[tokio::test]
async fn the_shared_token_is_not_the_host() {
    let seer = DynamicTool::new(definition("seer", RiskClass::Read), |_: Value, cx: Context| {
        std::future::ready(format!("it is {:?}", cx.session().user_key()))
    });
    let registry = Registry::builder().add(seer).build().unwrap();
    let served = Served::start(&Server::new(Pipeline::new(registry), Session::default())).await;
    for (token, expected) in [(ADA, r#"Some(\"ada\")"#), (&*served.shared_token, r#"Some(\"\")"#)] {
        let id = served.open(token).await;
        let answer = served.post(token, Some(&id), &call("seer")).await;
        assert!(answer.contains(expected), "{answer}");
    }
}

// F130, F134: who has the token of nobody in particular is nobody, and the client is known.
#[tokio::test]
async fn a_tool_that_needs_a_user_is_not_called_without_one() {
    let mut whose = definition("whose", RiskClass::Read);
    whose.flags.requires_auth = true;
    let whose = DynamicTool::new(whose, |_: Value, cx: Context| async move {
        format!("{} by {}", cx.session().user().unwrap_or("nobody"), cx.session().client())
    });
    let registry = Registry::builder().add(whose).build().unwrap();
    let pipeline = Pipeline::new(registry);
    let mut events = pipeline.subscribe();
    let served = Served::start(&Server::new(pipeline, Session::default())).await;
    let id = served.open(&served.shared_token).await;
    let answer = served.post(&served.shared_token, Some(&id), &call("whose")).await;
    assert!(answer.contains(r#""isError":true"#), "{answer}");
    let kind = loop {
        if let EventKind::Failed(ending) = events.recv().await.unwrap().kind {
            break ending.error;
        }
    };
    assert_eq!(kind, ErrorKind::Unauthorized);
    let id = served.open(ADA).await;
    let answer = served.post(ADA, Some(&id), &call("whose")).await;
    assert!(answer.contains("ada by mcp:by-hand"), "{answer}");
    let head = MODERN.replace("add", "whose");
    let mut call = call("whose");
    call["params"]["_meta"] = modern();
    let answer = served.ask("POST", ADA, &head, &call.to_string()).await;
    assert!(answer.contains("ada by mcp:by-hand"), "{answer}");
}

// MS3: for another principal a session does not exist, with any method.
#[tokio::test]
async fn a_session_is_hidden_from_other_principals() {
    let served = Served::start(&who()).await;
    let id = served.open(ADA).await;
    let named = format!("Mcp-Session-Id: {id}\r\n");
    let response = json!({ "jsonrpc": "2.0", "id": 0, "result": {} }).to_string();
    for (method, body) in [
        ("POST", call("who").to_string().as_str()),
        ("POST", &response),
        ("GET", ""),
        ("DELETE", ""),
    ] {
        let answer = served.ask(method, BOB, &named, body).await;
        assert_eq!(status(&answer), "404", "{method} {body}: {answer}");
    }
    let twice = format!("{named}Mcp-Session-Id: x\r\n");
    assert_eq!(status(&served.ask("POST", ADA, &twice, &call("who").to_string()).await), "404");

    assert_eq!(status(&served.post(ADA, Some(&id), &call("who")).await), "200");
    assert_eq!(status(&served.ask("DELETE", ADA, &named, "").await), "204");
    assert_eq!(status(&served.post(ADA, Some(&id), &call("who")).await), "404");
}

// A body is one message, in however many pieces it comes.
#[tokio::test]
async fn a_body_that_comes_in_pieces_is_one_message() {
    let served = Served::start(&server()).await;
    let id = served.open(ADA).await;
    let text = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "add", "arguments": { "a": 2, "b": 3 } },
    })
    .to_string();
    let pieces: String = text
        .as_bytes()
        .chunks(30)
        .map(|piece| format!("{:x}\r\n{}\r\n", piece.len(), str::from_utf8(piece).unwrap()))
        .collect();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nMcp-Session-Id: {id}\r\n\
         Authorization: Bearer {ADA}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n\
         {pieces}0\r\n\r\n",
        served.address
    );
    let mut stream = served.connect().await;
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert_eq!(status(&answer), "200", "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let answer: Value = serde_json::from_str(body).unwrap();
    assert_eq!(answer["result"]["structuredContent"]["sum"], 5);
}

// RS4: connections without a request block no request.
#[tokio::test]
async fn idle_connections_block_no_request() {
    let served = Served::start(&who()).await;
    let mut idle = Vec::new();
    for _ in 0..300 {
        idle.push(served.connect().await);
    }
    let limit = Duration::from_secs(60);
    let id = tokio::time::timeout(limit, served.open(ADA)).await.expect("it is let in at once");
    let answer = served.post(ADA, Some(&id), &call("who")).await;
    assert!(answer.contains("it is ada"), "{answer}");
}

// RS4: the connections of one principal block no other principal.
#[tokio::test]
async fn connections_of_one_principal_block_no_other() {
    let served = Served::start(&who()).await;
    let mut crowd = Vec::new();
    for _ in 0..300 {
        let mut stream = served.connect().await;
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {ADA}\r\nContent-Length: 9\r\n\r\n",
            served.address
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        crowd.push(stream);
    }
    let limit = Duration::from_secs(60);
    let id = tokio::time::timeout(limit, served.open(BOB)).await.expect("it is let in at once");
    assert_eq!(status(&served.post(BOB, Some(&id), &call("who")).await), "200");
    let id = served.open(ADA).await;
    assert_eq!(status(&served.post(ADA, Some(&id), &call("who")).await), "200");
}

// What one modern request begins, the next one of the same owner finds.
#[tokio::test]
async fn modern_requests_of_one_owner_are_one_session() {
    let which = DynamicTool::new(
        definition("which", RiskClass::Read),
        |_: Value, cx: Context| async move { format!("<{}>", cx.session().id()) },
    );
    let registry = Registry::builder().add(which).build().unwrap();
    let served = Served::start(&Server::new(Pipeline::new(registry), Session::default())).await;
    let head = MODERN.replace("add", "which");
    let mut call = call("which");
    call["params"]["_meta"] = modern();
    let call = call.to_string();
    let mut ids = Vec::new();
    // There is no session that it could name.
    let named = format!("{head}Mcp-Session-Id: none\r\n");
    for (token, head) in [(ADA, &head), (ADA, &named), (BOB, &head)] {
        let answer = served.ask("POST", token, head, &call).await;
        let id = answer.split(['<', '>']).nth(1).unwrap_or_else(|| panic!("{answer}"));
        assert!(answer.contains("io.modelcontextprotocol/serverInfo"), "{answer}");
        ids.push(id.to_owned());
    }
    assert_eq!(ids[0], ids[1]);
    assert_ne!(ids[0], ids[2]);
}

/// What a modern request says of itself.
// F130, AP5: a modern request has the session of its principal as well; with a token that several
// clients may have, no client can approve for the others.
#[tokio::test]
async fn only_a_named_principal_approves_for_a_session() {
    let served = Served::start(&server()).await;
    let head = MODERN.replace("add", "write");
    let ask = async |token: &str, more: Value| {
        let mut call = call("write");
        call["params"]["_meta"] = modern();
        call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({ "elicitation": {} });
        call["params"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = served.ask("POST", token, &head, &call.to_string()).await;
        let json = answer.split_once("\r\n\r\n").unwrap().1;
        let json = json.find('{').map_or(json, |at| &json[at..=json.rfind('}').unwrap()]);
        serde_json::from_str::<Value>(json).unwrap_or_else(|error| panic!("{error}: {answer}"))
    };
    let question = |asked: &Value| {
        let question = &asked["result"]["inputRequests"]["approval"]["params"];
        let answers = question["requestedSchema"]["properties"]["answer"]["enum"].clone();
        let message = question["message"].as_str().unwrap_or_else(|| panic!("{asked}"));
        (answers, message.contains("`session`"))
    };
    let asked = ask(&served.shared_token, json!({})).await;
    assert_eq!(question(&asked), (json!(["once", "reject"]), false));
    let asked = ask(ADA, json!({})).await;
    assert_eq!(question(&asked), (json!(["once", "session", "reject"]), true));

    let yes = json!({ "approval": { "action": "accept", "content": { "answer": "session" } } });
    let state = &asked["result"]["requestState"];
    let done = ask(ADA, json!({ "requestState": state, "inputResponses": yes })).await;
    assert_eq!(done["result"]["isError"], false, "{done}");
    let again = ask(ADA, json!({})).await;
    assert_eq!(again["result"]["isError"], false, "{again}");
    for other in [BOB, &served.shared_token] {
        let asked = ask(other, json!({})).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    }
}

pub(crate) fn modern() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "by-hand", "version": "2" },
    })
}

// A key that stands there twice is refused by the tool, in both eras.
#[tokio::test]
async fn arguments_are_read_as_they_were_written() {
    let served = Served::start(&server()).await;
    let id = served.open(ADA).await;
    let params = |meta: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"add","arguments":{{"a":1,"a":2,"b":3}}{meta}}}}}"#
        )
    };
    let modern = format!(r#","_meta":{}"#, modern());
    let named = format!("Mcp-Session-Id: {id}\r\n");
    for (head, meta) in [(named.as_str(), ""), (&named, r#","_meta":{}"#), (MODERN, &modern)] {
        let answer = served.ask("POST", ADA, head, &params(meta)).await;
        assert!(answer.contains("twice") && answer.contains(r#""isError":true"#), "{answer}");
    }
}

// Over HTTP wrong parameters are what they are elsewhere.
#[tokio::test]
async fn wrong_parameters_are_told_from_an_unknown_method() {
    let served = Served::start(&server()).await;
    let id = served.open(ADA).await;
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} });
    let list =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "cursor": 5 } });
    for (session, message, code) in [(None, hello, "400"), (Some(id.as_str()), list, "200")] {
        let answer = served.post(ADA, session, &message).await;
        assert!(status(&answer) == code && answer.contains("-32602"), "{answer}");
    }
    let named = format!("Mcp-Session-Id: {id}\r\n");
    for (head, meta) in [(named.as_str(), json!({})), (MODERN, modern())] {
        for arguments in [json!("x"), json!([1])] {
            let mut call = call("add");
            call["params"]["arguments"] = arguments;
            call["params"]["_meta"] = meta.clone();
            let answer = served.ask("POST", ADA, head, &call.to_string()).await;
            assert!(answer.contains(r#""isError":true"#), "{answer}");
        }
    }
}

#[tokio::test]
async fn what_is_no_message_does_not_come_in() {
    let served = Served::start(&server()).await;
    let id = served.open(ADA).await;
    let named = format!("Mcp-Session-Id: {id}\r\n");
    for (body, code) in [
        ("nonsense", -32700),
        ("", -32700),
        ("[]", -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#, -32600),
    ] {
        let answer = served.ask("POST", ADA, &named, body).await;
        assert_eq!(status(&answer), "400", "{body}: {answer}");
        let (_, said) = answer.split_once("\r\n\r\n").unwrap();
        let said: Value = serde_json::from_str(said).unwrap();
        assert_eq!((&said["error"]["code"], &said["id"]), (&json!(code), &Value::Null), "{body}");
    }
    let long = format!("\"{}\"", "x".repeat(1024 * 1024));
    assert_eq!(status(&served.ask("POST", ADA, &named, &long).await), "413");
    let longer = long.repeat(5);
    for _ in 0..5 {
        assert_eq!(status(&served.ask("POST", ADA, &named, &longer).await), "413");
    }
}

/// The value of a header, in an answer.
fn header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let head = answer.split("\r\n\r\n").next()?;
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.find_map(|(known, value)| (known == name).then_some(value))
}

// RS3: a browser lets the scripts of a site that was let in send what clients send and read what
// they read, and no others.
#[tokio::test]
async fn a_script_of_a_site_that_was_let_in_is_no_stranger_to_browsers() {
    let served = Served::start(&who()).await;
    let of = |site: &str| {
        format!(
            "Origin: {site}\r\nAccess-Control-Request-Method: POST\r\n\
             Access-Control-Request-Headers: authorization, Content-Type,mcp-param-x, cookie\r\n"
        )
    };
    // A browser sends no token with its question.
    let asked = served.ask("OPTIONS", "none", &of(SITE), "").await;
    assert_eq!(status(&asked), "200");
    assert_eq!(header(&asked, "access-control-allow-origin"), Some(SITE));
    assert_eq!(header(&asked, "access-control-allow-credentials"), None, "no cookies");
    let list = |name| header(&asked, name).unwrap().split(',').map(str::trim).collect::<Vec<_>>();
    assert_eq!(list("access-control-allow-methods"), ["GET", "POST", "DELETE"]);
    let names = list("access-control-allow-headers");
    assert_eq!(names, ["authorization", "Content-Type", "mcp-param-x"]);
    assert_eq!(header(&asked, "vary"), Some("origin"));

    for site in ["https://other.example", "null", "https://site.example:444"] {
        let asked = served.ask("OPTIONS", ADA, &of(site), "").await;
        assert_eq!((status(&asked), header(&asked, "access-control-allow-origin")), ("403", None));
    }
    let inward = format!("{}Access-Control-Request-Private-Network: true\r\n", of(SITE));
    let asked = served.ask("OPTIONS", "none", &inward, "").await;
    assert_eq!((status(&asked), header(&asked, "access-control-allow-methods")), ("403", None));

    // What it is answered it may read, also that it lacks the token.
    let from = format!("Origin: {SITE}\r\n");
    let answer = served.ask("POST", "none", &from, &call("who").to_string()).await;
    assert_eq!(
        (status(&answer), header(&answer, "access-control-allow-origin")),
        ("401", Some(SITE))
    );
    let read = header(&answer, "access-control-expose-headers").unwrap();
    assert_eq!(
        read,
        "call-id,location,retry-after,preference-applied,x-request-id,\
         mcp-protocol-version,mcp-session-id,www-authenticate"
    );
    let ada = served.open(ADA).await;
    let from = format!("{from}Mcp-Session-Id: {ada}\r\n");
    let answer = served.ask("POST", ADA, &from, &call("who").to_string()).await;
    assert_eq!(
        (status(&answer), header(&answer, "access-control-allow-origin")),
        ("200", Some(SITE))
    );
    assert!(answer.contains("it is ada"), "{answer}");
    assert_eq!(header(&answer, "cache-control"), Some("no-store"));

    // Nobody else hears of it.
    let answer = served.post(ADA, Some(&ada), &call("who")).await;
    assert_eq!(header(&answer, "access-control-allow-origin"), None, "{answer}");
}

// A shutdown ends nothing that runs: its response still comes, and serving ends without an error.
#[tokio::test]
async fn shuts_down_when_the_running_requests_have_ended() {
    let (server, gate, count) = request_limits::gate();
    let stop = CancellationToken::new();
    let mut served = Served::start_with(&server, |http| http.shut_down_on(stop.clone())).await;
    let id = served.open(ADA).await;
    let call = call("wait");
    let response = served.post(ADA, Some(&id), &call);
    let stopping = async {
        while count.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        stop.cancel();
        while TcpStream::connect(&served.address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        gate.add_permits(1);
    };
    let (response, ()) = tokio::join!(response, stopping);
    assert!(response.contains("it went on"), "{response}");
    tokio::time::timeout(Duration::from_secs(60), &mut served.serving)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
}

// A stream on which nothing may ever come does not delay a shutdown: it ends with it.
#[tokio::test]
async fn shutdown_ends_the_streams_of_sessions() {
    let stop = CancellationToken::new();
    let mut served = Served::start_with(&server(), |http| http.shut_down_on(stop.clone())).await;
    let id = served.open(ADA).await;
    let mut events = served.listen(ADA, &id).await;
    stop.cancel();
    let rest = async { while events.next_line().await.unwrap().is_some() {} };
    tokio::time::timeout(Duration::from_secs(60), rest).await.unwrap();
    (&mut served.serving).await.unwrap().unwrap();
}
