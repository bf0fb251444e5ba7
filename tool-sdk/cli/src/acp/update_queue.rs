//! Everything that a session reports, in the order in which it happened.
//!
//! The agent and the pipeline report independently of each other. Each event of the agent carries
//! the number of the pipeline's newest event, so that the forwarder can merge the two queues.
//!
//! **Invariant:** an update is sent after every update that happened before it, and all of them
//! before the response to the prompt.

use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol::Client;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, CurrentModeUpdate, MessageId, Notice, NoticeSeverity, Plan,
    PlanEntry, PlanEntryPriority, PlanEntryStatus, RequestPermissionOutcome,
    RequestPermissionRequest, SessionId, SessionNotification, SessionUpdate, UsageUpdate,
};
use tokio::sync::{mpsc, oneshot};
use tool_sdk_core::provider::ModelMessage;
use tool_sdk_core::{
    ApprovalRequest, ApprovalResponse, EventKind, Mode, Pipeline, PlanStoreHandle, Session,
    SessionPlan, Subscription, TodoPriority, TodoStatus, ToolEvent,
};

use super::modes;
use super::permission::{PermissionAnswers, permission_options};
use super::replay;
use super::tool_calls::ToolCallTable;
use crate::chat::ChatEvent;

/// Something that happened in a session, besides the events of its calls.
pub(super) enum SessionEvent {
    /// The agent reports.
    Chat(ChatEvent),
    /// A call needs an approval.
    Approval { ask: Arc<ApprovalRequest>, answer: oneshot::Sender<ApprovalResponse> },
    /// The service reports.
    Update(Box<SessionUpdate>),
    /// The client changed the mode.
    ModeSelected,
    /// The stored conversation is shown.
    Replay(Box<tool_sdk_agent::Transcript>),
    /// Everything before is sent.
    Flush(oneshot::Sender<()>),
}

/// The end of the queue at which events are added.
#[derive(Clone)]
pub(super) struct UpdateSender {
    events: mpsc::UnboundedSender<NumberedEvent>,
    pipeline: Pipeline,
}

/// An event, and the number of the pipeline's newest event at that time.
struct NumberedEvent {
    after: u64,
    event: SessionEvent,
}

impl UpdateSender {
    pub(super) fn push(&self, event: SessionEvent) {
        let after = self.pipeline.last_event_seq();
        // Fails when the session is closed.
        let _ = self.events.send(NumberedEvent { after, event });
    }

    /// Waits until everything that happened so far is sent.
    pub(super) async fn flush(&self) {
        let (sent, flushed) = oneshot::channel();
        self.push(SessionEvent::Flush(sent));
        // Fails when the session is closed.
        let _ = flushed.await;
    }
}

/// What the forwarder has to know of a session.
pub(super) struct ForwarderConfig {
    pub(super) connection: ConnectionTo<Client>,
    pub(super) id: SessionId,
    pub(super) pipeline: Pipeline,
    pub(super) session: Session,
    pub(super) root: PathBuf,
    /// The size of the model's context in tokens.
    pub(super) context_tokens: u64,
    /// Whether the client shows notices.
    pub(super) shows_notices: bool,
}

/// Sends what is reported to the client.
pub(super) struct UpdateForwarder {
    config: ForwarderConfig,
    events: mpsc::UnboundedReceiver<NumberedEvent>,
    calls: Subscription,
    table: ToolCallTable,
    answers: Arc<PermissionAnswers>,
    /// The number of the model's message.
    message: u64,
    /// Whether text of the message was sent.
    has_text: bool,
    mode: Mode,
    plan_version: u64,
    /// Whether a tool reported something of its own, as tools that plan do.
    may_have_plan: bool,
}

impl UpdateForwarder {
    /// Starts the task that sends updates until the pipeline is closed and every sender dropped.
    pub(super) fn start(config: ForwarderConfig) -> UpdateSender {
        let (sender, events) = mpsc::unbounded_channel();
        let pipeline = config.pipeline.clone();
        let forwarder = Self {
            events,
            calls: pipeline.subscribe(),
            table: ToolCallTable::new(pipeline.clone(), config.root.clone(), config.session.id()),
            answers: Arc::new(PermissionAnswers::new(pipeline.clone())),
            message: 1,
            has_text: false,
            mode: modes::current_mode(&pipeline, &config.session),
            plan_version: 0,
            may_have_plan: false,
            config,
        };
        tokio::spawn(forwarder.run());
        UpdateSender { events: sender, pipeline }
    }

    async fn run(mut self) {
        let (mut event, mut call) = (None, None);
        loop {
            // What came first is sent first. A queue that is empty is looked at again after the other
            // one had something, so that nothing that happened before it is missed.
            match (event.take(), call.take()) {
                (None, None) => {
                    let outputs = self.table.take_outputs();
                    self.send_all(outputs);
                    tokio::select! {
                        received = self.events.recv() => match received {
                            Some(received) => event = Some(received),
                            None => return,
                        },
                        Some(received) = self.calls.recv() => call = Some(received),
                    }
                }
                (Some(waiting), None) => match self.calls.try_recv() {
                    Some(received) => (event, call) = (Some(waiting), Some(received)),
                    None => self.send_event(waiting.event).await,
                },
                (None, Some(waiting)) => match self.events.try_recv() {
                    Ok(received) => (event, call) = (Some(received), Some(waiting)),
                    Err(_) => self.send_call_event(&waiting).await,
                },
                (Some(own), Some(other)) if other.seq <= own.after => {
                    event = Some(own);
                    self.send_call_event(&other).await;
                }
                (Some(own), Some(other)) => {
                    call = Some(other);
                    self.send_event(own.event).await;
                }
            }
        }
    }

    async fn send_event(&mut self, event: SessionEvent) {
        match event {
            SessionEvent::Chat(event) => self.send_chat_event(event),
            SessionEvent::Approval { ask, answer } => self.request_permission(ask, answer),
            SessionEvent::Update(update) => self.send(*update),
            SessionEvent::ModeSelected => self.send_mode(),
            SessionEvent::Replay(transcript) => {
                let updates = replay::replay_transcript(&transcript, &mut self.table);
                self.send_all(updates);
                self.send_plan().await;
            }
            // Fails when the prompt is no longer waited for.
            SessionEvent::Flush(sent) => {
                let outputs = self.table.take_outputs();
                self.send_all(outputs);
                let _ = sent.send(());
            }
        }
    }

    fn send_chat_event(&mut self, event: ChatEvent) {
        match event {
            ChatEvent::Text(text) => {
                self.has_text = true;
                let chunk = self.chunk(text);
                self.send(SessionUpdate::AgentMessageChunk(chunk));
            }
            ChatEvent::Reasoning(text) => {
                let chunk = self.chunk(text);
                self.send(SessionUpdate::AgentThoughtChunk(chunk));
            }
            ChatEvent::Message(message) => self.end_message(&message),
            ChatEvent::Answers(answers) => {
                let updates = self.table.read_answers(&answers);
                self.send_all(updates);
            }
            ChatEvent::Note(text) => self.send_notice(NoticeSeverity::Info, text),
            ChatEvent::Discarded => {
                self.next_message();
                let title = "the connection to the model broke; the answer begins again";
                self.send_notice(NoticeSeverity::Warning, title.to_owned());
            }
        }
    }

    /// Ends the model's message. Text that was not streamed is sent as one chunk.
    fn end_message(&mut self, message: &ModelMessage) {
        let text = message.text();
        if !self.has_text && !text.is_empty() {
            let chunk = self.chunk(text);
            self.send(SessionUpdate::AgentMessageChunk(chunk));
        }
        self.next_message();
        let used = message.usage.total();
        if used > 0 {
            let usage = UsageUpdate::new(used, self.config.context_tokens);
            self.send(SessionUpdate::UsageUpdate(usage));
        }
    }

    fn next_message(&mut self) {
        self.message += 1;
        self.has_text = false;
    }

    fn chunk(&self, text: String) -> ContentChunk {
        let id = MessageId::new(format!("message-{}", self.message));
        ContentChunk::new(ContentBlock::from(text)).message_id(id)
    }

    /// Sends a remark to a client that shows them.
    fn send_notice(&self, severity: NoticeSeverity, title: String) {
        if self.config.shows_notices {
            self.send(SessionUpdate::Notice(Notice::new(severity, title)));
        }
    }

    async fn send_call_event(&mut self, event: &ToolEvent) {
        let updates = self.table.read_event(event);
        self.send_all(updates);
        match &event.kind {
            EventKind::Warned { message } => {
                self.send_notice(NoticeSeverity::Warning, message.clone());
            }
            EventKind::Emitted { .. } => self.may_have_plan = true,
            kind if kind.is_terminal() => {
                if std::mem::take(&mut self.may_have_plan) {
                    self.send_plan().await;
                }
                if modes::current_mode(&self.config.pipeline, &self.config.session) != self.mode {
                    self.send_mode();
                }
            }
            _ => {}
        }
    }

    /// Sends the mode that holds now, which plan mode may make stricter than the selected one.
    fn send_mode(&mut self) {
        self.mode = modes::current_mode(&self.config.pipeline, &self.config.session);
        let update = CurrentModeUpdate::new(self.mode.as_str());
        self.send(SessionUpdate::CurrentModeUpdate(update));
    }

    /// Sends the plan of the session if it changed.
    async fn send_plan(&mut self) {
        let plans = self.config.session.extension::<PlanStoreHandle>();
        // A store that cannot be read has reported so to the tool.
        let Ok(plan) = plans.load(&self.config.session).await else { return };
        if plan.version == self.plan_version {
            return;
        }
        self.plan_version = plan.version;
        self.send(SessionUpdate::Plan(Plan::new(plan_entries(&plan))));
    }

    fn request_permission(
        &mut self,
        ask: Arc<ApprovalRequest>,
        mut answer: oneshot::Sender<ApprovalResponse>,
    ) {
        let tool_call = self.table.describe_permission(&ask);
        let options = permission_options(&ask);
        let request = RequestPermissionRequest::new(self.config.id.clone(), tool_call, options);
        let sent = self.config.connection.send_request(request);
        let answers = Arc::clone(&self.answers);
        tokio::spawn(async move {
            let answered = tokio::select! {
                answered = sent.block_task() => answered.ok(),
                // The request ended otherwise. Dropping it cancels it for the client, too.
                () = answer.closed() => return,
            };
            let outcome: Option<RequestPermissionOutcome> = answered.map(|it| it.outcome);
            // Fails when the request ended meanwhile.
            let _ = answer.send(answers.convert(&ask, outcome.as_ref()));
        });
    }

    fn send_all(&self, updates: Vec<SessionUpdate>) {
        updates.into_iter().for_each(|update| self.send(update));
    }

    fn send(&self, update: SessionUpdate) {
        let update = SessionNotification::new(self.config.id.clone(), update);
        // Fails when the connection has ended.
        let _ = self.config.connection.send_notification(update);
    }
}

/// Returns the steps of the plan, and the entries of the todo list behind them.
fn plan_entries(plan: &SessionPlan) -> Vec<PlanEntry> {
    let entry = |text: &str, status, priority: Option<TodoPriority>| {
        let priority = match priority {
            Some(TodoPriority::High) => PlanEntryPriority::High,
            Some(TodoPriority::Low) => PlanEntryPriority::Low,
            Some(TodoPriority::Medium) | None => PlanEntryPriority::Medium,
        };
        let status = match status {
            TodoStatus::Pending => PlanEntryStatus::Pending,
            TodoStatus::InProgress => PlanEntryStatus::InProgress,
            // The protocol has no entries that were given up.
            TodoStatus::Completed | TodoStatus::Cancelled => PlanEntryStatus::Completed,
        };
        PlanEntry::new(text, priority, status)
    };
    let steps = plan.steps.iter().map(|step| entry(&step.step, step.status, None));
    let todos = plan.todos.iter().map(|todo| entry(&todo.content, todo.status, todo.priority));
    steps.chain(todos).collect()
}
