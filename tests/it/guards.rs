//! The gates in front of every tool, seen from outside: their order, and that whatever goes
//! wrong in one of them, the tool does not run.

#![expect(clippy::unwrap_used, reason = "a step that cannot be taken fails the test")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tool_sdk::{
    Action, Approved, Approver, Ask, Call, Context, Decision, Definition, DynamicTool, ErrorKind,
    Hook, HookedCall, InvalidArgs, Mode, OnError, Opinion, Outcome, Output, Pipeline, Prepared,
    Priority, RawArgs, Registry, Reply, Risk, RiskClass, Rule, Running, Schema, Scripted, Session,
    State, Step, Subject, Tool, ToolError, ToolName, ask_channel, tool, tools,
};

/// What happened, in order.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// Overwrite something.
#[tool(write, register = false, approval(subjects = overwritten))]
fn overwrite(
    /// What to overwrite.
    path: String,
    State(log): State<Log>,
) -> String {
    log.note(format!("run {path}"));
    format!("overwrote {path}")
}

fn overwritten(args: &OverwriteArgs, _: &Context) -> Vec<Subject> {
    vec![Subject::new(args.path.clone())]
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
    DynamicTool::new(definition(), move |args: Value, _: Context| {
        let log = log.clone();
        async move {
            let path = args["path"].as_str().unwrap_or_default().to_owned();
            log.note(format!("run {path}"));
            format!("overwrote {path}")
        }
    })
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

    fn prepare(&self, args: &RawArgs<'_>) -> Result<Box<dyn Prepared>, InvalidArgs> {
        let args: Value = serde_json::from_str(args.text()).unwrap();
        let path = args["path"].as_str().unwrap_or_default().to_owned();
        Ok(Box::new(Ready { path, log: self.log.clone() }))
    }
}

impl Prepared for Ready {
    fn run(self: Box<Self>, _: Context, _: Approved) -> Running {
        Box::pin(async move {
            self.log.note(format!("run {}", self.path));
            Ok(Output::text(format!("overwrote {}", self.path)))
        })
    }

    fn subjects(&self, _: &Context) -> Option<Vec<Subject>> {
        Some(vec![self.path.as_str().into()])
    }
}

/// Writes down when it is asked, and may change the path.
struct Watching {
    log: Log,
    rewrite: Option<&'static str>,
}

impl Hook for Watching {
    fn before<'a>(&'a self, call: &'a HookedCall<'_>) -> Step<'a, Result<Opinion, ToolError>> {
        self.log.note(format!("before {}", call.value()["path"].as_str().unwrap_or_default()));
        Step::now(Ok(match self.rewrite {
            Some(path) => Opinion::none().rewrite(&json!({ "path": path })),
            None => Opinion::none(),
        }))
    }

    fn after<'a>(
        &'a self,
        _: &'a HookedCall<'_>,
        result: &'a mut Result<Output, ToolError>,
    ) -> Step<'a, Result<(), ToolError>> {
        self.log.note(format!("after {}", result.as_ref().map_or("-", Output::as_text)));
        Step::now(Ok(()))
    }
}

/// Writes down what it is shown, and says yes.
struct Showing(Log);

impl Approver for Showing {
    fn ask(&self, ask: Arc<Ask>) -> std::pin::Pin<Box<dyn Future<Output = Option<Reply>> + Send>> {
        self.0.note(format!("ask {}", ask.subjects.first().map_or("-", Subject::text)));
        Box::pin(std::future::ready(Some(Reply::Once)))
    }
}

fn all_forms(log: &Log) -> Vec<Pipeline> {
    let registry = Registry::builder();
    let native = registry.add(tools![overwrite]).build().unwrap();
    let closure = Registry::builder().add(closure(log.clone())).build().unwrap();
    let class = Class { definition: definition(), log: log.clone() };
    let class = Registry::builder().add(class).build().unwrap();
    [native, closure, class].into_iter().map(Pipeline::new).collect()
}

fn session(log: &Log) -> Session {
    Session::new("s").lend(log.clone())
}

async fn overwrite_a(pipeline: &Pipeline, log: &Log) -> Outcome {
    pipeline.call(&session(log), Call::new("overwrite", r#"{"path": "a"}"#)).await
}

/// The events of a call as their JSON names them.
fn kinds(events: &mut tool_sdk::Events) -> Vec<String> {
    std::iter::from_fn(|| events.try_recv())
        .map(|event| serde_json::to_value(&event).unwrap()["type"].as_str().unwrap().to_owned())
        .collect()
}

// F31, F32, F33: the same order and the same events for every kind of tool.
#[tokio::test]
async fn every_kind_of_tool_passes_the_same_gates_in_the_same_order() {
    let log = Log::default();
    for pipeline in all_forms(&log) {
        let pipeline = pipeline
            .hook("*", Priority::DEFAULT, Watching { log: log.clone(), rewrite: None })
            .approver(Showing(log.clone()));
        let mut events = pipeline.subscribe();
        let outcome = overwrite_a(&pipeline, &log).await;
        assert_eq!(outcome.text(), "overwrote a");
        let steps = log.take();
        assert_eq!(steps[0], "before a");
        // A closure does not say what it touches, so that the ask is about everything.
        assert!(steps[1] == "ask a" || steps[1] == "ask *", "{steps:?}");
        assert_eq!(steps[2..], ["run a", "after overwrote a"]);
        assert_eq!(
            kinds(&mut events),
            [
                "pending",
                "hook_started",
                "hook_finished",
                "permission_asked",
                "permission_replied",
                "started",
                "hook_started",
                "hook_finished",
                "completed",
            ]
        );
    }
}

// F64, P2: what a hook makes of a call is judged and shown like any other.
#[tokio::test]
async fn a_rewritten_call_is_judged_and_shown_as_it_will_run() {
    let log = Log::default();
    for pipeline in all_forms(&log) {
        let hook = Watching { log: log.clone(), rewrite: Some("b") };
        let pipeline = pipeline
            .rules(["allow overwrite(a)".parse::<Rule>().unwrap()])
            .hook("over*", Priority::SECURITY, hook)
            .approver(Showing(log.clone()));
        let mut events = pipeline.subscribe();
        let outcome = overwrite_a(&pipeline, &log).await;
        let events: Vec<Value> = std::iter::from_fn(|| events.try_recv())
            .map(|event| serde_json::to_value(&event).unwrap())
            .collect();
        let of = |kind: &str| events.iter().find(|event| event["type"] == kind).unwrap();
        assert_eq!(of("pending")["arguments"]["path"], "a", "what the model sent");
        assert_eq!(of("started")["arguments"]["path"], "b", "what runs");
        assert_eq!(outcome.text(), "overwrote b");
        let steps = log.take();
        assert!(steps[1].starts_with("ask "), "what was allowed is not what runs: {steps:?}");
        assert!(steps.contains(&"run b".to_owned()) && !steps.contains(&"run a".to_owned()));
    }
}

#[tokio::test]
async fn what_was_denied_stays_denied_however_a_hook_changes_it() {
    let log = Log::default();
    let native = all_forms(&log).remove(0);
    let pipeline = native
        .rules(["allow overwrite".parse::<Rule>().unwrap(), "deny overwrite(a)".parse().unwrap()])
        .hook("*", Priority::DEFAULT, Watching { log: log.clone(), rewrite: Some("b") });
    let outcome = overwrite_a(&pipeline, &log).await;
    assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Denied);
    assert_eq!(log.take(), ["before a"]);
}

/// A fault in one place on the way to the tool.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Decode,
    Subjects,
    Required,
    BeforeFails,
    BeforePanics,
    BeforeRewritesBadly,
    ApproverPanics,
    ApproverLeaves,
    Preview,
    Suggestions,
}

/// A tool and its surroundings with a fault in one place.
struct Faulty(Fault, Log);

struct FaultyCall(Fault, Log);

impl Tool for Faulty {
    fn definition(&self) -> &Definition {
        static DEFINITION: std::sync::OnceLock<Definition> = std::sync::OnceLock::new();
        DEFINITION.get_or_init(definition)
    }

    fn prepare(&self, args: &RawArgs<'_>) -> Result<Box<dyn Prepared>, InvalidArgs> {
        assert!(self.0 != Fault::Decode, "decoding");
        // What a hook made of it is refused like what a model made of it.
        serde_json::from_str::<Value>(args.text()).expect("JSON");
        Ok(Box::new(FaultyCall(self.0, self.1.clone())))
    }
}

impl Prepared for FaultyCall {
    fn run(self: Box<Self>, _: Context, _: Approved) -> Running {
        self.1.note("run");
        Box::pin(async { Ok(Output::text("ran")) })
    }

    fn subjects(&self, _: &Context) -> Option<Vec<Subject>> {
        assert!(self.0 != Fault::Subjects, "subjects");
        None
    }

    fn approval_required(&self, _: &Context) -> Option<bool> {
        assert!(self.0 != Fault::Required, "required");
        None
    }

    fn suggestions(&self) -> Vec<String> {
        assert!(self.0 != Fault::Suggestions, "suggestions");
        Vec::new()
    }

    fn preview(&self, _: &Context) -> Option<Value> {
        assert!(self.0 != Fault::Preview, "preview");
        None
    }
}

impl Hook for Faulty {
    fn before<'a>(&'a self, _: &'a HookedCall<'_>) -> Step<'a, Result<Opinion, ToolError>> {
        match self.0 {
            Fault::BeforeFails => Step::now(Err(ToolError::internal("hook"))),
            Fault::BeforePanics => Step::later(async { panic!("hook") }),
            Fault::BeforeRewritesBadly => {
                Step::now(Ok(Opinion::allow("x").rewrite(&json!("no object"))))
            }
            _ => Step::now(Ok(Opinion::none())),
        }
    }
}

impl Approver for Faulty {
    fn ask(&self, _: Arc<Ask>) -> std::pin::Pin<Box<dyn Future<Output = Option<Reply>> + Send>> {
        assert!(self.0 != Fault::ApproverPanics, "approver");
        match self.0 {
            Fault::ApproverLeaves => Box::pin(async { panic!("left") }),
            _ => Box::pin(std::future::ready(Some(Reply::Reject))),
        }
    }
}

// P5, F71: a panic or an error at any gate never ends in the tool running.
#[tokio::test]
async fn no_fault_on_the_way_ends_in_running_the_tool() {
    for fault in [
        Fault::Decode,
        Fault::Subjects,
        Fault::Required,
        Fault::BeforeFails,
        Fault::BeforePanics,
        Fault::ApproverPanics,
        Fault::ApproverLeaves,
        Fault::Preview,
        Fault::Suggestions,
    ] {
        let log = Log::default();
        let faulty = || Faulty(fault, log.clone());
        let registry = Registry::builder().add(faulty()).build().unwrap();
        let pipeline =
            Pipeline::new(registry).hook("*", Priority::DEFAULT, faulty()).approver(faulty());
        let mut events = pipeline.subscribe();
        let outcome = overwrite_a(&pipeline, &log).await;
        assert!(outcome.result.is_err(), "{fault:?}");
        assert_eq!(log.take(), Vec::<String>::new(), "{fault:?}");
        let ends = kinds(&mut events);
        let ends = ends.iter().filter(|kind| *kind == "failed").count();
        assert_eq!(ends, 1, "{fault:?}");
    }
}

#[tokio::test]
async fn a_hook_that_leaves_invalid_arguments_stops_the_call() {
    let log = Log::default();
    let native = all_forms(&log).remove(0).mode(Mode::Bypass);
    let pipeline =
        native.hook("*", Priority::DEFAULT, Faulty(Fault::BeforeRewritesBadly, log.clone()));
    let outcome = overwrite_a(&pipeline, &log).await;
    assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Denied);
    assert!(log.take().is_empty());
}

/// A hook with one opinion.
struct Says(fn() -> Opinion);

impl Hook for Says {
    fn before<'a>(&'a self, _: &'a HookedCall<'_>) -> Step<'a, Result<Opinion, ToolError>> {
        Step::now(Ok((self.0)()))
    }

    fn on_error(&self) -> OnError {
        OnError::Ignore
    }
}

// F65: deny does not run and says why; ask asks although a rule allows.
#[tokio::test]
async fn hooks_deny_ask_and_halt() {
    let log = Log::default();
    let allowed = || all_forms(&log).remove(0).rules(["allow *".parse::<Rule>().unwrap()]);
    let with = |says| allowed().hook("*", Priority::DEFAULT, Says(says));

    let outcome = overwrite_a(&with(|| Opinion::deny("not on Fridays")), &log).await;
    assert!(outcome.text().contains("not on Fridays"));
    let outcome = overwrite_a(&with(|| Opinion::halt("stop here")), &log).await;
    assert_eq!(outcome.halted.as_deref(), Some("stop here"));
    let outcome = overwrite_a(&with(|| Opinion::ask("look at it")), &log).await;
    assert!(outcome.text().contains("look at it"), "nobody is there to ask: {}", outcome.text());
    // Nobody trusts this hook to allow.
    let careful =
        all_forms(&log).remove(0).hook("*", Priority::DEFAULT, Says(|| Opinion::allow("x")));
    let outcome = overwrite_a(&careful, &log).await;
    assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Denied);
    assert!(log.take().is_empty());
}

// F63: priority, then registration; only where the pattern matches.
#[tokio::test]
async fn hooks_run_by_priority_and_pattern() {
    struct Named(&'static str, Log);
    impl Hook for Named {
        fn before<'a>(&'a self, _: &'a HookedCall<'_>) -> Step<'a, Result<Opinion, ToolError>> {
            self.1.note(self.0);
            Step::now(Ok(Opinion::none()))
        }
    }
    let log = Log::default();
    let pipeline = all_forms(&log)
        .remove(0)
        .mode(Mode::Bypass)
        .hook("*", Priority::LOGGING, Named("log", log.clone()))
        .hook("over*", Priority::SECURITY, Named("scan", log.clone()))
        .hook("read_*", Priority::SECURITY, Named("other", log.clone()))
        .hook("*", Priority(150), Named("first", log.clone()))
        .hook("*", Priority(150), Named("second", log.clone()));
    overwrite_a(&pipeline, &log).await;
    assert_eq!(log.take(), ["scan", "first", "second", "log", "run a"]);
}

// F66: what an after-hook leaves is what the model reads, on failure too.
#[tokio::test]
async fn after_hooks_change_results() {
    struct Redact;
    impl Hook for Redact {
        fn after<'a>(
            &'a self,
            _: &'a HookedCall<'_>,
            result: &'a mut Result<Output, ToolError>,
        ) -> Step<'a, Result<(), ToolError>> {
            *result = Ok(Output::text("redacted"));
            Step::now(Ok(()))
        }
    }
    let log = Log::default();
    for pipeline in all_forms(&log) {
        let pipeline = pipeline.mode(Mode::Bypass).hook("*", Priority::DEFAULT, Redact);
        assert_eq!(overwrite_a(&pipeline, &log).await.text(), "redacted");
    }
}

fn asking(log: &Log, replies: impl IntoIterator<Item = Reply>) -> (Pipeline, Arc<Scripted>) {
    let approver = Arc::new(Scripted::new(replies));
    (all_forms(log).remove(0).shared_approver(Arc::clone(&approver) as _), approver)
}

// F76: once asks again; session holds for the session; both only for what was granted.
#[tokio::test]
async fn approvals_reach_as_far_as_they_say() {
    let log = Log::default();
    let (pipeline, approver) = asking(&log, [Reply::Once, Reply::Once]);
    for _ in 0..2 {
        overwrite_a(&pipeline, &log).await;
    }
    assert_eq!(approver.asked().len(), 2);

    let grant = Reply::Session { patterns: vec!["a".to_owned()] };
    let (pipeline, approver) = asking(&log, [grant]);
    let session = session(&log);
    let call = |path: &str| Call::new("overwrite", json!({ "path": path }));
    for _ in 0..3 {
        assert!(pipeline.call(&session, call("a")).await.result.is_ok());
    }
    assert_eq!(approver.asked().len(), 1);
    assert!(pipeline.call(&session, call("b")).await.result.is_err());
    assert!(pipeline.call(&session.clone().with_user("eve"), call("a")).await.result.is_err());
    // F78: a rule that denies wins over what was approved.
    pipeline.set_rules(["deny overwrite(a)".parse::<Rule>().unwrap()].into_iter().collect());
    assert!(pipeline.call(&session, call("a")).await.result.is_err());
}

// F54, F81: the ask shows the frozen call; nobody runs before the answer.
#[tokio::test]
async fn an_ask_shows_what_runs_and_is_answered_by_its_id() {
    let log = Log::default();
    let (approver, mut inbox) = ask_channel();
    let pipeline = all_forms(&log).remove(0).approver(approver);
    let running = {
        let (pipeline, log) = (pipeline.clone(), log.clone());
        tokio::spawn(async move { overwrite_a(&pipeline, &log).await })
    };
    let pending = inbox.recv().await.unwrap();
    assert_eq!(pending.ask().arguments, json!({ "path": "a" }));
    assert_eq!(pending.ask().suggestions, ["a"]);
    assert!(log.take().is_empty());

    let id = pending.ask().id.clone();
    pipeline.reply(&id, Reply::Once).await.unwrap();
    assert!(pipeline.reply(&id, Reply::Once).await.unwrap_err().to_string().contains("settled"));
    assert!(pipeline.reply(&"0".into(), Reply::Once).await.is_err());
    assert_eq!(running.await.unwrap().text(), "overwrote a");
    assert!(pipeline.asks().is_empty());
}

// F82: merged asks, a plain no for everything the session asks, feedback for one.
#[tokio::test]
async fn identical_asks_are_one_and_a_plain_no_settles_the_rest() {
    let log = Log::default();
    let (approver, mut inbox) = ask_channel();
    let pipeline = all_forms(&log).remove(0).approver(approver);
    let session = session(&log);
    let spawn = |path: &'static str| {
        let (pipeline, session) = (pipeline.clone(), session.clone());
        tokio::spawn(async move {
            pipeline.call(&session, Call::new("overwrite", json!({ "path": path }))).await
        })
    };
    let (one, two, other) = (spawn("a"), spawn("a"), spawn("b"));
    let first = inbox.recv().await.unwrap();
    let second = inbox.recv().await.unwrap();
    while pipeline.asks().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert!(inbox.try_recv().is_none(), "three calls, two asks");
    let (for_a, for_b) = match first.ask().subjects[0].text() {
        "a" => (first, second),
        _ => (second, first),
    };
    for_a.reply(Reply::Once);
    assert!(one.await.unwrap().result.is_ok() && two.await.unwrap().result.is_ok());
    let again = spawn("c");
    let for_c = inbox.recv().await.unwrap();
    for_b.reply(Reply::Reject);
    for outcome in [other.await.unwrap(), again.await.unwrap()] {
        assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Denied);
    }
    assert!(!for_c.reply(Reply::Once), "it was settled before");
}

// An approval for one ask settles those that it covers.
#[tokio::test]
async fn an_approval_settles_the_asks_that_it_covers() {
    let log = Log::default();
    let (approver, mut inbox) = ask_channel();
    let pipeline = all_forms(&log).remove(0).approver(approver);
    let session = session(&log);
    let spawn = |path: &'static str| {
        let (pipeline, session) = (pipeline.clone(), session.clone());
        tokio::spawn(async move {
            pipeline.call(&session, Call::new("overwrite", json!({ "path": path }))).await
        })
    };
    let calls = [spawn("src/a"), spawn("src/b")];
    let (first, _second) = (inbox.recv().await.unwrap(), inbox.recv().await.unwrap());
    first.reply(Reply::Session { patterns: vec!["src/*".to_owned()] });
    for call in calls {
        assert!(call.await.unwrap().result.is_ok());
    }
    let waiting = spawn("docs/c");
    let _third = inbox.recv().await.unwrap();
    pipeline.set_mode(Mode::Bypass);
    assert!(waiting.await.unwrap().result.is_ok(), "another mode settles it too");
}

// F12 of the reliability list: no answer is a no, and nothing is left behind.
#[tokio::test(start_paused = true)]
async fn an_ask_without_an_answer_ends_as_a_no() {
    let log = Log::default();
    let (approver, _inbox) = ask_channel();
    let pipeline =
        all_forms(&log).remove(0).approver(approver).ask_timeout(Duration::from_secs(60));
    let outcome = overwrite_a(&pipeline, &log).await;
    assert!(outcome.text().contains("nobody answered in time"));
    assert!(pipeline.asks().is_empty());

    let stop = session(&log);
    let call = pipeline.call(&stop, Call::new("overwrite", r#"{"path": "a"}"#));
    let cancel = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(pipeline.asks().len(), 1);
        stop.cancel_token().cancel();
    };
    let (outcome, ()) = tokio::join!(call, cancel);
    assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Aborted);
    assert!(pipeline.asks().is_empty());
    assert!(log.take().is_empty());

    let waiting = tokio::spawn({
        let (pipeline, log) = (pipeline.clone(), log.clone());
        async move { overwrite_a(&pipeline, &log).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    pipeline.close();
    assert!(waiting.await.unwrap().result.is_err());
}

// PR7: what was rejected is not asked again in the same message.
#[tokio::test]
async fn a_rejected_call_is_not_asked_again_at_once() {
    let log = Log::default();
    let feedback = Reply::RejectWith { feedback: "no".to_owned() };
    let (pipeline, approver) = asking(&log, [feedback.clone(), feedback]);
    let session = session(&log);
    let call = |message: &'static str| Call::new("overwrite", r#"{"path": "a"}"#).message(message);
    for message in ["m1", "m1", "m2"] {
        assert!(pipeline.call(&session, call(message)).await.result.is_err());
    }
    assert_eq!(approver.asked().len(), 2);
}

// F54: a running tool asks for more.
#[tokio::test]
async fn a_running_tool_may_ask() {
    /// Reach a host.
    #[tool(read, register = false)]
    async fn reach(
        /// The host.
        host: String,
        cx: &Context,
    ) -> String {
        cx.ask("network", host).await.to_string()
    }
    let registry = Registry::builder().add(tools![reach]).build().unwrap();
    let reach = async |pipeline: Pipeline| {
        let call = Call::new("reach", r#"{"host": "a.example"}"#);
        pipeline.call(&Session::new("s"), call).await.text().into_owned()
    };
    let pipeline = || Pipeline::new(registry.clone());
    assert_eq!(reach(pipeline()).await, "false", "nobody is there to ask");
    assert_eq!(reach(pipeline().approver(Scripted::new([Reply::Once]))).await, "true");
    let allow: Rule = "allow network(*.example)".parse().unwrap();
    assert_eq!(reach(pipeline().rules([allow])).await, "true");
    let deny: Rule = "deny network".parse().unwrap();
    let yes = Scripted::new([Reply::Once]);
    assert_eq!(reach(pipeline().rules([deny]).approver(yes)).await, "false");
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
    let (pipeline, approver) = asking(&log, []);
    let session = session(&log);
    let check = pipeline.check(&session, Call::new("overwrite", r#"{"path": "a"}"#));
    let checked = check.await.unwrap();
    assert_eq!(checked.decision.action, Action::Ask);
    assert_eq!(checked.suggestions, ["a"]);
    let json = serde_json::to_value(&checked).unwrap();
    assert_eq!((&json["decision"], &json["subjects"]), (&json!("ask"), &json!(["a"])));
    assert!(approver.asked().is_empty() && log.take().is_empty());
    let bad = pipeline.check(&session, Call::new("overwrite", "{}")).await;
    assert_eq!(bad.unwrap_err().kind(), ErrorKind::InvalidArgs);
}

// F8 of the reliability list: thousands of calls at once leave nothing behind.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_calls_at_once_leave_nothing_behind() {
    static RUNNING: AtomicUsize = AtomicUsize::new(0);
    /// Wait a moment.
    #[tool(read, register = false)]
    async fn linger() -> String {
        RUNNING.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(20)).await;
        RUNNING.fetch_sub(1, Ordering::Relaxed);
        "done".to_owned()
    }
    let pipeline = Pipeline::new(Registry::builder().add(tools![linger]).build().unwrap());
    let metrics = tokio::runtime::Handle::current().metrics();
    let tasks = metrics.num_alive_tasks();
    let session = Session::new("s");
    let calls: Vec<_> = (0..10_000)
        .map(|_| {
            let (pipeline, session) = (pipeline.clone(), session.clone());
            tokio::spawn(async move { pipeline.call(&session, Call::new("linger", "{}")).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().text(), "done");
    }
    while metrics.num_alive_tasks() > tasks {
        tokio::task::yield_now().await;
    }
    assert_eq!(RUNNING.load(Ordering::Relaxed), 0);
    assert!(pipeline.asks().is_empty());
    #[cfg(target_os = "linux")]
    {
        let open = std::fs::read_dir("/proc/self/fd").unwrap().count();
        assert!(open < 200, "{open} descriptors are open");
    }
}

#[test]
fn a_decision_is_plain_data() {
    let rule: Rule = "deny x".parse().unwrap();
    assert_eq!(serde_json::to_value(&rule).unwrap()["action"], "deny");
    let _: fn(&Decision) -> Action = |decision| decision.action;
}
