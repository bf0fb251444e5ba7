//! Tasks of the program that run beside a conversation, such as one that reacts to events.
//!
//! **Invariant:** a task is told that the conversation ends before the pipeline is closed, so that it
//! can still make the calls that it owes.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tool_sdk_agent::{AgentHook, StopDecision, Transcript};

/// How long a conversation waits at its end for a task.
const FINISH_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a request waits until the tasks have seen what happened before.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);

type BoxedFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Waits until a task has seen what happened so far.
type SettleCallback = Arc<dyn Fn() -> BoxedFuture<()> + Send + Sync>;

/// A task beside a conversation of `chat` or `serve acp`; see
/// [`App::with_conversation_task`](crate::App::with_conversation_task).
#[must_use]
pub struct ConversationTask {
    work: BoxedFuture<Vec<String>>,
    settle: Option<SettleCallback>,
    warnings: Vec<String>,
}

impl ConversationTask {
    /// Creates a task that ends soon after the token of the conversation is cancelled, and returns
    /// what the user should know of it, one line each.
    pub fn new(work: impl Future<Output = Vec<String>> + Send + 'static) -> Self {
        Self { work: Box::pin(work), settle: None, warnings: Vec::new() }
    }

    /// Adds warnings that the user reads when the conversation begins.
    pub fn with_warnings(mut self, warnings: impl IntoIterator<Item = String>) -> Self {
        self.warnings.extend(warnings);
        self
    }

    /// Lets the agent wait for `settle` before each request and before it stops, for at most two
    /// seconds: for a task that has to see what happened before.
    pub fn with_settling<F>(mut self, settle: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.settle = Some(Arc::new(move || Box::pin(settle())));
        self
    }
}

impl fmt::Debug for ConversationTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConversationTask").field("warnings", &self.warnings).finish_non_exhaustive()
    }
}

/// The tasks of one conversation.
pub(super) struct ConversationTasks {
    /// Locked by the one that starts or ends them, because a conversation is shared between threads.
    waiting: Mutex<Vec<BoxedFuture<Vec<String>>>>,
    running: Vec<JoinHandle<Vec<String>>>,
    settle: Arc<[SettleCallback]>,
    /// Tells the tasks that the conversation ends.
    ending: CancellationToken,
}

impl ConversationTasks {
    /// Takes the tasks of a conversation. Returns their warnings as well.
    pub(super) fn new(
        tasks: Vec<ConversationTask>,
        ending: CancellationToken,
    ) -> (Self, Vec<String>) {
        let (mut waiting, mut settle, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
        for task in tasks {
            waiting.push(task.work);
            settle.extend(task.settle);
            warnings.extend(task.warnings);
        }
        let (waiting, settle) = (Mutex::new(waiting), settle.into());
        (Self { waiting, running: Vec::new(), settle, ending }, warnings)
    }

    /// Starts the tasks that do not run yet.
    pub(super) fn start_all(&mut self) {
        let waiting = self.take_waiting();
        self.running.extend(waiting.into_iter().map(tokio::spawn));
    }

    fn take_waiting(&mut self) -> Vec<BoxedFuture<Vec<String>>> {
        std::mem::take(self.waiting.get_mut().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the hook with which the agent waits for the tasks.
    pub(super) fn settle_hook(&self) -> SettleHook {
        SettleHook(Arc::clone(&self.settle))
    }

    /// Ends the tasks, and returns what the user should know of them.
    pub(super) async fn finish_all(&mut self) -> Vec<String> {
        self.ending.cancel();
        drop(self.take_waiting());
        let mut lines = Vec::new();
        for mut task in self.running.drain(..) {
            match tokio::time::timeout(FINISH_TIMEOUT, &mut task).await {
                Ok(Ok(notes)) => lines.extend(notes),
                Ok(Err(_)) => lines.push("a task of the conversation failed".to_owned()),
                Err(_) => {
                    task.abort();
                    lines.push("a task of the conversation did not end in time".to_owned());
                }
            }
        }
        lines
    }
}

/// Lets the agent wait for the tasks of its conversation.
pub(super) struct SettleHook(Arc<[SettleCallback]>);

impl SettleHook {
    async fn wait_for_tasks(&self) {
        let settled = async {
            for settle in &*self.0 {
                settle().await;
            }
        };
        // A task that takes longer is heard at a later request.
        let _ = tokio::time::timeout(SETTLE_TIMEOUT, settled).await;
    }
}

impl AgentHook for SettleHook {
    async fn turn_start(&self, _: &Transcript) -> Option<String> {
        self.wait_for_tasks().await;
        None
    }

    async fn stop(&self, _: &Transcript) -> StopDecision {
        self.wait_for_tasks().await;
        StopDecision::Stop
    }
}
