//! Resources and prompts of a foreign server, listed, read, and passed on.

use super::*;
use crate::client::{ForeignPrompts, ForeignResources};
use crate::server::{PromptProvider as _, ResourceProvider as _};

/// A server with two pages of resources, a template and a prompt.
fn library(message: &Value) -> Vec<ServerAct> {
    let answer = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "instructions": "Ask for a book.",
            "capabilities": { "tools": {}, "resources": { "subscribe": true }, "prompts": {} },
            "serverInfo": { "name": "library", "version": "1" },
        }),
        "tools/list" => json!({ "tools": [] }),
        "resources/list" => match message["params"]["cursor"].as_str() {
            None => json!({
                "resources": [{ "uri": "book://1", "name": "one", "mimeType": "text/plain" }],
                "nextCursor": "more",
            }),
            // The cursor repeats, which ends the list.
            Some(_) => json!({
                "resources": [{ "uri": "book://2", "name": "two", "title": "The second" }],
                "nextCursor": "more",
            }),
        },
        "resources/templates/list" => json!({
            "resourceTemplates": [{ "uriTemplate": "book://{number}", "name": "any" }],
        }),
        "resources/subscribe" | "resources/unsubscribe" => json!({}),
        "resources/read" => json!({
            "contents": [{ "uri": message["params"]["uri"], "text": "once upon a time" }],
        }),
        "prompts/list" => json!({
            "prompts": [{ "name": "review", "arguments": [{ "name": "book", "required": true }] }],
        }),
        "prompts/get" => {
            let book = message["params"]["arguments"]["book"].as_str().unwrap();
            let content = json!({ "type": "text", "text": format!("Review {book}.") });
            json!({ "messages": [{ "role": "user", "content": content }] })
        }
        _ => return Vec::new(),
    };
    vec![ServerAct::Answer(answer)]
}

async fn connected() -> TestHost {
    let host = TestHost::trusting(library);
    host.connect().await;
    host
}

#[tokio::test]
async fn lists_every_page_and_the_instructions() {
    let host = connected().await;
    let resources = host.servers.list_resources("s").await.unwrap();
    let uris: Vec<_> = resources.iter().map(|resource| &*resource.uri).collect();
    assert_eq!(uris, ["book://1", "book://2", "book://{number}"]);
    assert_eq!(host.servers.instructions("s").as_deref(), Some("Ask for a book."));
    // A server that announces neither has neither, and is not asked.
    let plain = TestHost::trusting(echo);
    plain.connect().await;
    assert!(plain.servers.list_resources("s").await.unwrap().is_empty());
    assert!(plain.servers.list_prompts("s").await.unwrap().is_empty());
    assert_eq!(plain.servers.instructions("s"), None);
}

#[tokio::test]
async fn passes_resources_on_under_the_name_of_their_server() {
    let host = connected().await;
    let passed = ForeignResources::new(host.servers.clone());
    let shown: Vec<_> =
        passed.list().await.into_iter().map(|it| format!("{} {}", it.uri, it.name)).collect();
    assert_eq!(shown, ["mcp://s/book://1 s: one", "mcp://s/book://2 s: The second"]);
    assert_eq!(passed.list_templates().await[0].uri, "mcp://s/book://{number}");
    let read = passed.read("mcp://s/book://7").await.unwrap().unwrap();
    assert_eq!(read, tool_sdk_core::Attachment::bytes("text/plain", b"once upon a time".to_vec()));
    for unknown in ["mcp://other/book://1", "book://1", "mcp://s"] {
        assert_eq!(passed.read(unknown).await.unwrap(), None, "{unknown}");
    }
}

#[tokio::test]
async fn passes_prompts_on_under_the_name_of_their_server() {
    let host = connected().await;
    let passed = ForeignPrompts::new(host.servers.clone());
    let listed = passed.list().await;
    assert_eq!((&*listed[0].name, listed[0].arguments[0].required), ("mcp__s__review", true));
    let arguments = json!({ "book": "Emma" });
    let (arguments, session) = (arguments.as_object().unwrap(), Session::new("t"));
    let messages = passed.get("mcp__s__review", arguments, &session).await.unwrap();
    assert_eq!(messages[0].content["text"], "Review Emma.");
    let unknown = passed.get("mcp__t__review", arguments, &session).await;
    assert!(unknown.unwrap_err().to_string().contains("there is no prompt"));
}

// A server that is not connected is neither started nor waited for.
#[tokio::test]
async fn lists_connected_servers_only() {
    let host = TestHost::trusting(library);
    assert!(ForeignResources::new(host.servers.clone()).list().await.is_empty());
    assert!(!host.servers.status("s").unwrap().connected);
}

fn updated(uri: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": uri } })
}

#[tokio::test]
async fn changes_of_watched_resources_are_announced_under_their_passed_uri() {
    let host = TestHost::trusting(library);
    let passed = ForeignResources::new(host.servers.clone());
    let mut updates = passed.subscribe_updates().unwrap();
    let mut lists = passed.subscribe_list_changes().unwrap();
    host.connect().await;
    lists.recv().await.expect("the list is new to clients");

    host.servers.watch_resource("s", "book://1").await.unwrap();
    host.servers.watch_resource("s", "book://1").await.unwrap();
    assert_eq!(host.server.heard("resources/subscribe").len(), 1);
    // Nothing was asked about the second book.
    host.server.say(updated("book://2"));
    host.server.say(updated("book://1"));
    assert_eq!(updates.recv().await.unwrap(), "mcp://s/book://1");

    host.servers.unwatch_resource("s", "book://1").await.unwrap();
    assert!(host.server.heard("resources/unsubscribe").is_empty(), "one subscriber is left");
    host.servers.unwatch_resource("s", "book://1").await.unwrap();
    assert_eq!(host.server.heard("resources/unsubscribe").len(), 1);

    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/resources/list_changed" });
    host.server.say(changed);
    lists.recv().await.unwrap();
}

#[tokio::test]
async fn a_subscription_outlives_its_connection() {
    let host = TestHost::trusting(|message| match message["method"].as_str() {
        Some("tools/call") => vec![ServerAct::Leave],
        Some("tools/list") => echo(message),
        _ => library(message),
    });
    host.connect().await;
    host.servers.watch_resource("s", "book://1").await.unwrap();
    assert!(host.call("echo", "{}").await.result.is_err(), "the server disconnects");
    let mut updates = ForeignResources::new(host.servers.clone()).subscribe_updates().unwrap();
    host.connect().await;
    while host.server.heard("resources/subscribe").len() < 2 {
        tokio::task::yield_now().await;
    }
    host.server.say(updated("book://1"));
    assert_eq!(updates.recv().await.unwrap(), "mcp://s/book://1");
}

#[tokio::test]
async fn a_server_without_subscriptions_is_not_asked_for_them() {
    let host = TestHost::trusting(echo);
    host.connect().await;
    let refused = host.servers.watch_resource("s", "book://1").await.unwrap_err();
    assert!(refused.to_string().contains("does not notify changes"), "{refused}");
    assert!(host.server.heard("resources/subscribe").is_empty());
}
