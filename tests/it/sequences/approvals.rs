//! Approvals: once, session, always, rejected, expired, and an approver that panics.

use tool_sdk::GrantStore;

use super::*;

fn patterns(list: &[&str]) -> Vec<String> {
    list.iter().map(|&text| text.to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn records_approvals() {
    let recorder = Recorder::default();
    let scenario = |name: &str, replies: Vec<Option<ApprovalResponse>>| {
        Scenario::new(&recorder, name, |pipeline| {
            pipeline.approver(ScriptedApprover::new(&recorder, replies))
        })
    };
    let write = r#"{"name": "a", "token": "t"}"#;

    let once = scenario("once", vec![Some(ApprovalResponse::Once), Some(ApprovalResponse::Once)]);
    once.call_as("c1", "write_note", write).await;
    once.call_as("c2", "write_note", write).await;
    let session =
        scenario("session", vec![Some(ApprovalResponse::Session { patterns: patterns(&["a"]) })]);
    session.call_as("c1", "write_note", write).await;
    session.call_as("c2", "write_note", write).await;
    let elsewhere = scenario(
        "patterns that do not cover",
        vec![Some(ApprovalResponse::Session { patterns: patterns(&["b"]) })],
    );
    elsewhere.call("write_note", write).await;
    let always = scenario(
        "always, without a store",
        vec![Some(ApprovalResponse::Always { patterns: patterns(&["a"]) })],
    );
    always.call_as("c1", "write_note", write).await;
    always.call_as("c2", "write_note", write).await;
    let empty = scenario(
        "session without patterns",
        vec![Some(ApprovalResponse::Session { patterns: vec![] })],
    );
    empty.call("write_note", write).await;
    let rejected = scenario("rejected", vec![Some(ApprovalResponse::Reject)]);
    rejected.call_as("c1", "write_note", write).await;
    rejected.call_as("c2", "write_note", write).await;
    let feedback = ApprovalResponse::RejectWith { feedback: "use another name".into() };
    scenario("rejected with feedback", vec![Some(feedback)]).call("write_note", write).await;
    scenario("expired", vec![]).call("write_note", write).await;
    scenario("the approver panics", vec![None]).call("write_note", write).await;
    scenario("asked while it runs", vec![Some(ApprovalResponse::Once)])
        .call("nested", r#"{"name": "a"}"#)
        .await;
    scenario("rejected while it runs", vec![Some(ApprovalResponse::Reject)])
        .call("nested", r#"{"name": "a"}"#)
        .await;
    scenario("a dynamic tool", vec![Some(ApprovalResponse::Once)])
        .call("dynamic_write", r#"{"path": "p"}"#)
        .await;
    assert_recorded("approvals", &recorder);
}

#[tokio::test]
async fn records_stored_approvals() {
    let recorder = Recorder::default();
    let folder = tempfile::tempdir().unwrap();
    let workspace = tempfile::tempdir().unwrap();
    for name in ["always, with a store", "granted by an earlier process"] {
        let store = GrantStore::open(folder.path(), workspace.path());
        let stored = Scenario::new(&recorder, name, |pipeline| {
            let reply = ApprovalResponse::Always { patterns: patterns(&["a"]) };
            pipeline.approver(ScriptedApprover::new(&recorder, [Some(reply)])).grant_store(store)
        });
        stored.call("write_note", r#"{"name": "a", "token": "t"}"#).await;
    }
    assert_recorded("stored_approvals", &recorder);
}

#[tokio::test(start_paused = true)]
async fn records_replies_to_pending_requests() {
    let recorder = Recorder::default();
    let scenario = Scenario::new(&recorder, "answered through the pipeline", |pipeline| {
        pipeline.approver(ScriptedApprover::new(&recorder, []))
    });
    let call = scenario.call("write_note", r#"{"name": "a"}"#);
    let reply = async {
        while scenario.pipeline.pending_approvals().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let ask = scenario.pipeline.pending_approvals().remove(0);
        let wrong = scenario.pipeline.respond(&ask.id, "another", ApprovalResponse::Once).await;
        let error = wrong.unwrap_err().to_string();
        recorder.note(format!("reply    {}", error.replace(ask.id.as_str(), "ask-1")));
        scenario.pipeline.respond(&ask.id, &ask.fingerprint, ApprovalResponse::Once).await.unwrap();
    };
    tokio::join!(call, reply);

    let covered = Scenario::new(&recorder, "a new rule decides a pending request", |pipeline| {
        pipeline.approver(ScriptedApprover::new(&recorder, []))
    });
    let call = covered.call("write_note", r#"{"name": "a"}"#);
    let rule = async {
        while covered.pipeline.pending_approvals().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        covered.pipeline.set_rules(rules(&["allow write_note"]).into_iter().collect());
    };
    tokio::join!(call, rule);
    assert_recorded("replies", &recorder);
}
