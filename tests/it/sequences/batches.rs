//! Batches: order, rejection of the rest, halts, and calls that wait for each other.

use tool_sdk::Batch;

use super::*;

async fn run(scenario: &Scenario, calls: &[(&str, &str, &str)]) {
    let calls =
        calls.iter().map(|(id, tool, arguments)| Call::new(*tool, *arguments).id(id).message("m1"));
    let outcomes = Batch::new(&scenario.pipeline).run(&scenario.session, calls).await;
    outcomes.iter().for_each(|outcome| scenario.recorder.outcome(outcome));
}

const MIXED: [(&str, &str, &str); 4] = [
    ("c1", "read_note", r#"{"name": "a"}"#),
    ("c2", "write_note", r#"{"name": "b"}"#),
    ("c3", "read_note", r#"{"nam": "c"}"#),
    ("c4", "dynamic_write", r#"{"path": "p"}"#),
];

#[tokio::test(start_paused = true)]
async fn records_batches() {
    let recorder = Recorder::default();
    let scenario = |name: &str, replies: Vec<Option<ApprovalResponse>>| {
        Scenario::new(&recorder, name, |pipeline| {
            pipeline.approver(ScriptedApprover::new(&recorder, replies))
        })
    };
    run(
        &scenario("all approved", vec![Some(ApprovalResponse::Once), Some(ApprovalResponse::Once)]),
        &MIXED,
    )
    .await;
    run(&scenario("the first question is rejected", vec![Some(ApprovalResponse::Reject)]), &MIXED)
        .await;
    let feedback = ApprovalResponse::RejectWith { feedback: "no".into() };
    run(
        &scenario(
            "one is rejected with feedback",
            vec![Some(feedback), Some(ApprovalResponse::Once)],
        ),
        &MIXED,
    )
    .await;
    let waiting = [
        ("c1", "wait_for", r#"{"seconds": 1}"#),
        ("c2", "wait_for", r#"{"seconds": 1}"#),
        ("c3", "fail", "{}"),
    ];
    run(&scenario("shared calls run side by side", vec![]), &waiting).await;
    let halting = Scenario::new(&recorder, "an after-hook ends the turn", |pipeline| {
        let hook = ScriptedHook::new("halting", &recorder).after(After::Halt("enough"));
        pipeline.rules(rules(&["allow *"])).hook("write_note", HookPriority::DEFAULT, hook)
    });
    let two =
        [("c1", "write_note", r#"{"name": "a"}"#), ("c2", "dynamic_write", r#"{"path": "p"}"#)];
    run(&halting, &two).await;
    let denying = Scenario::new(&recorder, "a before-hook denies one of two", |pipeline| {
        let hook = ScriptedHook::new("denying", &recorder)
            .before(Before::OpineLater(|| HookDecision::deny("not today")));
        pipeline.rules(rules(&["allow *"])).hook("write_note", HookPriority::DEFAULT, hook)
    });
    run(&denying, &two).await;
    assert_recorded("batches", &recorder);
}
