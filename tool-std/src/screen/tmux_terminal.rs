//! A terminal that the program `tmux` runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tool_sdk::process::{
    self, BackgroundCommand, BackgroundProcess, Command as ChildCommand, ExitOutcome,
};
use tool_sdk::{Context, Output, ToolError, Workspace};

use super::screen_process::{RunningScreen, ScreenProcesses, SessionScreen, start_error};
use super::{BackendFuture, ScreenLocation, TerminalBackend};

const TMUX: &str = "tmux";

/// One terminal of 120 columns and 36 lines; the server ends with it.
const SETUP: &[u8] = b"set -g exit-empty on\n\
                       new-session -d -s terminal -x 120 -y 36\n";

/// How long a command to the server may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(5);

/// How often a server that has just been started is asked whether it is ready.
const READY_CHECKS: usize = 100;
const READY_INTERVAL: Duration = Duration::from_millis(50);

/// A terminal in which `tmux` runs the user's shell, for the tool [`terminal`](fn@super::terminal).
///
/// It starts in the first root of the workspace, outside of the sandbox, since only the user types
/// into it: the address is a command with which the user attaches to it. A screenshot is the text on
/// the screen. Each session has a terminal of its own, which ends with the session. The socket lies in
/// a folder that only this user can enter.
///
/// # Examples
///
/// ```
/// use tool_sdk::Session;
/// use tool_std::screen::{TerminalHandle, TmuxTerminal};
///
/// let session = Session::new("s1").with_service(TerminalHandle::from_backend(TmuxTerminal));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TmuxTerminal;

struct RunningTerminal {
    processes: ScreenProcesses,
    server: Arc<BackgroundProcess>,
    /// The first root of the workspace.
    root: Option<PathBuf>,
}

impl RunningTerminal {
    async fn start(cx: &Context) -> Result<Self, ToolError> {
        let processes = ScreenProcesses::in_private_folder()?;
        let setup = processes.write_file("tmux.conf", SETUP).map_err(|error| {
            ToolError::unavailable("the settings of tmux cannot be written").source(error)
        })?;
        // In the foreground, so that the server is a child of this program and ends with it.
        let command = BackgroundCommand::new(
            TMUX,
            ["-D".into(), "-f".into(), setup, "-S".into(), processes.folder().join("socket")],
        );
        let server = processes.start_program(command, TMUX, TMUX, cx)?;
        let workspace = cx.session().service::<Workspace>();
        let root = workspace.and_then(|it| it.roots().next().map(Into::into));
        let terminal = Self { processes, server, root };
        terminal.wait_until_ready().await?;
        Ok(terminal)
    }

    async fn wait_until_ready(&self) -> Result<(), ToolError> {
        let mut checks = tokio::time::interval(READY_INTERVAL);
        for _ in 0..READY_CHECKS {
            checks.tick().await;
            if self.is_running().await? {
                return Ok(());
            }
            if self.server.exit().is_some() {
                break;
            }
        }
        let output = self.server.read_output(Duration::ZERO, |_| {}).await.output.to_text();
        Err(ToolError::unavailable(format!("`tmux` does not start a terminal: {}", output.trim())))
    }

    fn socket(&self) -> PathBuf {
        self.processes.folder().join("socket")
    }

    /// Sends a command to the server and returns what it prints; `None` when the server refuses or
    /// is gone.
    async fn ask_server(&self, words: &[&str]) -> Result<Option<String>, ToolError> {
        let mut arguments = vec!["-S".into(), self.socket().into_os_string()];
        arguments.extend(words.iter().map(Into::into));
        let mut command = ChildCommand::new(TMUX, arguments).timeout(COMMAND_LIMIT);
        if let Some(root) = &self.root {
            // The terminal starts where its first client is.
            command = command.current_dir(root);
        }
        let output = process::run(command).await.map_err(|error| start_error(error, TMUX, TMUX))?;
        Ok((output.exit == ExitOutcome::Code(0)).then(|| output.stdout.to_text()))
    }
}

impl RunningScreen for RunningTerminal {
    fn processes(&self) -> &ScreenProcesses {
        &self.processes
    }

    fn location(&self) -> ScreenLocation {
        ScreenLocation::new().address(format!("tmux -S {} attach", self.socket().display()))
    }

    async fn is_running(&self) -> Result<bool, ToolError> {
        Ok(self.server.exit().is_none() && self.ask_server(&["has-session"]).await?.is_some())
    }
}

/// The terminal of the session.
fn session_terminal(cx: &Context) -> SessionScreen<RunningTerminal> {
    cx.session().extension()
}

impl TerminalBackend for TmuxTerminal {
    fn start<'a>(&'a self, cx: &'a Context) -> BackendFuture<'a, ScreenLocation> {
        Box::pin(async {
            session_terminal(cx).locate_or_start(RunningTerminal::start(cx), cx).await
        })
    }

    fn stop<'a>(&'a self, cx: &'a Context) -> BackendFuture<'a, bool> {
        Box::pin(async { session_terminal(cx).stop().await })
    }

    fn status<'a>(&'a self, cx: &'a Context) -> BackendFuture<'a, Option<ScreenLocation>> {
        Box::pin(async { session_terminal(cx).locate().await })
    }

    fn screenshot<'a>(&'a self, cx: &'a Context) -> BackendFuture<'a, Option<Output>> {
        Box::pin(async {
            let kept = session_terminal(cx);
            let kept = kept.lock_running().await?;
            let Some(terminal) = &*kept else { return Ok(None) };
            let text = terminal.ask_server(&["capture-pane", "-p", "-t", "terminal"]).await?;
            Ok(text.map(|text| Output::text(text.trim_end())))
        })
    }
}
