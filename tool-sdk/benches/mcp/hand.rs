//! The server written by hand: one tool, one thread, nothing around it.

use std::error::Error;
use std::io::{self, Read as _, Write as _};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpListener;

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    name: &'a str,
    #[serde(borrow)]
    arguments: &'a RawValue,
}

#[derive(Deserialize)]
struct Add {
    a: i64,
    b: i64,
}

const HELLO: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"hand","version":"1"}}"#;
const TOOL: &str = r#"{"name":"add","description":"Add two numbers.","inputSchema":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}}"#;

/// The list of so many tools; they all are the same one.
pub(crate) fn list(tools: usize) -> String {
    format!(r#"{{"tools":[{}]}}"#, vec![TOOL; tools].join(","))
}

/// Serves over two pipes; `tools` is the list that is told.
pub(crate) fn serve(tools: &str) -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let (mut buffer, mut answers) = (Vec::new(), Vec::new());
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let count = input.read(&mut chunk)?;
        if count == 0 {
            return Ok(());
        }
        buffer.extend_from_slice(&chunk[..count]);
        let mut start = 0;
        while let Some(length) = memchr::memchr(b'\n', &buffer[start..]) {
            answer(&buffer[start..start + length], tools, &mut answers)?;
            start += length + 1;
        }
        buffer.drain(..start);
        output.write_all(&answers)?;
        output.flush()?;
        answers.clear();
    }
}

/// Serves over HTTP, with nothing between a request and its answer.
pub(crate) async fn serve_http(listener: TcpListener) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let connection =
            http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(tell));
        tokio::spawn(connection);
    }
}

async fn tell(
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Box<dyn Error + Send + Sync>> {
    let body = request.into_body().collect().await?.to_bytes();
    let mut out = Vec::new();
    answer(&body, "{}", &mut out)?;
    let mut answer = Response::new(Full::new(out.into()));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(answer)
}

fn answer(line: &[u8], tools: &str, out: &mut Vec<u8>) -> io::Result<()> {
    let message: Message<'_> = serde_json::from_slice(line)?;
    let Some(id) = message.id else { return Ok(()) };
    write!(out, r#"{{"jsonrpc":"2.0","id":{},"result":"#, id.get())?;
    match (message.method, message.params) {
        ("initialize", _) => out.extend_from_slice(HELLO.as_bytes()),
        ("tools/list", _) => out.extend_from_slice(tools.as_bytes()),
        ("tools/call", Some(params)) => {
            let call: ToolCall<'_> = serde_json::from_str(params.get())?;
            if call.name != "add" {
                return Err(io::ErrorKind::NotFound.into());
            }
            let Add { a, b } = serde_json::from_str(call.arguments.get())?;
            write!(out, r#"{{"content":[{{"type":"text","text":"{}"}}],"isError":false}}"#, a + b)?;
        }
        _ => out.extend_from_slice(b"{}"),
    }
    out.extend_from_slice(b"}\n");
    Ok(())
}
