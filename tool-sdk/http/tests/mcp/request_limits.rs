//! More requests than may be in flight at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tool_sdk_core::Inquiry;

use super::http::{ADA, Served, next, status};
use super::*;

/// As many calls as may run, and one that has to wait.
const FULL: u64 = 256;
const LIMIT: Duration = Duration::from_secs(60);

/// A server whose one tool waits until it may go on, and how many calls have come to wait.
pub(crate) fn gate() -> (Server, Arc<Semaphore>, Arc<AtomicUsize>) {
    let (gate, count) = (Arc::new(Semaphore::new(0)), Arc::<AtomicUsize>::default());
    let (wait, came) = (Arc::clone(&gate), Arc::clone(&count));
    let tool =
        DynamicTool::new(definition("wait", RiskClass::Read), move |_: Value, _: Context| {
            let wait = Arc::clone(&wait);
            came.fetch_add(1, Ordering::Relaxed);
            async move {
                wait.acquire().await.unwrap().forget();
                "it went on"
            }
        });
    let registry = Registry::builder().add(tool).build().unwrap();
    (Server::new(Pipeline::new(registry), Session::default()), gate, count)
}

/// The two ways of a call: answered directly, and by rmcp.
fn ways(name: &str) -> [Value; 2] {
    [json!({ "name": name }), json!({ "name": name, "_meta": {} })]
}

async fn settled() {
    for _ in 0..10_000 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_is_too_much_waits_and_is_answered() {
    const MANY: u64 = 1000;
    let (server, gate, count) = gate();
    for params in ways("wait") {
        count.store(0, Ordering::Relaxed);
        let mut peer = Peer::legacy(&server, json!({})).await;
        peer.request("ping", json!({})).await;
        let first = peer.send("tools/call", params.clone()).await;
        for _ in 1..MANY {
            peer.send("tools/call", params.clone()).await;
        }
        settled().await;
        let count = count.load(Ordering::Relaxed) as u64;
        assert!((1..=FULL).contains(&count), "{count} calls run");
        gate.add_permits(MANY as usize);
        for id in first..first + MANY {
            assert_eq!(text(&peer.receive_response(id).await["result"]), "it went on");
        }
    }
}

// What a peer says to calls that wait for it is heard, however many they are.
#[tokio::test]
async fn a_crowd_of_questions_is_answered() {
    let greet = DynamicTool::new(
        definition("greet", RiskClass::Read),
        |_: Value, cx: Context| async move {
            let form = Inquiry::form("your name?", json!({ "type": "object", "properties": {} }));
            cx.inquire([("name", form)]).await.map(|_| "hello")
        },
    );
    let registry = Registry::builder().add(greet).build().unwrap();
    let server = Server::new(Pipeline::new(registry), Session::default());
    for params in ways("greet") {
        let mut peer = Peer::legacy(&server, json!({ "elicitation": {} })).await;
        let mut calls = Vec::new();
        for _ in 0..=FULL {
            calls.push(peer.send("tools/call", params.clone()).await);
        }
        let answering = async {
            for _ in 0..=FULL {
                let question = peer.receive_method("elicitation/create").await;
                peer.reply(&question, json!({ "action": "accept", "content": {} })).await;
            }
            for call in calls {
                let answer = peer.receive_response(call).await;
                assert_eq!(text(&answer["result"]), "hello");
            }
        };
        timeout(LIMIT, answering).await.expect("the answers are read");
    }
}

#[tokio::test]
async fn a_crowd_of_calls_can_be_taken_back() {
    let (server, gate, count) = gate();
    for params in ways("wait") {
        count.store(0, Ordering::Relaxed);
        let mut peer = Peer::legacy(&server, json!({})).await;
        let first = peer.send("tools/call", params.clone()).await;
        for _ in 0..FULL + 1 {
            peer.send("tools/call", params.clone()).await;
        }
        // One that waits for room, and one that runs.
        for id in [first + FULL, first] {
            peer.notify("notifications/cancelled", json!({ "requestId": id })).await;
        }
        let coming = async {
            while count.load(Ordering::Relaxed) as u64 <= FULL {
                tokio::task::yield_now().await;
            }
        };
        timeout(LIMIT, coming).await.expect("what is taken back makes room");
        gate.add_permits(FULL as usize);
        for id in (first + 1..first + FULL).chain([first + FULL + 1]) {
            assert_eq!(text(&peer.receive_response(id).await["result"]), "it went on");
        }
        assert_eq!(peer.hang_up().await, Vec::<Value>::new());
        assert_eq!(count.load(Ordering::Relaxed) as u64, FULL + 1);
    }
}

// Calls that are piped in by whoever hangs up at once are answered.
#[tokio::test]
async fn what_waits_is_answered_after_the_peer_has_hung_up() {
    let (server, gate, _) = gate();
    for params in ways("wait") {
        let mut peer = Peer::legacy(&server, json!({})).await;
        for _ in 0..2 * FULL {
            peer.send("tools/call", params.clone()).await;
        }
        gate.add_permits(2 * FULL as usize);
        assert_eq!(peer.hang_up().await.len() as u64, 2 * FULL);
    }
}

// Calls that come to no end keep nobody waiting who has hung up, and whoever waits is refused.
#[tokio::test(start_paused = true)]
async fn what_comes_to_no_end_is_given_up() {
    let (server, _gate, _) = gate();
    for params in ways("wait") {
        let mut peer = Peer::legacy(&server, json!({})).await;
        peer.request("ping", json!({})).await;
        for _ in 0..FULL + 10 {
            peer.send("tools/call", params.clone()).await;
        }
        settled().await;
        let start = Instant::now();
        let rest = peer.hang_up().await;
        assert!(start.elapsed() < Duration::from_secs(6), "{params}: {:?}", start.elapsed());
        let refused = rest.iter().filter(|answer| !answer["error"].is_null()).count();
        assert_eq!(refused, 10, "{params}");
    }
}

// A ping is answered at once, and an id that waits is not given again.
#[tokio::test]
async fn what_waits_holds_its_id_and_no_ping() {
    let (server, gate, _) = gate();
    for params in ways("wait") {
        let mut peer = Peer::legacy(&server, json!({})).await;
        peer.request("ping", json!({})).await;
        let first = peer.send("tools/call", params.clone()).await;
        for _ in 0..FULL {
            peer.send("tools/call", params.clone()).await;
        }
        settled().await;
        assert_eq!(peer.request("ping", json!({})).await["result"], json!({}));
        for (id, method) in [(first, "tools/call"), (first + FULL, "tools/call"), (first, "ping")] {
            let again = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
            peer.send_line(&again.to_string()).await;
            let refused = peer.receive_error().await;
            let message = refused["error"]["message"].as_str().unwrap();
            assert!(message.contains("still in flight"), "{refused}");
            assert_eq!(refused["id"], id);
        }
        gate.add_permits(FULL as usize + 1);
        for id in first..=first + FULL {
            assert_eq!(text(&peer.receive_response(id).await["result"]), "it went on");
        }
        assert_eq!(peer.hang_up().await, Vec::<Value>::new());
    }
}

// However many requests wait, the client can cancel them, ping and hang up.
#[tokio::test(start_paused = true)]
async fn reads_on_while_thousands_of_requests_wait() {
    const MANY: u64 = 6000;
    let (server, _gate, _) = gate();
    let mut peer = Peer::legacy(&server, json!({})).await;
    for _ in 0..MANY {
        peer.send("tools/call", json!({ "name": "wait" })).await;
    }
    assert_eq!(peer.request("ping", json!({})).await["result"], json!({}));
    let refused = peer.receive_error().await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("too many"), "{refused}");
    let start = Instant::now();
    peer.hang_up().await;
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
}

// A running request is never cut for another one.
#[tokio::test]
async fn refuses_a_connection_beyond_the_limit_and_lets_running_calls_end() {
    const MAX: usize = 4;
    let (server, gate, count) = gate();
    let served = Served::start_with(&server, |http| http.max_connections(MAX)).await;
    let id = served.open(ADA).await;
    let call = |id: usize| {
        json!({
            "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "wait" },
        })
    };
    let mut streams = Vec::new();
    for nth in 0..MAX {
        streams.push(served.begin(ADA, &id, &call(nth)).await);
    }
    while count.load(Ordering::Relaxed) < MAX {
        tokio::task::yield_now().await;
    }
    let refused = served.post(ADA, Some(&id), &call(MAX)).await;
    assert_eq!(status(&refused), "503", "{refused}");
    assert!(refused.contains("retry-after: 1"), "{refused}");
    gate.add_permits(MAX);
    for stream in &mut streams {
        assert_eq!(text(&next(stream).await["result"]), "it went on");
    }
    let ping = json!({ "jsonrpc": "2.0", "id": 9, "method": "ping" });
    assert_eq!(status(&served.post(ADA, Some(&id), &ping).await), "200");
}

// What waits is bounded as well, and whoever goes beyond is told.
#[tokio::test]
async fn a_flood_is_refused() {
    let (server, gate, _) = gate();
    let long = "x".repeat(1024 * 1024);
    for mut params in ways("wait") {
        let mut peer = Peer::legacy(&server, json!({})).await;
        for _ in 0..FULL {
            peer.send("tools/call", params.clone()).await;
        }
        params["arguments"] = json!({ "text": long });
        for _ in 0..20 {
            peer.send("tools/call", params.clone()).await;
        }
        let refused = timeout(LIMIT, peer.receive_error()).await.expect("it is told at once");
        assert!(refused["error"]["message"].as_str().unwrap().contains("too many"), "{refused}");
        assert!(refused["id"].is_u64(), "{refused}");
        gate.add_permits(FULL as usize);
        assert_eq!(peer.request("ping", json!({})).await["result"], json!({}));
    }
}
