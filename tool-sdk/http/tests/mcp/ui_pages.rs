//! UI pages for different kinds of clients.

use tool_sdk_core::ToolDisplay;

use super::http::{ADA, Served};
use super::*;

const APPS: &str = "io.modelcontextprotocol/ui";
const APP: &str = "text/html;profile=mcp-app";

/// One tool with a page, one that is there for the page alone, and one without.
fn shelf() -> Server {
    let with_page = |name| {
        let mut display = ToolDisplay::default();
        display.ui = Some("ui://shelf/board".to_owned());
        definition(name, RiskClass::Read).display(display)
    };
    let mut turn = with_page("turn");
    turn.flags.hidden = true;
    let mut secret = definition("secret", RiskClass::Read);
    secret.flags.hidden = true;
    let said = |_: Value, _: Context| async { "done" };
    let registry = Registry::builder()
        .add(DynamicTool::new(with_page("board"), said))
        .add(DynamicTool::new(turn, said))
        .add(DynamicTool::new(secret, said))
        .add(DynamicTool::new(definition("plain", RiskClass::Read), said))
        .build()
        .unwrap();
    Server::new(Pipeline::new(registry), Session::default()).with_page(
        "ui://shelf/board",
        "The board",
        "<p>books</p>",
    )
}

/// A client of each kind, and what it says of itself.
fn kinds() -> [(&'static str, &'static str, Value); 3] {
    let apps = json!({ "extensions": { APPS: { "mimeTypes": [APP] } } });
    [("plain", "editor", json!({})), ("apps", "editor", apps), ("chatgpt", "openai-mcp", json!({}))]
}

/// A client of each era.
async fn peers(name: &str, can: &Value) -> Vec<Peer> {
    vec![
        Peer::legacy_named(name, &shelf(), can.clone()).await,
        Peer::modern_named(name, &shelf(), can.clone()),
    ]
}

/// What stands beside each name.
fn listed(list: &Value) -> Value {
    let tools = list["result"]["tools"].as_array().unwrap().iter();
    tools.map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool["_meta"].clone())).collect()
}

// F128, F132: the edge adds what the client understands, and nothing to anybody else.
#[tokio::test]
async fn each_kind_of_client_is_told_what_it_understands() {
    let ui = json!({ "resourceUri": "ui://shelf/board" });
    let for_page = json!({ "resourceUri": "ui://shelf/board", "visibility": ["app"] });
    let widget = |name: &str, ui: &Value| {
        json!({
            "ui": ui,
            "ui/resourceUri": "ui://shelf/board",
            "openai/outputTemplate": "ui://shelf/board",
            "openai/widgetAccessible": true,
            "openai/resultCanProduceWidget": true,
            "openai/toolInvocation/invoking": format!("{name} is running"),
            "openai/toolInvocation/invoked": format!("{name} has run"),
        })
    };
    let mut private = widget("turn", &for_page);
    private["openai/visibility"] = json!("private");
    for (kind, name, can) in kinds() {
        let expected = match kind {
            "plain" => json!({ "board": null, "plain": null }),
            "apps" => json!({
                "board": { "ui": ui, "ui/resourceUri": "ui://shelf/board" },
                "plain": null,
                "turn": { "ui": for_page, "ui/resourceUri": "ui://shelf/board" },
            }),
            _ => json!({ "board": widget("board", &ui), "plain": null, "turn": private }),
        };
        for mut peer in peers(name, &can).await {
            let list = peer.request("tools/list", json!({})).await;
            assert_eq!(listed(&list), expected, "{kind}");
        }
    }
}

// F128
#[tokio::test]
async fn results_hold_the_keys_of_chatgpt_for_chatgpt_alone() {
    for (kind, name, can) in kinds() {
        for mut peer in peers(name, &can).await {
            let meta = peer.call("board", json!({})).await["_meta"].take();
            let template = &meta["openai/outputTemplate"];
            match kind {
                "chatgpt" => assert_eq!(template, "ui://shelf/board"),
                _ => assert!(template.is_null() && !meta.to_string().contains("openai"), "{meta}"),
            }
            let meta = peer.call("plain", json!({})).await["_meta"].take();
            assert!(!meta.to_string().contains("openai"), "{meta}");
        }
    }
}

#[tokio::test]
async fn a_page_is_read_in_the_clients_own_format() {
    for (kind, name, can) in kinds() {
        for mut peer in peers(name, &can).await {
            let list = peer.request("resources/list", json!({})).await;
            let read = peer.request("resources/read", json!({ "uri": "ui://shelf/board" })).await;
            let format = match kind {
                "plain" => {
                    assert_eq!(list["error"]["code"], -32601, "{list}");
                    assert_eq!(read["error"]["code"], -32601, "{read}");
                    continue;
                }
                "apps" => APP,
                _ => "text/html+skybridge",
            };
            assert_eq!(list["result"]["resources"][0]["mimeType"], format);
            assert_eq!(read["result"]["contents"][0]["mimeType"], format);
            assert_eq!(read["result"]["contents"][0]["text"], "<p>books</p>");
            let other = peer.request("resources/read", json!({ "uri": "ui://shelf/no" })).await;
            assert!(!other["error"].is_null(), "{other}");
        }
    }
}

// What a plain client hears at the beginning is what it always heard.
#[tokio::test]
async fn the_extension_is_announced_to_those_who_know_it() {
    for (kind, name, can) in kinds() {
        let mut peer = Peer::modern_named(name, &shelf(), can);
        let can = peer.request("server/discover", json!({})).await["result"]["capabilities"].take();
        assert_eq!(can["extensions"][APPS].is_object(), kind != "plain", "{can}");
        assert_eq!(can["resources"].is_object(), kind != "plain", "{can}");
    }
}

// A client that gives no name of its own may be known by the head of its requests.
#[tokio::test]
async fn a_client_over_http_is_known_by_its_head_too() {
    let served = Served::start(&shelf()).await;
    let agent = "User-Agent: openai-mcp/1.0.0\r\n";
    let hello = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "unknown", "version": "1" },
        },
    });
    let opened = served.ask("POST", ADA, agent, &hello.to_string()).await;
    assert!(opened.contains(APPS), "{opened}");
    let id = opened.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let named = format!("{agent}Mcp-Session-Id: {id}\r\n");
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    served.ask("POST", ADA, &named, &ready.to_string()).await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    let listed = served.ask("POST", ADA, &named, &list.to_string()).await;
    assert!(listed.contains("openai/outputTemplate"), "{listed}");
}
