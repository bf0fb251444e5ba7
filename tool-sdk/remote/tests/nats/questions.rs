//! What a running tool of a worker asks: the channels of the host answer, and nothing else does.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Map, Value, json};
use tool_sdk_core::{
    Action, ApprovalResponse, Call, CallUpdate, ElicitationOutcome, ErrorKind, EventKind, Rule,
    ScriptedAnswers, ScriptedApprover, Session, approval_channel,
};

use crate::fixtures::{
    LocalWorker, NatsServer, TestHost, worker_config, worker_pipeline, workers_config,
};

fn accept_name(name: &str) -> ElicitationOutcome {
    ElicitationOutcome::Accepted(Map::from_iter([("name".to_owned(), name.into())]))
}

fn reach(url: &str) -> Call<'static> {
    Call::new("remote__demo__reach", json!({ "url": url }).to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_user_of_the_host_fills_in_forms() {
    let Some(server) = NatsServer::start().await else { return };
    let _worker = LocalWorker::start(&server).await;
    let host = TestHost::start(&server).await;
    host.wait_for_workers(1).await;
    let script = [accept_name("ada"), ElicitationOutcome::Declined, accept_name("eve")];
    let script = Arc::new(ScriptedAnswers::new(script));
    let session =
        Session::new("host").with_user("ada").with_inquiry_handler(Arc::clone(&script) as _);
    for expected in ["hello ada", "hello stranger", "hello eve"] {
        let outcome = host.pipeline.call(&session, Call::new("remote__demo__greet", "{}")).await;
        assert_eq!(outcome.result.unwrap().as_text(), expected);
    }
    let shown = script.asked_forms()[0]["message"].as_str().unwrap().to_owned();
    assert!(shown.contains("A worker of `demo` asks this while its tool `greet` runs"), "{shown}");
    assert!(shown.ends_with("What is your name?"), "{shown}");
    // The script has no further answer.
    let error = host.pipeline.call(&session, Call::new("remote__demo__greet", "{}")).await;
    assert_eq!(error.result.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_without_a_user_is_unavailable() {
    let Some(server) = NatsServer::start().await else { return };
    let _worker = LocalWorker::start(&server).await;
    let host = TestHost::start(&server).await;
    host.wait_for_workers(1).await;
    let call = Call::new("remote__demo__greet", "{}");
    let error = host.pipeline.call(&host.session, call).await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("cannot show forms"), "{error}");
    let call = Call::new("remote__demo__open_page", "{}");
    let error = host.pipeline.call(&host.session, call).await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("does not forward addresses"), "{error}");
}

// RW8, RW9
#[tokio::test(flavor = "multi_thread")]
async fn the_host_decides_about_permissions_that_a_running_tool_requests() {
    let Some(server) = NatsServer::start().await else { return };
    let pipeline = worker_pipeline(["network(https://worker.example/*)"]);
    let _worker = LocalWorker::start_with(&server, worker_config(), pipeline).await;
    let rule = |action, text: &str| Rule::parse(action, text).unwrap();
    let approvals = [ApprovalResponse::Once, ApprovalResponse::Reject];
    let approver = Arc::new(ScriptedApprover::new(approvals));
    let host = TestHost::start_with_rules(
        &server,
        [
            rule(Action::Allow, "remote__demo__reach"),
            rule(Action::Ask, "remote__demo__network"),
            rule(Action::Allow, "remote__demo__network(https://allowed.example/*)"),
            rule(Action::Deny, "network(https://denied.example/*)"),
        ],
        Arc::clone(&approver) as _,
    )
    .await;
    host.wait_for_workers(1).await;
    for (url, expected, asked) in [
        ("https://allowed.example/", "reached", 0),
        // A rule of the host for its own tools also denies; one of the worker wins.
        ("https://denied.example/", "refused", 0),
        ("https://worker.example/", "refused", 0),
        ("https://other.example/", "reached", 1),
        ("https://other.example/", "refused", 2),
    ] {
        let outcome = host.pipeline.call(&host.session, reach(url)).await;
        assert_eq!(outcome.result.unwrap().as_text(), expected, "{url}");
        assert_eq!(approver.requests().len(), asked, "{url}");
    }
    let request = &approver.requests()[0];
    assert_eq!(request.permission, "remote__demo__network");
    assert_eq!(request.subjects[0].text(), "https://other.example/");
}

// RW8: without an approver at the host, what needs an approval is denied.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_allows_nothing_by_itself() {
    let Some(server) = NatsServer::start().await else { return };
    let _worker = LocalWorker::start(&server).await;
    let host = TestHost::start_with(&server, workers_config(), ["remote__demo__reach"]).await;
    host.wait_for_workers(1).await;
    let outcome = host.pipeline.call(&host.session, reach("https://other.example/")).await;
    assert_eq!(outcome.result.unwrap().as_text(), "refused");
    // A call that the tool makes itself is not asked about at the host.
    let host = TestHost::start(&server).await;
    host.wait_for_workers(1).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines");
    let call = Call::new("remote__demo__delegate", json!({ "path": path }).to_string());
    let error = host.pipeline.call(&host.session, call).await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.message().contains("does not forward"), "{error}");
    assert!(!path.exists());
}

// RW11
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_counts_with_a_permit_for_its_question() {
    let Some(server) = NatsServer::start().await else { return };
    let _worker = LocalWorker::start(&server).await;
    let (sender, mut prompts) = approval_channel();
    let host = TestHost::start_with_rules(
        &server,
        [Rule::parse(Action::Allow, "remote__demo__reach").unwrap()],
        Arc::new(sender),
    )
    .await;
    host.wait_for_workers(1).await;
    let client = server.client().await;
    let mut answers = client.subscribe("tools.demo.v1.worker.*.answer.*").await.unwrap();
    let mut reports = client.subscribe("_INBOX.>").await.unwrap();
    client.flush().await.unwrap();
    let call_once = || async {
        let outcome = host.pipeline.call(&host.session, reach("https://other.example/")).await;
        outcome.result.unwrap().as_text().to_owned()
    };
    let (text, approval) = tokio::join!(call_once(), async {
        prompts.recv().await.unwrap().respond(ApprovalResponse::Once);
        answers.next().await.unwrap()
    });
    assert_eq!(text, "reached");
    while let Some(report) = reports.next().await {
        let is_end = String::from_utf8_lossy(&report.payload).contains("finished");
        if is_end {
            break;
        }
    }
    // The approval of the first question, for the second one: as it was, and without its permit.
    let (text, ()) = tokio::join!(call_once(), async {
        let prompt = prompts.recv().await.unwrap();
        let question = loop {
            let report = reports.next().await.unwrap();
            let report: Value = serde_json::from_slice(&report.payload).unwrap_or_default();
            if let Some(id) = report["body"]["asked"]["id"].as_str() {
                break id.to_owned();
            }
        };
        let subject = approval.subject.rsplit_once('.').unwrap().0.to_owned() + "." + &question;
        let headers = approval.headers.clone().unwrap();
        let payload = approval.payload.clone();
        client.publish_with_headers(subject.clone(), headers, payload.clone()).await.unwrap();
        client.publish(subject, payload).await.unwrap();
        client.flush().await.unwrap();
        // The forged answers are on their way; then the host's own one follows.
        while answers.next().await.unwrap().headers.is_some() {}
        prompt.respond(ApprovalResponse::RejectWith { feedback: "no".to_owned() });
    });
    assert_eq!(text, "refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_ends_with_its_call() {
    let Some(server) = NatsServer::start().await else { return };
    let worker = LocalWorker::start(&server).await;
    let (sender, mut prompts) = approval_channel();
    let host = TestHost::start_with_rules(
        &server,
        [Rule::parse(Action::Allow, "remote__demo__reach").unwrap()],
        Arc::new(sender),
    )
    .await;
    host.wait_for_workers(1).await;
    let cancel = tool_sdk_core::CancellationToken::new();
    let call = reach("https://other.example/").cancelled_by(cancel.clone());
    let calling = host.pipeline.call(&host.session, call);
    let (outcome, prompt) = tokio::join!(calling, async {
        let prompt = prompts.recv().await.unwrap();
        cancel.cancel();
        prompt
    });
    assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Aborted);
    let withdrawn = async {
        while !prompt.is_settled() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(3), withdrawn).await.unwrap();
    // The worker waits for its running calls, so it ends early only if the call does.
    tokio::time::timeout(Duration::from_secs(3), worker.stop()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_a_question_does_not_count() {
    let Some(server) = NatsServer::start().await else { return };
    let _worker = LocalWorker::start(&server).await;
    let (sender, mut prompts) = approval_channel();
    let host = TestHost::start_with_rules(
        &server,
        [Rule::parse(Action::Allow, "remote__demo__reach").unwrap()],
        Arc::new(sender),
    )
    .await;
    host.wait_for_workers(1).await;
    let call = reach("https://other.example/").timeout(Duration::from_millis(400));
    let (outcome, ()) = tokio::join!(host.pipeline.call(&host.session, call), async {
        let prompt = prompts.recv().await.unwrap();
        // Longer than the permit, its grace and the silence of a lost worker.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        prompt.respond(ApprovalResponse::Once);
    });
    assert_eq!(outcome.result.unwrap().as_text(), "reached");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_questions_of_a_call_are_limited() {
    let Some(server) = NatsServer::start().await else { return };
    let _worker = LocalWorker::start(&server).await;
    let host = TestHost::start(&server).await;
    host.wait_for_workers(1).await;
    let script = Arc::new(ScriptedAnswers::new((0..20).map(|_| accept_name("ada"))));
    let session = Session::new("host").with_inquiry_handler(Arc::clone(&script) as _);
    let call = Call::new("remote__demo__greet", r#"{"times": 17}"#);
    let mut updates = host.pipeline.call_with_events(session, call);
    let mut greeted = 0;
    while let Some(update) = updates.next().await {
        match update {
            CallUpdate::Event(event) => {
                greeted += usize::from(matches!(event.kind, EventKind::Progress { .. }));
            }
            CallUpdate::Finished(outcome) => {
                let error = outcome.result.unwrap_err();
                assert!(error.message().contains("may ask its host 16 times"), "{error}");
            }
        }
    }
    assert_eq!((greeted, script.asked_forms().len()), (16, 16));
}
