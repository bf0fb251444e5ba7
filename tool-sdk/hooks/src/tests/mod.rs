//! Tests of external hooks: recorded cases of the protocol, and real commands that misbehave.

mod after;
mod before;
mod changes;
mod recorded;
mod requests;

use std::sync::{Mutex, OnceLock};

use serde_json::json;
use tool_sdk_core::{CallId, Definition, Schema, Session, ToolName, internal::HookCallView};

use super::*;

const CASES: &str = include_str!("../../tests/fixtures/codex-hooks/cases.json");

fn cases(key: &str) -> Vec<Value> {
    let cases: Value = serde_json::from_str(CASES).unwrap();
    cases[key].as_array().unwrap().clone()
}

/// One entry with these keys.
fn entry(event: HookEvent, keys: Value) -> HookEntry {
    config(&[(event, keys)]).entries.remove(0)
}

/// Hooks for every tool, one for each pair.
fn config(hooks: &[(HookEvent, Value)]) -> ExternalHooks {
    let mut events = json!({});
    for (event, keys) in hooks {
        let mut hook = keys.clone();
        hook["type"] = "command".into();
        let groups = events.as_object_mut().unwrap().entry(event.as_str()).or_insert(json!([]));
        groups.as_array_mut().unwrap().push(json!({ "matcher": "*", "hooks": [hook] }));
    }
    let (hooks, errors) = ExternalHooks::from_value(&events);
    assert_eq!(errors, []);
    hooks
}

/// A call for hooks, which records their notifications.
struct TestCall {
    session: Session,
    definition: Definition,
    id: CallId,
    begun: Mutex<Vec<String>>,
    runs: Mutex<Vec<HookRun>>,
    halted: OnceLock<String>,
    warned: Mutex<Vec<String>>,
    /// Whether there is an approver.
    has_approver: bool,
    /// The folder for long texts.
    kept: Option<PathBuf>,
}

impl TestCall {
    fn new() -> Self {
        let name = ToolName::from_static("write_note");
        let mut definition = Definition::new(name, "Writes a note.", Schema::default());
        definition.aliases = vec![ToolName::from_static("Jot")];
        Self {
            session: Session::new("s1").with_agent("scribe"),
            definition,
            id: CallId::from_external("c1"),
            begun: Mutex::default(),
            runs: Mutex::default(),
            halted: OnceLock::new(),
            warned: Mutex::default(),
            has_approver: false,
            kept: None,
        }
    }

    async fn before(&self, hooks: &ExternalHooks) -> HookDecision {
        hooks.before(&HookContext::new(self)).await.unwrap()
    }

    async fn after(&self, hooks: &ExternalHooks, result: &mut Result<Output, ToolError>) {
        hooks.after(&HookContext::new(self), result).await.unwrap();
    }
}

impl HookCallView for TestCall {
    fn session(&self) -> &Session {
        &self.session
    }

    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn id(&self) -> &CallId {
        &self.id
    }

    fn original_arguments(&self) -> &str {
        self.arguments()
    }

    fn arguments(&self) -> &str {
        r#"{"title":"a","text":"b"}"#
    }

    fn mode(&self) -> Mode {
        Mode::Plan
    }

    fn has_approver(&self) -> bool {
        self.has_approver
    }

    fn permission_tool_names(&self) -> Vec<ToolName> {
        Vec::new()
    }

    fn external_arg_names(&self) -> ExternalArgNames {
        ExternalArgNames::default()
    }

    fn elapsed(&self) -> Option<Duration> {
        Some(Duration::from_millis(7))
    }

    fn halt_turn(&self, reason: String) {
        let _ = self.halted.set(reason);
    }

    fn emit_warning(&self, message: String) {
        self.warned.lock().unwrap().push(message);
    }

    fn emit_started(&self, hook: &str) {
        self.begun.lock().unwrap().push(hook.to_owned());
    }

    fn emit_finished(&self, run: HookRun) {
        self.runs.lock().unwrap().push(run);
    }

    fn store_text(&self, text: &str) -> Option<PathBuf> {
        let kept = self.kept.as_ref()?;
        std::fs::write(kept, text).unwrap();
        Some(kept.clone())
    }
}

/// A command that prints `answer`.
fn says(answer: &Value) -> Value {
    json!({ "command": format!("cat <<'END'\n{answer}\nEND") })
}

fn trusted(mut hook: Value) -> Value {
    hook["may_allow"] = true.into();
    hook
}
