//! A terminal backend of a host: a shell in a pseudo terminal, kept like a background command, so
//! that the tools for background commands type into it.

#![cfg(all(unix, feature = "exec", feature = "screen"))]
#![expect(clippy::unwrap_used, reason = "a step that cannot be taken fails the test")]

use std::sync::{Arc, Mutex};

use serde_json::json;
use tool_sdk::process::{BackgroundCommand, BackgroundProcess, BackgroundProcesses};
use tool_sdk::testing::Harness;
use tool_sdk::{
    Action, Call, Context, ErrorKind, Mode, Pipeline, Registry, Rule, Session, ToolError,
    Workspace, tools,
};
use tool_std::exec::{exec_command, write_stdin};
use tool_std::screen::{BackendFuture, ScreenLocation, TerminalBackend, TerminalHandle, terminal};

/// One shell for each host.
#[derive(Default)]
struct Shell(Mutex<Option<Arc<BackgroundProcess>>>);

impl Shell {
    fn running(&self) -> Option<Arc<BackgroundProcess>> {
        self.0.lock().unwrap().clone().filter(|process| process.exit().is_none())
    }

    fn started(&self, cx: &Context) -> Result<Arc<BackgroundProcess>, ToolError> {
        if let Some(process) = self.running() {
            return Ok(process);
        }
        let spawn = BackgroundCommand::new("bash", ["--norc", "-i"])
            .terminal(true)
            .cancel_on(cx.shutdown_token());
        let process = cx
            .session()
            .extension::<BackgroundProcesses>()
            .spawn(&spawn)
            .map_err(|error| ToolError::unavailable("no shell starts").source(error))?;
        *self.0.lock().unwrap() = Some(Arc::clone(&process));
        Ok(process)
    }
}

fn shown(process: &BackgroundProcess) -> ScreenLocation {
    ScreenLocation::new().session(process.id())
}

impl TerminalBackend for Shell {
    fn start<'a>(&'a self, cx: &'a Context) -> BackendFuture<'a, ScreenLocation> {
        Box::pin(async { Ok(shown(&*self.started(cx)?)) })
    }

    fn stop<'a>(&'a self, cx: &'a Context) -> BackendFuture<'a, bool> {
        Box::pin(async {
            let Some(process) = self.running() else { return Ok(false) };
            cx.session().extension::<BackgroundProcesses>().remove(process.id());
            process.kill().await;
            Ok(true)
        })
    }

    fn status<'a>(&'a self, _: &'a Context) -> BackendFuture<'a, Option<ScreenLocation>> {
        Box::pin(async { Ok(self.running().map(|process| shown(&process))) })
    }
}

fn registry() -> Registry {
    Registry::builder().add(tools![exec_command, terminal, write_stdin]).build().unwrap()
}

// F156
#[tokio::test]
async fn a_terminal_is_started_typed_into_and_ended() {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::new("s")
        .with_service(Workspace::open([folder.path()]).unwrap())
        .with_service(TerminalHandle::from_backend(Shell::default()));
    let harness = Harness::from_registry(registry()).with_session(session);
    let terminal = async |action: &str| {
        harness.ok("terminal", json!({ "action": action })).await.as_text().to_owned()
    };

    assert_eq!(terminal("status").await, "No terminal runs.");
    assert_eq!(terminal("stop").await, "No terminal runs.");
    let started = terminal("start").await;
    let id: u32 =
        started.strip_prefix("The terminal runs.\nsession ID: ").unwrap().parse().unwrap();
    assert_eq!(terminal("start").await, started, "one that runs stays");
    assert_eq!(terminal("status").await, started);

    let typed = "expr 6 '*' 7; exit\n";
    let typed = json!({ "session_id": id, "chars": typed, "yield_time_ms": 30_000 });
    let typed = harness.ok("write_stdin", typed).await;
    assert!(typed.as_text().contains("42"), "{}", typed.as_text());
    assert_eq!(terminal("status").await, "No terminal runs.", "its shell has ended");

    assert!(terminal("start").await.starts_with("The terminal runs."));
    assert_eq!(terminal("stop").await, "The terminal was ended.");
    assert_eq!(terminal("status").await, "No terminal runs.");
}

// F156
#[tokio::test]
async fn looking_asks_nobody_and_starting_does() {
    let decision = async |rules: &[&str], action: &str| {
        let rules: Vec<Rule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        let pipeline = Pipeline::new(registry()).mode(Mode::Auto).rules(rules);
        let session =
            Session::new("s").with_service(TerminalHandle::from_backend(Shell::default()));
        let call = Call::new("terminal", json!({ "action": action }).to_string());
        pipeline.check(&session, call).await.unwrap().decision.action
    };
    assert_eq!(decision(&[], "status").await, Action::Allow);
    assert_eq!(decision(&[], "start").await, Action::Ask);
    assert_eq!(decision(&[], "stop").await, Action::Ask);
    assert_eq!(decision(&["allow terminal(start)"], "start").await, Action::Allow);
    assert_eq!(decision(&["allow terminal(start)"], "stop").await, Action::Ask);
    assert_eq!(decision(&["deny terminal"], "status").await, Action::Deny);
}

#[tokio::test]
async fn a_host_without_a_backend_is_told_so() {
    let harness = Harness::new(tools![terminal]);
    let error = harness.error("terminal", json!({ "action": "start" })).await;
    assert_eq!(error.kind(), ErrorKind::Config);
    let error = harness.error("terminal", json!({ "action": "restart" })).await;
    assert_eq!(error.kind(), ErrorKind::InvalidArgs);
}
