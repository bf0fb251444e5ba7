//! Over HTTP: as one answer, as server-sent events, and over a WebSocket.

use futures_util::{SinkExt as _, StreamExt as _};
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{WebSocketStream, client_async};
use tool_sdk::http::{self, HttpOptions};

use super::{Scenario, Told, check, pipeline, scenarios};

const TOKEN: &str = "scenarios-0123456789abcdef0123456789ab";

/// Starts a server; returns its address.
async fn serve(is_approved: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let options = HttpOptions::new(TOKEN.parse().expect("a token"));
    tokio::spawn(http::serve(pipeline(is_approved), listener, options));
    address
}

/// Calls a tool; returns the status and the body.
async fn post(address: &str, scenario: &Scenario, accept: &str) -> (bool, String) {
    let stream = TcpStream::connect(address).await.expect("the server listens");
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
    tokio::spawn(connection);
    let request = Request::post(format!("/v1/tools/{}", scenario.tool))
        .header("host", address)
        .header("authorization", format!("Bearer {TOKEN}"))
        .header("content-type", "application/json")
        .header("accept", accept)
        .body(Full::new(Bytes::from(scenario.arguments)))
        .expect("a request");
    let response = sender.send_request(request).await.expect("an answer");
    let is_ok = response.status().is_success();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    (is_ok, String::from_utf8(body.into()).expect("text"))
}

/// Reads a result or a problem document.
fn read_body(is_result: bool, body: &Value) -> Told {
    let text = match is_result {
        true => body["text"].as_str().unwrap_or_default().to_owned(),
        false => {
            let part = |name: &str| body[name].as_str().unwrap_or_default();
            format!("{}\nhint: {}", part("error"), part("suggestion"))
        }
    };
    let mut told = Told::new(is_result, text, body.get("structured").cloned());
    let attachments = body["attachments"].as_array().into_iter().flatten();
    told.attachments = attachments.map(|it| it["mime"].as_str().expect("a type").into()).collect();
    told
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

async fn call(address: &str, scenario: &Scenario) -> Told {
    let (is_ok, body) = post(address, scenario, "application/json").await;
    read_body(is_ok, &parse(&body))
}

async fn call_with_events(address: &str, scenario: &Scenario) -> Told {
    let (is_ok, body) = post(address, scenario, "text/event-stream").await;
    if !is_ok {
        // A tool that does not exist is refused before the stream begins.
        return read_body(false, &parse(&body));
    }
    let events: Vec<(&str, Value)> = body
        .split("\n\n")
        .filter_map(|event| {
            let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
            Some((field("event: ")?, parse(field("data: ")?)))
        })
        .collect();
    let (last, body) = events.last().expect("an event");
    let mut told = read_body(*last == "result", body);
    let parts = events.iter().filter(|(name, _)| *name == "output");
    told.parts = Some(parts.map(|(_, it)| it["text"].as_str().expect("text").into()).collect());
    told
}

async fn open_socket(address: &str) -> WebSocketStream<TcpStream> {
    let stream = TcpStream::connect(address).await.expect("the server listens");
    let mut request = format!("ws://{address}/v1/calls/ws").into_client_request().expect("a URL");
    let token = format!("Bearer {TOKEN}").parse().expect("a header");
    request.headers_mut().insert("authorization", token);
    client_async(request, stream).await.expect("a socket").0
}

async fn call_over_socket(socket: &mut WebSocketStream<TcpStream>, scenario: &Scenario) -> Told {
    let Scenario { tool, arguments, .. } = scenario;
    // The arguments go out as they are written.
    let call = format!(r#"{{"type":"call","id":"1","tool":"{tool}","arguments":{arguments}}}"#);
    socket.send(Message::text(call)).await.expect("the server reads");
    let mut parts = Vec::new();
    loop {
        let Message::Text(text) = socket.next().await.expect("a message").expect("a frame") else {
            continue;
        };
        let message = parse(&text);
        match message["type"].as_str() {
            Some("event") if message["event"]["type"] == "output" => {
                parts.push(message["event"]["text"].as_str().expect("text").to_owned());
            }
            Some(kind @ ("result" | "problem")) => {
                let mut told = read_body(kind == "result", &message[kind]);
                told.parts = Some(parts);
                return told;
            }
            _ => {}
        }
    }
}

// F184: the three ways mean the same, and two of them show the parts one by one.
#[tokio::test]
async fn over_http() {
    for is_approved in [false, true] {
        let address = serve(is_approved).await;
        let mut socket = open_socket(&address).await;
        for scenario in scenarios().iter().filter(|it| it.is_approved == is_approved) {
            check("http", scenario, &call(&address, scenario).await);
            check("events", scenario, &call_with_events(&address, scenario).await);
            check("socket", scenario, &call_over_socket(&mut socket, scenario).await);
        }
    }
}
