//! Tells a peer what happens to its call while it runs.
//!
//! Progress goes to those who gave the call a progress token, and with it what the call
//! writes; everything else that a tool says of itself is a log message, for those who want to
//! read log messages.
//!
//! **Invariant:** a peer that reads slowly delays nothing but what it is told.

// Log messages are on their way out of the protocol; peers of today still read them.
#![expect(deprecated, reason = "the older half of the peers knows no other way")]

use rmcp::model::{
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{Peer, RoleServer};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

use crate::call::CallId;
use crate::event::{EventKind, Events, ToolEvent};
use crate::pipeline::Pipeline;

/// Who is told what.
pub(super) struct NotificationTarget {
    pub(super) peer: Peer<RoleServer>,
    pub(super) token: Option<ProgressToken>,
    /// The least important log message that is wanted.
    pub(super) level: Option<u8>,
}

/// Tells a peer of one call; stops when it is dropped.
pub(super) struct EventRelay {
    done: oneshot::Sender<()>,
    task: AbortOnDropHandle<()>,
}

impl EventRelay {
    /// Starts before the call, where there is anybody to tell.
    pub(super) fn subscribe(
        pipeline: &Pipeline,
        call: &CallId,
        audience: NotificationTarget,
    ) -> Option<Self> {
        let is_heard = audience.token.is_some() || audience.level.is_some();
        is_heard.then(|| Self::spawn(pipeline.subscribe_to(call), audience))
    }

    /// Tells what there is to tell of a call already, and goes on.
    pub(super) fn spawn(events: Events, audience: NotificationTarget) -> Self {
        let (done, end) = oneshot::channel();
        let relaying = forward_events(events, audience, end);
        Self { done, task: AbortOnDropHandle::new(tokio::spawn(relaying)) }
    }

    /// Tells the rest of what happened until now.
    pub(super) async fn finish(self) {
        let _ = self.done.send(());
        let _ = self.task.await;
    }
}

async fn forward_events(
    mut events: Events,
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
    /// How far the tool says that the call is, and of how much.
    done: Option<u64>,
    total: Option<u64>,
    /// How many pieces of output were told. Each is a step as well, because the protocol wants
    /// every message to be further than the one before.
    chunks: u64,
}

impl Notifier {
    /// A peer that is gone need not be told.
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

/// How important what happened is as a log message; nothing where it is none.
const fn log_level(kind: &EventKind) -> Option<LoggingLevel> {
    match kind {
        EventKind::Output { .. } => Some(LoggingLevel::Debug),
        EventKind::Emitted { .. } => Some(LoggingLevel::Info),
        EventKind::Warned { .. } => Some(LoggingLevel::Warning),
        _ => None,
    }
}

/// Whether what happened is a log message for those who want none less important than `least`.
pub(super) fn is_logged(kind: &EventKind, least: u8) -> bool {
    log_level(kind).is_some_and(|level| log_severity(level) >= least)
}

/// The levels in the order in which the protocol names them.
pub(super) const fn log_severity(level: LoggingLevel) -> u8 {
    level as u8
}
