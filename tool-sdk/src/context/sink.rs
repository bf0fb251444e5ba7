//! The port through which a running tool tells and asks the outside.
//!
//! **Invariant:** nothing here knows who stands behind it; by default nobody does.

use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Context, InquiryFuture, ToolFacts, VisibilityFilter, WorkStop};
use crate::name::ToolName;
use crate::redact::{DetectedSecrets, Redactor};

/// Something that a tool says while it runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Signal {
    /// How far it is.
    Progress {
        /// Steps done.
        done: u64,
        /// Steps in all, when known.
        total: Option<u64>,
        /// What it does now.
        message: String,
    },
    /// A fact about the running call.
    Metadata {
        /// Its name.
        key: String,
        /// Its value.
        value: Value,
    },
    /// An event of the tool's own kind.
    Emitted {
        /// The kind.
        kind: String,
        /// What belongs to it.
        data: Value,
    },
    /// A part of the output.
    Output {
        /// The text.
        text: String,
    },
}

/// Where signals go. Delivery must not block.
pub trait Sink: Send + Sync {
    /// Whether anybody listens; signals are not even built when not.
    fn has_subscribers(&self) -> bool {
        true
    }

    /// Takes one signal of the call `cx`.
    fn send_signal(&self, cx: &Context, signal: Signal);

    /// What fires when the host closes its tools; never, by default.
    fn shutdown_token(&self) -> CancellationToken {
        CancellationToken::new()
    }

    /// Asks whether the call may do `what` under `permission`; no by default.
    fn request_permission(
        self: Arc<Self>,
        cx: Context,
        permission: String,
        what: String,
    ) -> PermissionFuture {
        let _ = (cx, permission, what);
        Box::pin(ready(false))
    }

    /// How long somebody thought about what the running call asked: it is not on the tool's
    /// time. None by default.
    fn prompt_time(&self, cx: &Context) -> Duration {
        let _ = cx;
        Duration::ZERO
    }

    /// Waits for what a person answers to the running call: that time is not on the tool's. Only
    /// waits by default.
    fn await_inquiry(self: Arc<Self>, cx: Context, answers: InquiryFuture) -> InquiryFuture {
        let _ = cx;
        answers
    }

    /// Hears that the running call works on another thread, until it is told [`worked`](Self::work_ended).
    /// `stop` ends that work; who ends the call waits for work that is [held](WorkStop::hold). Does
    /// nothing by default.
    fn work_started(&self, cx: &Context, stop: &WorkStop) {
        let _ = (cx, stop);
    }

    /// Hears that the call waits for this work no more. Does nothing by default.
    fn work_ended(&self, cx: &Context, stop: &WorkStop) {
        let _ = (cx, stop);
    }

    /// The tools that fit `query` best among those that the session can see; none by default.
    fn search_tools(&self, cx: &Context, query: &str, limit: usize) -> Vec<ToolFacts> {
        let _ = (cx, query, limit);
        Vec::new()
    }

    /// What the call may show of the files that it meets; everything by default.
    fn visible_files(self: Arc<Self>, cx: &Context, permission: &str) -> VisibilityFilter {
        let _ = (cx, permission);
        VisibilityFilter::SHOW_ALL
    }
}

impl Signal {
    /// The same without what `redactor` finds.
    pub(crate) fn redacted(mut self, redactor: &Redactor) -> Self {
        match &mut self {
            Self::Progress { message, .. } => {
                redactor.redact_call_text(message, &DetectedSecrets::default());
            }
            Self::Output { text } => redactor.redact_in_place(text),
            Self::Metadata { value, .. } | Self::Emitted { data: value, .. } => {
                redactor.redact_value(value);
            }
        }
        self
    }
}

/// Hears what happens to the calls of one session while they run, as it happens. It must not
/// block.
pub(crate) trait SessionListener: Send + Sync {
    /// What a tool says.
    fn on_signal(&self, tool: &ToolName, signal: &Signal);

    /// What whoever made the call should know.
    fn on_warning(&self, tool: &ToolName, message: &str);
}

/// The answer that a running tool waits for.
pub type PermissionFuture = Pin<Box<dyn Future<Output = bool> + Send>>;
