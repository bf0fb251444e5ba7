//! Processes of plugins that run on: one JSON object a line for each request and each response.
//!
//! ```text
//! → {"id": 1, "tool": "word_count", "arguments": {"text": "to be"}}
//! ← {"id": 1, "result": 2}
//! → {"id": 2, "tool": "word_count", "arguments": {"text": 3}}
//! ← {"id": 2, "error": "`text` is not a string", "hint": "pass a string"}
//! ```
//!
//! A process starts with the first call, answers one call at a time, and is ended when a call is
//! cancelled, when the process breaks the protocol, and with the plugin. Calls of one process run one after
//! the other.
//!
//! **Invariant:** no response is taken for that of another call, and no process serves two users.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::sync::{Mutex as AsyncMutex, RwLock};
use tool_sdk::process::internal::PipedChild;
use tool_sdk::{Context, Output, ToolError};

use super::command_tool::{PluginCommand, reported_error, start_error, to_output, with_stderr};

/// How long a process may take to exit once its standard input is closed.
const EXIT_TIMEOUT: Duration = Duration::from_millis(200);

/// How many users have a process of one command; beyond them, idle processes end.
const MAX_USERS: usize = 32;

/// The processes of one plugin, by their commands.
#[derive(Clone, Default)]
pub(super) struct LineProcesses {
    by_command: Arc<Mutex<Vec<Arc<LineProcess>>>>,
    /// Held for reading while a process ends.
    ending: Arc<RwLock<()>>,
}

impl LineProcesses {
    /// Returns the process of a command; tools with the same words, variables and limit share it.
    pub(super) fn for_command(&self, command: &Arc<PluginCommand>) -> Arc<LineProcess> {
        let mut known = self.by_command.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(process) = known.iter().find(|process| process.command == *command) {
            return Arc::clone(process);
        }
        let process = Arc::new(LineProcess {
            command: Arc::clone(command),
            by_user: Mutex::default(),
            ending: Arc::clone(&self.ending),
        });
        known.push(Arc::clone(&process));
        process
    }

    /// Ends all processes, and waits for them.
    pub(super) async fn shut_down(&self) {
        let all: Vec<ProcessSlot> = {
            let known = self.by_command.lock().unwrap_or_else(PoisonError::into_inner);
            known.iter().flat_map(|process| process.slots()).collect()
        };
        for slot in all {
            drop(slot.lock().await.take());
        }
        drop(self.ending.write().await);
    }
}

/// A process of one user: `None` before the first call, and after one that failed.
type ProcessSlot = Arc<AsyncMutex<Option<RunningProcess>>>;

/// A command that answers calls, with a process for each user, once it was started.
pub(super) struct LineProcess {
    command: Arc<PluginCommand>,
    by_user: Mutex<HashMap<Option<String>, ProcessSlot>>,
    ending: Arc<RwLock<()>>,
}

impl fmt::Debug for LineProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LineProcess").field(&self.command.words).finish()
    }
}

/// A running process. Dropping it ends the process with everything that it started.
struct RunningProcess {
    child: Option<PipedChild>,
    input: Pin<Box<dyn AsyncWrite + Send>>,
    output: BufReader<Pin<Box<dyn AsyncRead + Send>>>,
    /// What the process was started with: its folder and its sandbox.
    launch: String,
    last_id: u64,
    ending: Arc<RwLock<()>>,
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        let Some(child) = self.child.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        // A write guard is only taken after the last process was dropped.
        let guard = Arc::clone(&self.ending).try_read_owned().ok();
        runtime.spawn(async move {
            child.shut_down().await;
            drop(guard);
        });
    }
}

#[derive(Deserialize)]
struct LineResponse {
    id: u64,
    #[serde(default)]
    result: Value,
}

impl LineProcess {
    /// Asks the process. When the call is cancelled, the process is ended.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Value,
        cx: &Context,
    ) -> Result<Output, ToolError> {
        let command = self.command.prepare(cx).await?;
        let launch = format!("{command:?}");
        let user_slot = self.slot_of(cx.session().user_key());
        let mut slot = user_slot.lock().await;
        // A call that ends early drops the process, which ends it.
        let known = slot.take().filter(|running| running.launch == launch);
        let mut running = match known {
            Some(running) => running,
            None => self.start(&command, launch).map_err(|error| start_error(tool, error))?,
        };
        let line = match running.exchange(tool, &arguments, self.command.max_output).await {
            Ok(line) => line,
            Err(error) => {
                let stderr = match &running.child {
                    Some(child) => child.final_stderr().await,
                    None => String::new(),
                };
                let text = format_args!("the process of `{tool}` failed: {error}");
                return Err(with_stderr(ToolError::failed(text), &stderr));
            }
        };
        *slot = Some(running);
        match reported_error(&line.0) {
            Some(error) => Err(error),
            None => to_output(line.1),
        }
    }

    /// Returns the slot of a user.
    fn slot_of(&self, user: Option<&str>) -> ProcessSlot {
        let mut slots = self.by_user.lock().unwrap_or_else(PoisonError::into_inner);
        let user = user.map(str::to_owned);
        if slots.len() >= MAX_USERS && !slots.contains_key(&user) {
            // A call holds its slot.
            slots.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        Arc::clone(slots.entry(user).or_default())
    }

    fn slots(&self) -> Vec<ProcessSlot> {
        let slots = self.by_user.lock().unwrap_or_else(PoisonError::into_inner);
        slots.values().cloned().collect()
    }

    fn start(
        &self,
        command: &tool_sdk::process::Command,
        launch: String,
    ) -> Result<RunningProcess, tool_sdk::process::RunError> {
        let (child, output, input) = PipedChild::spawn(command, EXIT_TIMEOUT)?;
        let output: Pin<Box<dyn AsyncRead + Send>> = Box::pin(output);
        Ok(RunningProcess {
            child: Some(child),
            input: Box::pin(input),
            output: BufReader::new(output),
            launch,
            last_id: 0,
            ending: Arc::clone(&self.ending),
        })
    }
}

impl RunningProcess {
    /// Sends a request, and returns the response with its result.
    async fn exchange(
        &mut self,
        tool: &str,
        arguments: &Value,
        most: usize,
    ) -> io::Result<(Value, Value)> {
        self.last_id += 1;
        let request = json!({ "id": self.last_id, "tool": tool, "arguments": arguments });
        self.input.write_all(format!("{request}\n").as_bytes()).await?;
        self.input.flush().await?;
        let mut line = Vec::new();
        (&mut self.output).take(most as u64 + 1).read_until(b'\n', &mut line).await?;
        let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        if line.len() > most {
            return Err(invalid(format!("it answered with more than {most} bytes")));
        }
        if line.last() != Some(&b'\n') {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended without an answer"));
        }
        let value: Value = serde_json::from_slice(&line)
            .map_err(|error| invalid(format!("its answer is not JSON: {error}")))?;
        let response: LineResponse = LineResponse::deserialize(&value)
            .map_err(|error| invalid(format!("its answer is not a valid response: {error}")))?;
        if response.id != self.last_id {
            return Err(invalid(format!("it answered request {}", response.id)));
        }
        Ok((value, response.result))
    }
}
