//! Every form in which a tool may come, up to one of another server: all pass the same gates.

use tool_sdk::mcp::{
    RemoteCall, RemoteConnection, RemoteFuture, RemoteResult, RemoteTool, ServerConfig,
    ServerManager, TransportConfig,
};

use super::*;

/// A server with the tool, as another program would be.
struct Server(Log);

impl RemoteConnection for Server {
    fn list_tools(&self) -> RemoteFuture<'_, Vec<RemoteTool>> {
        let schema = definition().parameters.to_value();
        let tool = RemoteTool::new("overwrite", schema).with_description("Overwrites something.");
        Box::pin(async { Ok(vec![tool]) })
    }

    fn call_tool<'a>(&'a self, call: RemoteCall<'a>) -> RemoteFuture<'a, RemoteResult> {
        let args = Value::Object(call.arguments.clone());
        let log = self.0.clone();
        Box::pin(async move { Ok(RemoteResult::text(overwritten_by(log, args).await)) })
    }
}

/// A pipeline with the tool in one form, and the name that it has there.
struct Form {
    name: &'static str,
    pipeline: Pipeline,
    /// What keeps the connection of a foreign tool.
    _upstreams: Option<ServerManager>,
}

/// All forms, each in a pipeline that `set_up` made of a plain one.
async fn forms(log: &Log, set_up: impl Fn(Pipeline) -> Pipeline) -> Vec<Form> {
    let own = |pipeline| Form { name: "overwrite", pipeline: set_up(pipeline), _upstreams: None };
    let mut forms: Vec<Form> = all_forms(log).into_iter().map(own).collect();

    let pipeline = set_up(Pipeline::new(Registry::default()));
    let upstreams = ServerManager::for_pipeline(&pipeline);
    let log = log.clone();
    let reach = TransportConfig::custom(move || {
        let server = Arc::new(Server(log.clone())) as Arc<dyn RemoteConnection>;
        async { Ok(server) }
    });
    upstreams.add(ServerConfig::new("s", reach).unwrap()).unwrap();
    upstreams.connect("s").await.unwrap();
    forms.push(Form { name: "mcp__s__overwrite", pipeline, _upstreams: Some(upstreams) });
    forms
}

/// What every form does with `arguments`: the steps, but for what is asked about, and the
/// events.
async fn check(
    log: &Log,
    set_up: impl Fn(Pipeline) -> Pipeline,
    arguments: &str,
    steps: &[&str],
    events: &[&str],
) {
    for Form { name, pipeline, .. } in &forms(log, set_up).await {
        let mut heard = pipeline.subscribe();
        let outcome = pipeline.call(&session(log), Call::new(*name, arguments)).await;
        let what = format!("{name}: {:?}", outcome.result);
        // A closure does not say what it touches, and a foreign tool names itself.
        let taken = log.take();
        let taken: Vec<&str> = taken
            .iter()
            .map(|step| if step.starts_with("ask ") { "ask" } else { step.as_str() })
            .collect();
        assert_eq!(taken, steps, "{what}");
        assert_eq!(kinds(&mut heard), events, "{what}");
    }
}

fn watched(log: &Log, pipeline: Pipeline) -> Pipeline {
    let watching = Watching { log: log.clone(), rewrite: None };
    pipeline.hook("*", HookPriority::DEFAULT, watching).approver(Showing(log.clone()))
}

const A: &str = r#"{"path": "a"}"#;

/// The second of two calls that are the same, in every form: all that is written down of it.
async fn check_order(rewrite: Option<&'static str>, path: &str) {
    let log = Log::default();
    let set_up = |pipeline: Pipeline| {
        pipeline
            .hook("*", HookPriority::DEFAULT, Watching { log: log.clone(), rewrite })
            .approver(Showing(log.clone()))
            .audit(Recording(log.clone()))
            .loop_guard(LoopGuard::default().threshold(2))
            .budget(Budget::new(10, 4))
    };
    for Form { name, pipeline, .. } in &forms(&log, set_up).await {
        let session = session(&log);
        // Whoever is asked about a call has looked at its repeats, too.
        pipeline.set_mode(Mode::Bypass);
        pipeline.call(&session, Call::new(*name, A)).await.result.unwrap();
        pipeline.set_mode(Mode::Auto);
        log.take();
        log.hear(pipeline);
        let outcome = pipeline.call(&session, Call::new(*name, A)).await;
        let what = format!("{name}: {:?}", outcome.result);
        // A closure does not say what it touches, and a foreign tool names itself.
        let asked = |step: &String| if step.starts_with("ask ") { "ask" } else { step }.to_owned();
        let steps: Vec<String> = log.take().iter().map(asked).collect();
        let (run, after) = (format!("run {path}"), format!("after overwrote {path}"));
        let expected = [
            // prepare
            "pending",
            // hooks
            "hook_started",
            "before a",
            "hook_finished",
            // guard
            "looped",
            // decide, ask
            "permission_asked",
            "ask",
            "permission_replied",
            "record decided",
            // run
            "started",
            &run,
            // after
            "hook_started",
            &after,
            "hook_finished",
            // fit
            "truncated",
            // finish
            "record ran",
            "completed",
        ];
        assert_eq!(steps, expected, "{what}");
    }
}

// F31, F32, F33, F36: the same order and the same events for every kind of tool.
#[tokio::test]
async fn every_kind_of_tool_passes_the_same_gates_in_the_same_order() {
    check_order(None, "a").await;
}

// F31, F64: also when a hook changed the call.
#[tokio::test]
async fn a_call_that_a_hook_changed_passes_the_same_gates_in_the_same_order() {
    check_order(Some("b"), "b").await;
}

/// A tool that writes down when its arguments are decoded.
struct Decoding(Class);

impl Tool for Decoding {
    fn definition(&self) -> &Definition {
        self.0.definition()
    }

    fn prepare(&self, args: &RawArgs<'_>) -> Result<Box<dyn PreparedCall>, InvalidArgs> {
        self.0.log.note(format!("prepare {}", args.text()));
        self.0.prepare(args)
    }
}

// F31: what a hook made of a call is prepared again, before anybody judges it.
#[tokio::test]
async fn arguments_are_decoded_before_hooks_and_once_more_behind_them() {
    let log = Log::default();
    let class = Class { definition: definition(), log: log.clone() };
    let registry = Registry::builder().add(Decoding(class)).build().unwrap();
    let pipeline = Pipeline::new(registry)
        .hook("*", HookPriority::DEFAULT, Watching { log: log.clone(), rewrite: Some("b") })
        .approver(Showing(log.clone()));
    overwrite_a(&pipeline, &log).await.result.unwrap();
    let again = r#"prepare {"path":"b"}"#;
    let expected =
        [r#"prepare {"path": "a"}"#, "before a", again, "ask b", "run b", "after overwrote b"];
    assert_eq!(log.take(), expected);
}

// F31: nor does any kind get further than another.
#[tokio::test]
async fn every_kind_of_tool_is_stopped_at_the_same_gate() {
    let log = Log::default();
    let hooked = ["pending", "hook_started", "hook_finished"];

    let denied = [&hooked[..], &["denied", "failed"]].concat();
    let rules = ["deny overwrite", "deny mcp"].map(|rule| rule.parse::<Rule>().unwrap());
    let forbids = |pipeline| watched(&log, pipeline).rules(rules.clone());
    check(&log, forbids, A, &["before a"], &denied).await;

    let refuses = |pipeline: Pipeline| {
        let mode = pipeline.mode(Mode::Bypass);
        watched(&log, mode).hook("*", HookPriority(1000), Refuses)
    };
    let twice = [&hooked[..], &hooked[1..], &["denied", "failed"]].concat();
    check(&log, refuses, A, &["before a"], &twice).await;

    let rejected = [&hooked[..], &["permission_asked", "permission_replied", "denied", "failed"]];
    let rejects = |pipeline| {
        watched(&log, pipeline).approver(ScriptedApprover::new([ApprovalResponse::Reject]))
    };
    check(&log, rejects, A, &["before a"], &rejected.concat()).await;
}

/// Wants no call to run.
struct Refuses;

impl Hook for Refuses {
    async fn before(&self, _: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        Ok(HookDecision::deny("no"))
    }
}
