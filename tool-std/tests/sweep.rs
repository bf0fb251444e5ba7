//! A sweep over all standard tools: each has a call that succeeds, and is tried with bad arguments,
//! with a rule that denies it, and with a call that was cancelled.
//!
//! A new tool without a row in [`successful_calls`] fails the sweep.

#![cfg(all(unix, feature = "application"))]
#![expect(clippy::unwrap_used, reason = "a step that cannot be taken fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, LazyLock};

use futures_util::FutureExt as _;
use http_stub::{HttpStub, StubReply};
use serde_json::{Value, json};
use tool_sdk::agent::{PromptSections, SteeringQueue};
use tool_sdk::mcp::{ServerCommand, ServerConfig, ServerManager};
use tool_sdk::net::{GuardedClient, WebSettings};
use tool_sdk::process::{BackgroundCommand, BackgroundProcesses};
use tool_sdk::{
    Action, Call, CancellationToken, Context, ElicitationOutcome, ErrorKind, EventKind,
    InProcessMemoryStore, Ledger, MemoryHandle, Mode, NoteDraft, Outcome, Pipeline, ProgramFolders,
    Registry, Rule, ScriptedAnswers, SecretValue, Session, ToolError, Workspace,
};
use tool_std::web::{SearchHit, SearchProvider, SearchProviders, SearchQuery};

tool_sdk::link!(tool_std);

/// A server of the Model Context Protocol with one tool, one resource and one prompt.
const SERVER: &str = r#"
    while read -r line; do
        id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
        say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
        case "$line" in
        *'"initialize"'*) say '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{},"prompts":{}},"serverInfo":{"name":"x","version":"1"}}' ;;
        *server/discover*) say '"error":{"code":-32601,"message":"no"}' ;;
        *tools/list*) say '"result":{"tools":[{"name":"hello","inputSchema":{"type":"object"}}]}' ;;
        *resources/templates/list*) say '"result":{"resourceTemplates":[]}' ;;
        *resources/list*) say '"result":{"resources":[{"uri":"notes://today","name":"today"}]}' ;;
        *resources/read*) say '"result":{"contents":[{"uri":"notes://today","text":"tea"}]}' ;;
        *prompts/list*) say '"result":{"prompts":[{"name":"sum"}]}' ;;
        *prompts/get*) say '"result":{"messages":[{"role":"user","content":{"type":"text","text":"add"}}]}' ;;
        esac
    done
"#;

/// A server with one page.
static PAGE: LazyLock<HttpStub> = LazyLock::new(|| {
    HttpStub::start(|_| {
        let head = "200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4";
        StubReply::Raw(format!("{head}\r\nConnection: close\r\n\r\npage"))
    })
});

/// A server that answers every request of the API of GitHub with an empty object.
static GITHUB: LazyLock<HttpStub> = LazyLock::new(|| {
    HttpStub::start(|_| {
        let head = "200 OK\r\nContent-Type: application/json\r\nContent-Length: 2";
        StubReply::Raw(format!("{head}\r\nConnection: close\r\n\r\n{{}}"))
    })
});

/// A provider of web search without results.
struct EmptyProvider;

impl SearchProvider for EmptyProvider {
    fn name(&self) -> &'static str {
        "empty"
    }

    async fn search(&self, _: &SearchQuery, _: &Context) -> Result<Vec<SearchHit>, ToolError> {
        Ok(Vec::new())
    }
}

/// Settings with which the tools reach this machine.
fn web_settings() -> WebSettings {
    let mut settings = WebSettings::default();
    settings.urls.named_hosts.push("127.0.0.1".parse().unwrap());
    settings.github = GITHUB.url().parse().unwrap();
    settings
}

/// Returns a call of each tool that succeeds in the folder of [`SweepHost`]. `process` is a command
/// that runs in the background.
fn successful_calls(process: u32) -> BTreeMap<&'static str, Value> {
    let patch = "*** Begin Patch\n*** Add File: new.txt\n+text\n*** End Patch";
    let mut calls = BTreeMap::from([
        ("apply_patch", json!({ "input": patch })),
        ("ask_clarification", json!({ "question": "which one?" })),
        ("check_env_vars", json!({ "required_vars": ["PATH"] })),
        ("debug_mcp_server", json!({})),
        ("edit_file", json!({ "path": "a.txt", "old_string": "two", "new_string": "2" })),
        ("exec_command", json!({ "cmd": "echo done" })),
        ("get_env_var", json!({ "variable_name": "SWEPT" })),
        ("glob_files", json!({ "pattern": "*.txt" })),
        ("grep_files", json!({ "pattern": "one" })),
        ("kill_session", json!({ "session_id": process })),
        ("list_dir", json!({ "path": "." })),
        ("list_sessions", json!({})),
        ("mcp_prompt_get", json!({ "server": "notes", "name": "sum" })),
        ("mcp_resource_list", json!({ "server": "notes" })),
        ("mcp_resource_read", json!({ "server": "notes", "uri": "notes://today" })),
        ("memory_create", json!({ "content": "a fact" })),
        ("memory_delete", json!({ "id": "kept-note" })),
        ("memory_get", json!({ "id": "kept-note" })),
        ("memory_search", json!({ "query": "kept" })),
        ("memory_update", json!({ "id": "kept-note", "version": 1, "content": "new" })),
        ("mutation_begin", json!({ "action": "sweep" })),
        ("mutation_record", json!({ "transaction_id": "m0", "phase": "applied" })),
        ("mutation_status", json!({})),
        ("github_comment", json!({ "repo": "o/r", "number": 1, "body": "text" })),
        ("github_create_issue", json!({ "repo": "o/r", "title": "text" })),
        ("github_list_issues", json!({ "repo": "o/r" })),
        ("github_list_pull_requests", json!({ "repo": "o/r" })),
        ("github_read_file", json!({ "repo": "o/r", "path": "a.rs" })),
        ("github_read_issue", json!({ "repo": "o/r", "number": 1 })),
        ("github_read_pull_request", json!({ "repo": "o/r", "number": 1 })),
        ("github_search", json!({ "query": "text" })),
        ("modify_prompt", json!({ "section": "s", "text": "Be brief." })),
        ("notify_self", json!({ "message": "m" })),
        ("inject_context", json!({ "text": "m" })),
        ("log", json!({ "message": "m" })),
        ("set_state", json!({ "key": "k", "value": 1 })),
        ("emit_event", json!({ "kind": "k" })),
        ("reaction_list", json!({})),
        ("reaction_check", json!({})),
        ("plan_enter", json!({ "plan": "1. read" })),
        ("plan_exit", json!({})),
        ("plan_update", json!({ "plan": "1. read" })),
        ("plugin_manager", json!({ "action": "list" })),
        ("read_file", json!({ "path": "a.txt" })),
        (
            "register_mcp_server",
            json!({ "name": "greeter", "command": "sh", "args": ["-c", SERVER] }),
        ),
        (
            "request_decision",
            json!({ "question": "which?", "options": [{ "label": "a" }, { "label": "b" }] }),
        ),
        ("request_env_var", json!({ "fields": [{ "variable_name": "KEY" }] })),
        ("shell", json!({ "command": ["echo", "done"] })),
        ("shell_command", json!({ "command": "echo done" })),
        ("skill", json!({ "name": "kept-skill" })),
        ("skill_create", json!({ "name": "new", "description": "new", "body": "new" })),
        ("skill_install", json!({ "source": "source" })),
        ("skill_list", json!({})),
        ("skill_remove", json!({ "name": "kept-skill" })),
        ("skill_update", json!({ "name": "kept-skill", "body": "new" })),
        ("todo_read", json!({})),
        ("todo_write", json!({ "todos": [{ "content": "read" }] })),
        ("tool_search", json!({ "query": "file" })),
        ("update_plan", json!({ "plan": [{ "step": "read", "status": "pending" }] })),
        ("web_fetch", json!({ "url": PAGE.url() })),
        ("web_search", json!({ "query": "page" })),
        ("write_file", json!({ "path": "b.txt", "content": "text" })),
        ("write_stdin", json!({ "session_id": process, "chars": "x\n", "wait_for": "x" })),
    ]);
    if cfg!(feature = "code-tools") {
        calls.extend([
            ("find_definition", json!({ "name": "one" })),
            ("find_references", json!({ "name": "one" })),
            ("get_repo_map", json!({})),
            ("list_symbols", json!({ "path": "a.py" })),
            ("search_code", json!({ "query": "one" })),
        ]);
    }
    calls
}

/// The tools that ask in every mode, because what they change counts in later sessions.
const ASKING: [&str; 5] =
    ["register_mcp_server", "skill_create", "skill_install", "skill_remove", "skill_update"];

/// A pipeline over all tools, in a folder of its own.
struct SweepHost {
    pipeline: Pipeline,
    session: Session,
    process: u32,
    _folders: [tempfile::TempDir; 2],
}

impl SweepHost {
    fn new(rules: impl IntoIterator<Item = Rule>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), "one\ntwo\n").unwrap();
        std::fs::write(folder.path().join("a.py"), "one = 1\n").unwrap();
        write_skill(&folder.path().join("source"), "swept-skill");
        let state = tempfile::tempdir().unwrap();
        write_skill(&state.path().join("skills/kept-skill"), "kept-skill");
        let mut program_folders = ProgramFolders::default();
        program_folders.state = Some(state.path().to_owned());
        let rules = ASKING.map(|tool| Rule::new(Action::Allow, tool, "*")).into_iter().chain(rules);
        let pipeline = Pipeline::new(all_tools()).mode(Mode::Bypass).rules(rules);
        let servers = ServerManager::for_pipeline(&pipeline);
        let notes = ServerCommand::new("sh", ["-c", SERVER]);
        servers.add(ServerConfig::new("notes", notes).unwrap()).unwrap();
        let session = Session::new("sweep")
            .with_service(Workspace::open([folder.path()]).unwrap())
            .with_service(servers)
            .with_service(memory_with_note())
            .with_service(program_folders)
            .with_service(GuardedClient::new(web_settings()))
            .with_service(SteeringQueue::default())
            .with_service(PromptSections::default())
            .with_service(SearchProviders::default().with_provider(EmptyProvider))
            .with_inquiry_handler(Arc::new(ScriptedAnswers::new([ElicitationOutcome::Declined])));
        let value = SecretValue::new("swept");
        session.secrets().set_for_session(&session, "SWEPT", value, false).unwrap();
        let token = SecretValue::new("token-of-github");
        session.secrets().set_for_session(&session, "GITHUB_TOKEN", token, true).unwrap();
        let process = start_process(&session, folder.path());
        Self { pipeline, session, process, _folders: [folder, state] }
    }

    /// Returns a host in which the call of `tool` can succeed.
    async fn ready_for(tool: &str) -> Self {
        let host = Self::new([Rule::new(Action::Allow, "plan_exit", "*")]);
        if matches!(tool, "plan_exit" | "plan_update") {
            let entered = host.call(Call::new("plan_enter", json!({ "plan": "1. read" }))).await;
            assert!(entered.result.is_ok(), "{}", entered.text());
        }
        host
    }

    /// Returns the arguments of the successful call of a tool in this host.
    fn arguments_of(&self, tool: &str) -> Value {
        let mut arguments = swept_calls(self.process)[tool].clone();
        if tool == "mutation_record" {
            let ledger = self.session.extension::<Ledger>();
            let begun = ledger.begin("sweep", "a mutation", Value::Null).unwrap();
            arguments["transaction_id"] = begun.id.into();
        }
        arguments
    }

    async fn call(&self, call: Call<'_>) -> Outcome {
        self.pipeline.call(&self.session, call).await
    }
}

/// Writes a skill into the folder.
fn write_skill(folder: &Path, name: &str) {
    std::fs::create_dir_all(folder).unwrap();
    let text = format!("---\nname: {name}\ndescription: swept\n---\n");
    std::fs::write(folder.join("SKILL.md"), text).unwrap();
}

/// A memory with the note `kept-note`.
fn memory_with_note() -> MemoryHandle {
    let memory = MemoryHandle::new(InProcessMemoryStore::default()).with_project("sweep");
    let owner = memory.owner_for(&Session::new("sweep"));
    let draft = NoteDraft { id: Some("kept-note".to_owned()), ..NoteDraft::new("kept") };
    memory.create_note(&owner, draft).now_or_never().unwrap().unwrap();
    memory
}

fn all_tools() -> Registry {
    let registry = Registry::linked().unwrap();
    assert!(registry.len() >= 16);
    registry
}

/// Starts a command that waits for input.
fn start_process(session: &Session, folder: &Path) -> u32 {
    let command = BackgroundCommand::new("cat", ["-"]).terminal(true).current_dir(folder);
    session.extension::<BackgroundProcesses>().spawn(&command).unwrap().id()
}

/// Returns the arguments of the successful call of each tool; fails for a tool without one.
fn swept_calls(process: u32) -> BTreeMap<String, Value> {
    let calls = successful_calls(process);
    let named: BTreeSet<&str> = calls.keys().copied().collect();
    let registry = all_tools();
    let linked: BTreeSet<&str> =
        registry.definitions().map(|definition| definition.name.as_str()).collect();
    assert_eq!(named, linked, "each tool has a row in `successful_calls`, and each row a tool");
    calls.into_iter().map(|(name, args)| (name.to_owned(), args)).collect()
}

fn kind(outcome: &Outcome) -> Option<ErrorKind> {
    outcome.result.as_ref().err().map(ToolError::kind)
}

// F175: success.
#[tokio::test(flavor = "multi_thread")]
async fn every_tool_succeeds() {
    // Each in a folder of its own, because some change files or end processes.
    for tool in swept_calls(0).into_keys() {
        let host = SweepHost::ready_for(&tool).await;
        let arguments = host.arguments_of(&tool);
        let outcome = host.call(Call::new(tool.clone(), arguments)).await;
        assert!(outcome.result.is_ok(), "{tool}: {}", outcome.text());
    }
}

// F14, F43: a tool that streams its output declares it, so that surfaces know before the call.
#[tokio::test(flavor = "multi_thread")]
async fn every_tool_that_streams_declares_it() {
    let registry = all_tools();
    for definition in registry.definitions() {
        let tool = definition.name.as_str();
        let host = SweepHost::new([]);
        let arguments = swept_calls(host.process)[tool].clone();
        let mut events = host.pipeline.subscribe();
        host.call(Call::new(tool.to_owned(), arguments)).await;
        let has_streamed = std::iter::from_fn(|| events.try_recv())
            .any(|event| matches!(event.kind, EventKind::Output { .. }));
        assert_eq!(has_streamed, definition.flags.streaming, "{tool}");
    }
}

// F38, F175: bad arguments are refused with a suggestion, and nothing runs.
#[tokio::test(flavor = "multi_thread")]
async fn every_tool_refuses_bad_arguments() {
    let host = SweepHost::new([]);
    for (tool, arguments) in swept_calls(host.process) {
        let mut unknown = arguments.clone();
        unknown["no_such_argument"] = 1.into();
        let mut wrong = arguments.clone();
        wrong.as_object_mut().unwrap().values_mut().for_each(|value| *value = json!({ "a": [] }));
        let is_without = arguments.as_object().unwrap().is_empty();
        let cases = [unknown.to_string(), wrong.to_string(), "{".to_owned(), "[]".to_owned()];
        for case in cases.iter().filter(|case| !(is_without && *case == "{}")) {
            let mut events = host.pipeline.subscribe();
            let outcome = host.call(Call::new(tool.clone(), case.as_str())).await;
            assert_eq!(kind(&outcome), Some(ErrorKind::InvalidArgs), "{tool} {case}");
            let error = outcome.result.unwrap_err();
            assert!(error.suggestion().is_some(), "{tool} {case}: {error}");
            assert!(!has_started(&mut events), "{tool} {case}");
        }
    }
}

// F175: a rule that denies the tool holds, in every mode, and nothing runs.
#[tokio::test(flavor = "multi_thread")]
async fn every_tool_obeys_a_rule_that_denies_it() {
    for tool in swept_calls(0).into_keys() {
        let host = SweepHost::new([Rule::new(Action::Deny, tool.as_str(), "*")]);
        let arguments = host.arguments_of(&tool);
        let mut events = host.pipeline.subscribe();
        let outcome = host.call(Call::new(tool.clone(), arguments)).await;
        assert_eq!(kind(&outcome), Some(ErrorKind::Denied), "{tool}: {}", outcome.text());
        assert!(!has_started(&mut events), "{tool}");
    }
}

// F57, F175: a cancelled call ends as aborted: before it starts, and when it has started.
#[tokio::test(flavor = "multi_thread")]
async fn every_tool_ends_when_its_call_is_cancelled() {
    for tool in swept_calls(0).into_keys() {
        let host = SweepHost::ready_for(&tool).await;
        let arguments = host.arguments_of(&tool);
        let token = CancellationToken::new();
        token.cancel();
        let mut events = host.pipeline.subscribe();
        let call = Call::new(tool.clone(), arguments.clone()).cancelled_by(token);
        let outcome = host.call(call).await;
        assert_eq!(kind(&outcome), Some(ErrorKind::Aborted), "{tool}: {}", outcome.text());
        assert!(!has_started(&mut events), "{tool}");

        // The call is cancelled as soon as the tool has started. A tool may be done before that.
        let token = CancellationToken::new();
        let mut events = host.pipeline.subscribe();
        let call = Call::new(tool.clone(), arguments).cancelled_by(token.clone());
        let cancelling = async {
            while let Some(event) = events.recv().await {
                if matches!(event.kind, EventKind::Started { .. }) {
                    token.cancel();
                }
            }
        };
        let outcome = tokio::select! {
            outcome = host.call(call) => outcome,
            () = cancelling => panic!("{tool}: the pipeline is gone"),
        };
        let end = kind(&outcome);
        assert!(matches!(end, None | Some(ErrorKind::Aborted)), "{tool}: {}", outcome.text());
    }
}

fn has_started(events: &mut tool_sdk::Subscription) -> bool {
    std::iter::from_fn(|| events.try_recv())
        .any(|event| matches!(event.kind, EventKind::Started { .. }))
}
