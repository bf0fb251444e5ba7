//! F10: what servers do that should not be done.

use super::*;
use crate::error::ErrorKind;

/// What becomes of a call when the server does this about it.
async fn called(act: impl Fn(&Value) -> Vec<Act> + Send + Sync + 'static) -> (ErrorKind, String) {
    let setting = Setting::trusting(calls(act));
    setting.connect().await;
    let error = setting.call("echo", "{}").await.result.unwrap_err();
    assert_eq!(setting.script.heard("tools/call").len(), 1, "nothing is sent twice");
    (error.kind(), error.to_string())
}

#[tokio::test]
async fn a_server_that_goes_away_fails_its_calls() {
    let half = br#"{"jsonrpc":"2.0","id":1,"res"#.to_vec();
    for act in [vec![Act::Leave], vec![Act::Write(half), Act::Leave]] {
        let (kind, words) = called(move |_| act.clone()).await;
        assert_eq!(kind, ErrorKind::Unavailable, "{words}");
        assert!(words.starts_with("[CONNECTION] server `s`, tool `echo`"), "{words}");
    }
}

#[tokio::test]
async fn a_message_without_end_ends_the_connection() {
    let (kind, words) = called(|_| vec![Act::Write(vec![b'x'; 5 << 20])]).await;
    assert_eq!(kind, ErrorKind::Failed);
    assert!(words.contains("more than 4194304 bytes"), "{words}");
}

#[tokio::test]
async fn a_refusal_is_no_answer() {
    let (kind, words) = called(|_| vec![Act::Refuse(-32603, "out of paper")]).await;
    assert_eq!(kind, ErrorKind::Failed);
    assert!(words.contains("[PROTOCOL]") && words.contains("out of paper"), "{words}");
    let asks = json!({ "resultType": "input_required", "inputRequests": { "a": {
        "method": "elicitation/create",
        "params": { "message": "Your password?", "requestedSchema": { "type": "object" } },
    } } });
    let (kind, words) = called(move |_| vec![Act::Answer(asks.clone())]).await;
    assert_eq!(kind, ErrorKind::Failed, "{words}");
    let (kind, _) = called(|_| vec![Act::Answer(json!({ "tools": [] }))]).await;
    assert_eq!(kind, ErrorKind::Failed);
}

// F126: what a server says of its troubles is read by people and models.
#[cfg(unix)]
#[tokio::test]
async fn what_a_server_complains_of_holds_no_secret_and_hides_nothing() {
    let words = r"printf 'no \033[2Jluck with %s\n' $API_KEY >&2; exit 3";
    let launch = Launch::new("sh", ["-c", words]).env("API_KEY", "hunter2hunter2");
    let setting = Setting::trusting(echo);
    setting.upstreams.add(Upstream::new("broken", launch).unwrap()).unwrap();
    let error = setting.upstreams.connect("broken").await.unwrap_err();
    let status = setting.upstreams.status("broken").unwrap();
    let told = [&*error.message, status.last_error.as_ref().unwrap(), status.stderr.trim_end()];
    for told in told {
        assert!(told.ends_with("no \\x1b[2Jluck with [redacted]"), "{told}");
    }
}

// MC9
#[tokio::test]
async fn only_what_was_asked_for_is_answered_and_once() {
    let forged = |id: Value, text| {
        let content = json!({ "content": [{ "type": "text", "text": text }] });
        Act::Say(json!({ "id": id, "result": content }))
    };
    let setting = Setting::trusting(calls(move |_| {
        let mut acts: Vec<Act> = (0..8).map(|id| forged(id.into(), "forged")).collect();
        acts.push(forged("ID".into(), "true"));
        acts.push(forged("ID".into(), "again"));
        acts
    }));
    setting.connect().await;
    assert_eq!(setting.call("echo", "{}").await.text(), "true");
    assert_eq!(setting.call("echo", "{}").await.text(), "true");
    let ids = setting.script.heard("tools/call");
    assert!(ids.iter().all(|message| message["id"].as_i64().unwrap() > 1000), "{ids:?}");
}

#[tokio::test]
async fn noise_and_floods_are_endured() {
    let noise = b"not json\n\xff\xfe\n{\"jsonrpc\":\"2.0\"}\n[]\n".to_vec();
    let flood = Act::Say(json!({ "method": "notifications/tools/list_changed" }));
    let setting = Setting::trusting(calls(move |message| {
        let mut acts = vec![Act::Write(noise.clone())];
        acts.extend(std::iter::repeat_n(flood.clone(), 2000));
        acts.extend(echo(message));
        acts
    }));
    setting.connect().await;
    assert_eq!(setting.call("echo", r#"{"text": "still"}"#).await.text(), "still");
    let lists = setting.script.heard("tools/list").len();
    assert!(lists < 10, "{lists} lists were asked for");
}

// MC5: a few times, and then it is left alone.
#[tokio::test(start_paused = true)]
async fn a_server_that_never_starts_is_left_alone() {
    let setting = Setting::trusting(|_| vec![Act::Leave]);
    for _ in 0..5 {
        assert!(setting.upstreams.connect("s").await.is_err());
    }
    let begun = setting.script.begun();
    let error = setting.upstreams.connect("s").await.unwrap_err();
    assert!(error.message.contains("left alone"), "{error}");
    assert_eq!(setting.script.begun(), begun);
    tokio::time::advance(Duration::from_secs(301)).await;
    let error = setting.upstreams.connect("s").await.unwrap_err();
    assert!(!error.message.contains("left alone"), "{error}");
    assert!(setting.upstreams.status("s").unwrap().last_error.is_some());
}

#[tokio::test]
async fn a_lost_connection_is_made_again() {
    let setting =
        Setting::trusting(calls(|message| match message["params"]["arguments"]["text"].as_str() {
            Some("die") => vec![Act::Leave],
            _ => echo(message),
        }));
    setting.connect().await;
    assert!(setting.call("echo", r#"{"text": "die"}"#).await.result.is_err());
    assert_eq!(setting.call("echo", r#"{"text": "back"}"#).await.text(), "back");
    assert_eq!(setting.script.begun(), 2);
}

#[tokio::test]
async fn one_that_hangs_at_its_start_is_given_up() {
    let setting = Setting::trusting(|_| vec![Act::Write(Vec::new())]);
    setting.upstreams.remove("s");
    let slow = setting.upstream("slow").startup_timeout(Duration::from_millis(20));
    setting.upstreams.add(slow).unwrap();
    let failed = setting.upstreams.connect_all().await;
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].1.class, super::super::ErrorClass::Timeout);
}
