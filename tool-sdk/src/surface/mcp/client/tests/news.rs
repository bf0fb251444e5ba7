//! Foreign tools that change: what is heard of it, and for how long.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// A server of today whose tool has a number, and which ends what is asked for once it is asked.
fn forgetful(version: Arc<AtomicUsize>) -> Arc<Script> {
    let kept = "io.modelcontextprotocol/subscriptionId";
    Script::modern(move |message| match message["method"].as_str() {
        Some("server/discover") => vec![Act::Answer(json!({
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": { "listChanged": true } },
            "serverInfo": { "name": "script", "version": "1" },
        }))],
        Some("subscriptions/listen") => {
            // What changes while nobody listens.
            version.fetch_add(1, Ordering::Relaxed);
            let acknowledged = json!({ "method": "notifications/subscriptions/acknowledged",
                "params": { "_meta": { kept: message["id"] },
                    "notifications": { "toolsListChanged": true } } });
            let end = json!({ "resultType": "complete", "_meta": { kept: message["id"] } });
            vec![Act::Say(acknowledged), Act::Answer(end)]
        }
        Some("tools/list") => {
            let name = format!("echo_{}", version.load(Ordering::Relaxed));
            vec![Act::Answer(json!({
                "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                "tools": [tool(&name, "Says it.")],
            }))]
        }
        _ => Vec::new(),
    })
}

// MC2, F127: whatever ends what a server tells, it is asked again, and looked at for what it did
// not tell.
#[tokio::test(start_paused = true)]
async fn a_server_that_stops_telling_is_asked_again() {
    let version = Arc::new(AtomicUsize::new(0));
    let setting = Setting::with(Pipeline::new(Registry::default()), forgetful(version));
    let mut changes = setting.pipeline.toolset().changes();
    setting.connect().await;
    for _ in 0..4 {
        let before = setting.tools();
        while setting.tools() == before {
            // By a clock that does not go by itself.
            let changed = tokio::time::timeout(Duration::from_secs(600), changes.changed()).await;
            changed.expect("it is asked again").unwrap();
        }
    }
    assert!(setting.script.heard("subscriptions/listen").len() >= 4);
}
