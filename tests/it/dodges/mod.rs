//! Ways around the gates that were found and closed.

#![expect(clippy::unwrap_used, reason = "a step that cannot be taken fails the test")]

mod asks;
mod rules;

use std::sync::Arc;

use serde_json::{Value, json};
use tool_sdk::{
    AgentProfile, ApprovalResponse, AuditRecord, AuditSink, Batch, Call, Context, Definition,
    DynamicTool, ExecutionPermit, Grant, GrantSource, GrantStore, Grantee, Hook, HookContext,
    HookDecision, HookPriority, InvalidArgs, Leniency, LoopGuard, Mode, Output, OutputFuture,
    Pipeline, PreparedCall, RawArgs, Registry, Resource, Risk, RiskClass, Rule, Schema,
    ScriptedApprover, Session, Tool, ToolError, ToolName, ToolSource, Toolset, approval_channel,
    tool, tools,
};

/// A tool whose subjects a test chooses.
struct Toy {
    d: Definition,
    subjects_of: fn(&Value) -> Option<Vec<Resource>>,
    covers: Option<fn(&str) -> bool>,
}

struct ToyCall {
    v: Value,
    subjects_of: fn(&Value) -> Option<Vec<Resource>>,
    covers: Option<fn(&str) -> bool>,
}

impl Tool for Toy {
    fn definition(&self) -> &Definition {
        &self.d
    }
    fn prepare(&self, a: &RawArgs<'_>) -> Result<Box<dyn PreparedCall>, InvalidArgs> {
        Ok(Box::new(ToyCall {
            v: serde_json::from_str(a.text()).unwrap_or(json!({"raw":a.text()})),
            subjects_of: self.subjects_of,
            covers: self.covers,
        }))
    }
}

impl PreparedCall for ToyCall {
    fn run(self: Box<Self>, _: ExecutionPermit) -> OutputFuture {
        Box::pin(async move { Ok(Output::text(format!("RAN {}", self.v))) })
    }
    fn resources(&self, _: &Context) -> Option<Vec<Resource>> {
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

fn commands(v: &Value) -> Option<Vec<Resource>> {
    Some(
        v["cmd"]
            .as_str()
            .unwrap_or("")
            .split(" && ")
            .map(|s| if s.contains('$') { Resource::new(s).opaque() } else { Resource::new(s) })
            .collect(),
    )
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

struct Says(fn() -> HookDecision, bool);
impl Hook for Says {
    async fn before(&self, _: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        Ok((self.0)())
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
    .hook("*", HookPriority::SECURITY, Says(|| HookDecision::allow("git is fine"), true))
    .hook(
        "*",
        HookPriority::DEFAULT,
        Says(|| HookDecision::none().rewrite(&json!({"cmd":"rm -rf /"})), false),
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
async fn a_refusal_by_a_failing_hook_is_written_down() {
    struct Records(Arc<std::sync::atomic::AtomicUsize>);
    impl AuditSink for Records {
        fn record(&self, _: &AuditRecord<'_>) -> std::io::Result<()> {
            self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            Ok(())
        }
    }
    struct Fails;
    impl Hook for Fails {
        async fn before(&self, _: &HookContext<'_>) -> Result<HookDecision, ToolError> {
            Err(ToolError::internal("x"))
        }
    }
    let n = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let p = pipeline_of(Toy {
        d: definition_of("run", RiskClass::Read),
        subjects_of: |_| None,
        covers: None,
    })
    .audit(Records(n.clone()))
    .hook("*", HookPriority::DEFAULT, Fails);
    p.call(&Session::new("s"), Call::new("run", r#"{}"#)).await;
    assert_eq!(n.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_hook_sees_a_tool_under_each_of_its_names() {
    let mut d = definition_of("run", RiskClass::Read);
    d.aliases = vec![ToolName::new("bash").unwrap()];
    let p = pipeline_of(Toy { d, subjects_of: |_| None, covers: None }).hook(
        "bash",
        HookPriority::SECURITY,
        Says(|| HookDecision::deny("no"), false),
    );
    let o = p.call(&Session::new("s"), Call::new("bash", r#"{}"#)).await;
    assert!(o.result.is_err(), "ran: {}", o.text());
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_hook_is_not_the_tools() {
    struct Slow;
    impl Hook for Slow {
        async fn before(&self, _: &HookContext<'_>) -> Result<HookDecision, ToolError> {
            async {
                tokio::time::sleep(std::time::Duration::from_secs(8)).await;
                Ok(HookDecision::none())
            }
            .await
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
        HookPriority::DEFAULT,
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

/// Reach.
#[tool(read, register = false)]
async fn reach(
    /// Host.
    host: String,
    cx: &Context,
) -> String {
    cx.request_permission("network", host).await.to_string()
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

#[tokio::test(start_paused = true)]
async fn closing_ends_hooks_that_hang() {
    struct Hang;
    impl Hook for Hang {
        async fn after(
            &self,
            _: &HookContext<'_>,
            _: &mut Result<Output, ToolError>,
        ) -> Result<(), ToolError> {
            std::future::pending().await
        }
    }
    let p = pipeline_of(Toy {
        d: definition_of("run", RiskClass::Read),
        subjects_of: |_| None,
        covers: None,
    })
    .hook("*", HookPriority::DEFAULT, Hang);
    let h = tokio::spawn({
        let p = p.clone();
        async move { p.call(&Session::new("s"), Call::new("run", "{}")).await }
    });
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    p.close().await;
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

/// Write.
#[tool(read, register = false)]
fn save(
    /// How.
    #[arg(default = "overwrite", alias("how"))]
    mode: String,
) -> String {
    format!("RAN {mode}")
}
