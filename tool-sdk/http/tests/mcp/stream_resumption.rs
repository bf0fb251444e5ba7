//! Lost event streams over HTTP, and their resumption.

use std::time::{Duration, Instant};

use tokio::io::{BufReader, Lines};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::http::{ADA, Served, next, status};
use super::request_limits::gate;
use super::*;

const LIMIT: Duration = Duration::from_secs(60);

fn call(id: u64, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// The name of the next event of a stream.
async fn name(lines: &mut Lines<BufReader<TcpStream>>) -> String {
    loop {
        let line = lines.next_line().await.unwrap().expect("the stream is still there");
        if let Some(name) = line.strip_prefix("id: ") {
            return name.to_owned();
        }
    }
}

/// What comes after an event of a session, until the stream ends.
async fn rest(served: &Served, session: &str, last: &str) -> String {
    let named = format!("Mcp-Session-Id: {session}\r\nLast-Event-ID: {last}\r\n");
    let rest = served.ask("GET", ADA, &named, "");
    tokio::time::timeout(LIMIT, rest).await.expect("the stream comes to an end")
}

/// A call of the one tool that waits, of which the answer is lost, and the name of its first event.
async fn lost(served: &Served, session: &str, call: &Value) -> String {
    let mut lines = served.begin(ADA, session, call).await;
    name(&mut lines).await
}

// The call did its work, and whoever made it learns of it, as long as it says which call.
#[tokio::test]
async fn an_answer_that_was_lost_is_there_after_its_call() {
    let (server, gate, _) = gate();
    let served = Served::start(&server).await;
    let id = served.open(ADA).await;
    let listened = json!({ "name": "wait", "_meta": { "progressToken": "t" } });
    for (call_id, params) in [(1, json!({ "name": "wait" })), (2, listened)] {
        let first = lost(&served, &id, &call(call_id, &params)).await;
        gate.add_permits(1);
        // At first it may still run, and then it has ended.
        for time in ["soon", "late", "later"] {
            let answer = rest(&served, &id, &first).await;
            assert_eq!(status(&answer), "200", "{time}: {answer}");
            assert_eq!(answer.matches("it went on").count(), 1, "{time}: {answer}");
            assert!(answer.contains(&format!(r#""id":{call_id}"#)), "{time}: {answer}");
            assert!(!answer.contains(&format!("id: {first}\n")), "{time}: {answer}");
        }
        let last = first.replacen('0', "1", 1);
        let answer = rest(&served, &id, &last).await;
        assert_eq!(status(&answer), "200", "{answer}");
        assert!(!answer.contains("it went on"), "it has arrived: {answer}");
    }
}

#[tokio::test]
async fn the_latest_reader_gets_the_answer() {
    let (server, gate, _) = gate();
    let served = Served::start(&server).await;
    let id = served.open(ADA).await;
    let mut lines = served.begin(ADA, &id, &call(1, &json!({ "name": "wait" }))).await;
    let first = name(&mut lines).await;
    let (status, mut again) = served.take_up(&id, &first).await;
    assert_eq!(status, "200");
    // The first stream is over: a piece without bytes is the last of an answer.
    while lines.next_line().await.unwrap().unwrap() != "0" {}
    gate.add_permits(1);
    let answer = next(&mut again).await;
    assert_eq!(text(&answer["result"]), "it went on");
}

// What was said before is not said again, and nothing that was said meanwhile is missing.
#[tokio::test]
async fn steps_that_were_lost_are_told_in_their_order() {
    let gate = Arc::new(Semaphore::new(0));
    let wait = Arc::clone(&gate);
    let tool =
        DynamicTool::new(definition("steps", RiskClass::Read), move |_: Value, cx: Context| {
            let wait = Arc::clone(&wait);
            async move {
                for step in 1..=30 {
                    wait.acquire().await.unwrap().forget();
                    cx.progress(step, Some(30), format!("step {step}"));
                }
                "done"
            }
        });
    let registry = Registry::builder().add(tool).build().unwrap();
    let served = Served::start(&Server::new(Pipeline::new(registry), Session::default())).await;
    let id = served.open(ADA).await;
    let params = json!({ "name": "steps", "_meta": { "progressToken": "t" } });
    let mut lines = served.begin(ADA, &id, &call(1, &params)).await;
    gate.add_permits(2);
    for step in [1, 2] {
        assert_eq!(next(&mut lines).await["params"]["message"], format!("step {step}"));
    }
    let second = name(&mut lines).await;
    drop(lines);
    gate.add_permits(28);
    let answer = rest(&served, &id, &second).await;
    let steps: Vec<_> =
        (1..=30).filter(|step| answer.contains(&format!(r#""message":"step {step}""#))).collect();
    assert_eq!(steps, (3..=30).collect::<Vec<_>>(), "{answer}");
    assert!(answer.contains("done"), "{answer}");
}

// An unknown event id is not answered by a stream without events.
#[tokio::test]
async fn an_event_that_never_was_is_refused() {
    let (server, gate, _) = gate();
    let served = Served::start(&server).await;
    let (id, other) = (served.open(ADA).await, served.open(ADA).await);
    let first = lost(&served, &id, &call(1, &json!({ "name": "wait" }))).await;
    gate.add_permits(1);
    assert_eq!(status(&rest(&served, &id, &first).await), "200");
    for wrong in ["9/9", "0/99999", "99999/0", "x", "", "0/0/0", "0/0\r\nLast-Event-ID: 0/0"] {
        let answer = rest(&served, &id, wrong).await;
        assert_eq!(status(&answer), "400", "{wrong:?}: {answer}");
    }
    // MS3: what belongs to one session is not there in another.
    assert_eq!(status(&rest(&served, &other, &first).await), "400");
    assert_eq!(status(&rest(&served, "nobody's", &first).await), "404");
    // No event is named with which nothing could be resumed.
    let hello = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "by-hand", "version": "1" },
        },
    });
    let opened = served.post(ADA, None, &hello).await;
    assert!(opened.contains("content-type: application/json"), "{opened}");
}

/// Tools that come one by one.
fn late(n: usize) -> DynamicTool {
    let name = ["late", "later", "latest"][n];
    DynamicTool::new(definition(name, RiskClass::Read), |_: Value, _: Context| async { "late" })
}

// What a session is told beside its answers is taken up as well, and not told twice.
#[tokio::test]
async fn what_belongs_to_no_request_is_taken_up_behind_its_last_event() {
    const CHANGED: &str = "notifications/tools/list_changed";
    let pipeline = pipeline();
    let served = Served::start(&Server::new(pipeline.clone(), Session::default())).await;
    let id = served.open(ADA).await;
    let mut lines = served.listen(ADA, &id).await;
    let mut names = Vec::new();
    for n in [0, 1] {
        pipeline.toolset().add(late(n)).unwrap();
        assert_eq!(next(&mut lines).await["method"], CHANGED);
        names.push(name(&mut lines).await);
    }
    drop(lines);
    // Until the server has seen that nobody listens, another one hears nothing.
    let begun = Instant::now();
    while served.take_up(&id, "99").await.0 != "400" {
        assert!(begun.elapsed() < LIMIT);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let (status, mut lines) = served.take_up(&id, &names[0]).await;
    assert_eq!(status, "200");
    assert_eq!(name(&mut lines).await, names[1]);
    pipeline.toolset().add(late(2)).unwrap();
    assert_eq!(next(&mut lines).await["method"], CHANGED);
    assert!(!names.contains(&name(&mut lines).await));
}

// A session that waits for an answer is in use, however many others their owner opens.
#[tokio::test]
async fn a_call_that_runs_makes_room_for_no_other_session() {
    const ROOM: usize = 256;
    let (server, gate, _) = gate();
    let served = Served::start(&server).await;
    let id = served.open(ADA).await;
    let mut lines = served.begin(ADA, &id, &call(1, &json!({ "name": "wait" }))).await;
    let first = name(&mut lines).await;
    for _ in 0..=ROOM {
        served.open(ADA).await;
    }
    gate.add_permits(1);
    let answer = tokio::time::timeout(LIMIT, next(&mut lines)).await.expect("there is an answer");
    assert_eq!(text(&answer["result"]), "it went on", "{first}");
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    assert_eq!(status(&served.post(ADA, Some(&id), &ping).await), "200");
}

// SEP-1699
#[tokio::test]
async fn a_long_call_is_polled() {
    let (server, gate, _) = gate();
    let served = Served::start(&server.with_stream_polling(Duration::from_millis(20))).await;
    let id = served.open(ADA).await;
    let mut lines = served.begin(ADA, &id, &call(1, &json!({ "name": "wait" }))).await;
    let first = name(&mut lines).await;
    // The server closes the response although the call runs: the last chunk is empty.
    while lines.next_line().await.unwrap().unwrap() != "0" {}
    gate.add_permits(1);
    let answer = rest(&served, &id, &first).await;
    assert_eq!(answer.matches("it went on").count(), 1, "{answer}");
}
