//! Hooks that rewrite, deny, ask, halt, fail, panic and hang, before and after the call.

use super::*;

fn with_hook(recorder: &Recorder, name: &str, hook: ScriptedHook) -> Scenario {
    Scenario::new(recorder, name, |pipeline| {
        pipeline.rules(rules(&["allow write_note"])).hook("*", HookPriority::SECURITY, hook)
    })
}

#[tokio::test(start_paused = true)]
async fn records_before_hooks() {
    let recorder = Recorder::default();
    let hook = || ScriptedHook::new("scripted", &recorder);
    let cases: Vec<(&str, ScriptedHook)> = vec![
        ("no opinion", hook()),
        (
            "context",
            hook().before(Before::Opine(|| HookDecision::none().with_context("mind the gap"))),
        ),
        (
            "a later opinion",
            hook().before(Before::OpineLater(|| HookDecision::none().with_context("late"))),
        ),
        ("deny", hook().before(Before::Opine(|| HookDecision::deny("not today")))),
        ("deny later", hook().before(Before::OpineLater(|| HookDecision::deny("not today")))),
        ("ask", hook().before(Before::Opine(|| HookDecision::ask("look at it")))),
        ("halt", hook().before(Before::Opine(|| HookDecision::halt("stop here")))),
        (
            "rewrite",
            hook().before(Before::Opine(|| HookDecision::none().rewrite(&json!({ "name": "b" })))),
        ),
        (
            "rewrite to invalid arguments",
            hook().before(Before::Opine(|| HookDecision::none().rewrite(&json!({ "nam": "b" })))),
        ),
        ("fail", hook().before(Before::Fail)),
        ("fail, ignored", hook().before(Before::Fail).ignoring_errors()),
        ("panic", hook().before(Before::Panic)),
        ("panic, ignored", hook().before(Before::Panic).ignoring_errors()),
        ("time out", hook().before(Before::Hang)),
        ("time out, ignored", hook().before(Before::Hang).ignoring_errors()),
    ];
    for (name, hook) in cases {
        let scenario = with_hook(&recorder, &format!("before: {name}"), hook);
        scenario.call("write_note", r#"{"name": "a", "token": "t"}"#).await;
    }
    let failing = hook().before(Before::Fail);
    let checked = with_hook(&recorder, "check: a hook that fails is not recorded", failing);
    let call = Call::new("write_note", r#"{"name": "a"}"#).id("c1");
    let error = checked.pipeline.check(&checked.session, call).await.unwrap_err();
    recorder.note(format!("checked  {error}"));
    let trusted = hook().before(Before::Opine(|| HookDecision::allow("fine"))).allowed_to_allow();
    let scenario = Scenario::new(&recorder, "before: a trusted hook allows", |pipeline| {
        pipeline.hook("dynamic_*", HookPriority::SECURITY, trusted)
    });
    scenario.call("dynamic_write", r#"{"path": "p"}"#).await;
    let untrusted = hook().before(Before::Opine(|| HookDecision::allow("fine")));
    let scenario = Scenario::new(&recorder, "before: an untrusted hook allows", |pipeline| {
        pipeline.hook("dynamic_*", HookPriority::SECURITY, untrusted)
    });
    scenario.call("dynamic_write", r#"{"path": "p"}"#).await;
    let scenario = Scenario::new(&recorder, "before: two hooks in order", |pipeline| {
        let first = ScriptedHook::new("first", &recorder)
            .before(Before::Opine(|| HookDecision::none().rewrite(&json!({ "name": "c" }))));
        let second = ScriptedHook::new("second", &recorder)
            .before(Before::Opine(|| HookDecision::ask("second asks")));
        pipeline
            .rules(rules(&["allow write_note"]))
            .hook("*", HookPriority::DEFAULT, second)
            .hook("*", HookPriority::SECURITY, first)
            .approver(ScriptedApprover::new(&recorder, [Some(ApprovalResponse::Once)]))
    });
    scenario.call("write_note", r#"{"name": "a"}"#).await;
    assert_recorded("before_hooks", &recorder);
}

#[tokio::test(start_paused = true)]
async fn records_after_hooks() {
    let recorder = Recorder::default();
    let hook = || ScriptedHook::new("scripted", &recorder);
    let cases: Vec<(&str, ScriptedHook)> = vec![
        ("replace", hook().after(After::Replace("replaced"))),
        ("halt", hook().after(After::Halt("enough"))),
        ("fail", hook().after(After::Fail)),
        ("fail, ignored", hook().after(After::Fail).ignoring_errors()),
        ("panic", hook().after(After::Panic)),
        ("panic, ignored", hook().after(After::Panic).ignoring_errors()),
        ("time out", hook().after(After::Hang)),
        ("time out, ignored", hook().after(After::Hang).ignoring_errors()),
    ];
    for (name, hook) in cases {
        let scenario = with_hook(&recorder, &format!("after: {name}"), hook);
        scenario.call("write_note", r#"{"name": "a", "token": "t"}"#).await;
    }
    let scenario =
        with_hook(&recorder, "after: a failed call", hook().after(After::Replace("rescued")));
    scenario.call("fail", "{}").await;
    let scenario = with_hook(&recorder, "after: a denied call", hook().after(After::Replace("no")));
    scenario.call("dynamic_write", r#"{"path": "p"}"#).await;
    assert_recorded("after_hooks", &recorder);
}
