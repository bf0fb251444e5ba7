//! A pipeline that is closed leaves nothing behind: no connection, no server, no process.

#![cfg(all(unix, feature = "application"))]
#![expect(clippy::unwrap_used, reason = "a step that cannot be taken fails the test")]

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tool_sdk::mcp::{ServerCommand, ServerConfig, ServerManager};
use tool_sdk::{Call, Mode, Pipeline, Registry, Session, Workspace, tools};
use tool_std::exec::{exec_command, shell_command};

/// Long enough to be a failure.
const HANGS: Duration = Duration::from_secs(60);

/// A pipe that processes hold open as descriptor 3 until the last one has ended.
struct HeldPipe {
    path: PathBuf,
    both_ends: File,
}

impl HeldPipe {
    fn new(folder: &Path) -> Self {
        let path = folder.join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let both_ends = File::options().read(true).write(true).open(&path).unwrap();
        Self { path, both_ends }
    }

    /// Returns a script that holds the pipe, as do its descendants.
    fn script(&self, command: &str) -> String {
        format!("exec 3>'{}'; {command}", self.path.display())
    }

    /// Waits until no process holds the pipe.
    async fn wait_for_release(self) {
        let mut end = File::open(self.path).unwrap();
        drop(self.both_ends);
        let ended = spawn_blocking(move || end.read_to_end(&mut Vec::new()));
        timeout(HANGS, ended).await.expect("no process holds the pipe").unwrap().unwrap();
    }
}

// F16: `close` ends MCP clients, sessions and background processes, and waits for them.
#[tokio::test(flavor = "multi_thread")]
async fn a_closed_pipeline_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let held = HeldPipe::new(folder.path());
    let registry = Registry::builder().add(tools![exec_command, shell_command]).build().unwrap();
    let pipeline = Pipeline::new(registry).mode(Mode::Bypass);
    let session = Session::new("test").with_service(Workspace::open([folder.path()]).unwrap());

    // A server of the Model Context Protocol.
    let program = env!("CARGO_BIN_EXE_tool-std");
    let served = folder.path().join("served");
    fs::create_dir(&served).unwrap();
    let serve = format!(
        "exec '{program}' --root '{0}' --state-dir '{0}/state' serve mcp",
        served.display()
    );
    let servers = ServerManager::for_pipeline(&pipeline);
    let launch = ServerCommand::new("bash", ["-c", &held.script(&serve)]);
    servers.add(ServerConfig::new("inner", launch).unwrap()).unwrap();
    servers.connect("inner").await.unwrap();

    // A command that goes on in the background, with a descendant that ignores `SIGTERM`.
    let script = held.script("(trap '' TERM; sleep 300) & sleep 300");
    let arguments = serde_json::json!({ "cmd": script, "yield_time_ms": 250 });
    let background = pipeline.call(&session, Call::new("exec_command", arguments)).await;
    assert!(background.text().contains("session ID"), "{}", background.text());

    // A call that runs while the pipeline is closed.
    let mut events = pipeline.subscribe();
    let arguments = serde_json::json!({ "command": held.script("echo started; sleep 300") });
    let running = tokio::spawn({
        let (pipeline, session) = (pipeline.clone(), session.clone());
        async move { pipeline.call(&session, Call::new("shell_command", arguments)).await }
    });
    while let Some(event) = events.recv().await {
        if matches!(event.kind, tool_sdk::EventKind::Output { .. }) {
            break;
        }
    }

    let unclosed = timeout(HANGS, pipeline.close()).await.unwrap();
    assert!(unclosed.is_empty(), "{unclosed:?}");
    assert!(running.await.unwrap().result.is_err());
    assert!(servers.statuses().is_empty());
    held.wait_for_release().await;
    // The session, the manager and the pipeline still exist: closing ended everything.
    drop((session, servers, pipeline));
}
