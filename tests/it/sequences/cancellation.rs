//! Cancellation and dropped calls, at each stage.

use tokio_util::sync::CancellationToken;

use super::*;

async fn cancelled_after(scenario: &Scenario, millis: u64, tool: &str, arguments: &str) {
    let token = CancellationToken::new();
    let call = Call::new(tool, arguments).id("c1").cancelled_by(token.clone());
    let cancel = async {
        if millis > 0 {
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
        token.cancel();
    };
    if millis == 0 {
        cancel.await;
        scenario.recorder.outcome(&scenario.pipeline.call(&scenario.session, call).await);
    } else {
        let (outcome, ()) = tokio::join!(scenario.pipeline.call(&scenario.session, call), cancel);
        scenario.recorder.outcome(&outcome);
    }
}

async fn dropped_after(scenario: &Scenario, millis: u64, tool: &str, arguments: &str) {
    let call = Call::new(tool, arguments).id("c1");
    let limit = Duration::from_millis(millis);
    let call = scenario.pipeline.call(&scenario.session, call);
    assert!(tokio::time::timeout(limit, call).await.is_err());
    scenario.recorder.note("dropped");
}

#[tokio::test(start_paused = true)]
async fn records_cancelled_calls() {
    let recorder = Recorder::default();
    let hook = || ScriptedHook::new("scripted", &recorder);
    let write = r#"{"name": "a"}"#;
    let plain = |name: &str| Scenario::new(&recorder, name, |pipeline| pipeline);
    let hooked = |name: &str, hook: ScriptedHook| {
        Scenario::new(&recorder, name, |pipeline| {
            pipeline.rules(rules(&["allow *"])).hook("*", HookPriority::SECURITY, hook)
        })
    };
    let asked = |name: &str| {
        Scenario::new(&recorder, name, |pipeline| {
            pipeline.approver(ScriptedApprover::new(&recorder, []))
        })
    };
    let before = |name: &str| hooked(name, hook().before(Before::Hang));
    let after = |name: &str| hooked(name, hook().after(After::Hang));

    cancelled_after(&plain("cancelled before it begins"), 0, "read_note", write).await;
    cancelled_after(&plain("cancelled with invalid arguments"), 0, "read_note", "{}").await;
    cancelled_after(&before("cancelled in a before-hook"), 10, "write_note", write).await;
    cancelled_after(&asked("cancelled while asked"), 10, "write_note", write).await;
    cancelled_after(&plain("cancelled while it runs"), 10, "wait_for", r#"{"seconds": 1}"#).await;
    cancelled_after(&after("cancelled in an after-hook"), 10, "write_note", write).await;

    dropped_after(&before("dropped in a before-hook"), 10, "write_note", write).await;
    dropped_after(&asked("dropped while asked"), 10, "write_note", write).await;
    dropped_after(&plain("dropped while it runs"), 10, "wait_for", r#"{"seconds": 1}"#).await;
    dropped_after(&after("dropped in an after-hook"), 10, "write_note", write).await;

    let closing = plain("the pipeline closes while a call runs");
    let call = closing.call("wait_for", r#"{"seconds": 1}"#);
    let close = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        closing.pipeline.close().await;
    };
    tokio::join!(call, close);
    assert_recorded("cancellation", &recorder);
}
