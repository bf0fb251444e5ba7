//! Ways around the gates that were found and closed.

#![expect(clippy::unwrap_used, reason = "a step that cannot be taken fails the test")]

use std::sync::Arc;

use serde_json::{Value, json};
use tool_sdk::{
    AgentProfile, ApprovalStore, Approved, Audit, AuditRecord, Batch, Call, Context, Definition,
    DynamicTool, Grant, GrantSource, Grantee, Hook, HookedCall, InvalidArgs, Lenient, LoopGuard,
    Mode, Opinion, Output, Pipeline, Prepared, Priority, RawArgs, Registry, Reply, Risk, RiskClass,
    Rule, Running, Schema, Scripted, Session, Source, Step, Subject, Tool, ToolError, ToolName,
    Toolset, ask_channel, tool, tools,
};

/// A tool whose subjects a test chooses.
struct Toy {
    d: Definition,
    subjects_of: fn(&Value) -> Option<Vec<Subject>>,
    covers: Option<fn(&str) -> bool>,
}
struct ToyCall {
    v: Value,
    subjects_of: fn(&Value) -> Option<Vec<Subject>>,
    covers: Option<fn(&str) -> bool>,
}
impl Tool for Toy {
    fn definition(&self) -> &Definition {
        &self.d
    }
    fn prepare(&self, a: &RawArgs<'_>) -> Result<Box<dyn Prepared>, InvalidArgs> {
        Ok(Box::new(ToyCall {
            v: serde_json::from_str(a.text()).unwrap_or(json!({"raw":a.text()})),
            subjects_of: self.subjects_of,
            covers: self.covers,
        }))
    }
}
impl Prepared for ToyCall {
    fn run(self: Box<Self>, _: Context, _: Approved) -> Running {
        Box::pin(async move { Ok(Output::text(format!("RAN {}", self.v))) })
    }
    fn subjects(&self, _: &Context) -> Option<Vec<Subject>> {
        (self.subjects_of)(&self.v)
    }
    fn covered_by(&self, p: &str) -> Option<bool> {
        self.covers.map(|c| c(p))
    }
}
fn definition_of(name: &'static str, class: RiskClass) -> Definition {
    let s = Schema::from_value(json!({"type":"object","properties":{"cmd":{"type":"string"}}}))
        .unwrap();
    Definition::new(ToolName::new(name).unwrap(), "Does.", s).risk(Risk::new(class))
}
fn pipeline_of(t: Toy) -> Pipeline {
    Pipeline::new(Registry::builder().add(t).build().unwrap())
}
fn rule(s: &str) -> Rule {
    s.parse().unwrap()
}
fn commands(v: &Value) -> Option<Vec<Subject>> {
    Some(
        v["cmd"]
            .as_str()
            .unwrap_or("")
            .split(" && ")
            .map(|s| if s.contains('$') { Subject::new(s).opaque() } else { Subject::new(s) })
            .collect(),
    )
}

#[tokio::test]
async fn a_denied_tool_stays_denied_under_another_permission() {
    let t = Toy {
        d: definition_of("fetch", RiskClass::Read),
        subjects_of: |_| Some(vec![Subject::new("https://x").under("network")]),
        covers: None,
    };
    let p = pipeline_of(t).rules([rule("deny fetch").locked()]);
    assert_eq!(p.toolset().view().definitions().count(), 0, "hidden");
    let o = p.call(&Session::new("s"), Call::new("fetch", r#"{"cmd":"x"}"#)).await;
    assert!(o.result.is_err(), "ran: {}", o.text());
}

#[tokio::test]
async fn one_argument_does_not_vouch_for_the_whole_call() {
    for c in ["git status && rm -rf /", "git $(rm -rf /)"] {
        let t = Toy {
            d: definition_of("run", RiskClass::Execute),
            subjects_of: commands,
            covers: None,
        };
        let p = pipeline_of(t).rules([rule("allow run(cmd: git *)")]);
        let o = p.call(&Session::new("s"), Call::new("run", json!({"cmd":c}))).await;
        assert!(o.result.is_err(), "ran: {}", o.text());
    }
}

#[tokio::test]
async fn repeats_are_found_for_tools_that_say_what_they_touch() {
    let t = Toy { d: definition_of("read", RiskClass::Read), subjects_of: commands, covers: None };
    let p = pipeline_of(t).loop_guard(LoopGuard::default());
    let s = Session::new("s");
    let mut v = vec![];
    for _ in 0..12 {
        v.push(p.call(&s, Call::new("read", r#"{"cmd":"a"}"#)).await.result.is_ok());
    }
    assert_eq!(v[..3], [true, true, false], "{v:?}");
}

#[tokio::test]
async fn a_denial_that_comes_before_the_answer_holds() {
    let (ap, mut inbox) = ask_channel();
    let t =
        Toy { d: definition_of("run", RiskClass::Execute), subjects_of: commands, covers: None };
    let p = pipeline_of(t).approver(ap);
    let h = tokio::spawn({
        let p = p.clone();
        async move { p.call(&Session::new("s"), Call::new("run", r#"{"cmd":"a"}"#)).await }
    });
    let ask = inbox.recv().await.unwrap();
    p.set_rules([rule("deny run")].into_iter().collect());
    p.reply(&ask.ask().id, Reply::Once).await.unwrap();
    let o = h.await.unwrap();
    assert!(o.result.is_err(), "ran: {}", o.text());
}

#[tokio::test]
async fn a_tool_that_was_taken_away_does_not_run_after_a_yes() {
    let (ap, mut inbox) = ask_channel();
    let t =
        Toy { d: definition_of("run", RiskClass::Execute), subjects_of: commands, covers: None };
    let p = pipeline_of(t).approver(ap);
    let h = tokio::spawn({
        let p = p.clone();
        async move { p.call(&Session::new("s"), Call::new("run", r#"{"cmd":"a"}"#)).await }
    });
    let ask = inbox.recv().await.unwrap();
    assert!(p.toolset().remove("run"));
    tokio::task::yield_now().await;
    ask.reply(Reply::Once);
    let o = h.await.unwrap();
    assert!(o.result.is_err(), "ran: {}", o.text());
}

#[tokio::test]
async fn an_answer_grants_nothing_beyond_what_was_offered() {
    fn subjects_of(v: &Value) -> Option<Vec<Subject>> {
        match v["cmd"].as_str().unwrap() {
            "both" => {
                Some(vec![Subject::new("a"), Subject::new("/out").under("external_directory")])
            }
            o => Some(vec![Subject::new(o.to_owned()).under("external_directory")]),
        }
    }
    let t = Toy { d: definition_of("run", RiskClass::Execute), subjects_of, covers: None };
    let ap = Arc::new(Scripted::new([Reply::Session { patterns: vec!["*".into()] }]));
    let p = pipeline_of(t).shared_approver(ap.clone());
    let s = Session::new("s");
    p.call(&s, Call::new("run", json!({"cmd":"both"}))).await;
    let o = p.call(&s, Call::new("run", json!({"cmd":"/etc/shadow"}))).await;
    assert!(o.result.is_err(), "ran: {}", o.text());
}

#[tokio::test]
async fn a_misspelt_rule_is_no_rule_for_everything() {
    let r =
        serde_json::from_str::<Rule>(r#"{"permission":"run","patern":"git *","action":"allow"}"#);
    assert!(r.is_err(), "{r:?}");
}

#[tokio::test]
async fn a_denied_alias_is_denied_in_any_case() {
    let mut d = definition_of("run", RiskClass::Execute);
    d.aliases = vec![ToolName::new("bash").unwrap()];
    let p = pipeline_of(Toy { d, subjects_of: commands, covers: None })
        .mode(Mode::Bypass)
        .rules([rule("deny Bash")]);
    let o = p.call(&Session::new("s"), Call::new("Bash", r#"{"cmd":"a"}"#)).await;
    assert!(o.result.is_err(), "ran: {}", o.text());
}
struct Says(fn() -> Opinion, bool);
impl Hook for Says {
    fn before<'a>(&'a self, _: &'a HookedCall<'_>) -> Step<'a, Result<Opinion, ToolError>> {
        Step::now(Ok((self.0)()))
    }
    fn may_allow(&self) -> bool {
        self.1
    }
}

#[tokio::test]
async fn what_a_hook_allowed_is_not_what_the_next_made_of_it() {
    let p = pipeline_of(Toy {
        d: definition_of("run", RiskClass::Execute),
        subjects_of: commands,
        covers: None,
    })
    .hook("*", Priority::SECURITY, Says(|| Opinion::allow("git is fine"), true))
    .hook(
        "*",
        Priority::DEFAULT,
        Says(|| Opinion::none().rewrite(&json!({"cmd":"rm -rf /"})), false),
    );
    let o = p.call(&Session::new("s"), Call::new("run", r#"{"cmd":"git status"}"#)).await;
    assert!(o.result.is_err(), "ran: {}", o.text());
}

#[tokio::test]
async fn a_clone_that_is_changed_changes_nothing_else() {
    let p = pipeline_of(Toy {
        d: definition_of("run", RiskClass::Execute),
        subjects_of: commands,
        covers: None,
    });
    let _trusted = p.clone().mode(Mode::Bypass);
    let o = p.call(&Session::new("s"), Call::new("run", r#"{"cmd":"a"}"#)).await;
    assert!(o.result.is_err(), "ran: {}", o.text());
}

#[tokio::test]
async fn a_session_does_no_more_than_its_agent_may() {
    let r = Registry::builder()
        .add(Toy {
            d: definition_of("run", RiskClass::Execute),
            subjects_of: commands,
            covers: None,
        })
        .build()
        .unwrap();
    let s = Session::new("s").with_agent("reviewer");
    let ts =
        Toolset::new(r).with_agent(AgentProfile::new("reviewer").mode(Mode::Plan)).for_session(&s);
    let p = Pipeline::new(ts);
    let o = p.call(&s.clone().with_mode(Mode::Bypass), Call::new("run", r#"{"cmd":"a"}"#)).await;
    assert!(o.result.is_err(), "ran: {}", o.text());
}

#[tokio::test]
async fn a_profile_holds_for_its_agent_in_every_toolset() {
    let r = Registry::builder()
        .add(Toy {
            d: definition_of("run", RiskClass::Execute),
            subjects_of: commands,
            covers: None,
        })
        .build()
        .unwrap();
    let ts = Toolset::new(r)
        .with_mode(Mode::Bypass)
        .with_agent(AgentProfile::new("reviewer").without(["run"]));
    let p = Pipeline::new(ts);
    let o =
        p.call(&Session::new("s").with_agent("reviewer"), Call::new("run", r#"{"cmd":"a"}"#)).await;
    assert!(o.result.is_err(), "ran: {}", o.text());
}

#[tokio::test]
async fn asks_of_different_sessions_stay_apart() {
    let p = pipeline_of(Toy {
        d: definition_of("run", RiskClass::Execute),
        subjects_of: commands,
        covers: None,
    });
    let (a, mut ia) = ask_channel();
    let bob = Arc::new(Scripted::always(Reply::Reject));
    let sa = Session::default().with_approver(a);
    let sb = Session::default().with_shared_approver(bob.clone());
    let h1 = tokio::spawn({
        let p = p.clone();
        async move { p.call(&sa, Call::new("run", r#"{"cmd":"a"}"#)).await }
    });
    let ask = ia.recv().await.unwrap();
    let h2 = tokio::spawn({
        let p = p.clone();
        async move { p.call(&sb, Call::new("run", r#"{"cmd":"a"}"#)).await }
    });
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    ask.reply(Reply::Once);
    h1.await.unwrap();
    let o = h2.await.unwrap();
    assert!(o.result.is_err(), "bob was asked {} times; ran: {}", bob.asked().len(), o.text());
}

#[tokio::test]
async fn what_could_be_read_in_two_ways_is_refused_for_every_tool() {
    let p = pipeline_of(Toy {
        d: definition_of("run", RiskClass::Read),
        subjects_of: |_| None,
        covers: None,
    })
    .rules([rule("deny run(cmd: rm *)")]);
    for text in [r#"{"cmd":"rm x","cmd":"ls"}"#, r#"{"cmd":"rm x",}"#] {
        let o = p.call(&Session::new("s"), Call::new("run", text)).await;
        assert!(o.result.is_err(), "ran: {}", o.text());
    }
}
/// Write.
#[tool(read, register = false)]
fn save(
    /// How.
    #[arg(default = "overwrite", alias("how"))]
    mode: String,
) -> String {
    format!("RAN {mode}")
}

#[tokio::test]
async fn a_rule_sees_defaults_and_aliases() {
    let p = || Pipeline::new(Registry::builder().add(tools![save]).build().unwrap());
    let a = p().rules([rule("deny save(mode: overwrite)")]);
    let args = RawArgs::new(r#"{"mode":null}"#).lenient(Lenient::default().null_is_absent());
    let o = a.call(&Session::new("s"), Call::new("save", args)).await;
    let b = p().rules([rule("deny save(how: overwrite)")]);
    let o2 = b.call(&Session::new("s"), Call::new("save", r#"{"mode":"overwrite"}"#)).await;
    assert!(o.result.is_err() && o2.result.is_err());
}
/// Rm.
#[tool(read, register = false)]
fn rm(
    /// Force.
    #[arg(default = true, hidden)]
    force: bool,
    /// Names.
    names: Option<Vec<String>>,
) -> String {
    format!("RAN {force} {names:?}")
}

#[tokio::test]
async fn a_rule_sees_hidden_defaults_and_lists_in_strings() {
    let p = || Pipeline::new(Registry::builder().add(tools![rm]).build().unwrap());
    let o = p()
        .rules([rule("deny rm(force: true)")])
        .call(&Session::new("s"), Call::new("rm", "{}"))
        .await;
    let args =
        RawArgs::new(r#"{"names":"[\"x\",\".env\"]"}"#).lenient(Lenient::default().stringified());
    let o2 = p()
        .rules([rule("deny rm(names: .env)")])
        .call(&Session::new("s"), Call::new("rm", args))
        .await;
    assert!(o.result.is_err() && o2.result.is_err());
}

#[tokio::test]
async fn a_check_survives_a_panic() {
    let t = Toy {
        d: definition_of("run", RiskClass::Read),
        subjects_of: |_| panic!("x"),
        covers: None,
    };
    let p = pipeline_of(t);
    let h = tokio::spawn(async move {
        p.check(&Session::new("s"), Call::new("run", r#"{}"#)).await.is_ok()
    })
    .await;
    assert!(h.is_ok(), "panicked");
}

#[tokio::test]
async fn no_pattern_covers_what_was_not_understood() {
    fn subjects_of(v: &Value) -> Option<Vec<Subject>> {
        commands(v)
    }
    let t = Toy {
        d: definition_of("run", RiskClass::Execute),
        subjects_of,
        covers: Some(|p| p == "git *"),
    };
    let p =
        pipeline_of(t).approver(Scripted::new([Reply::Session { patterns: vec!["git *".into()] }]));
    let s = Session::new("s");
    p.call(&s, Call::new("run", json!({"cmd":"git status"}))).await;
    let o = p.call(&s, Call::new("run", json!({"cmd":"git $(rm)"}))).await;
    assert!(o.result.is_err(), "ran: {}", o.text());
}

#[tokio::test]
async fn a_refusal_by_a_failing_hook_is_written_down() {
    struct Records(Arc<std::sync::atomic::AtomicUsize>);
    impl Audit for Records {
        fn record(&self, _: &AuditRecord<'_>) -> std::io::Result<()> {
            self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            Ok(())
        }
    }
    struct Fails;
    impl Hook for Fails {
        fn before<'a>(&'a self, _: &'a HookedCall<'_>) -> Step<'a, Result<Opinion, ToolError>> {
            Step::now(Err(ToolError::internal("x")))
        }
    }
    let n = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let p = pipeline_of(Toy {
        d: definition_of("run", RiskClass::Read),
        subjects_of: |_| None,
        covers: None,
    })
    .audit(Records(n.clone()))
    .hook("*", Priority::DEFAULT, Fails);
    p.call(&Session::new("s"), Call::new("run", r#"{}"#)).await;
    assert_eq!(n.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_hook_sees_a_tool_under_each_of_its_names() {
    let mut d = definition_of("run", RiskClass::Read);
    d.aliases = vec![ToolName::new("bash").unwrap()];
    let p = pipeline_of(Toy { d, subjects_of: |_| None, covers: None }).hook(
        "bash",
        Priority::SECURITY,
        Says(|| Opinion::deny("no"), false),
    );
    let o = p.call(&Session::new("s"), Call::new("bash", r#"{}"#)).await;
    assert!(o.result.is_err(), "ran: {}", o.text());
}

#[tokio::test]
async fn no_way_up_leads_out_of_the_writable_roots() {
    let t = Toy {
        d: definition_of("w", RiskClass::Write),
        subjects_of: |_| Some(vec![Subject::path("x", "/work/out/../src/x")]),
        covers: None,
    };
    let p = pipeline_of(t).rules([rule("allow w")]).writable_roots(["/work/out"]);
    let o = p.call(&Session::new("s"), Call::new("w", r#"{}"#)).await;
    assert!(o.result.is_err(), "ran: {}", o.text());
}

#[tokio::test]
async fn a_rule_that_cannot_be_judged_asks() {
    let t = Toy { d: definition_of("w", RiskClass::Read), subjects_of: |_| None, covers: None };
    let p = pipeline_of(t).rules([rule("deny w(secret/*)")]);
    let o = p.call(&Session::new("s"), Call::new("w", r#"{"cmd":"secret/x"}"#)).await;
    assert!(o.result.is_err(), "ran: {}", o.text());
}

#[tokio::test]
async fn whoever_is_asked_reads_the_reason_of_a_hook() {
    let ap = Arc::new(Scripted::new([Reply::Once]));
    let p = pipeline_of(Toy {
        d: definition_of("run", RiskClass::Execute),
        subjects_of: commands,
        covers: None,
    })
    .shared_approver(ap.clone())
    .hook("*", Priority::SECURITY, Says(|| Opinion::ask("this is PRODUCTION"), false));
    p.call(&Session::new("s"), Call::new("run", r#"{"cmd":"x"}"#)).await;
    let a = &ap.asked()[0];
    assert!(
        a.prompt().text.contains("PRODUCTION"),
        "{} {:?} {:?}",
        a.prompt().text,
        a.by,
        a.suggestions
    );
}

#[tokio::test]
async fn an_approved_command_is_that_command() {
    let t =
        Toy { d: definition_of("run", RiskClass::Execute), subjects_of: commands, covers: None };
    let p = pipeline_of(t)
        .approver(Scripted::new([Reply::Session { patterns: vec![r"rm -r build\ old".into()] }]));
    let s = Session::new("s");
    p.call(&s, Call::new("run", json!({"cmd":r"rm -r build\ old"}))).await;
    let o = p.call(&s, Call::new("run", json!({"cmd":"rm -r build/ old"}))).await;
    assert!(o.result.is_err(), "ran: {}", o.text());
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_hook_is_not_the_tools() {
    struct Slow;
    impl Hook for Slow {
        fn before<'a>(&'a self, _: &'a HookedCall<'_>) -> Step<'a, Result<Opinion, ToolError>> {
            Step::later(async {
                tokio::time::sleep(std::time::Duration::from_secs(8)).await;
                Ok(Opinion::none())
            })
        }
    }
    let d = definition_of("t", RiskClass::Read).timeout(std::time::Duration::from_secs(5));
    let t = DynamicTool::new(d, |_, _| async {
        tokio::task::yield_now().await;
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        "RAN"
    });
    let p = Pipeline::new(Registry::builder().add(t).build().unwrap()).hook(
        "*",
        Priority::DEFAULT,
        Slow,
    );
    let o = p.call(&Session::new("s"), Call::new("t", "{}")).await;
    assert!(o.result.is_ok(), "{}", o.text());
}

#[tokio::test]
async fn another_request_is_the_same_session() {
    let t = Toy { d: definition_of("read", RiskClass::Read), subjects_of: |_| None, covers: None };
    let p = pipeline_of(t).loop_guard(LoopGuard::default());
    let s = Session::new("s");
    let mut ok = 0;
    for i in 0..20 {
        ok += usize::from(
            p.call(&s.clone().with_request(format!("r{i}")), Call::new("read", r#"{"cmd":"a"}"#))
                .await
                .result
                .is_ok(),
        );
    }
    assert!(ok < 10, "{ok}");
}

#[tokio::test]
async fn a_denial_holds_for_calls_that_wait_for_their_turn() {
    let (ap, mut inbox) = ask_channel();
    let r = Registry::builder()
        .add(Toy {
            d: definition_of("run", RiskClass::Execute),
            subjects_of: commands,
            covers: None,
        })
        .add(Toy { d: definition_of("read", RiskClass::Read), subjects_of: |_| None, covers: None })
        .build()
        .unwrap();
    let p = Pipeline::new(r).approver(ap);
    let h = tokio::spawn({
        let p = p.clone();
        async move {
            Batch::new(&p)
                .run(
                    &Session::new("s"),
                    [Call::new("read", "{}"), Call::new("run", r#"{"cmd":"a"}"#)],
                )
                .await
        }
    });
    let ask = inbox.recv().await.unwrap();
    p.set_rules([rule("deny read")].into_iter().collect());
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    ask.reply(Reply::Once);
    let o = h.await.unwrap();
    assert!(o[0].result.is_err(), "ran: {}", o[0].text());
}
/// Reach.
#[tool(read, register = false)]
async fn reach(
    /// Host.
    host: String,
    cx: &Context,
) -> String {
    cx.ask("network", host).await.to_string()
}

#[tokio::test]
async fn a_running_tools_ask_is_judged_again() {
    #[derive(Clone, Default)]
    struct Records(Arc<std::sync::Mutex<Vec<String>>>);
    impl Audit for Records {
        fn record(&self, r: &AuditRecord<'_>) -> std::io::Result<()> {
            self.0.lock().unwrap().push(serde_json::to_string(r).unwrap());
            Ok(())
        }
    }
    let c = Records::default();
    let (ap, mut inbox) = ask_channel();
    let p = Pipeline::new(Registry::builder().add(tools![reach]).build().unwrap())
        .audit(c.clone())
        .approver(ap);
    let h = tokio::spawn({
        let p = p.clone();
        async move { p.call(&Session::new("s"), Call::new("reach", r#"{"host":"evil"}"#)).await }
    });
    let ask = inbox.recv().await.unwrap();
    p.set_rules([rule("deny network")].into_iter().collect());
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    ask.reply(Reply::Once);
    let o = h.await.unwrap();
    assert_eq!(o.text(), "false");
    let records = c.0.lock().unwrap().join("\n");
    assert!(records.contains(r#""subjects":["evil"]"#), "it is written down too: {records}");
}

#[tokio::test]
async fn rules_of_an_agent_do_not_become_those_of_all() {
    let r = Registry::builder()
        .add(Toy {
            d: definition_of("run", RiskClass::Execute),
            subjects_of: commands,
            covers: None,
        })
        .build()
        .unwrap();
    let s = Session::new("s").with_agent("a");
    let ts = Toolset::new(r)
        .with_agent(AgentProfile::new("a").rules([rule("allow run")]))
        .for_session(&s);
    let p = Pipeline::new(ts).rules([rule("deny other")]);
    assert_eq!(p.toolset().view().rules().rules().len(), 2);
}

#[tokio::test]
async fn a_broken_store_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let d = folder.path();
    let ws = d.join("ws");
    std::fs::create_dir_all(&ws).unwrap();
    let st = d.join("ap");
    let store = ApprovalStore::open(&st, &ws);
    store
        .grant(
            vec![Grant::new(Grantee::new(ToolName::new("run").unwrap(), "run"), "x")],
            GrantSource::new("s", "c"),
        )
        .unwrap();
    std::fs::write(st.join("approvals.json"), "broken").unwrap();
    let p = pipeline_of(Toy {
        d: definition_of("run", RiskClass::Execute),
        subjects_of: commands,
        covers: None,
    })
    .approvals(ApprovalStore::open(&st, &ws));
    let mut ev = p.subscribe();
    p.call(&Session::new("s"), Call::new("run", r#"{"cmd":"x"}"#)).await;
    let mut k = vec![];
    while let Some(e) = ev.try_recv() {
        k.push(serde_json::to_value(&e).unwrap()["type"].clone());
    }
    assert!(k.contains(&json!("warned")));
}

#[tokio::test]
async fn after_a_plain_no_the_batch_asks_no_more() {
    struct SlowSecond;
    impl Hook for SlowSecond {
        fn before<'a>(&'a self, c: &'a HookedCall<'_>) -> Step<'a, Result<Opinion, ToolError>> {
            let slow = c.arguments().contains('b');
            Step::later(async move {
                if slow {
                    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
                }
                Ok(Opinion::none())
            })
        }
    }
    let ap = Arc::new(Scripted::new([Reply::Reject, Reply::Once]));
    let p = pipeline_of(Toy {
        d: definition_of("run", RiskClass::Execute),
        subjects_of: commands,
        covers: None,
    })
    .shared_approver(ap.clone())
    .hook("*", Priority::DEFAULT, SlowSecond);
    let _outcomes = Batch::new(&p)
        .run(
            &Session::new("s"),
            [Call::new("run", r#"{"cmd":"a"}"#), Call::new("run", r#"{"cmd":"b"}"#)],
        )
        .await;
    assert_eq!(ap.asked().len(), 1);
}

#[tokio::test]
async fn an_approval_of_one_server_is_none_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let d = folder.path();
    let ws = d.join("ws");
    std::fs::create_dir_all(&ws).unwrap();
    let mk = |server: &str| {
        let mut x = definition_of("search", RiskClass::Execute);
        x.source = Source::Mcp { server: server.into() };
        pipeline_of(Toy { d: x, subjects_of: commands, covers: None })
            .approvals(ApprovalStore::open(d.join("ap"), &ws))
    };
    mk("good")
        .approver(Scripted::new([Reply::Always { patterns: vec!["*".into()] }]))
        .call(&Session::new("1"), Call::new("search", r#"{"cmd":"x"}"#))
        .await;
    let o = mk("evil").call(&Session::new("2"), Call::new("search", r#"{"cmd":"x"}"#)).await;
    assert!(o.result.is_err(), "ran: {}", o.text());
}

#[tokio::test(start_paused = true)]
async fn closing_ends_hooks_that_hang() {
    struct Hang;
    impl Hook for Hang {
        fn after<'a>(
            &'a self,
            _: &'a HookedCall<'_>,
            _: &'a mut Result<Output, ToolError>,
        ) -> Step<'a, Result<(), ToolError>> {
            Step::later(std::future::pending())
        }
    }
    let p = pipeline_of(Toy {
        d: definition_of("run", RiskClass::Read),
        subjects_of: |_| None,
        covers: None,
    })
    .hook("*", Priority::DEFAULT, Hang);
    let h = tokio::spawn({
        let p = p.clone();
        async move { p.call(&Session::new("s"), Call::new("run", "{}")).await }
    });
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    p.close();
    assert!(tokio::time::timeout(std::time::Duration::from_secs(3600), h).await.is_ok());
}

#[tokio::test]
async fn an_agents_rules_hold_for_what_its_running_tools_ask() {
    let registry = Registry::builder().add(tools![reach]).build().unwrap();
    let agent = AgentProfile::new("careful").rules([rule("deny network")]);
    let toolset = Toolset::new(registry).with_mode(Mode::Bypass).with_agent(agent);
    let pipeline = Pipeline::new(toolset);
    let reached = async |session: Session| {
        let call = Call::new("reach", r#"{"host":"a.example"}"#);
        pipeline.call(&session, call).await.text().into_owned()
    };
    assert_eq!(reached(Session::new("1")).await, "true");
    assert_eq!(reached(Session::new("2").with_agent("careful")).await, "false");
}

#[tokio::test]
async fn an_agent_hears_nothing_of_tools_that_it_does_not_have() {
    let registry = Registry::builder().add(tools![reach, save]).build().unwrap();
    let agent = AgentProfile::new("narrow").without(["save"]);
    let pipeline = Pipeline::new(Toolset::new(registry).with_agent(agent));
    let session = Session::new("s").with_agent("narrow");
    let outcome = pipeline.call(&session, Call::new("sav", "{}")).await;
    assert!(!outcome.text().contains("`save`"), "{}", outcome.text());
    let outcome = pipeline.call(&Session::new("s"), Call::new("sav", "{}")).await;
    assert!(outcome.text().contains("`save`"), "{}", outcome.text());
}
