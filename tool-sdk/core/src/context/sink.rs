//! The port through which a running tool reports and asks.
//!
//! **Invariant:** the trait does not depend on its implementer; the default methods do nothing.

use std::borrow::Cow;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    AccessDecision, Context, DeniedFiles, InquiryFuture, RequestedAccess, ToolFacts,
    VisibilityFilter, WorkStop,
};
use crate::call::{Call, Outcome};
use crate::error::ToolError;
use crate::name::ToolName;
use crate::redact::{DetectedSecrets, Redactor};

/// A message of a tool while it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Signal {
    /// The progress of the call.
    Progress {
        /// Steps done.
        done: u64,
        /// Total steps, when known.
        total: Option<u64>,
        /// The current activity.
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
        /// The kind of event.
        kind: String,
        /// The payload.
        data: Value,
    },
    /// A part of the output.
    Output {
        /// The text.
        text: String,
    },
    /// Earlier messages did not arrive, because they came faster than they were passed on.
    Lost {
        /// How many.
        count: u64,
    },
}

/// Receives the signals of calls. Delivery must not block.
pub trait Sink: Send + Sync {
    /// Returns whether there is a subscriber; without one, signals are not built.
    fn has_subscribers(&self) -> bool {
        true
    }

    /// Takes one signal of the call `cx`.
    fn send_signal(&self, cx: &Context, signal: Signal);

    /// Returns a token that is cancelled when the host closes the pipeline; never, by default.
    fn shutdown_token(&self) -> CancellationToken {
        CancellationToken::new()
    }

    /// Registers what the pipeline closes for the session of `cx`; does nothing by default.
    fn on_close(&self, cx: &Context, name: Cow<'static, str>, close: CloseCallback) {
        let _ = (cx, name, close);
    }

    /// Asks whether the call may do `what` under `permission`; `false` by default.
    fn request_permission(
        self: Arc<Self>,
        cx: Context,
        permission: String,
        what: RequestedAccess,
    ) -> PermissionFuture {
        let _ = (cx, permission, what);
        Box::pin(ready(false))
    }

    /// Returns what rules, grants and the mode decide about `what` under `permission`; denied by
    /// default.
    fn evaluate_permission(
        self: Arc<Self>,
        cx: &Context,
        permission: String,
        what: RequestedAccess,
    ) -> AccessDecision {
        let _ = (cx, permission, what);
        AccessDecision::Denied
    }

    /// Returns how long the user was asked during the call. This time does not count towards the
    /// time limit. Zero by default.
    fn prompt_time(&self, cx: &Context) -> Duration {
        let _ = cx;
        Duration::ZERO
    }

    /// Waits for the answers of the user. This time does not count towards the time limit. By
    /// default, only waits.
    fn await_inquiry(self: Arc<Self>, cx: Context, answers: InquiryFuture) -> InquiryFuture {
        let _ = cx;
        answers
    }

    /// Masks the secrets of the session in the parameters of an inquiry. Does nothing by default.
    fn mask_inquiry(&self, cx: &Context, params: &mut Value) {
        let _ = (cx, params);
    }

    /// Returns the name of the permission mode of the session of `cx`; `strict` by default.
    fn permission_mode(&self, cx: &Context) -> &'static str {
        let _ = cx;
        "strict"
    }

    /// Evaluates open approval requests again, because the mode of the session of `cx` changed. Does
    /// nothing by default.
    fn on_mode_change(&self, cx: &Context) {
        let _ = cx;
    }

    /// Registers work that the call does on another thread, until
    /// [`work_ended`](Self::work_ended) is called. `stop` ends the work; when the call is ended
    /// early, the pipeline waits for work that is [held](WorkStop::hold). Does nothing by
    /// default.
    fn work_started(&self, cx: &Context, stop: &WorkStop) {
        let _ = (cx, stop);
    }

    /// Unregisters work that the call no longer waits for. Does nothing by default.
    fn work_ended(&self, cx: &Context, stop: &WorkStop) {
        let _ = (cx, stop);
    }

    /// Runs a call that the running call `cx` makes; fails by default.
    fn run_nested_call<'a>(
        self: Arc<Self>,
        cx: &'a Context,
        call: Call<'a>,
    ) -> BoxFuture<'a, Outcome> {
        let _ = cx;
        Box::pin(ready(Outcome::new(call.origin().id, Err(no_pipeline_error()))))
    }

    /// Returns the visible tools that match `query` best; none by default.
    fn search_tools(&self, cx: &Context, query: &str, limit: usize) -> Vec<ToolFacts> {
        let _ = (cx, query, limit);
        Vec::new()
    }

    /// Returns which files the call may show; all by default.
    fn visible_files(self: Arc<Self>, cx: &Context, permission: &str) -> VisibilityFilter {
        let _ = (cx, permission);
        VisibilityFilter::SHOW_ALL
    }

    /// Returns the files that deny rules keep from `permission`; none by default.
    fn denied_files(self: Arc<Self>, cx: &Context, permission: &str) -> DeniedFiles {
        let _ = (cx, permission);
        DeniedFiles::default()
    }
}

/// The error of a nested call that no pipeline runs.
pub(super) fn no_pipeline_error() -> ToolError {
    ToolError::unavailable("a tool can call another one only inside a pipeline")
}

impl Signal {
    /// Returns the signal with secrets masked by `redactor`.
    pub(crate) fn redacted(mut self, redactor: &Redactor) -> Self {
        match &mut self {
            Self::Progress { message, .. } => {
                redactor.redact_call_text(message, &DetectedSecrets::default());
            }
            Self::Output { text } => redactor.redact_in_place(text),
            Self::Metadata { value, .. } | Self::Emitted { data: value, .. } => {
                redactor.redact_value(value);
            }
            Self::Lost { .. } => {}
        }
        self
    }
}

/// Receives the signals of the calls of one session while they run. It must not block.
pub trait SessionListener: Send + Sync {
    /// Called for a signal of a tool.
    fn on_signal(&self, tool: &ToolName, signal: &Signal);

    /// Called for a warning to the caller.
    fn on_warning(&self, tool: &ToolName, message: &str);
}

/// Closes something that outlives a call, when its pipeline is closed.
pub type CloseCallback = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

/// The answer that a running tool waits for.
pub type PermissionFuture = Pin<Box<dyn Future<Output = bool> + Send>>;
