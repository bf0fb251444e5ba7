//! Ways around answers, by what changes between the ask and the run.

use super::*;

#[tokio::test]
async fn a_denial_that_comes_before_the_answer_holds() {
    let (ap, mut inbox) = approval_channel();
    let t =
        Toy { d: definition_of("run", RiskClass::Execute), subjects_of: commands, covers: None };
    let p = pipeline_of(t).approver(ap);
    let h = tokio::spawn({
        let p = p.clone();
        async move { p.call(&Session::new("s"), Call::new("run", r#"{"cmd":"a"}"#)).await }
    });
    let ask = inbox.recv().await.unwrap();
    p.set_rules([rule("deny run")].into_iter().collect());
    p.respond(&ask.request().id, &ask.request().fingerprint, ApprovalResponse::Once).await.unwrap();
    let o = h.await.unwrap();
    assert!(o.result.is_err(), "ran: {}", o.text());
}

#[tokio::test]
async fn a_tool_that_was_taken_away_does_not_run_after_a_yes() {
    let (ap, mut inbox) = approval_channel();
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
    ask.respond(ApprovalResponse::Once);
    let o = h.await.unwrap();
    assert!(o.result.is_err(), "ran: {}", o.text());
}

#[tokio::test]
async fn an_answer_grants_nothing_beyond_what_was_offered() {
    fn subjects_of(v: &Value) -> Option<Vec<Resource>> {
        match v["cmd"].as_str().unwrap() {
            "both" => Some(vec![
                Resource::new("a"),
                Resource::new("/out").with_permission("external_directory"),
            ]),
            o => Some(vec![Resource::new(o.to_owned()).with_permission("external_directory")]),
        }
    }
    let t = Toy { d: definition_of("run", RiskClass::Execute), subjects_of, covers: None };
    let ap =
        Arc::new(ScriptedApprover::new([ApprovalResponse::Session { patterns: vec!["*".into()] }]));
    let p = pipeline_of(t).shared_approver(ap.clone());
    let s = Session::new("s");
    p.call(&s, Call::new("run", json!({"cmd":"both"}))).await;
    let o = p.call(&s, Call::new("run", json!({"cmd":"/etc/shadow"}))).await;
    assert!(o.result.is_err(), "ran: {}", o.text());
}

#[tokio::test]
async fn asks_of_different_sessions_stay_apart() {
    let p = pipeline_of(Toy {
        d: definition_of("run", RiskClass::Execute),
        subjects_of: commands,
        covers: None,
    });
    let (a, mut ia) = approval_channel();
    let bob = Arc::new(ScriptedApprover::always_respond(ApprovalResponse::Reject));
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
    ask.respond(ApprovalResponse::Once);
    h1.await.unwrap();
    let o = h2.await.unwrap();
    assert!(o.result.is_err(), "bob was asked {} times; ran: {}", bob.requests().len(), o.text());
}

#[tokio::test]
async fn no_pattern_covers_what_was_not_understood() {
    fn subjects_of(v: &Value) -> Option<Vec<Resource>> {
        commands(v)
    }
    let t = Toy {
        d: definition_of("run", RiskClass::Execute),
        subjects_of,
        covers: Some(|p| p == "git *"),
    };
    let p = pipeline_of(t).approver(ScriptedApprover::new([ApprovalResponse::Session {
        patterns: vec!["git *".into()],
    }]));
    let s = Session::new("s");
    p.call(&s, Call::new("run", json!({"cmd":"git status"}))).await;
    let o = p.call(&s, Call::new("run", json!({"cmd":"git $(rm)"}))).await;
    assert!(o.result.is_err(), "ran: {}", o.text());
}

#[tokio::test]
async fn the_prompt_shows_the_reason_of_a_hook() {
    let ap = Arc::new(ScriptedApprover::new([ApprovalResponse::Once]));
    let p = pipeline_of(Toy {
        d: definition_of("run", RiskClass::Execute),
        subjects_of: commands,
        covers: None,
    })
    .shared_approver(ap.clone())
    .hook(
        "*",
        HookPriority::SECURITY,
        Says(|| HookDecision::ask("this is PRODUCTION"), false),
    );
    p.call(&Session::new("s"), Call::new("run", r#"{"cmd":"x"}"#)).await;
    let a = &ap.requests()[0];
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
    let p = pipeline_of(t).approver(ScriptedApprover::new([ApprovalResponse::Session {
        patterns: vec![r"rm -r build\ old".into()],
    }]));
    let s = Session::new("s");
    p.call(&s, Call::new("run", json!({"cmd":r"rm -r build\ old"}))).await;
    let o = p.call(&s, Call::new("run", json!({"cmd":"rm -r build/ old"}))).await;
    assert!(o.result.is_err(), "ran: {}", o.text());
}

#[tokio::test]
async fn a_denial_holds_for_calls_that_wait_for_their_turn() {
    let (ap, mut inbox) = approval_channel();
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
    ask.respond(ApprovalResponse::Once);
    let o = h.await.unwrap();
    assert!(o[0].result.is_err(), "ran: {}", o[0].text());
}

#[tokio::test]
async fn a_running_tools_ask_is_judged_again() {
    #[derive(Clone, Default)]
    struct Records(Arc<std::sync::Mutex<Vec<String>>>);
    impl AuditSink for Records {
        fn record(&self, r: &AuditRecord<'_>) -> std::io::Result<()> {
            self.0.lock().unwrap().push(serde_json::to_string(r).unwrap());
            Ok(())
        }
    }
    let c = Records::default();
    let (ap, mut inbox) = approval_channel();
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
    ask.respond(ApprovalResponse::Once);
    let o = h.await.unwrap();
    assert_eq!(o.text(), "false");
    let records = c.0.lock().unwrap().join("\n");
    assert!(records.contains(r#""subjects":["evil"]"#), "it is written down too: {records}");
}

#[tokio::test]
async fn a_broken_store_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let d = folder.path();
    let ws = d.join("ws");
    std::fs::create_dir_all(&ws).unwrap();
    let st = d.join("ap");
    let store = GrantStore::open(&st, &ws);
    store
        .add_grants(
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
    .grant_store(GrantStore::open(&st, &ws));
    let mut ev = p.subscribe();
    p.call(&Session::new("s"), Call::new("run", r#"{"cmd":"x"}"#)).await;
    let mut k = vec![];
    while let Some(e) = ev.try_recv() {
        k.push(serde_json::to_value(&e).unwrap()["type"].clone());
    }
    assert!(k.contains(&json!("warned")));
}

#[tokio::test(start_paused = true)]
async fn after_a_plain_no_the_batch_asks_no_more() {
    struct SlowSecond;
    impl Hook for SlowSecond {
        async fn before(&self, c: &HookContext<'_>) -> Result<HookDecision, ToolError> {
            let slow = c.arguments().contains('b');
            async move {
                if slow {
                    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
                }
                Ok(HookDecision::none())
            }
            .await
        }
    }
    let ap = Arc::new(ScriptedApprover::new([ApprovalResponse::Reject, ApprovalResponse::Once]));
    let p = pipeline_of(Toy {
        d: definition_of("run", RiskClass::Execute),
        subjects_of: commands,
        covers: None,
    })
    .shared_approver(ap.clone())
    .hook("*", HookPriority::DEFAULT, SlowSecond);
    let _outcomes = Batch::new(&p)
        .run(
            &Session::new("s"),
            [Call::new("run", r#"{"cmd":"a"}"#), Call::new("run", r#"{"cmd":"b"}"#)],
        )
        .await;
    assert_eq!(ap.requests().len(), 1);
}

#[tokio::test]
async fn an_approval_of_one_server_is_none_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let d = folder.path();
    let ws = d.join("ws");
    std::fs::create_dir_all(&ws).unwrap();
    let mk = |server: &str| {
        let mut x = definition_of("search", RiskClass::Execute);
        x.source = ToolSource::Mcp { server: server.into() };
        pipeline_of(Toy { d: x, subjects_of: commands, covers: None })
            .grant_store(GrantStore::open(d.join("ap"), &ws))
    };
    mk("good")
        .approver(ScriptedApprover::new([ApprovalResponse::Always { patterns: vec!["*".into()] }]))
        .call(&Session::new("1"), Call::new("search", r#"{"cmd":"x"}"#))
        .await;
    let o = mk("evil").call(&Session::new("2"), Call::new("search", r#"{"cmd":"x"}"#)).await;
    assert!(o.result.is_err(), "ran: {}", o.text());
}
