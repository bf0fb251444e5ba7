//! An editor: it starts the program, and keeps what the program sends.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, LazyLock, Mutex};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ClientCapabilities, ContentBlock, CreateElicitationRequest, CreateElicitationResponse,
    ElicitationAcceptAction, ElicitationAction, ElicitationCapabilities, ElicitationContentValue,
    ElicitationFormCapabilities, InitializeRequest, InitializeResponse, NewSessionRequest,
    PromptRequest, RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    SelectedPermissionOutcome, SessionId, SessionNotification, SessionUpdate, StopReason,
};
use agent_client_protocol::{
    Agent, Client, Error, Lines, on_receive_notification, on_receive_request,
};
use futures_util::{Sink, Stream, sink, stream};
use http_stub::{HttpStub, RecordedRequest, StubReply};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Notify;

use crate::chat::stream_reply;

/// A folder with `notes.txt`, one for the state of the program, and a model.
pub(super) struct EditorFolder {
    folder: tempfile::TempDir,
    pub(super) model: Arc<HttpStub>,
    /// Options of the program.
    pub(super) options: Vec<String>,
    /// Options of the command.
    pub(super) args: Vec<String>,
}

impl EditorFolder {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("work")).expect("a folder in it");
        std::fs::write(folder.path().join("work/notes.txt"), "helo world\n").expect("a file");
        let model = Arc::new(HttpStub::start(answer_request));
        Self { folder, model, options: Vec::new(), args: Vec::new() }
    }

    pub(super) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(super) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(super) fn notes(&self) -> String {
        std::fs::read_to_string(self.work().join("notes.txt")).expect("the file is there")
    }

    pub(super) fn model_args(&self) -> [String; 4] {
        let url = self.model.url().replace("/mcp", "/v1");
        ["--model", "openai-chat/test-1", "--model-url", &url].map(str::to_owned)
    }

    pub(super) fn start_program(&self) -> Child {
        Command::new(env!("CARGO_BIN_EXE_tool-std"))
            .args(["--config", "/dev/null", "--state-dir"])
            .arg(self.state())
            .args(&self.options)
            .args(["serve", "acp"])
            .args(self.model_args())
            .args(&self.args)
            .env("OPENAI_API_KEY", "k-1")
            .current_dir(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts")
    }

    /// Starts the program, initializes the connection, and runs `scenario`. The program ends with
    /// the connection.
    pub(super) async fn run<R>(
        &self,
        scenario: impl AsyncFnOnce(ConnectedEditor) -> Result<R, Error>,
    ) -> R {
        self.run_with(ClientCapabilities::new(), async |editor, _| scenario(editor).await).await
    }

    pub(super) async fn run_with<R>(
        &self,
        capabilities: ClientCapabilities,
        scenario: impl AsyncFnOnce(ConnectedEditor, InitializeResponse) -> Result<R, Error>,
    ) -> R {
        let mut program = self.start_program();
        let records = Arc::new(EditorRecords::default());
        let (input, output) = (program.stdin.take(), program.stdout.take());
        let lines = Lines::new(
            write_lines(input.expect("a pipe"), Arc::clone(&records)),
            read_lines(output.expect("a pipe"), Arc::clone(&records)),
        );
        let (updates, asks, forms) =
            (Arc::clone(&records), Arc::clone(&records), Arc::clone(&records));
        let seen = Arc::clone(&records);
        let result = Client
            .v1()
            .on_receive_notification(
                async move |update: SessionNotification, _| {
                    updates.updates.lock().expect("no panic").push(update.update);
                    updates.changed.notify_waiters();
                    Ok(())
                },
                on_receive_notification!(),
            )
            .on_receive_request(
                async move |request: RequestPermissionRequest, responder, _| {
                    let choice = asks.choice.lock().expect("no panic").clone();
                    asks.permissions.lock().expect("no panic").push(request);
                    asks.changed.notify_waiters();
                    match choice {
                        PermissionChoice::Select(id) => responder.respond(select(id)),
                        PermissionChoice::Cancel => responder.respond(
                            RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled),
                        ),
                        PermissionChoice::Wait => {
                            asks.open.lock().expect("no panic").push(Box::new(responder));
                            Ok(())
                        }
                    }
                },
                on_receive_request!(),
            )
            .on_receive_request(
                async move |request: CreateElicitationRequest, responder, _| {
                    forms.forms.lock().expect("no panic").push(request.message);
                    let answer = (
                        "answer".to_owned(),
                        ElicitationContentValue::String("the left one".to_owned()),
                    );
                    let action = ElicitationAcceptAction::new()
                        .content(std::collections::BTreeMap::from([answer]));
                    responder
                        .respond(CreateElicitationResponse::new(ElicitationAction::Accept(action)))
                },
                on_receive_request!(),
            )
            .connect_with(lines, async |connection: ConnectionTo<Agent>| {
                let initialize =
                    InitializeRequest::new(ProtocolVersion::V1).client_capabilities(capabilities);
                let agent = connection.send_request(initialize).block_task().await?;
                scenario(ConnectedEditor { connection, records: Arc::clone(&seen) }, agent).await
            })
            .await;
        let status = program.wait().await.expect("the program ends");
        records.check_messages();
        assert!(status.success(), "{status}");
        result.unwrap_or_else(|error| panic!("{error:?}"))
    }
}

/// How the editor answers permission requests.
#[derive(Clone, Debug, Default)]
pub(super) enum PermissionChoice {
    Select(&'static str),
    Cancel,
    #[default]
    Wait,
}

/// What the program has sent.
#[derive(Default)]
pub(super) struct EditorRecords {
    pub(super) updates: Mutex<Vec<SessionUpdate>>,
    pub(super) permissions: Mutex<Vec<RequestPermissionRequest>>,
    pub(super) forms: Mutex<Vec<String>>,
    choice: Mutex<PermissionChoice>,
    /// Requests that are never answered.
    open: Mutex<Vec<Box<dyn std::any::Any + Send>>>,
    changed: Notify,
    /// Lines of the program.
    received: Mutex<Vec<Value>>,
    /// The method of each request of the editor, by its id.
    methods: Mutex<HashMap<String, String>>,
}

/// A connected editor.
pub(super) struct ConnectedEditor {
    pub(super) connection: ConnectionTo<Agent>,
    pub(super) records: Arc<EditorRecords>,
}

impl ConnectedEditor {
    pub(super) async fn open(&self, folder: &Path) -> Result<SessionId, Error> {
        let opened = self.connection.send_request(NewSessionRequest::new(folder)).block_task();
        Ok(opened.await?.session_id)
    }

    pub(super) async fn prompt(
        &self,
        session: &SessionId,
        text: &str,
    ) -> Result<StopReason, Error> {
        self.prompt_with(session, vec![ContentBlock::from(text)]).await
    }

    pub(super) async fn prompt_with(
        &self,
        session: &SessionId,
        blocks: Vec<ContentBlock>,
    ) -> Result<StopReason, Error> {
        let request = PromptRequest::new(session.clone(), blocks);
        Ok(self.connection.send_request(request).block_task().await?.stop_reason)
    }

    pub(super) fn choose(&self, choice: PermissionChoice) {
        *self.records.choice.lock().expect("no panic") = choice;
    }

    /// Waits until `is_there` holds for what the program has sent.
    pub(super) async fn until(&self, is_there: impl Fn(&EditorRecords) -> bool) {
        loop {
            let changed = self.records.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if is_there(&self.records) {
                return;
            }
            changed.await;
        }
    }

    /// Takes the updates so far.
    pub(super) fn take_updates(&self) -> Vec<SessionUpdate> {
        std::mem::take(&mut self.records.updates.lock().expect("no panic"))
    }

    pub(super) fn take_permissions(&self) -> Vec<RequestPermissionRequest> {
        std::mem::take(&mut self.records.permissions.lock().expect("no panic"))
    }
}

/// Returns the capabilities of an editor that shows forms.
pub(super) fn with_forms() -> ClientCapabilities {
    let forms = ElicitationCapabilities::new().form(ElicitationFormCapabilities::new());
    ClientCapabilities::new().elicitation(forms)
}

fn select(id: &'static str) -> RequestPermissionResponse {
    let selected = SelectedPermissionOutcome::new(id);
    RequestPermissionResponse::new(RequestPermissionOutcome::Selected(selected))
}

/// Returns the text of the model in these updates.
pub(super) fn agent_text(updates: &[SessionUpdate]) -> String {
    let text = |update: &SessionUpdate| match update {
        SessionUpdate::AgentMessageChunk(chunk) => match &chunk.content {
            ContentBlock::Text(text) => Some(text.text.clone()),
            _ => None,
        },
        _ => None,
    };
    updates.iter().filter_map(text).collect()
}

/// Returns the names of these updates in the protocol.
pub(super) fn update_names(updates: &[SessionUpdate]) -> Vec<String> {
    let name = |update| {
        let update = serde_json::to_value(update).expect("an update is JSON");
        update["sessionUpdate"].as_str().unwrap_or_default().to_owned()
    };
    updates.iter().map(name).collect()
}

fn write_lines(
    input: ChildStdin,
    records: Arc<EditorRecords>,
) -> impl Sink<String, Error = io::Error> + Send + 'static {
    Box::pin(sink::unfold((input, records), async |(mut input, records), line: String| {
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        if let (Some(method), id @ (Value::String(_) | Value::Number(_))) =
            (message["method"].as_str(), &message["id"])
        {
            let mut methods = records.methods.lock().expect("no panic");
            methods.insert(id.to_string(), method.to_owned());
        }
        input.write_all(format!("{line}\n").as_bytes()).await?;
        input.flush().await?;
        Ok((input, records))
    }))
}

fn read_lines(
    output: ChildStdout,
    records: Arc<EditorRecords>,
) -> impl Stream<Item = io::Result<String>> + Send + 'static {
    let lines = BufReader::new(output).lines();
    Box::pin(stream::unfold((lines, records), async |(mut lines, records)| {
        let line = lines.next_line().await.transpose()?;
        if let Ok(line) = &line {
            let message = serde_json::from_str(line).expect("standard output is JSON lines");
            records.received.lock().expect("no panic").push(message);
        }
        Some((line, (lines, records)))
    }))
}

impl EditorRecords {
    /// Returns the lines of the program.
    pub(super) fn received(&self) -> Vec<Value> {
        self.received.lock().expect("no panic").clone()
    }

    /// Checks every message of the program against the schema of the protocol.
    fn check_messages(&self) {
        let methods = self.methods.lock().expect("no panic");
        for message in self.received() {
            assert_eq!(message["jsonrpc"], "2.0", "{message}");
            if let Some(definition) = message["method"].as_str().map(params_definition) {
                check_schema(definition, &message["params"]);
            } else if message.get("result").is_some() {
                let method = &methods[&message["id"].to_string()];
                check_schema(result_definition(method), &message["result"]);
            } else {
                check_schema("Error", &message["error"]);
            }
        }
    }
}

fn params_definition(method: &str) -> &'static str {
    match method {
        "session/update" => "SessionNotification",
        "session/request_permission" => "RequestPermissionRequest",
        "elicitation/create" => "CreateElicitationRequest",
        "$/cancel_request" => "CancelRequestNotification",
        other => panic!("the program sent `{other}`"),
    }
}

fn result_definition(method: &str) -> &'static str {
    match method {
        "initialize" => "InitializeResponse",
        "session/new" => "NewSessionResponse",
        "session/load" => "LoadSessionResponse",
        "session/resume" => "ResumeSessionResponse",
        "session/list" => "ListSessionsResponse",
        "session/close" => "CloseSessionResponse",
        "session/set_mode" => "SetSessionModeResponse",
        "session/prompt" => "PromptResponse",
        other => panic!("the editor sent `{other}`"),
    }
}

#[track_caller]
fn check_schema(definition: &str, value: &Value) {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
        let text = include_str!("../../fixtures/acp-schema/schema.json");
        serde_json::from_str(text).expect("the schema is JSON")
    });
    static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<jsonschema::Validator>>>> =
        LazyLock::new(Mutex::default);
    assert!(SCHEMA["$defs"].get(definition).is_some(), "the schema has no `{definition}`");
    let mut validators = VALIDATORS.lock().expect("no panic");
    let validator = validators.entry(definition.to_owned()).or_insert_with(|| {
        let schema = json!({ "$defs": SCHEMA["$defs"], "$ref": format!("#/$defs/{definition}") });
        Arc::new(jsonschema::validator_for(&schema).expect("the schema is valid"))
    });
    let validator = Arc::clone(validator);
    drop(validators);
    let errors: Vec<String> = validator.iter_errors(value).map(|it| it.to_string()).collect();
    assert!(errors.is_empty(), "{definition}: {errors:?}: {value}");
}

/// Answers as a model that does what the last prompt names.
fn answer_request(request: &RecordedRequest) -> StubReply {
    let messages = request.message["messages"].as_array().cloned().unwrap_or_default();
    let last = messages.iter().rposition(|it| it["role"] == "user").unwrap_or_default();
    let said = match &messages[last]["content"] {
        Value::String(text) => text.clone(),
        parts => parts.to_string(),
    };
    let results = messages[last..].iter().filter(|it| it["role"] == "tool").count();
    let call = |name: &str, arguments: Value| {
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        json!({ "tool_calls": [{ "index": 0, "id": format!("c{results}"), "function": function }] })
    };
    let calls = |call: Value| stream_reply(&[call], "tool_calls");
    let says = |text: &str| stream_reply(&[json!({ "content": text })], "stop");
    let edit = json!({ "path": "notes.txt", "old_string": "helo", "new_string": "hello" });
    let plan = |status| json!({ "plan": [{ "step": "fix the typo", "status": status }] });
    match (said.split(':').next().unwrap_or_default(), results) {
        ("typo", 0) => stream_reply(
            &[
                json!({ "reasoning_content": "Where is it?" }),
                json!({ "content": "I look. " }),
                call("read_file", json!({ "path": "notes.txt" })),
            ],
            "tool_calls",
        ),
        ("typo", 1) => calls(call("update_plan", plan("in_progress"))),
        ("typo", 2) => calls(call("edit_file", edit)),
        ("edit", 0) => calls(call("edit_file", edit)),
        ("edit back", 0) => {
            let back = json!({ "path": "notes.txt", "old_string": "hello", "new_string": "helo" });
            calls(call("edit_file", back))
        }
        ("run", 0) => calls(call("exec_command", json!({ "cmd": "sleep 600" }))),
        ("ask", 0) => calls(call("ask_clarification", json!({ "question": "Which one?" }))),
        ("plan", 0) => calls(call("plan_enter", json!({}))),
        ("unknown", 0) => calls(call("no_such_tool", json!({}))),
        ("foreign", 0) => calls(call("mcp__other__read_file", json!({ "path": "notes.txt" }))),
        ("wait", 0) => StubReply::Hang,
        ("count", 0) => {
            let numbers = (0..2_000).map(|number| json!({ "content": format!("{number} ") }));
            stream_reply(&numbers.collect::<Vec<_>>(), "stop")
        }
        ("loop", _) => calls(call("read_file", json!({ "path": "notes.txt", "offset": 1 }))),
        ("ask" | "foreign", _) => {
            let result = messages.last().map(|it| it["content"].clone()).unwrap_or_default();
            says(result.as_str().unwrap_or_default())
        }
        (_, 0) => says("Hello"),
        _ => says("I am done."),
    }
}
