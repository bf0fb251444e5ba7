//! Results for kinds of clients.

use serde_json::{Map, Value, json};
use tool_sdk::http::{ClientProfile, HttpOptions, RestOptions};
use tool_sdk::{Definition, Pipeline, Registry, tool, tools};

use crate::server::{CLIENT, TestRequest, TestServer};
use crate::sockets::TestSocket;
use crate::tools::ToolSignals;

/// Show a note.
#[tool(read, display(name = "Show", ui = "ui://note"))]
fn show_note() -> &'static str {
    "a note"
}

/// A chat with a line for each call.
struct CompanyChat;

impl ClientProfile for CompanyChat {
    fn applies_to(&self, client: &str) -> bool {
        client.starts_with("company-chat/")
    }

    fn render_result(&self, tool: &Definition, result: &mut Map<String, Value>) {
        result.insert("status_line".to_owned(), format!("{} has run", tool.name).into());
    }

    fn render_event(&self, tool: &Definition, event: &mut Map<String, Value>) {
        if event["type"] == "started" {
            event.insert("status_line".to_owned(), format!("{} is running", tool.name).into());
        }
    }
}

async fn start() -> TestServer {
    let pipeline = Pipeline::new(Registry::builder().add(tools![show_note]).build().unwrap());
    let options = RestOptions::new(HttpOptions::new(CLIENT.parse().unwrap()))
        .with_client_profile(CompanyChat);
    TestServer::start_options(pipeline, options, ToolSignals::default()).await
}

fn show<'s>(server: &'s TestServer, client: &str) -> TestRequest<'s> {
    server.call("show_note", &json!({})).header("user-agent", client)
}

const CHATGPT: &str = "Mozilla/5.0; compatible; ChatGPT-User/1.0; +https://openai.com/bot";

// F128, F135: ChatGPT's keys reach ChatGPT, and no other client.
#[tokio::test]
async fn chatgpt_gets_its_keys_and_other_clients_plain_json() {
    let server = start().await;
    let known = show(&server, CHATGPT).send().await.expect(200).json();
    assert_eq!(known["_meta"]["openai/outputTemplate"], "ui://note");
    assert_eq!(known["_meta"]["openai/toolInvocation/invoked"], "Show has run");
    for client in ["curl/8.0", "company-chat/1", ""] {
        let plain = show(&server, client).send().await.expect(200);
        assert!(!plain.body.contains("openai/"), "{client}: {}", plain.body);
    }
    let plain = show(&server, "curl/8.0").send().await.json();
    let members: Vec<_> = plain.as_object().unwrap().keys().collect();
    assert_eq!(members, ["call", "text"]);
    // The header of the API is stronger than the one that an HTTP library sends.
    let named = show(&server, CHATGPT).header("client-name", "curl").send().await;
    assert!(!named.body.contains("openai/"), "{}", named.body);
}

// F186
#[tokio::test]
async fn a_host_adds_a_kind_of_client() {
    let server = start().await;
    let line = json!("show_note has run");
    let result = show(&server, "company-chat/1").send().await.expect(200).json();
    assert_eq!((&result["status_line"], &result["text"]), (&line, &json!("a note")));

    let mut events = show(&server, "company-chat/1").events().await;
    assert_eq!(events.next_named("started").await.data["status_line"], "show_note is running");
    assert_eq!(events.next_named("result").await.data["status_line"], line);

    let batch = json!({ "calls": [{ "tool": "show_note" }] });
    let batch = server.post("/v1/batch", &batch).header("client-name", "company-chat/1");
    let batch = batch.send().await.expect(200).json();
    assert_eq!(batch["results"][0]["result"]["status_line"], line);

    let token = format!("Bearer {CLIENT}");
    let headers = [("authorization", &*token), ("client-name", "company-chat/1")];
    let mut socket = TestSocket::open(&server, &headers).await.unwrap();
    socket.call("1", "show_note", &json!({})).await;
    assert_eq!(socket.reply("1").await.2["status_line"], line);
}
