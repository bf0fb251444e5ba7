//! The check of session stores, for the stores of the SDK and of hosts.

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::session_store::{CallRecord, CallStatus, EventRecord, SessionStore};

/// Checks what a [`SessionStore`] promises, on an empty store.
///
/// # Panics
///
/// Panics when the store breaks a promise.
///
/// # Examples
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// tool_sdk::testing::check_session_store(&tool_sdk::MemorySessionStore::default()).await;
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn check_session_store(store: &impl SessionStore) {
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let record = |call: &str, session: &str, seconds| CallRecord {
        call: call.to_owned(),
        session: session.to_owned(),
        user: Some("ada".to_owned()),
        tool: "hello".to_owned(),
        arguments: json!({ "name": "Ada" }),
        request: None,
        status: CallStatus::Running,
        started_at: at(seconds),
        elapsed_ms: None,
        response: None,
    };
    for (call, session, seconds) in [("b", "s", 2), ("a", "s", 1), ("c", "t", 3)] {
        ok(store.save_call(record(call, session, seconds)).await);
        let event = EventRecord {
            call: call.to_owned(),
            session: session.to_owned(),
            at: at(seconds),
            event: json!({ "type": "started" }),
        };
        ok(store.save_event(event.clone()).await);
        let ended = EventRecord { event: json!({ "type": "completed" }), ..event };
        ok(store.save_event(ended).await);
    }
    let ended = CallRecord {
        status: CallStatus::Completed,
        elapsed_ms: Some(5),
        response: Some(json!("hi")),
        ..record("a", "s", 1)
    };
    ok(store.save_call(ended.clone()).await);
    assert_eq!(ok(store.find_call("a").await), Some(ended), "the last record of a call counts");
    assert_eq!(ok(store.find_call("absent").await), None);
    let calls = ok(store.list_calls("s").await);
    let ids: BTreeSet<_> = calls.iter().map(|it| it.call.as_str()).collect();
    assert_eq!((calls.len(), ids), (2, BTreeSet::from(["a", "b"])), "each call once");
    let events = ok(store.list_events("a").await);
    let kinds: Vec<_> = events.iter().map(|it| it.event["type"].as_str()).collect();
    assert_eq!(kinds, [Some("started"), Some("completed")], "events keep their order");

    let sessions = ok(store.summarize_sessions().await);
    let facts: Vec<_> = sessions.iter().map(|it| (it.session.as_str(), it.calls)).collect();
    assert_eq!(facts, [("t", 1), ("s", 2)], "the last session comes first");
    assert_eq!((sessions[1].first_call, sessions[1].last_call), (at(1), at(2)));
    assert_eq!(sessions[1].user.as_deref(), Some("ada"));

    assert_eq!(ok(store.remove_calls_before(at(2)).await), 1, "calls before the time are removed");
    assert_eq!(ok(store.find_call("a").await), None);
    assert_eq!(ok(store.list_events("a").await), [], "and so are their events");
    ok(store.remove_session("s").await);
    assert_eq!(ok(store.list_calls("s").await), []);
    assert_eq!(ok(store.list_events("b").await), []);
    assert_eq!(ok(store.summarize_sessions().await).len(), 1);
}

fn ok<T>(result: io::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("the store failed: {error}"))
}
