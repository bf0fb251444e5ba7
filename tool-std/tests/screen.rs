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
async fn status_is_allowed_and_starting_asks() {
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

/// What the real programs of a screen do; without them the tests pass unless they are required.
#[cfg(feature = "screen-programs")]
mod programs {
    use std::io::Read as _;
    use std::net::TcpStream;
    use std::process::Command;
    use std::time::{Duration, Instant};

    use serde_json::json;
    use tool_sdk::testing::Harness;
    use tool_sdk::{Attachment, AttachmentData, Registry, Session, Workspace, tools};
    use tool_std::screen::{
        DesktopHandle, TerminalHandle, TmuxTerminal, XvfbDesktop, desktop, terminal,
    };

    /// Whether the system has these programs.
    ///
    /// # Panics
    ///
    /// When they are absent and `TOOL_STD_TEST_SCREENS` says that they are required.
    fn has_programs(programs: &[(&str, &str)]) -> bool {
        let absent = programs
            .iter()
            .find(|(program, version)| Command::new(program).arg(version).output().is_err());
        let is_required = std::env::var("TOOL_STD_TEST_SCREENS").is_ok_and(|it| it == "required");
        assert!(absent.is_none() || !is_required, "{absent:?} is absent");
        absent.is_none()
    }

    fn harness(folder: &std::path::Path) -> Harness {
        let session = Session::new("s")
            .with_service(Workspace::open([folder]).unwrap())
            .with_service(TerminalHandle::from_backend(TmuxTerminal))
            .with_service(DesktopHandle::from_backend(XvfbDesktop));
        let registry = Registry::builder().add(tools![desktop, terminal]).build().unwrap();
        Harness::from_registry(registry).with_session(session)
    }

    /// Looks at the terminal until its text has `expected`.
    async fn wait_for_text(harness: &Harness, expected: &str) -> String {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let screen = harness.ok("terminal", json!({ "action": "screenshot" })).await;
            if screen.as_text().contains(expected) {
                return screen.as_text().to_owned();
            }
            assert!(Instant::now() < deadline, "{}", screen.as_text());
        }
    }

    // F156
    #[tokio::test]
    async fn the_user_types_into_a_tmux_terminal_and_the_model_sees_it() {
        if !has_programs(&[("tmux", "-V")]) {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let harness = harness(folder.path());
        let terminal =
            async |action: &str| harness.ok("terminal", json!({ "action": action })).await;
        let started = terminal("start").await.as_text().to_owned();
        let socket = started
            .strip_prefix("The terminal runs.\naddress: tmux -S ")
            .and_then(|rest| rest.strip_suffix(" attach"))
            .unwrap();
        assert_eq!(terminal("start").await.as_text(), started, "one that runs stays");
        let send_keys = |keys: &str| {
            let sent = Command::new("tmux")
                .args(["-S", socket, "send-keys", "-t", "terminal", keys, "Enter"])
                .status()
                .unwrap();
            assert!(sent.success());
        };
        send_keys("pwd; expr 6 '*' 7");
        let screen = wait_for_text(&harness, "\n42\n").await;
        let root = folder.path().canonicalize().unwrap();
        assert!(screen.contains(root.to_str().unwrap()), "{screen}");
        send_keys("exit");
        while terminal("status").await.as_text() != "No terminal runs." {}
        assert!(!std::path::Path::new(socket).exists(), "its folder is removed");

        let again = terminal("start").await.as_text().to_owned();
        assert_ne!(again, started);
        assert_eq!(terminal("stop").await.as_text(), "The terminal was ended.");
        assert_eq!(terminal("stop").await.as_text(), "No terminal runs.");
        let error = harness.error("terminal", json!({ "action": "screenshot" })).await;
        assert!(error.to_string().contains("no terminal runs"), "{error}");
    }

    // F156, F194
    #[tokio::test]
    async fn a_desktop_is_shown_over_vnc_and_as_an_image() {
        if !has_programs(&[("Xvfb", "-help"), ("x11vnc", "-version")]) {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let harness = harness(folder.path());
        let desktop = async |action: &str| {
            harness.ok("desktop", json!({ "action": action, "width": 640, "height": 480 })).await
        };
        let started = desktop("start").await.as_text().to_owned();
        let address = started.lines().find_map(|it| it.strip_prefix("address: vnc://")).unwrap();
        let (address, password) = address.split_once(" (password in ").unwrap();
        let password = std::fs::read_to_string(password.trim_end_matches(')')).unwrap();
        assert_eq!(password.len(), 8);
        assert!(!started.contains(&password));
        assert_eq!(desktop("status").await.as_text(), started);

        let mut viewer = TcpStream::connect(address).unwrap();
        let mut version = [0; 4];
        viewer.read_exact(&mut version).unwrap();
        assert_eq!(&version, b"RFB ");

        let shown = desktop("screenshot").await;
        let [Attachment { mime, data: AttachmentData::Bytes(png), .. }] = shown.attachments()
        else {
            panic!("{shown:?}")
        };
        assert_eq!(mime, "image/png");
        // The header of a PNG has its size at the sixteenth byte.
        assert_eq!(png[16..24], [0, 0, 2, 128, 0, 0, 1, 224], "640 by 480");

        assert_eq!(desktop("stop").await.as_text(), "The desktop was ended.");
        assert!(TcpStream::connect(address).is_err(), "the VNC server has ended");
        assert_eq!(desktop("status").await.as_text(), "No desktop runs.");
    }
}
