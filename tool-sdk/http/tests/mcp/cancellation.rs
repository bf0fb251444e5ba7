//! Cancelled calls: by the client, by a disconnect, or by the host. Work that a tool left running
//! is notified by its context.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::http::{ADA, Served, modern, next};
use super::*;

const LIMIT: Duration = Duration::from_secs(60);

/// The contexts of the calls, in the order in which they came.
type Given = mpsc::UnboundedReceiver<Context>;

/// A server whose tools give their contexts away; `stay` comes to no end then.
fn giving(session: Session) -> (Server, Given) {
    let (give, given) = mpsc::unbounded_channel();
    let gives = give.clone();
    let leave = DynamicTool::new(definition("leave", RiskClass::Read), move |_: Value, cx| {
        let _ = gives.send(cx);
        async { "it is done" }
    });
    let stay = DynamicTool::new(definition("stay", RiskClass::Read), move |_: Value, cx| {
        let _ = give.send(cx);
        std::future::pending::<&str>()
    });
    let registry = Registry::builder().add(leave).add(stay).build().unwrap();
    (Server::new(Pipeline::new(registry), session), given)
}

fn call(name: &str) -> Value {
    json!({ "name": name, "arguments": {} })
}

/// The context of the next call that stays, which nobody has given up yet.
async fn stays(given: &mut Given) -> Context {
    let cx = timeout(LIMIT, given.recv()).await.expect("it begins").unwrap();
    assert!(!cx.is_cancelled());
    cx
}

async fn is_given_up(cx: &Context) {
    timeout(LIMIT, cx.cancelled()).await.expect("it is given up");
    assert!(cx.is_cancelled());
}

fn request(id: u64, name: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call(name) })
}

/// The headers of [`stateless_request`] for the tool `stay`.
const STATELESS: &str =
    "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: stay\r\n";

fn stateless_request(name: &str) -> Value {
    let mut request = request(1, name);
    request["params"]["_meta"] = modern();
    request
}

fn taken_back(id: u64) -> Value {
    json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id },
    })
}

#[tokio::test]
async fn a_peer_gives_up_one_of_its_calls() {
    let (server, mut given) = giving(Session::default());
    let mut peer = Peer::legacy(&server, json!({})).await;
    peer.request("ping", json!({})).await;
    peer.send_line(&request(100, "stay").to_string()).await;
    let other = stays(&mut given).await;
    peer.send_line(&request(101, "stay").to_string()).await;
    let one = stays(&mut given).await;
    peer.send_line(&taken_back(101).to_string()).await;
    is_given_up(&one).await;
    assert!(!other.is_cancelled());
    peer.send_line(&taken_back(100).to_string()).await;
    is_given_up(&other).await;
    assert_eq!(text(&peer.call("leave", json!({})).await), "it is done");
}

#[tokio::test]
async fn a_peer_gives_up_one_of_its_calls_over_http() {
    let (server, mut given) = giving(Session::default());
    let served = Served::start(&server).await;
    let id = served.open(ADA).await;
    let _streams = (
        served.begin(ADA, &id, &request(100, "stay")).await,
        served.begin(ADA, &id, &request(101, "stay")).await,
    );
    let (other, one) = (stays(&mut given).await, stays(&mut given).await);
    served.post(ADA, Some(&id), &taken_back(101)).await;
    is_given_up(&one).await;
    assert!(!other.is_cancelled());
    served.post(ADA, Some(&id), &taken_back(100)).await;
    is_given_up(&other).await;
}

// A stateless request is cancelled when its client disconnects, before its first event.
#[tokio::test]
async fn a_client_that_disconnects_cancels_its_stateless_request() {
    let (server, mut given) = giving(Session::default());
    let served = Served::start(&server).await;
    let call = stateless_request("stay").to_string();
    let mut asking = Box::pin(served.ask("POST", ADA, STATELESS, &call));
    let cx = tokio::select! {
        cx = stays(&mut given) => cx,
        answer = &mut asking => panic!("{answer}"),
    };
    drop(asking);
    is_given_up(&cx).await;
}

// The same after the first event.
#[tokio::test]
async fn a_client_that_leaves_an_event_stream_cancels_its_stateless_request() {
    let (server, mut given) = giving(Session::default());
    let served = Served::start(&server).await;
    let mut call = stateless_request("stay");
    call["params"]["_meta"]["progressToken"] = json!("p");
    let calling = async {
        let cx = stays(&mut given).await;
        cx.progress(1, None, "a step");
        cx
    };
    let (mut stream, cx) = tokio::join!(served.begin_stateless(ADA, STATELESS, &call), calling);
    assert_eq!(next(&mut stream).await["method"], "notifications/progress");
    drop(stream);
    is_given_up(&cx).await;
}

// Its calls end with a session, and not only once rmcp has waited for them; those of others go on.
#[tokio::test]
async fn who_ends_a_session_gives_up_its_calls() {
    let (server, mut given) = giving(Session::default());
    let served = Served::start(&server).await;
    let (id, other) = (served.open(ADA).await, served.open(ADA).await);
    let _one = served.begin(ADA, &id, &request(100, "stay")).await;
    let one = stays(&mut given).await;
    let _two = served.begin(ADA, &other, &request(100, "stay")).await;
    let two = stays(&mut given).await;
    served.ask("DELETE", ADA, &format!("Mcp-Session-Id: {id}\r\n"), "").await;
    assert!(one.session().cancel_token().is_cancelled());
    is_given_up(&one).await;
    assert!(!two.is_cancelled() && !two.session().cancel_token().is_cancelled());
}

// What a call was made of is used again for the next one; what ends that has nothing to say to
// whoever kept something of the first.
#[tokio::test]
async fn a_call_that_has_ended_is_not_given_up_with_the_next_one() {
    let (server, mut given) = giving(Session::default());
    let mut peer = Peer::legacy(&server, json!({})).await;
    peer.call("leave", json!({})).await;
    let before = given.recv().await.unwrap();
    peer.send_line(&request(100, "stay").to_string()).await;
    let cx = stays(&mut given).await;
    peer.call("leave", json!({})).await;
    let after = given.recv().await.unwrap();
    peer.send_line(&taken_back(100).to_string()).await;
    is_given_up(&cx).await;
    assert!(!before.is_cancelled() && !after.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_hangs_up_gives_up_its_calls() {
    let (server, mut given) = giving(Session::default());
    let mut peer = Peer::legacy(&server, json!({})).await;
    peer.request("ping", json!({})).await;
    peer.send_line(&request(100, "stay").to_string()).await;
    let cx = stays(&mut given).await;
    peer.hang_up().await;
    is_given_up(&cx).await;
}

#[tokio::test]
async fn the_host_gives_up_what_it_serves() {
    let host = CancellationToken::new();
    let session = Session::new("host").with_cancel(host.clone());
    let mut calls = Vec::new();
    let (server, mut given) = giving(session);
    let mut peer = Peer::legacy(&server, json!({})).await;
    peer.request("ping", json!({})).await;
    let id = peer.send("tools/call", call("stay")).await;
    let cx = stays(&mut given).await;
    let served = Served::start(&server).await;
    let open = served.open(ADA).await;
    let stream = served.begin(ADA, &open, &request(100, "stay")).await;
    let over_http = stays(&mut given).await;
    calls.push((peer, id, served, stream, [cx, over_http]));
    host.cancel();
    for (mut peer, id, _served, mut stream, contexts) in calls {
        for cx in &contexts {
            is_given_up(cx).await;
        }
        for answer in [peer.receive_response(id).await, next(&mut stream).await] {
            assert_eq!(text(&answer["result"]), "the call was cancelled");
        }
    }
}
