//! The gates in front of every tool, seen from outside: their order, and that whatever goes
//! wrong in one of them, the tool does not run.

#![expect(clippy::unwrap_used, reason = "a step that cannot be taken fails the test")]

mod asking;
mod faults;
mod forms;
mod hooks;
mod load;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tool_sdk::{
    Action, ApprovalId, ApprovalRequest, ApprovalResponse, ApprovalResponseError, Approver,
    ArgumentNote, AuditRecord, AuditSink, Batch, Budget, Call, Context, Decision, DecisionSource,
    Definition, DynamicTool, ErrorKind, EventKind, ExecutionPermit, Grant, GrantSource, GrantStore,
    Grantee, Hook, HookContext, HookDecision, HookPriority, IntoTools, InvalidArgs, LoopGuard,
    Mode, OnError, Outcome, Output, OutputFuture, Pipeline, PreparedCall, RawArgs, Registry,
    Resource, Risk, RiskClass, Rule, Schema, ScriptedApprover, Session, State, Subscription, Tool,
    ToolError, ToolName, ToolsFile, approval_channel, tool, tools,
};

/// What happened, in order.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<Happened>>);

#[derive(Debug, Default)]
struct Happened {
    steps: Vec<String>,
    /// What is told of the calls, where that is to stand between the steps.
    events: Option<Subscription>,
}

impl Happened {
    /// Events are told at once, so that those which are here came before the next step.
    fn catch_up(&mut self) {
        let events = self.events.iter_mut().flat_map(kinds);
        self.steps.extend(events);
    }
}

impl Log {
    fn note(&self, what: impl Into<String>) {
        let mut happened = self.0.lock().unwrap();
        happened.catch_up();
        happened.steps.push(what.into());
    }

    fn take(&self) -> Vec<String> {
        let mut happened = self.0.lock().unwrap();
        happened.catch_up();
        std::mem::take(&mut happened.steps)
    }

    /// Writes down the events of `pipeline` as well.
    fn hear(&self, pipeline: &Pipeline) {
        self.0.lock().unwrap().events = Some(pipeline.subscribe());
    }
}

/// Writes down what is recorded.
struct Recording(Log);

impl AuditSink for Recording {
    fn record(&self, record: &AuditRecord<'_>) -> std::io::Result<()> {
        let record = serde_json::to_value(record).unwrap();
        self.0.note(format!("record {}", record["what"].as_str().unwrap()));
        Ok(())
    }
}

/// Overwrite something.
#[tool(write, register = false, approval(resources = overwritten))]
fn overwrite(
    /// What to overwrite.
    path: String,
    State(log): State<Log>,
) -> String {
    log.note(format!("run {path}"));
    format!("overwrote {path}")
}

fn overwritten(args: &OverwriteArgs, _: &Context) -> Vec<Resource> {
    vec![Resource::new(args.path.clone())]
}

fn definition() -> Definition {
    let schema = Schema::from_value(json!({
        "type": "object",
        "properties": { "path": { "type": "string" } },
        "required": ["path"],
        "additionalProperties": false,
    }));
    let name = ToolName::new("overwrite").unwrap();
    Definition::new(name, "Overwrites something.", schema.unwrap())
        .risk(Risk::new(RiskClass::Write))
}

fn closure(log: Log) -> DynamicTool {
    DynamicTool::new(definition(), move |args: Value, _: Context| overwritten_by(log.clone(), args))
}

async fn overwritten_by(log: Log, args: Value) -> String {
    let path = args["path"].as_str().unwrap_or_default();
    log.note(format!("run {path}"));
    format!("overwrote {path}")
}

/// A tool written as a type.
struct Class {
    definition: Definition,
    log: Log,
}

struct Ready {
    path: String,
    log: Log,
}

impl Tool for Class {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn prepare(&self, args: &RawArgs<'_>) -> Result<Box<dyn PreparedCall>, InvalidArgs> {
        let args: Value = serde_json::from_str(args.text()).unwrap();
        let path = args["path"].as_str().unwrap_or_default().to_owned();
        Ok(Box::new(Ready { path, log: self.log.clone() }))
    }
}

impl PreparedCall for Ready {
    fn run(self: Box<Self>, _: ExecutionPermit) -> OutputFuture {
        Box::pin(async move {
            self.log.note(format!("run {}", self.path));
            Ok(Output::text(format!("overwrote {}", self.path)))
        })
    }

    fn resources(&self, _: &Context) -> Option<Vec<Resource>> {
        Some(vec![self.path.as_str().into()])
    }
}

/// Writes down when it is asked, and may change the path.
struct Watching {
    log: Log,
    rewrite: Option<&'static str>,
}

impl Hook for Watching {
    async fn before(&self, call: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        self.log.note(format!(
            "before {}",
            call.arguments_value()["path"].as_str().unwrap_or_default()
        ));
        Ok(match self.rewrite {
            Some(path) => HookDecision::none().rewrite(&json!({ "path": path })),
            None => HookDecision::none(),
        })
    }

    async fn after(
        &self,
        _: &HookContext<'_>,
        result: &mut Result<Output, ToolError>,
    ) -> Result<(), ToolError> {
        self.log.note(format!("after {}", result.as_ref().map_or("-", Output::as_text)));
        Ok(())
    }
}

/// Writes down what it is shown, and says yes.
struct Showing(Log);

impl Approver for Showing {
    fn request_approval(
        &self,
        ask: Arc<ApprovalRequest>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
        self.0.note(format!("ask {}", ask.subjects.first().map_or("-", Resource::text)));
        Box::pin(std::future::ready(Some(ApprovalResponse::Once)))
    }
}

/// The definition in a file of definitions, with a handler.
fn from_file(log: Log) -> impl IntoTools {
    let mut entry = serde_json::to_value(definition()).unwrap();
    entry["source"] = json!({ "type": "plugin", "id": "p" });
    let file = json!({ "version": 1, "tools": [entry] }).to_string();
    let handler = move |args: Value, _: Context| overwritten_by(log.clone(), args);
    ToolsFile::parse("tools.json", &file).unwrap().bind("overwrite", handler).finish().unwrap()
}

fn all_forms(log: &Log) -> Vec<Pipeline> {
    let registry = Registry::builder();
    let native = registry.add(tools![overwrite]).build().unwrap();
    let closure = Registry::builder().add(closure(log.clone())).build().unwrap();
    let class = Class { definition: definition(), log: log.clone() };
    let class = Registry::builder().add(class).build().unwrap();
    let file = Registry::builder().add(from_file(log.clone())).build().unwrap();
    [native, closure, class, file].into_iter().map(Pipeline::new).collect()
}

fn session(log: &Log) -> Session {
    Session::new("s").with_service(log.clone())
}

async fn overwrite_a(pipeline: &Pipeline, log: &Log) -> Outcome {
    pipeline.call(&session(log), Call::new("overwrite", r#"{"path": "a"}"#)).await
}

/// The events of a call as their JSON names them.
fn kinds(events: &mut Subscription) -> Vec<String> {
    std::iter::from_fn(|| events.try_recv())
        .map(|event| serde_json::to_value(&event).unwrap()["type"].as_str().unwrap().to_owned())
        .collect()
}

// F79: hidden from the list, and refused all the same.
#[tokio::test]
async fn what_is_denied_as_a_whole_is_hidden_and_refused() {
    let log = Log::default();
    let pipeline = all_forms(&log).remove(0).rules(["deny *".parse::<Rule>().unwrap()]);
    assert_eq!(pipeline.toolset().view().definitions().count(), 0);
    let outcome = overwrite_a(&pipeline, &log).await;
    assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Denied);
    let specific = all_forms(&log)
        .remove(0)
        .rules(["deny *".parse::<Rule>().unwrap(), "allow overwrite(a)".parse().unwrap()]);
    assert_eq!(specific.toolset().view().definitions().count(), 1);
    assert!(overwrite_a(&specific, &log).await.result.is_ok());
}

#[tokio::test]
async fn a_check_tells_what_would_happen_and_runs_nothing() {
    let log = Log::default();
    let (pipeline, approver) = answered_by(&log, []);
    let session = session(&log);
    let check = pipeline.check(&session, Call::new("overwrite", r#"{"path": "a"}"#));
    let checked = check.await.unwrap();
    assert_eq!(checked.decision.action, Action::Ask);
    assert_eq!(checked.suggestions, ["a"]);
    let json = serde_json::to_value(&checked).unwrap();
    assert_eq!((&json["decision"], &json["subjects"]), (&json!("ask"), &json!(["a"])));
    assert!(approver.requests().is_empty() && log.take().is_empty());
    let bad = pipeline.check(&session, Call::new("overwrite", "{}")).await;
    assert_eq!(bad.unwrap_err().kind(), ErrorKind::InvalidArgs);
}

// F77: what is told, and what a yes is bound to, are what was judged.
#[tokio::test]
async fn a_check_asks_a_tool_once_what_the_call_touches() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);

    fn counted(_: &CountingArgs, _: &Context) -> Vec<Resource> {
        vec![Resource::new(format!("look {}", ASKED.fetch_add(1, Ordering::Relaxed)))]
    }

    /// Count.
    #[tool(write, register = false, approval(resources = counted))]
    fn counting() {}

    let registry = Registry::builder().add(tools![counting]).build().unwrap();
    let pipeline = Pipeline::new(registry);
    let call = Call::new("counting", "{}");
    let checked = pipeline.check(&Session::new("s"), call).await.unwrap();
    let touched: Vec<&str> = checked.decision.subjects.iter().map(Resource::text).collect();
    assert_eq!((touched, ASKED.load(Ordering::Relaxed)), (vec!["look 0"], 1));
}

#[test]
fn a_decision_is_plain_data() {
    let rule: Rule = "deny x".parse().unwrap();
    assert_eq!(serde_json::to_value(&rule).unwrap()["action"], "deny");
    let _: fn(&Decision) -> Action = |decision| decision.action;
}

/// The native form, and somebody who gives these answers.
fn answered_by(
    log: &Log,
    replies: impl IntoIterator<Item = ApprovalResponse>,
) -> (Pipeline, Arc<ScriptedApprover>) {
    let approver = Arc::new(ScriptedApprover::new(replies));
    (all_forms(log).remove(0).shared_approver(Arc::clone(&approver) as _), approver)
}
