//! Forwards the events of a running call to the client as notifications.
//!
//! Progress and tool output are sent as progress notifications if the request has a progress token.
//! All other output of a tool becomes log messages, if the client wants any.
//!
//! **Invariant:** a client that reads slowly delays only its own notifications.

// Log messages are deprecated in the protocol, but current clients still read them.
#![expect(deprecated, reason = "legacy clients have no replacement")]

use rmcp::model::{
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{Peer, RoleServer};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;
use tool_sdk_core::{CallId, EventKind, Pipeline, Subscription, ToolEvent};

/// The receiver of notifications, and which ones it wants.
pub(super) struct NotificationTarget {
    pub(super) peer: Peer<RoleServer>,
    pub(super) token: Option<ProgressToken>,
    /// The lowest log level that is sent.
    pub(super) level: Option<u8>,
}

/// Forwards the events of one call. Stops when it is dropped.
pub(super) struct EventRelay {
    done: oneshot::Sender<()>,
    task: AbortOnDropHandle<()>,
}

impl EventRelay {
    /// Subscribes to a call before it starts. Returns `None` if the client wants no notifications.
    pub(super) fn subscribe(
        pipeline: &Pipeline,
        call: &CallId,
        audience: NotificationTarget,
    ) -> Option<Self> {
        let is_heard = audience.token.is_some() || audience.level.is_some();
        is_heard.then(|| Self::spawn(pipeline.subscribe_to(call), audience))
    }

    /// Forwards the events of an existing subscription, including those that were queued before.
    pub(super) fn spawn(events: Subscription, audience: NotificationTarget) -> Self {
        let (done, end) = oneshot::channel();
        let relaying = forward_events(events, audience, end);
        Self { done, task: AbortOnDropHandle::new(tokio::spawn(relaying)) }
    }

    /// Forwards the events up to now, then stops.
    pub(super) async fn finish(self) {
        let _ = self.done.send(());
        let _ = self.task.await;
    }
}

async fn forward_events(
    mut events: Subscription,
    audience: NotificationTarget,
    mut end: oneshot::Receiver<()>,
) {
    let mut teller = Notifier { target: audience, done: None, total: None, chunks: 0 };
    loop {
        tokio::select! {
            biased;
            event = events.recv() => match event {
                Some(event) => teller.notify_event(event).await,
                None => return,
            },
            _ = &mut end => return,
        }
    }
}

struct Notifier {
    target: NotificationTarget,
    /// The progress and the total that the tool reported last.
    done: Option<u64>,
    total: Option<u64>,
    /// How many chunks of output were sent. Each counts as a step as well, because the protocol
    /// requires that progress increases with every notification.
    chunks: u64,
}

impl Notifier {
    /// Sends one event. Send errors are ignored: the client disconnected.
    async fn notify_event(&mut self, event: ToolEvent) {
        let level = log_level(&event.kind);
        let data = match event.kind {
            EventKind::Progress { done, total, message } => {
                return self.report_progress(done, total, message).await;
            }
            EventKind::Output { text } if self.target.token.is_some() => {
                self.chunks += 1;
                return self.send_progress(text).await;
            }
            EventKind::Emitted { kind, data } => json!({ "kind": kind, "data": data }),
            EventKind::Output { text: said } | EventKind::Warned { message: said } => said.into(),
            _ => return,
        };
        if let Some(level) = level {
            self.send_log(level, event.tool.name.as_str(), data).await;
        }
    }

    async fn report_progress(&mut self, done: u64, total: Option<u64>, message: String) {
        if self.done.is_some_and(|before| done <= before) {
            return;
        }
        (self.done, self.total) = (Some(done), total);
        self.send_progress(message).await;
    }

    async fn send_progress(&self, message: String) {
        let Some(token) = &self.target.token else { return };
        let with_chunks = |steps: u64| steps.saturating_add(self.chunks) as f64;
        let done = with_chunks(self.done.unwrap_or_default());
        let mut told = ProgressNotificationParam::new(token.clone(), done);
        told.total = self.total.map(with_chunks);
        told.message = Some(message).filter(|message| !message.is_empty());
        let _ = self.target.peer.notify_progress(told).await;
    }

    async fn send_log(&self, level: LoggingLevel, tool: &str, data: Value) {
        if self.target.level.is_some_and(|least| log_severity(level) >= least) {
            let message = LoggingMessageNotificationParam::new(level, data).with_logger(tool);
            let _ = self.target.peer.notify_logging_message(message).await;
        }
    }
}

/// Returns the log level of an event, or `None` if it is not a log message.
const fn log_level(kind: &EventKind) -> Option<LoggingLevel> {
    match kind {
        EventKind::Output { .. } => Some(LoggingLevel::Debug),
        EventKind::Emitted { .. } => Some(LoggingLevel::Info),
        EventKind::Warned { .. } => Some(LoggingLevel::Warning),
        _ => None,
    }
}

/// Returns true if the event is a log message of at least level `least`.
pub(super) fn is_logged(kind: &EventKind, least: u8) -> bool {
    log_level(kind).is_some_and(|level| log_severity(level) >= least)
}

/// Returns the position of a level in the protocol's order, the lowest being 0.
pub(super) const fn log_severity(level: LoggingLevel) -> u8 {
    level as u8
}
