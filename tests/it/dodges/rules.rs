//! Ways around rules, by how a call is written.

use super::*;

#[tokio::test]
async fn a_denied_tool_stays_denied_under_another_permission() {
    let t = Toy {
        d: definition_of("fetch", RiskClass::Read),
        subjects_of: |_| Some(vec![Resource::new("https://x").with_permission("network")]),
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

#[tokio::test]
async fn a_rule_sees_defaults_and_aliases() {
    let p = || Pipeline::new(Registry::builder().add(tools![save]).build().unwrap());
    let a = p().rules([rule("deny save(mode: overwrite)")]);
    let args = RawArgs::new(r#"{"mode":null}"#).lenient(Leniency::default().null_is_absent());
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
        RawArgs::new(r#"{"names":"[\"x\",\".env\"]"}"#).lenient(Leniency::default().stringified());
    let o2 = p()
        .rules([rule("deny rm(names: .env)")])
        .call(&Session::new("s"), Call::new("rm", args))
        .await;
    assert!(o.result.is_err() && o2.result.is_err());
}

#[tokio::test]
async fn no_way_up_leads_out_of_the_writable_roots() {
    let t = Toy {
        d: definition_of("w", RiskClass::Write),
        subjects_of: |_| Some(vec![Resource::path("x", "/work/out/../src/x")]),
        covers: None,
    };
    let p = pipeline_of(t).rules([rule("allow w")]).writable_roots(["/work/out"]);
    let o = p.call(&Session::new("s"), Call::new("w", r#"{}"#)).await;
    assert!(o.result.is_err(), "ran: {}", o.text());
}

// F92: a tool that names no file could write any.
#[tokio::test]
async fn what_names_no_file_is_asked_about_within_writable_roots() {
    for subjects_of in
        [(|_| None) as fn(&Value) -> Option<Vec<Resource>>, |_| Some(vec!["x".into()])]
    {
        let t = || Toy { d: definition_of("w", RiskClass::Write), subjects_of, covers: None };
        let run = async |p: Pipeline| {
            let p = p.rules([rule("allow w")]);
            p.call(&Session::new("s"), Call::new("w", r#"{}"#)).await.result
        };
        run(pipeline_of(t())).await.unwrap();
        let error = run(pipeline_of(t()).writable_roots(["/work/out"])).await.unwrap_err();
        assert!(error.to_string().contains("no rule lifts this"), "{error}");
    }
}

#[tokio::test]
async fn a_rule_that_cannot_be_judged_asks() {
    let t = Toy { d: definition_of("w", RiskClass::Read), subjects_of: |_| None, covers: None };
    let p = pipeline_of(t).rules([rule("deny w(secret/*)")]);
    let o = p.call(&Session::new("s"), Call::new("w", r#"{"cmd":"secret/x"}"#)).await;
    assert!(o.result.is_err(), "ran: {}", o.text());
}
