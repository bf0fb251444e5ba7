//! Records what a call emits, stage by stage, and compares it with snapshots.
//!
//! Each scenario writes down the events, the audit records, the hook callbacks, the approval
//! requests and the outcome of its calls, in the order in which they happen. The snapshots
//! hold the pipeline's observable behaviour while its inside changes.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]

mod approvals;
mod batches;
mod cancellation;
mod hooks;
mod outcomes;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tool_sdk::{
    ApprovalRequest, ApprovalResponse, Approver, AuditRecord, AuditSink, Call, Context, Definition,
    DynamicTool, Hook, HookContext, HookDecision, HookPriority, OnError, Outcome, Output, Pipeline,
    Registry, Resource, Risk, RiskClass, Rule, Schema, Session, Subscription, ToolError, ToolName,
    tool, tools,
};

/// What a scenario wrote down.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Recording>>);

#[derive(Default)]
struct Recording {
    text: String,
    events: Option<Subscription>,
    /// Stable names for the random ids of approval requests.
    ids: HashMap<String, usize>,
    /// Stable names for fingerprints, which hash internals such as the sandbox policy.
    fingerprints: HashMap<String, usize>,
}

impl Recording {
    fn drain_events(&mut self) {
        while let Some(event) = self.events.as_mut().and_then(Subscription::try_recv) {
            let mut value = serde_json::to_value(&event).unwrap();
            self.normalize(&mut value);
            writeln!(self.text, "  event    {value}").unwrap();
        }
    }

    /// Replaces times, random ids and sequence-independent display data.
    fn normalize(&mut self, value: &mut Value) {
        let Value::Object(map) = value else { return };
        for key in ["time", "display", "expires_in_ms"] {
            map.remove(key);
        }
        if let Some(elapsed) = map.get_mut("elapsed_ms") {
            *elapsed = json!(0);
        }
        if let Some(fingerprint) = map.get("fingerprint").and_then(Value::as_str) {
            let next = self.fingerprints.len() + 1;
            let number = *self.fingerprints.entry(fingerprint.to_owned()).or_insert(next);
            map.insert("fingerprint".to_owned(), json!(format!("fingerprint-{number}")));
        }
        if let Some(id) = map.get("ask").or_else(|| map.get("id")).and_then(Value::as_str)
            && id.len() == 32
        {
            let next = self.ids.len() + 1;
            let number = *self.ids.entry(id.to_owned()).or_insert(next);
            let key = if map.contains_key("ask") { "ask" } else { "id" };
            map.insert(key.to_owned(), json!(format!("ask-{number}")));
        }
    }
}

impl Recorder {
    fn note(&self, line: impl AsRef<str>) {
        let mut recording = self.0.lock().unwrap();
        recording.drain_events();
        writeln!(recording.text, "  {}", line.as_ref()).unwrap();
    }

    fn heading(&self, name: &str) {
        let mut recording = self.0.lock().unwrap();
        writeln!(recording.text, "{name}").unwrap();
    }

    /// Subscribes to `pipeline`; events of an earlier pipeline are drained before.
    fn subscribe(&self, pipeline: &Pipeline) {
        let mut recording = self.0.lock().unwrap();
        recording.drain_events();
        recording.events = Some(pipeline.subscribe());
        recording.ids.clear();
        recording.fingerprints.clear();
    }

    fn outcome(&self, outcome: &Outcome) {
        let kind = match &outcome.result {
            Ok(_) => "ok".to_owned(),
            Err(error) => error.kind().to_string(),
        };
        let halted =
            outcome.halt_reason().map(|why| format!(" halted={why:?}")).unwrap_or_default();
        let notes = outcome.notes().len();
        let cut = outcome.truncation().is_some();
        self.note(format!(
            "outcome  {} {kind}{halted} notes={notes} truncated={cut} {:?}",
            outcome.call,
            outcome.text()
        ));
    }

    fn text(&self) -> String {
        let mut recording = self.0.lock().unwrap();
        recording.drain_events();
        std::mem::take(&mut recording.text)
    }
}

impl AuditSink for Recorder {
    fn record(&self, record: &AuditRecord<'_>) -> io::Result<()> {
        let mut value = serde_json::to_value(record).unwrap();
        self.0.lock().unwrap().normalize(&mut value);
        self.note(format!("audit    {value}"));
        Ok(())
    }
}

/// An audit log that cannot keep anything.
struct BrokenAudit;

impl AuditSink for BrokenAudit {
    fn record(&self, _: &AuditRecord<'_>) -> io::Result<()> {
        Err(io::Error::other("the disk is full"))
    }
}

/// What a scripted hook does before a call.
#[derive(Clone, Copy)]
enum Before {
    Nothing,
    Opine(fn() -> HookDecision),
    OpineLater(fn() -> HookDecision),
    Fail,
    Panic,
    Hang,
}

/// What a scripted hook does after a call.
#[derive(Clone, Copy)]
enum After {
    Nothing,
    Replace(&'static str),
    Halt(&'static str),
    Fail,
    Panic,
    Hang,
}

/// A hook that writes down its callbacks and does what it is told.
struct ScriptedHook {
    name: &'static str,
    recorder: Recorder,
    before: Before,
    after: After,
    on_error: OnError,
    may_allow: bool,
}

impl ScriptedHook {
    fn new(name: &'static str, recorder: &Recorder) -> Self {
        let (before, after) = (Before::Nothing, After::Nothing);
        let (on_error, recorder) = (OnError::Deny, recorder.clone());
        Self { name, recorder, before, after, on_error, may_allow: false }
    }

    fn before(mut self, before: Before) -> Self {
        self.before = before;
        self
    }

    fn after(mut self, after: After) -> Self {
        self.after = after;
        self
    }

    fn ignoring_errors(mut self) -> Self {
        self.on_error = OnError::Ignore;
        self
    }

    fn allowed_to_allow(mut self) -> Self {
        self.may_allow = true;
        self
    }
}

impl Hook for ScriptedHook {
    fn name(&self) -> std::borrow::Cow<'_, str> {
        self.name.into()
    }

    async fn before(&self, call: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        self.recorder.note(format!("before   {} {}", self.name, call.arguments()));
        match self.before {
            Before::Nothing => Ok(HookDecision::none()),
            Before::Opine(opinion) => Ok(opinion()),
            Before::OpineLater(opinion) => {
                async move {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    Ok(opinion())
                }
                .await
            }
            Before::Fail => Err(ToolError::failed("the hook is broken")),
            Before::Panic => panic!("the hook panics"),
            Before::Hang => std::future::pending().await,
        }
    }

    async fn after(
        &self,
        call: &HookContext<'_>,
        result: &mut Result<Output, ToolError>,
    ) -> Result<(), ToolError> {
        let text = match &*result {
            Ok(output) => output.as_text().to_owned(),
            Err(error) => error.to_string(),
        };
        self.recorder.note(format!("after    {} {text:?}", self.name));
        match self.after {
            After::Nothing => {}
            After::Replace(text) => *result = Ok(Output::text(text)),
            After::Halt(reason) => call.halt_turn(reason),
            After::Fail => return Err(ToolError::failed("the hook is broken")),
            After::Panic => panic!("the hook panics"),
            After::Hang => return std::future::pending().await,
        }
        Ok(())
    }

    fn observe(&self, call: &HookContext<'_>, outcome: &Outcome) {
        let kind =
            outcome.result.as_ref().map_or_else(|error| error.kind().to_string(), |_| "ok".into());
        let (name, tool) = (self.name, &call.definition().name);
        self.recorder.note(format!("observe  {name} {tool} {} {kind}", outcome.call));
    }

    fn on_error(&self) -> OnError {
        self.on_error
    }

    fn may_allow(&self) -> bool {
        self.may_allow
    }
}

/// An approver that writes down what it is asked and answers from a list.
struct ScriptedApprover {
    recorder: Recorder,
    replies: Mutex<Vec<Option<ApprovalResponse>>>,
}

impl ScriptedApprover {
    /// `None` panics; when the list is used up, no answer ever comes.
    fn new(
        recorder: &Recorder,
        replies: impl IntoIterator<Item = Option<ApprovalResponse>>,
    ) -> Self {
        let mut replies: Vec<_> = replies.into_iter().collect();
        replies.reverse();
        Self { recorder: recorder.clone(), replies: Mutex::new(replies) }
    }
}

impl Approver for ScriptedApprover {
    fn request_approval(
        &self,
        ask: Arc<ApprovalRequest>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
        let subject = ask.subjects.first().map_or("-", Resource::text);
        self.recorder.note(format!("ask      {} {subject} {:?}", ask.tool, ask.suggestions));
        match self.replies.lock().unwrap().pop() {
            Some(Some(reply)) => Box::pin(std::future::ready(Some(reply))),
            Some(None) => panic!("the approver panics"),
            None => Box::pin(std::future::pending()),
        }
    }
}

/// Read a note.
#[tool(read, register = false)]
fn read_note(
    /// Its name.
    name: String,
    /// How often it is repeated.
    #[arg(default = 1, range = 1..=5)]
    times: u32,
) -> String {
    vec![name; times as usize].join(" ")
}

fn written_note(args: &WriteNoteArgs, _: &Context) -> Vec<Resource> {
    vec![Resource::new(args.name.clone())]
}

/// Write a note.
#[tool(
    write,
    register = false,
    approval(resources = written_note),
    display(name = "Write", primary = name, summary = "Writing {name}")
)]
fn write_note(
    /// Its name.
    name: String,
    /// A secret that no event shows.
    #[arg(sensitive)]
    token: Option<String>,
) -> String {
    format!("wrote {name} {}", token.map_or(0, |token| token.len()))
}

/// Fail always.
#[tool(read, register = false)]
fn fail() -> Result<String, ToolError> {
    Err(ToolError::not_found("there is no such note").hint("list the notes"))
}

/// Panic always.
#[tool(read, register = false)]
fn explode() -> String {
    panic!("boom")
}

/// Wait for a while.
#[tool(read, register = false, timeout = "2s")]
async fn wait_for(
    /// How many seconds.
    seconds: u64,
    cx: &Context,
) -> String {
    cx.progress(1, Some(2), "waiting");
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    cx.emit_output("waited\n");
    format!("waited {seconds} s")
}

/// Call another tool.
#[tool(read, register = false)]
async fn nested(
    /// The name of the note.
    name: String,
    cx: &Context,
) -> Result<String, ToolError> {
    cx.set_metadata("name", json!(name));
    match cx.request_permission("open_host", "example.org").await {
        true => Ok(format!("opened for {name}")),
        false => Err(ToolError::denied("the host may not be opened")),
    }
}

/// For known users only.
#[tool(read, register = false, requires_auth)]
fn private_note() -> &'static str {
    "private"
}

/// Give a long text.
#[tool(read, register = false, max_output = "64 B")]
fn long_text() -> String {
    "0123456789abcdef\n".repeat(32)
}

fn dynamic_tool() -> DynamicTool {
    let schema = Schema::from_value(json!({
        "type": "object",
        "properties": { "path": { "type": "string" } },
        "required": ["path"],
        "additionalProperties": false,
    }));
    let name = ToolName::new("dynamic_write").unwrap();
    let definition = Definition::new(name, "Writes something.", schema.unwrap())
        .risk(Risk::new(RiskClass::Write));
    DynamicTool::new(definition, |args: Value, _: Context| async move {
        Output::text(format!("wrote {}", args["path"].as_str().unwrap_or_default()))
    })
}

fn all_tools() -> Pipeline {
    let registry = Registry::builder()
        .add(tools![
            read_note,
            write_note,
            fail,
            explode,
            wait_for,
            nested,
            private_note,
            long_text
        ])
        .add(dynamic_tool());
    Pipeline::new(registry.build().unwrap()).approval_timeout(Duration::from_secs(30))
}

fn rules(list: &[&str]) -> Vec<Rule> {
    list.iter().map(|rule| rule.parse().unwrap()).collect()
}

/// A scenario: a pipeline whose calls are written down.
struct Scenario {
    recorder: Recorder,
    pipeline: Pipeline,
    session: Session,
}

impl Scenario {
    /// Starts a scenario with all tools, an audit log and one hook that only observes.
    fn new(recorder: &Recorder, name: &str, setup: impl FnOnce(Pipeline) -> Pipeline) -> Self {
        let observer = ScriptedHook::new("observer", recorder);
        let pipeline =
            all_tools().audit(recorder.clone()).hook("*", HookPriority::LOGGING, observer);
        Self::plain(recorder, name, setup(pipeline))
    }

    /// Starts a scenario with a pipeline as it is.
    fn plain(recorder: &Recorder, name: &str, pipeline: Pipeline) -> Self {
        recorder.subscribe(&pipeline);
        recorder.heading(name);
        Self { recorder: recorder.clone(), pipeline, session: Session::new("s") }
    }

    async fn call(&self, tool: &str, arguments: &str) {
        self.call_as("c1", tool, arguments).await;
    }

    async fn call_as(&self, id: &str, tool: &str, arguments: &str) {
        let call = Call::new(tool, arguments).id(id).message("m1");
        let outcome = self.pipeline.call(&self.session, call).await;
        self.recorder.outcome(&outcome);
    }
}

/// Compares what was written down with the snapshot `name`.
fn assert_recorded(name: &str, recorder: &Recorder) {
    insta::with_settings!({ snapshot_path => "snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, recorder.text());
    });
}
