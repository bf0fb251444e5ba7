//! Notifications during a call: the same on the fast path and through rmcp.

use std::time::Duration;

use tokio::time::timeout;
use tool_sdk_core::{GrantStore, Redactor};

use super::http::{ADA, Served};
use super::*;

const LIMIT: Duration = Duration::from_secs(20);
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

async fn over_http(server: &Server) -> Vec<String> {
    let served = Served::start(server).await;
    let id = served.open(ADA).await;
    let mut lines = served.listen(ADA, &id).await;
    for (method, params) in requests() {
        let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        served.post(ADA, Some(&id), &message).await;
    }
    let mut all = Vec::new();
    while all.last().is_none_or(|last: &String| !last.contains(r#""kind":"last""#)) {
        let line = lines.next_line().await.unwrap().expect("the last message comes");
        let data = line.strip_prefix("data: ").and_then(|data| serde_json::from_str(data).ok());
        all.extend(data.as_ref().and_then(said));
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
async fn every_way_tells_the_same() {
    let mut told = Vec::new();
    for directly in [true, false] {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [one, two] = folders.each_ref().map(|folder| server_in(folder.path()));
        let (one, two) = (one.with_fast_path(directly), two.with_fast_path(directly));
        let all = timeout(LIMIT, over_http(&one)).await.expect("all of it comes");
        told.extend([all, over_streams(&two).await]);
    }
    let first = &told[0];
    let parts = first.iter().filter(|said| said.contains("part ")).count();
    assert_eq!((first.len(), parts), (1 + 2 + 2 + 20 + 1 + 1, 20), "{first:#?}");
    assert!(first.iter().any(|said| said.contains("change") && said.ends_with("warns")));
    assert!(!first.iter().any(|said| said.contains(SECRET)), "{first:#?}");
    assert!(told.iter().all(|other| other == first), "{told:#?}");
}
