//! Loading and unloading, with calls, hooks and rules under way.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::*;
use crate::call::Call;
use crate::context::{Context, Session};
use crate::error::ErrorKind;
use crate::hook::{Hook, HookContext, HookDecision, HookPriority};
use crate::name::ToolName;
use crate::permission::{Action, Mode, Rule};
use crate::pipeline::Pipeline;
use crate::registry::Registry;
use crate::risk::{Risk, RiskClass};
use crate::schema::Schema;
use crate::tool::{Definition, DynamicTool, ToolSource};
use crate::toolset::Toolset;

/// Counts what is alive.
#[derive(Clone, Default)]
struct LiveCounter(Arc<AtomicUsize>);

struct LiveGuard(LiveCounter);

impl LiveCounter {
    fn enter(&self) -> LiveGuard {
        self.0.fetch_add(1, Ordering::SeqCst);
        LiveGuard(self.clone())
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Drop for LiveGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A plugin with a tool that never ends.
#[derive(Clone, Default)]
struct WaitingPlugin {
    live: LiveCounter,
    started: Arc<Notify>,
    ended: Arc<AtomicUsize>,
    tool: Option<&'static str>,
    rules: Vec<&'static str>,
}

fn tool(name: &'static str, run: impl Fn() -> String + Send + Sync + 'static) -> DynamicTool {
    let definition = definition(name);
    let run = Arc::new(run);
    DynamicTool::new(definition, move |_: Value, _: Context| {
        let run = Arc::clone(&run);
        async move { run() }
    })
}

fn definition(name: &'static str) -> Definition {
    let schema = Schema::from_json(&json!({"type": "object"}).to_string()).unwrap();
    Definition::new(ToolName::from_static(name), "Waits.", schema).risk(Risk::new(RiskClass::Read))
}

impl Plugin for WaitingPlugin {
    fn id(&self) -> &str {
        "waiting"
    }

    fn register(&self, registrar: &mut PluginRegistrar) -> Result<(), ToolError> {
        registrar.set_place("/plugins/waiting");
        let (live, started) = (self.live.clone(), Arc::clone(&self.started));
        let wait = DynamicTool::new(
            definition(self.tool.unwrap_or("wait")),
            move |_: Value, _: Context| {
                let (live, started) = (live.clone(), Arc::clone(&started));
                async move {
                    let _alive = live.enter();
                    started.notify_one();
                    std::future::pending::<()>().await;
                }
            },
        );
        registrar.add_tools(wait);
        registrar.add_hook("*", HookPriority::DEFAULT, Arc::new(DenyingHook));
        let ended = Arc::clone(&self.ended);
        let live = self.live.clone();
        registrar.on_unload("counter", move || async move {
            assert_eq!(live.count(), 0, "calls end first");
            ended.fetch_add(1, Ordering::SeqCst);
        });
        registrar.add_skill_folder("skills");
        registrar.add_rules(self.rules.iter().map(|rule| rule.parse().unwrap()))
    }
}

/// Denies the tool `refused`, and would allow everything else.
struct DenyingHook;

impl Hook for DenyingHook {
    async fn before(&self, call: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        Ok(match call.definition().name.as_str() {
            "refused" => HookDecision::deny("the plugin says so"),
            _ => HookDecision::allow("the plugin says so"),
        })
    }

    fn may_allow(&self) -> bool {
        true
    }
}

fn pipeline(rules: &[&str]) -> Pipeline {
    let write = {
        let definition = definition("write").risk(Risk::new(RiskClass::Write));
        DynamicTool::new(definition, |_: Value, _: Context| async { "written" })
    };
    let own = [tool("refused", || "ran".to_owned()), tool("free", || "ran".to_owned()), write];
    let registry = own.into_iter().fold(Registry::builder(), crate::RegistryBuilder::add);
    let rules = rules.iter().map(|rule| rule.parse::<Rule>().unwrap());
    Pipeline::new(registry.build().unwrap()).rules(rules)
}

async fn kind(pipeline: &Pipeline, tool: &str) -> Option<ErrorKind> {
    let outcome = pipeline.call(&Session::new("s"), Call::new(tool, "{}")).await;
    outcome.result.err().map(|error| error.kind())
}

// F115: a tool of a plugin is one like any other, and gone afterwards.
#[tokio::test]
async fn what_a_plugin_brings_is_gone_when_it_is_unloaded() {
    let (pipeline, plugin) = (pipeline(&[]), WaitingPlugin::default());
    let plugins = pipeline.plugins();
    for round in 1..=100 {
        let scope = plugins.load(&plugin).unwrap();
        assert_eq!(scope.tool_names().collect::<Vec<_>>(), ["wait"]);
        assert_eq!(scope.skill_folders(), [PathBuf::from("skills")]);
        let tool = pipeline.toolset().get("wait").unwrap();
        assert_eq!(tool.definition().source, ToolSource::Plugin { id: "waiting".to_owned() });
        assert_eq!(kind(&pipeline, "refused").await, Some(ErrorKind::Denied));
        drop((scope, tool));

        let call = {
            let pipeline = pipeline.clone();
            tokio::spawn(
                async move { pipeline.call(&Session::new("s"), Call::new("wait", "{}")).await },
            )
        };
        plugin.started.notified().await;
        assert_eq!(plugins.unload("waiting").await.unwrap(), [""; 0]);
        assert_eq!((plugin.live.count(), plugin.ended.load(Ordering::SeqCst)), (0, round));
        let error = call.await.unwrap().result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert_eq!(error.message(), "the plugin `waiting` was unloaded while the call ran");
        assert!(plugins.loaded().is_empty() && pipeline.toolset().get("wait").is_none());
        assert_eq!(kind(&pipeline, "refused").await, None);
        assert_eq!(kind(&pipeline, "wait").await, Some(ErrorKind::NotFound));
    }
    let error = plugins.unload("waiting").await.unwrap_err();
    assert_eq!(error.message(), "the plugin `waiting` is not loaded");
}

// Rules and hooks of a plugin tighten, whatever the rules of the user say.
#[tokio::test]
async fn a_plugin_only_makes_decisions_stricter() {
    let pipeline = pipeline(&["allow *", "deny write"]);
    let plugin =
        |rules: &[&'static str]| WaitingPlugin { rules: rules.to_vec(), ..Default::default() };
    let plugins = pipeline.plugins();
    assert_eq!(kind(&pipeline, "free").await, None);
    plugins.load(&plugin(&["ask write", "deny free"])).unwrap();
    assert_eq!(kind(&pipeline, "free").await, Some(ErrorKind::Denied));
    let check = |tool: &'static str| {
        let pipeline = pipeline.clone();
        async move { pipeline.check(&Session::new("s"), Call::new(tool, "{}")).await.unwrap().decision }
    };
    assert_eq!(check("write").await.action, Action::Deny, "an `ask` lifts no denial");
    assert!(check("free").await.reason.contains("plugin `waiting`"), "{:?}", check("free").await);
    plugins.unload("waiting").await.unwrap();
    assert_eq!(kind(&pipeline, "free").await, None);

    let error = plugins.load(&plugin(&["allow free"])).unwrap_err();
    assert!(error.to_string().contains("may not have the rule `allow free`"), "{error}");
    assert!(plugins.loaded().is_empty());

    // The hook would allow everything.
    let strict = self::pipeline(&[]).mode(Mode::Strict);
    strict.plugins().load(&plugin(&[])).unwrap();
    assert_eq!(kind(&strict, "free").await, Some(ErrorKind::Denied));
}

#[tokio::test]
async fn clashes_name_both_places() {
    let pipeline = pipeline(&[]);
    let plugins = pipeline.plugins();
    let clashing = WaitingPlugin { tool: Some("free"), ..Default::default() };
    let error = plugins.load(&clashing).unwrap_err().to_string();
    assert!(error.contains("/plugins/waiting") && error.contains("added by the host"), "{error}");
    assert!(error.contains("plugin `waiting`"), "{error}");
    assert!(plugins.loaded().is_empty());
    plugins.load(&WaitingPlugin::default()).unwrap();
    let error = plugins.load(&WaitingPlugin::default()).unwrap_err().to_string();
    assert_eq!(error.matches("/plugins/waiting").count(), 2, "{error}");
    assert_eq!(plugins.loaded().len(), 1);
}

#[tokio::test]
async fn a_failing_plugin_is_reported_and_skipped() {
    struct BrokenPlugin(bool);
    impl Plugin for BrokenPlugin {
        fn id(&self) -> &str {
            "broken"
        }

        fn register(&self, registrar: &mut PluginRegistrar) -> Result<(), ToolError> {
            registrar.add_tools(tool("half", String::new));
            assert!(self.0, "a defect");
            Err(ToolError::config("no key is set"))
        }
    }
    let toolset = Toolset::new(Registry::default());
    for (fails, words) in [(true, "no key is set"), (false, "it panicked")] {
        let error = toolset.load_plugin(&BrokenPlugin(fails)).unwrap_err().to_string();
        assert!(error.contains("`broken`") && error.contains(words), "{error}");
    }
    assert!(toolset.is_empty() && toolset.plugins().is_empty());
}

// An error does not become an allow: the denials of a plugin hold when its tools cannot be there.
#[tokio::test]
async fn a_refused_plugin_still_restricts() {
    let pipeline = pipeline(&[]);
    let plugins = pipeline.plugins();
    let clashing =
        WaitingPlugin { tool: Some("free"), rules: vec!["deny write"], ..Default::default() };
    let cause = plugins.load(&clashing).unwrap_err();
    plugins.load_restrictions(&clashing, &cause);
    assert_eq!(kind(&pipeline, "write").await, Some(ErrorKind::Denied), "its rule");
    assert_eq!(kind(&pipeline, "refused").await, Some(ErrorKind::Denied), "its hook");
    assert_eq!(kind(&pipeline, "free").await, None, "the tool of the host");
    plugins.unload("waiting").await.unwrap();
    assert_eq!(kind(&pipeline, "refused").await, None);

    // A plugin that fails has rules that are not known.
    let failing = WaitingPlugin { rules: vec!["allow free"], ..Default::default() };
    let cause = plugins.load(&failing).unwrap_err();
    plugins.load_restrictions(&failing, &cause);
    let outcome = pipeline.call(&Session::new("s"), Call::new("free", "{}")).await;
    let error = outcome.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.to_string().contains("may not have the rule `allow free`"), "{error}");
    plugins.unload("waiting").await.unwrap();
    assert_eq!(kind(&pipeline, "free").await, None);
}

#[tokio::test]
async fn closing_the_pipeline_ends_its_plugins() {
    let (pipeline, plugin) = (pipeline(&[]), WaitingPlugin::default());
    pipeline.plugins().load(&plugin).unwrap();
    assert_eq!(pipeline.close().await, [""; 0]);
    assert_eq!(plugin.ended.load(Ordering::SeqCst), 1);
    // Without a pipeline, nothing is loaded.
    let plugins = pipeline.plugins();
    drop(pipeline);
    assert!(plugins.load(&plugin).is_err());
}
