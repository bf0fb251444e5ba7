//! Forwards the events of a running call to the client as notifications.
//!
//! Progress and tool output are sent as progress notifications if the request has a progress token.
//! All other output of a tool becomes log messages, if the client wants any.
//!
//! **Invariant:** a client that reads slowly delays only its own notifications.

// Log messages are deprecated in the protocol, but current clients still read them.
#![expect(deprecated, reason = "legacy clients have no replacement")]

use std::pin::pin;

use futures_util::FutureExt as _;
use rmcp::model::{
    GetMeta as _, LoggingLevel, LoggingMessageNotification, LoggingMessageNotificationParam,
    ProgressNotification, ProgressNotificationParam, ProgressToken, ServerNotification,
};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tool_sdk_core::internal::LazyCancelToken;
use tool_sdk_core::{CallId, EventKind, Pipeline, Subscription, ToolEvent};

use super::log_threshold::log_severity;
use super::message_sink::MessageSink;
use super::tasks::RELATED_TASK_KEY;

/// The receiver of notifications, and which ones it wants.
pub(super) struct NotificationTarget {
    pub(super) sink: MessageSink,
    pub(super) token: Option<ProgressToken>,
    /// The lowest log level that is sent.
    pub(super) level: Option<u8>,
    /// The task of 2025-11-25 that the call runs as.
    pub(super) task: Option<String>,
}

impl NotificationTarget {
    /// Sends a notification, which names the task. Send errors are ignored: the client disconnected.
    async fn notify(&self, mut notification: ServerNotification) {
        if let Some(task) = &self.task {
            let meta = notification.get_meta_mut();
            meta.insert(RELATED_TASK_KEY.to_owned(), json!({ "taskId": task }));
        }
        let _ = self.sink.notify(notification).await;
    }
}

/// The events of one call on their way to the client.
pub(super) struct EventRelay {
    events: Subscription,
    target: NotificationTarget,
}

impl EventRelay {
    /// Subscribes to a call before it starts. Returns `None` if the client wants no notifications.
    pub(super) fn subscribe(
        pipeline: &Pipeline,
        call: &CallId,
        target: NotificationTarget,
    ) -> Option<Self> {
        let is_wanted = target.token.is_some() || target.level.is_some();
        is_wanted.then(|| Self { events: pipeline.subscribe_to(call), target })
    }

    /// Runs a future and forwards events meanwhile, and the remaining ones when it has finished,
    /// unless the request is cancelled.
    pub(super) async fn forward_during<T>(
        self,
        running: impl Future<Output = T>,
        cancel: &LazyCancelToken,
    ) -> T {
        let finished = Notify::new();
        let mut forwarding = pin!(forward_events(self.events, self.target, &finished));
        let mut running = pin!(running);
        let output = tokio::select! {
            biased;
            output = &mut running => output,
            () = &mut forwarding => return running.await,
        };
        finished.notify_one();
        // Mostly nothing is left.
        if forwarding.as_mut().now_or_never().is_none() {
            cancel.token().run_until_cancelled(forwarding).await;
        }
        output
    }
}

async fn forward_events(mut events: Subscription, target: NotificationTarget, finished: &Notify) {
    let mut notifier = Notifier { target, done: None, total: None, chunks: 0 };
    loop {
        tokio::select! {
            biased;
            event = events.recv() => match event {
                // Boxed, because most calls have no event.
                Some(event) => Box::pin(notifier.notify_event(event)).await,
                None => return,
            },
            () = finished.notified() => return,
        }
    }
}

struct Notifier {
    target: NotificationTarget,
    /// The progress and the total that the tool reported last.
    done: Option<u64>,
    total: Option<u64>,
    /// How many chunks of output were sent since the tool last reported progress. The protocol
    /// requires that progress increases with every notification, so a chunk counts as a fraction of
    /// a step, and the numbers of the tool stay as they are.
    chunks: u32,
}

impl Notifier {
    /// Sends one event.
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
        let is_above = |before: u64| done > before || (done == before && self.chunks == 0);
        let is_first = self.done.is_none() && is_above(0);
        if !is_first && self.done.is_none_or(|before| done <= before) {
            return;
        }
        (self.done, self.total, self.chunks) = (Some(done), total, 0);
        self.send_progress(message).await;
    }

    async fn send_progress(&self, message: String) {
        let Some(token) = &self.target.token else { return };
        let chunks = f64::from(self.chunks);
        let done = self.done.unwrap_or_default() as f64 + chunks / (chunks + 1.0);
        let mut progress = ProgressNotificationParam::new(token.clone(), done);
        // A chunk after the last step would exceed the total.
        progress.total = self.total.map(|total| total as f64).filter(|total| done <= *total);
        progress.message = Some(message).filter(|message| !message.is_empty());
        let progress = ProgressNotification::new(progress);
        self.target.notify(ServerNotification::ProgressNotification(progress)).await;
    }

    async fn send_log(&self, level: LoggingLevel, tool: &str, data: Value) {
        if self.target.level.is_some_and(|least| log_severity(level) >= least) {
            let message = LoggingMessageNotificationParam::new(level, data).with_logger(tool);
            let message = LoggingMessageNotification::new(message);
            let message = ServerNotification::LoggingMessageNotification(message);
            self.target.notify(message).await;
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
