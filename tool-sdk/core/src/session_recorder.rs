//! Records the calls of a pipeline in a [`SessionStore`]: arguments, results, events and what they
//! show to people.
//!
//! A thread writes, so that no call waits for a disk. Sensitive arguments are masked and secrets
//! redacted before a record leaves the call.
//!
//! **Invariant:** a store that fails is reported to the host and never fails a call.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::SystemTime;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::call::{CallId, Outcome};
use crate::content::{AttachmentData, Output};
use crate::error::{ErrorKind, ToolError};
use crate::event::{EventKind, Subscription, ToolEvent};
use crate::hook::{Hook, HookContext, HookPriority, HookRun, OnError};
use crate::pipeline::Pipeline;
use crate::redact::Redactor;
use crate::session_store::{CallRecord, CallStatus, DynSessionStore, EventRecord, SessionStore};

/// How many outcomes wait to be written at most; what comes while it is full is not recorded.
const MAX_WAITING: usize = 1024;

/// The name of the hook.
const HOOK_NAME: &str = "session recorder";

/// The longest JSON text of a result or of an event that is kept, in bytes.
const MAX_JSON_BYTES: usize = 64 << 10;

/// Records the calls of a pipeline.
///
/// Of each call it keeps the arguments with sensitive values masked, the result as the model got it,
/// and its events, which have the data for display, without the output while it ran. Known secrets
/// and what looks like one are redacted. Results and events over 64 KiB are replaced by their size.
///
/// The recorded id of a call starts with one of this recorder, because the ids of calls are unique
/// in their process only.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tool_sdk::{
///     Call, MemorySessionStore, Pipeline, Redactor, Registry, Session, SessionRecorder,
///     SessionStore, tool, tools,
/// };
///
/// /// Say hello.
/// #[tool(read)]
/// fn hello() -> &'static str {
///     "hello"
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let pipeline = Pipeline::new(Registry::builder().add(tools![hello]).build()?);
/// let store = Arc::new(MemorySessionStore::default());
/// let pipeline = SessionRecorder::attach(pipeline, Arc::clone(&store), Redactor::from_env())?;
/// pipeline.call(&Session::new("s1"), Call::new("hello", "{}")).await;
///
/// // Waits until everything is written.
/// pipeline.finish().await;
/// let calls = store.list_calls("s1").await?;
/// assert_eq!(calls[0].response, Some(serde_json::json!({ "text": "hello" })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SessionRecorder {
    sender: mpsc::Sender<RecorderInput>,
    redactor: Redactor,
}

impl fmt::Debug for SessionRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionRecorder").finish_non_exhaustive()
    }
}

/// What the thread is given, beside events.
enum RecorderInput {
    /// A call has ended.
    Ended { call: CallId, record: Box<CallRecord> },
    /// Everything so far is to be written.
    Flush(oneshot::Sender<()>),
}

impl SessionRecorder {
    /// Records the calls of `pipeline` from now on. Attach it last, when the pipeline is configured.
    ///
    /// [`Pipeline::finish`] waits until everything is written.
    ///
    /// # Errors
    ///
    /// Fails when no thread can be started, or the system has no random numbers.
    pub fn attach(
        pipeline: Pipeline,
        store: impl SessionStore,
        redactor: Redactor,
    ) -> std::io::Result<Pipeline> {
        let (sender, inputs) = mpsc::channel(MAX_WAITING);
        let recorder = Arc::new(Self { sender, redactor: redactor.clone() });
        let pipeline = pipeline.shared_hook("*", HookPriority::LOGGING, recorder);
        let run = format!("{:08x}", getrandom::u32()?);
        let writer = RecordWriter {
            store: Box::new(store),
            redactor,
            run,
            calls: HashMap::new(),
            has_failed: false,
        };
        let events = pipeline.subscribe();
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let work = move || runtime.block_on(writer.run(inputs, events));
        thread::Builder::new().name("session-recorder".to_owned()).spawn(work)?;
        Ok(pipeline)
    }
}

impl Hook for SessionRecorder {
    fn name(&self) -> Cow<'_, str> {
        HOOK_NAME.into()
    }

    fn observe(&self, call: &HookContext<'_>, outcome: &Outcome) {
        let session = call.session();
        let mut response = describe_result(&outcome.result);
        self.redactor.redact_value(&mut response);
        let mut arguments = call.definition().display.mask_arguments(call.arguments());
        self.redactor.redact_value(&mut arguments);
        let elapsed = call.elapsed();
        let record = CallRecord {
            call: String::new(),
            session: session.id().to_owned(),
            user: session.user().map(str::to_owned),
            tool: call.definition().name.to_string(),
            arguments: limit_json(arguments),
            request: session.request().map(str::to_owned),
            status: call_status(&outcome.result),
            started_at: SystemTime::now() - elapsed.unwrap_or_default(),
            elapsed_ms: elapsed.map(crate::event::millis),
            response: Some(limit_json(response)),
        };
        let ended = RecorderInput::Ended { call: outcome.call.clone(), record: Box::new(record) };
        if self.sender.try_send(ended).is_err() {
            tracing::warn!(call = %outcome.call, "the history of calls is too slow; a result is not recorded");
        }
    }

    async fn finish(&self) {
        let (done, waits) = oneshot::channel();
        if self.sender.send(RecorderInput::Flush(done)).await.is_ok() {
            let _ = waits.await;
        }
    }

    fn on_error(&self) -> OnError {
        OnError::Ignore
    }
}

/// Returns whether the history has such events: not the output and the progress of a running tool,
/// and not that this hook runs.
fn is_recorded(kind: &EventKind) -> bool {
    match kind {
        EventKind::Output { .. } | EventKind::Progress { .. } => false,
        EventKind::HookStarted { hook } | EventKind::HookFinished(HookRun { hook, .. }) => {
            hook != HOOK_NAME
        }
        _ => true,
    }
}

fn call_status(result: &Result<Output, ToolError>) -> CallStatus {
    match result.as_ref().map_err(ToolError::kind) {
        Ok(_) => CallStatus::Completed,
        Err(ErrorKind::Aborted) => CallStatus::Aborted,
        Err(ErrorKind::Timeout) => CallStatus::TimedOut,
        Err(_) => CallStatus::Failed,
    }
}

/// Returns the result as the model got it. Of attachments it has the type and the size.
fn describe_result(result: &Result<Output, ToolError>) -> Value {
    let describe_output = |output: &Output| {
        let mut described = json!({ "text": output.as_text() });
        let attachments: Vec<Value> =
            output.attachments().iter().map(describe_attachment).collect();
        if !attachments.is_empty() {
            described["attachments"] = attachments.into();
        }
        described
    };
    match result {
        Ok(output) => describe_output(output),
        Err(error) => {
            let mut described = error.output().map_or_else(|| json!({}), describe_output);
            described["error"] = json!({ "kind": error.kind(), "message": error.message() });
            if let Some(hint) = error.suggestion() {
                described["error"]["hint"] = hint.into();
            }
            described
        }
    }
}

fn describe_attachment(attachment: &crate::content::Attachment) -> Value {
    let mut described = json!({ "mime": attachment.mime, "name": attachment.name });
    match &attachment.data {
        AttachmentData::Bytes(bytes) => described["bytes"] = bytes.len().into(),
        AttachmentData::Uri(uri) => described["uri"] = uri.as_str().into(),
    }
    described
}

/// Replaces a value whose JSON text is too long by the length of that text.
fn limit_json(value: Value) -> Value {
    match value.to_string().len() {
        0..=MAX_JSON_BYTES => value,
        bytes => json!({ "omitted_bytes": bytes }),
    }
}

/// The end of the recorder that writes.
struct RecordWriter {
    store: Box<dyn DynSessionStore>,
    redactor: Redactor,
    /// The start of the ids of this recorder.
    run: String,
    /// The calls that have not ended.
    calls: HashMap<String, RunningRecord>,
    has_failed: bool,
}

/// What is known of a call that has not ended, or of which the last event has not come yet.
struct RunningRecord {
    record: CallRecord,
    has_outcome: bool,
    has_terminal_event: bool,
}

impl RecordWriter {
    async fn run(mut self, mut inputs: mpsc::Receiver<RecorderInput>, mut events: Subscription) {
        let mut has_events = true;
        loop {
            tokio::select! {
                biased;
                event = events.recv(), if has_events => match event {
                    Some(event) => self.record_event(event).await,
                    None => has_events = false,
                },
                input = inputs.recv() => match input {
                    Some(RecorderInput::Ended { call, record }) => {
                        self.record_end(&call, *record).await;
                    }
                    Some(RecorderInput::Flush(done)) => {
                        while let Some(event) = events.try_recv() {
                            self.record_event(event).await;
                        }
                        let _ = done.send(());
                    }
                    None => return,
                },
            }
        }
    }

    async fn record_event(&mut self, event: ToolEvent) {
        if !is_recorded(&event.kind) {
            return;
        }
        let call = self.recorded_id(&event.call);
        let at = SystemTime::now();
        if !self.calls.contains_key(&call) && !event.kind.is_terminal() {
            let record = self.start_record(&call, &event, at);
            self.save(record.clone()).await;
            let running = RunningRecord { record, has_outcome: false, has_terminal_event: false };
            self.calls.insert(call.clone(), running);
        }
        let mut json = serde_json::to_value(&event).unwrap_or_default();
        self.redactor.redact_value(&mut json);
        let session = event.session.to_string();
        let entry = EventRecord { call: call.clone(), session, at, event: limit_json(json) };
        let saved = self.store.save_event(entry).await;
        self.report(saved);
        if event.kind.is_terminal()
            && let Some(running) = self.calls.get_mut(&call)
        {
            running.has_terminal_event = true;
            if running.has_outcome {
                self.calls.remove(&call);
            }
        }
    }

    /// Returns the record of a call that starts.
    fn start_record(&self, call: &str, event: &ToolEvent, at: SystemTime) -> CallRecord {
        let mut arguments = match &event.kind {
            EventKind::Pending { arguments, .. } => (**arguments).clone(),
            _ => Value::Null,
        };
        self.redactor.redact_value(&mut arguments);
        CallRecord {
            call: call.to_owned(),
            session: event.session.to_string(),
            user: event.ids.user.clone(),
            tool: event.tool.name.to_string(),
            arguments: limit_json(arguments),
            request: event.ids.request.clone(),
            status: CallStatus::Running,
            started_at: at,
            elapsed_ms: None,
            response: None,
        }
    }

    async fn record_end(&mut self, call: &CallId, mut record: CallRecord) {
        record.call = self.recorded_id(call);
        if let Some(running) = self.calls.get_mut(&record.call) {
            record.started_at = running.record.started_at;
            running.has_outcome = true;
            if running.has_terminal_event {
                self.calls.remove(&record.call);
            }
        }
        self.save(record).await;
    }

    fn recorded_id(&self, call: &CallId) -> String {
        format!("{}.{call}", self.run)
    }

    async fn save(&mut self, record: CallRecord) {
        let saved = self.store.save_call(record).await;
        self.report(saved);
    }

    /// Reports the first of several failures to the host.
    fn report(&mut self, saved: std::io::Result<()>) {
        match saved {
            Ok(()) => self.has_failed = false,
            Err(error) if !self.has_failed => {
                tracing::warn!(%error, "the history of calls cannot be written");
                self.has_failed = true;
            }
            Err(_) => {}
        }
    }
}

#[cfg(all(test, feature = "macros"))]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};
    use tool_sdk::{
        Call, CallRecord, CallStatus, MemorySessionStore, Output, Pipeline, Redactor, Registry,
        Session, SessionStore as _, tool, tools,
    };

    use super::{MAX_JSON_BYTES, SessionRecorder, limit_json};

    const SECRET: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";

    /// Say something back.
    #[tool(read, register = false)]
    fn echo_words(
        /// What to say.
        words: String,
        /// Not for others.
        #[arg(sensitive)]
        password: Option<String>,
    ) -> Output {
        let _ = password;
        Output::text(words).display(json!({ "shown": true }))
    }

    #[expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
    async fn recorded(calls: &[(&str, Value)]) -> (Arc<MemorySessionStore>, Vec<CallRecord>) {
        let registry = Registry::builder().add(tools![echo_words]).build().unwrap();
        let store = Arc::new(MemorySessionStore::default());
        let redactor = Redactor::new(["the-known-secret"]);
        let pipeline =
            SessionRecorder::attach(Pipeline::new(registry), Arc::clone(&store), redactor).unwrap();
        let session = Session::new("s").with_user("ada").with_request("r");
        for (tool, arguments) in calls {
            pipeline.call(&session, Call::new(*tool, arguments.clone())).await;
        }
        pipeline.finish().await;
        let calls = store.list_calls("s").await.unwrap();
        (store, calls)
    }

    #[tokio::test]
    async fn records_arguments_result_and_events() {
        let call = json!({ "words": "hello", "password": "hunter2" });
        let (store, calls) = recorded(&[("echo_words", call)]).await;
        let [call] = &*calls else { panic!("{calls:?}") };
        assert_eq!((&*call.tool, call.status), ("echo_words", CallStatus::Completed));
        assert_eq!((call.user.as_deref(), call.request.as_deref()), (Some("ada"), Some("r")));
        assert_eq!(call.response, Some(json!({ "text": "hello" })));
        assert!(call.elapsed_ms.is_some());
        let arguments = call.arguments.to_string();
        assert!(arguments.contains("hello") && !arguments.contains("hunter2"), "{arguments}");
        let events = store.list_events(&call.call).await.unwrap();
        let kinds: Vec<_> = events.iter().filter_map(|it| it.event["type"].as_str()).collect();
        assert_eq!((kinds.first(), kinds.last()), (Some(&"pending"), Some(&"completed")));
        assert_eq!(events.last().unwrap().event["data"], json!({ "shown": true }));
    }

    #[tokio::test]
    async fn records_failures_and_redacts_secrets() {
        let (store, calls) = recorded(&[
            ("echo_words", json!({ "words": format!("the-known-secret {SECRET}") })),
            ("echo_words", json!({ "word": SECRET })),
            ("absent_tool", json!({})),
        ])
        .await;
        let statuses: Vec<_> = calls.iter().map(|it| it.status).collect();
        assert_eq!(statuses[..2], [CallStatus::Completed, CallStatus::Failed]);
        let mut all = serde_json::to_string(&calls).unwrap();
        for call in &calls {
            let events = store.list_events(&call.call).await.unwrap();
            all.push_str(&serde_json::to_string(&events).unwrap());
        }
        assert!(!all.contains("the-known-secret") && !all.contains(SECRET), "{all}");
        assert_eq!(calls[1].response.as_ref().unwrap()["error"]["kind"], "invalid_args");
    }

    #[test]
    fn long_values_are_replaced_by_their_size() {
        assert_eq!(limit_json(json!("x")), json!("x"));
        let long = limit_json(json!("x".repeat(MAX_JSON_BYTES)));
        assert_eq!(long, json!({ "omitted_bytes": MAX_JSON_BYTES + 2 }));
    }
}
