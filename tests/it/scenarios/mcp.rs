//! Over the Model Context Protocol, in both eras and on both ways.

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tool_sdk::{Session, mcp};

use super::{Scenario, Told, check, pipeline, scenarios};

/// A client written by hand.
struct Client {
    write: WriteHalf<DuplexStream>,
    read: Lines<BufReader<ReadHalf<DuplexStream>>>,
    /// What goes with every request.
    meta: Option<Value>,
    next: u64,
}

impl Client {
    fn of(server: &mcp::Server, meta: Option<Value>) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let (read, write) = tokio::io::split(theirs);
        tokio::spawn(server.serve(read, write));
        let (read, write) = tokio::io::split(ours);
        Self { write, read: BufReader::new(read).lines(), meta, next: 0 }
    }

    async fn legacy(server: &mcp::Server) -> Self {
        let mut client = Self::of(server, None);
        let hello = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#;
        client.ask("initialize", hello).await;
        let ready = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
        client.write.write_all(ready.as_bytes()).await.expect("the server reads");
        client
    }

    fn modern(server: &mcp::Server) -> Self {
        Self::of(
            server,
            Some(json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": { "name": "c", "version": "1" },
            })),
        )
    }

    /// The answer to a request, whose parameters go out as they are written.
    async fn ask(&mut self, method: &str, params: &str) -> Value {
        self.next += 1;
        let id = self.next;
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{method:?},\"params\":{params}}}\n"
        );
        self.write.write_all(line.as_bytes()).await.expect("the server reads");
        loop {
            let line = self.read.next_line().await.expect("a line").expect("the server is there");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["id"] == id {
                return message;
            }
        }
    }

    async fn call(&mut self, scenario: &Scenario) -> Told {
        let Scenario { tool, arguments, .. } = scenario;
        let meta = self.meta.as_ref().map(|meta| format!(",\"_meta\":{meta}")).unwrap_or_default();
        let params = format!("{{\"name\":{tool:?},\"arguments\":{arguments}{meta}}}");
        let answer = self.ask("tools/call", &params).await;
        // A tool that does not exist is an error of the protocol.
        if let Some(message) = answer["error"]["message"].as_str() {
            return Told::new(false, message, None);
        }
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let structured = result.get("structuredContent").cloned();
        let mut told = Told::new(result["isError"] == false, text, structured);
        let blocks = result["content"].as_array().into_iter().flatten();
        let types = blocks.filter_map(|block| block["mimeType"].as_str());
        told.attachments = types.map(str::to_owned).collect();
        told
    }
}

#[tokio::test]
async fn over_the_protocol() {
    for is_approved in [false, true] {
        let server = mcp::Server::new(pipeline(is_approved), Session::default());
        let eras = [("legacy", Client::legacy(&server).await), ("modern", Client::modern(&server))];
        for (era, mut client) in eras {
            for scenario in scenarios().iter().filter(|it| it.is_approved == is_approved) {
                let told = client.call(scenario).await;
                check(&format!("mcp, {era}"), scenario, &told);
            }
        }
    }
}
