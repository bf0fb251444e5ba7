//! Notifications during a call.

use std::time::Duration;

use tokio::time::timeout;
use tool_sdk_core::{GrantStore, Redactor};

use super::http::{ADA, Served};
use super::*;

const LIMIT: Duration = Duration::from_secs(60);
const SECRET: &str = "correct horse battery";

/// A server whose tools say something: at once, later, by way of a task of their own, and as
/// the last of all. What was approved before cannot be read, of which a call is warned.
fn server_in(folder: &std::path::Path) -> Server {
    let (approvals, workspace) = (folder.join("approvals"), folder.join("workspace"));
    std::fs::create_dir(&workspace).unwrap();
    std::fs::create_dir(&approvals).unwrap();
    std::fs::write(approvals.join("approvals.json"), "{}").unwrap();
    let says = |name| definition(name, RiskClass::Read);
    let at_once = DynamicTool::new(says("at_once"), |_: Value, cx: Context| async move {
        cx.emit("said", json!({ "it": SECRET }));
        cx.emit_output(SECRET);
        "done"
    });
    let later = DynamicTool::new(says("later"), |_: Value, cx: Context| async move {
        cx.emit("early", json!(1));
        tokio::task::yield_now().await;
        cx.emit("late", json!({ "it": SECRET }));
        "done"
    });
    let spawned = DynamicTool::new(says("spawned"), |_: Value, cx: Context| async move {
        let task = tokio::spawn(async move {
            for part in 0..20 {
                cx.emit_output(format!("part {part}"));
                tokio::task::yield_now().await;
            }
        });
        task.await.map(|()| "done").map_err(ToolError::internal)
    });
    let last = DynamicTool::new(says("last"), |_: Value, cx: Context| async move {
        cx.emit("last", json!(null));
        "done"
    });
    let write = DynamicTool::new(
        definition("change", RiskClass::Write),
        |_: Value, _: Context| async move { "never done" },
    );
    let tools = Registry::builder().add(at_once).add(later).add(spawned).add(last).add(write);
    let pipeline = Pipeline::new(tools.build().unwrap())
        .redact_events(Redactor::new([SECRET]))
        .grant_store(GrantStore::open(approvals, &workspace));
    Server::new(pipeline, Session::default()).with_client_approvals(false)
}

/// What is asked of every server; the peer wants to hear all, then little, then what is usual.
fn requests() -> Vec<(&'static str, Value)> {
    let level = |level: &str| ("logging/setLevel", json!({ "level": level }));
    let call = |name: &str| ("tools/call", json!({ "name": name, "arguments": {} }));
    vec![
        call("at_once"),
        level("debug"),
        call("at_once"),
        call("later"),
        call("spawned"),
        call("change"),
        level("error"),
        call("later"),
        level("info"),
        call("last"),
    ]
}

/// What a log message says; of a warning, who warns.
fn said(message: &Value) -> Option<String> {
    let params = &message["params"];
    match (message["method"] == "notifications/message", params["level"] == "warning") {
        (false, _) => None,
        (true, true) => Some(format!("{} warns", params["logger"])),
        (true, false) => Some(params.to_string()),
    }
}

/// Log messages belong to the call that causes them, so they come on its stream.
async fn over_http(server: &Server) -> Vec<String> {
    let served = Served::start(server).await;
    let id = served.open(ADA).await;
    let mut all = Vec::new();
    for (method, params) in requests() {
        let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let answer = served.post(ADA, Some(&id), &message).await;
        let data = answer.lines().filter_map(|line| line.strip_prefix("data: "));
        let messages = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
        all.extend(messages.filter_map(|message| said(&message)));
    }
    all
}

async fn over_streams(server: &Server) -> Vec<String> {
    let mut peer = Peer::legacy(server, json!({})).await;
    for (method, params) in requests() {
        peer.request(method, params).await;
    }
    peer.hang_up().await.iter().filter_map(said).collect()
}

#[tokio::test]
async fn every_transport_sends_the_same_log_messages() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [one, two] = folders.each_ref().map(|folder| server_in(folder.path()));
    let first = timeout(LIMIT, over_http(&one)).await.expect("all of it comes");
    let parts = first.iter().filter(|said| said.contains("part ")).count();
    assert_eq!((first.len(), parts), (1 + 2 + 2 + 20 + 1 + 1, 20), "{first:#?}");
    assert!(first.iter().any(|said| said.contains("change") && said.ends_with("warns")));
    assert!(!first.iter().any(|said| said.contains(SECRET)), "{first:#?}");
    assert_eq!(over_streams(&two).await, first);
}
