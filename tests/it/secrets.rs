//! A secret that a tool has read is planted everywhere that a tool can put text, and found nowhere.

#![expect(clippy::unwrap_used, reason = "a step that cannot be taken fails the test")]

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tool_sdk::hook::ExternalHooks;
use tool_sdk::{
    ApprovalRequest, ApprovalResponse, Approver, Attachment, AuditLog, Call, Context, ErrorKind,
    Hook, HookContext, HookPriority, Inquiry, Mode, Outcome, Output, Pipeline, Registry,
    ScriptedAnswers, SecretStore, SecretValue, Session, Subscription, ToolError, tool, tools,
};

const SECRET: &str = "Zx9\"q8w7 e6r5t4\\y3";
/// A part that is left when the secret is escaped or cut.
const PART: &str = "q8w7 e6r5t4";

/// Where the tool puts the secret.
const PLACES: &[&str] = &[
    "text",
    "json_text",
    "structured",
    "title",
    "metadata",
    "display",
    "attachment_bytes",
    "attachment_uri",
    "attachment_name",
    "long_text",
    "error",
    "error_hint",
    "error_source",
    "error_output",
    "panic",
    "progress",
    "fact",
    "event",
    "output",
    "output_in_parts",
    "question",
    "permission",
    "nested_argument",
];

/// Put a secret somewhere.
#[tool(execute, register = false, max_output = "4 KiB")]
async fn spill(
    /// Where to put it.
    place: String,
    cx: &Context,
) -> Result<Output, ToolError> {
    let secret = cx.secret("PLANTED_KEY").await?;
    let secret = secret.expose();
    let output = Output::text("done");
    Ok(match &*place {
        "text" => Output::text(format!("the key is {secret}")),
        "json_text" => Output::json(&json!({ "key": secret })).map_err(ToolError::from_error)?,
        "structured" => output.structured(json!({ "keys": [secret], secret: 1 })),
        "title" => output.title(secret),
        "metadata" => output.metadata("key", secret),
        "display" => output.display(json!({ "key": secret })),
        "attachment_bytes" => output.attach(Attachment::bytes("text/plain", secret.into())),
        "attachment_uri" => output.attach(Attachment::uri("text/plain", format!("x:{secret}"))),
        "attachment_name" => {
            output.attach(Attachment::bytes("text/plain", Vec::new()).with_name(secret))
        }
        "long_text" => Output::text(format!("{secret}\n").repeat(1000)),
        "error" => return Err(ToolError::failed(secret)),
        "error_hint" => return Err(ToolError::failed("no").hint(secret)),
        "error_source" => return Err(ToolError::failed("no").source(secret.to_owned())),
        "error_output" => return Err(ToolError::failed("no").with_output(Output::text(secret))),
        "panic" => panic!("the key is {secret}"),
        "progress" => {
            cx.progress(1, None, secret);
            output
        }
        "fact" => {
            cx.set_metadata("key", secret);
            output
        }
        "event" => {
            cx.emit("key", json!({ "key": secret }));
            output
        }
        "output" => {
            cx.emit_output(secret);
            output
        }
        "output_in_parts" => {
            let (first, second) = secret.split_at(7);
            cx.emit_output(first);
            cx.emit_output(second);
            output
        }
        "question" => {
            let form = json!({ "type": "object", "properties": { secret: { "title": secret } } });
            let _ = cx.inquire([("form", Inquiry::form(secret, form))]).await;
            output
        }
        "permission" => {
            let is_allowed = cx.request_permission("network", secret).await;
            Output::text(is_allowed.to_string())
        }
        "nested_argument" => {
            let nested = cx.call(Call::new("echo", json!({ "text": secret }))).await;
            return nested.result;
        }
        other => return Err(ToolError::failed(format_args!("no place {other}"))),
    })
}

/// Repeat a text.
#[tool(execute, register = false)]
fn echo(
    /// The text.
    text: String,
) -> String {
    text
}

/// Remembers what hooks and approvers are shown.
#[derive(Clone, Default)]
struct CallRecorder(Arc<Mutex<String>>);

impl CallRecorder {
    fn note(&self, seen: impl std::fmt::Debug) {
        self.0.lock().unwrap().push_str(&format!("{seen:?}\n"));
    }
}

impl Hook for CallRecorder {
    async fn after(
        &self,
        call: &HookContext<'_>,
        result: &mut Result<Output, ToolError>,
    ) -> Result<(), ToolError> {
        self.note((&call.definition().name, &result));
        Ok(())
    }

    fn observe(&self, _: &HookContext<'_>, outcome: &Outcome) {
        self.note(&outcome.result);
    }
}

impl Approver for CallRecorder {
    fn request_approval(
        &self,
        ask: Arc<ApprovalRequest>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
        self.note((&ask, ask.prompt().text));
        Box::pin(std::future::ready(Some(ApprovalResponse::Once)))
    }
}

/// A pipeline with everything that writes down what calls do.
struct SecretHost {
    pipeline: Pipeline,
    session: Session,
    events: Subscription,
    recorder: CallRecorder,
    script: Arc<ScriptedAnswers>,
    folder: tempfile::TempDir,
}

impl SecretHost {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let payloads = folder.path().join("payloads");
        let hook = json!([{ "hooks": [
            { "type": "command", "command": format!("cat >> {}", payloads.display()) },
        ] }]);
        let config = json!({ "hooks": { "PreToolUse": hook, "PostToolUse": hook } });
        let (commands, mistakes) = ExternalHooks::from_json(&config.to_string());
        assert!(mistakes.is_empty(), "{mistakes:?}");
        let store = SecretStore::default();
        let recorder = CallRecorder::default();
        let audit = folder.path().join("audit.jsonl");
        let outputs = folder.path().join("outputs");
        let registry = Registry::builder().add(tools![spill, echo]).build().unwrap();
        let pipeline = Pipeline::new(registry)
            .mode(Mode::Auto)
            .approver(recorder.clone())
            .hook("*", HookPriority::DEFAULT, recorder.clone())
            .hook("*", HookPriority::DEFAULT, commands)
            .audit(AuditLog::open(audit, store.redactor().clone()).unwrap())
            .redact_events(store.redactor().clone())
            .output_dir(outputs);
        let script = Arc::new(ScriptedAnswers::new([]));
        let session = Session::new("s1")
            .with_service(store.clone())
            .with_inquiry_handler(Arc::clone(&script) as _);
        let value = SecretValue::new(SECRET);
        store.set_for_session(&session, "PLANTED_KEY", value, true).unwrap();
        let events = pipeline.subscribe();
        Self { pipeline, session, events, recorder, script, folder }
    }

    /// Returns everything that the host, the user and the model got to see, by where it was seen.
    fn seen(&mut self, outcome: &Outcome) -> Vec<(&'static str, String)> {
        let events = std::iter::from_fn(|| self.events.try_recv());
        let events: Vec<String> =
            events.map(|event| format!("{} {event:?}", json!(event))).collect();
        let result = format!("{} {:?} {:?}", outcome.text(), outcome, outcome.result);
        let bytes = outcome.result.iter().flat_map(|output| output.attachments());
        let bytes: Vec<String> = bytes.map(|it| json!(it).to_string()).collect();
        vec![
            ("result", result),
            ("attachments", bytes.join("\n")),
            ("events", events.join("\n")),
            ("hooks and prompts", self.recorder.0.lock().unwrap().clone()),
            ("questions", format!("{:?}", self.script.asked_forms())),
            ("files", texts_below(self.folder.path())),
        ]
    }
}

/// Returns the texts of all files: audit log, payloads of hooks, whole outputs.
fn texts_below(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => text += &texts_below(&path),
            false => text += &String::from_utf8_lossy(&std::fs::read(&path).unwrap()),
        }
    }
    text
}

fn assert_hidden(place: &str, seen: &[(&str, String)]) {
    for (by, text) in seen {
        assert!(!text.contains(PART), "{place}: seen in {by}: {text}");
    }
}

// F154: results, errors, panics, display data, events, audit log, hook payloads, prompts, questions
// and stored outputs.
#[tokio::test]
async fn a_planted_secret_is_seen_nowhere() {
    for &place in PLACES {
        let mut host = SecretHost::new();
        let call = Call::new("spill", json!({ "place": place }));
        let outcome = host.pipeline.call(&host.session, call).await;
        assert!(!outcome.text().contains("no place"), "{place}");
        host.pipeline.finish().await;
        let seen = host.seen(&outcome);
        assert_hidden(place, &seen);
        let by = |by: &str| seen.iter().find(|(it, _)| *it == by).map(|(_, text)| text.as_str());
        assert!(by("files").is_some_and(|text| text.contains("spill")), "the files are written");
        assert!(by("events").is_some_and(|text| text.contains("spill")), "the events are read");
    }
}

// F154: a model that knows a secret cannot pass it on to a tool, in any spelling.
#[tokio::test]
async fn arguments_with_a_secret_are_refused() {
    let escaped: String = SECRET.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    for arguments in [
        json!({ "text": format!("key={SECRET}.") }).to_string(),
        format!("{{\"text\": \"{escaped}\"}}"),
        json!({ "text": "x", SECRET: "x" }).to_string(),
    ] {
        let mut host = SecretHost::new();
        let outcome = host.pipeline.call(&host.session, Call::new("echo", arguments)).await;
        let error = outcome.result.as_ref().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgs);
        host.pipeline.finish().await;
        assert_hidden("arguments", &host.seen(&outcome));
    }
}

// F154: a host without a redactor and without a store of its own is protected as well.
#[tokio::test]
async fn the_store_in_memory_hides_too() {
    let registry = Registry::builder().add(tools![spill, echo]).build().unwrap();
    let pipeline = Pipeline::new(registry).mode(Mode::Bypass);
    let session = Session::new("s1");
    let missing = pipeline.call(&session, Call::new("spill", json!({ "place": "text" }))).await;
    assert_eq!(missing.result.unwrap_err().kind(), ErrorKind::Config);
    let value = SecretValue::new(SECRET);
    session.secrets().set_for_session(&session, "PLANTED_KEY", value, true).unwrap();
    for place in ["text", "event", "output_in_parts"] {
        let mut events = pipeline.subscribe();
        let outcome = pipeline.call(&session, Call::new("spill", json!({ "place": place }))).await;
        let seen: Vec<Value> =
            std::iter::from_fn(|| events.try_recv()).map(|it| json!(it)).collect();
        assert_hidden(
            place,
            &[("result", outcome.text().into_owned()), ("events", json!(seen).to_string())],
        );
    }
}
