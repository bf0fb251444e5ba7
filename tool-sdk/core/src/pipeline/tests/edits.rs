//! A person approves a call with other arguments.

use std::sync::Arc;

use super::*;
use crate::audit::{AuditRecord, AuditSink};
use crate::permission::{Action, ApprovalRequest, ApprovalResponse, Rule, approval_channel};
use tool_sdk::{tool, tools};

/// The audit records, as JSON.
#[derive(Clone, Default)]
struct RecordList(Arc<Mutex<Vec<Value>>>);

impl AuditSink for RecordList {
    fn record(&self, record: &AuditRecord<'_>) -> std::io::Result<()> {
        self.0.lock().unwrap().push(serde_json::to_value(record)?);
        Ok(())
    }
}

/// Speak, which is dangerous when the text is `rm`.
#[tool(write, approval(dangerous = |args| args.text == "rm"))]
fn speak(
    /// The text.
    text: String,
    /// The key.
    #[arg(sensitive)]
    key: Option<String>,
) -> String {
    format!("{text} {}", key.unwrap_or_default())
}

fn speaking() -> Pipeline {
    Pipeline::new(Registry::builder().add(tools![speak]).build().unwrap())
}

fn edited(text: &str) -> ApprovalResponse {
    ApprovalResponse::Edited { arguments: json!({ "text": text, "key": "***" }) }
}

const SENT: &str = r#"{"text": "theirs", "key": "hunter2"}"#;

/// Makes the call with these answers; returns its text and the requests.
async fn answered(
    pipeline: Pipeline,
    answers: impl IntoIterator<Item = ApprovalResponse>,
) -> (Outcome, Vec<Arc<ApprovalRequest>>) {
    let (approver, mut requests) = approval_channel();
    let pipeline = pipeline.approver(approver);
    let mut shown = Vec::new();
    let answering = async {
        for answer in answers {
            let request = requests.recv().await.unwrap();
            shown.push(Arc::clone(request.request()));
            request.respond(answer);
        }
    };
    let (outcome, ()) = tokio::join!(call(&pipeline, Call::new("speak", SENT)), answering);
    (outcome, shown)
}

#[tokio::test]
async fn the_edited_call_runs_and_the_audit_log_has_both_versions() {
    let records = RecordList::default();
    let pipeline = speaking().audit(records.clone());
    let mut events = pipeline.subscribe();
    let (outcome, shown) = answered(pipeline, [edited("mine")]).await;
    let text = outcome.text();
    assert!(text.starts_with("mine hunter2\n\nThe user edited the arguments"), "{text}");
    assert!(text.contains(r#""text":"mine""#) && !text.contains("theirs"), "{text}");
    assert_eq!(shown.len(), 1);
    let records = records.0.lock().unwrap().clone();
    assert_eq!(records.len(), 2);
    for record in &records {
        assert_eq!(record["edited"]["from"], json!({ "text": "theirs", "key": "***" }));
        assert_eq!(record["edited"]["to"], json!({ "text": "mine", "key": "***" }));
        assert_ne!(record["fingerprint"], shown[0].fingerprint);
    }
    // What was approved is shown to subscribers as well, with what the model sent.
    let events = drain(&mut events);
    let asked = events.iter().filter_map(|event| match &event.kind {
        EventKind::PermissionAsked(request) => Some(request),
        _ => None,
    });
    let asked: Vec<_> =
        asked.map(|it| (it.arguments["text"].clone(), it.original.is_some())).collect();
    assert_eq!(asked, [(json!("theirs"), false), (json!("mine"), true)]);
}

#[tokio::test]
async fn a_rule_denies_an_edited_call() {
    let rule = Rule::parse(Action::Deny, "speak(text: secret*)").unwrap();
    let (outcome, _) = answered(speaking().rules([rule]), [edited("secret")]).await;
    assert_eq!(kind(&outcome), ErrorKind::Denied);
    assert!(outcome.text().contains("speak(text: secret*)"), "{}", outcome.text());
}

// The person saw a harmless call.
#[tokio::test]
async fn an_edited_call_that_is_dangerous_is_asked_about_again() {
    let (outcome, shown) = answered(speaking(), [edited("rm"), ApprovalResponse::Reject]).await;
    assert_eq!(kind(&outcome), ErrorKind::Denied);
    assert!(!shown[0].dangerous && shown[1].dangerous);
    let (outcome, _) = answered(speaking(), [edited("rm"), ApprovalResponse::Once]).await;
    assert!(outcome.text().starts_with("rm hunter2"), "{}", outcome.text());
}

#[tokio::test]
async fn invalid_and_stale_edits_leave_the_request_open() {
    let (approver, mut requests) = approval_channel();
    let pipeline = speaking().approver(approver);
    let answering = async {
        let request = Arc::clone(requests.recv().await.unwrap().request());
        for (fingerprint, arguments) in [
            (&*request.fingerprint, json!({ "text": 5 })),
            (&*request.fingerprint, json!({ "key": "***" })),
            (&*request.fingerprint, json!("text")),
            ("0123", json!({ "text": "mine" })),
        ] {
            let answer = ApprovalResponse::Edited { arguments };
            pipeline.respond(&request.id, fingerprint, answer).await.unwrap_err();
            assert_eq!(pipeline.pending_approvals().len(), 1);
        }
        pipeline.respond(&request.id, &request.fingerprint, edited("mine")).await.unwrap();
    };
    let (outcome, ()) = tokio::join!(call(&pipeline, Call::new("speak", SENT)), answering);
    assert!(outcome.text().starts_with("mine hunter2"), "{}", outcome.text());
    // An approver whose answer is invalid has no second one.
    let invalid = ApprovalResponse::Edited { arguments: json!({ "text": 5 }) };
    let (outcome, _) = answered(speaking(), [invalid]).await;
    assert_eq!(kind(&outcome), ErrorKind::Denied);
}
