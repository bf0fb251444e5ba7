//! Events: what happens to calls, published while it happens.
//!
//! An event is plain data; values that many events contain are shared, not copied.

mod bus;
mod masked_arguments;
mod queue;
mod redaction;
mod redaction_holdback;
mod subscription;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::Value;

pub(crate) use self::bus::{EventBus, EventBusOwner};
pub use self::masked_arguments::MaskedArguments;
pub(crate) use self::redaction_holdback::SecretHoldback;
pub use self::subscription::Subscription;
use crate::call::{ArgumentNote, CallId, CallOrigin, Truncation};
use crate::content::Attachment;
use crate::context::{Session, SessionIds, Signal};
use crate::error::{ErrorKind, ToolError};
use crate::hook::HookRun;
use crate::loop_guard::LoopFinding;
use crate::name::ToolName;
use crate::permission::{ApprovalId, ApprovalRequest, Decision};
use crate::tool::{ToolDisplay, ToolLabel, ToolSource};

/// Something that happened to a call.
///
/// As JSON it is one object: `tool` is the tool's name, and `severity` says how much the event
/// matters. Ids that the call does not have are absent. The first and the last event of a call also
/// contain the tool's display metadata, with its category, and its source.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolEvent {
    /// The sequence number; it grows with every event of the pipeline.
    pub seq: u64,
    /// The call.
    pub call: CallId,
    /// The call that made this one with [`Context::call`](crate::Context::call).
    pub parent: Option<CallId>,
    /// The message that holds the call.
    pub message: Option<Arc<str>>,
    /// The tool.
    pub tool: Arc<ToolLabel>,
    /// The session's id.
    pub session: Arc<str>,
    /// For whom the session makes calls: agent, conversation, project, user and request.
    pub ids: Arc<SessionIds>,
    /// What happened.
    pub kind: EventKind,
}

/// The call of an event.
#[derive(Clone, Copy)]
pub(crate) struct EventCall<'a> {
    pub(crate) session: &'a Session,
    pub(crate) tool: &'a Arc<ToolLabel>,
    pub(crate) origin: &'a CallOrigin,
}

impl Serialize for ToolEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Written<'a> {
            seq: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            call: Option<&'a CallId>,
            #[serde(skip_serializing_if = "Option::is_none")]
            parent: Option<&'a CallId>,
            #[serde(skip_serializing_if = "Option::is_none")]
            message_id: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            tool: Option<&'a ToolName>,
            #[serde(skip_serializing_if = "Option::is_none")]
            session: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            agent: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            conversation: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            project: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            user: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            request: Option<&'a str>,
            severity: EventSeverity,
            #[serde(skip_serializing_if = "Option::is_none")]
            display: Option<&'a ToolDisplay>,
            #[serde(skip_serializing_if = "Option::is_none")]
            source: Option<&'a ToolSource>,
            #[serde(flatten)]
            kind: &'a EventKind,
        }
        let (label, ids) = (&*self.tool, &*self.ids);
        // An approval request has these keys itself, and no key may occur twice in an object.
        let is_named = !matches!(self.kind, EventKind::PermissionAsked(_));
        let is_labelled = self.kind.starts_call() || self.kind.is_terminal();
        Written {
            seq: self.seq,
            call: is_named.then_some(&self.call),
            parent: self.parent.as_ref(),
            message_id: self.message.as_deref(),
            tool: is_named.then_some(&label.name),
            session: is_named.then_some(&*self.session),
            agent: ids.agent.as_deref().filter(|_| is_named),
            conversation: ids.conversation.as_deref(),
            project: ids.project.as_deref(),
            user: ids.user.as_deref(),
            request: ids.request.as_deref(),
            severity: self.kind.severity(),
            display: is_labelled.then_some(&*label.display),
            source: is_labelled.then_some(&label.source),
            kind: &self.kind,
        }
        .serialize(serializer)
    }
}

/// How much an event matters to a user who looks for problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum EventSeverity {
    /// Nothing is wrong.
    Info,
    /// A call did not succeed, or the host should know of something.
    Warning,
    /// Something is broken: the tool or its configuration.
    Error,
}

/// What happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// The arguments of the call were parsed.
    Pending {
        /// The arguments, sensitive values masked.
        arguments: MaskedArguments,
        /// A one-line summary for people.
        summary: Option<String>,
        /// The accepted deviations from the schema.
        #[serde(skip_serializing_if = "<[ArgumentNote]>::is_empty")]
        notes: Box<[ArgumentNote]>,
    },
    /// A hook starts.
    HookStarted {
        /// Its name.
        hook: String,
    },
    /// A hook has finished.
    HookFinished(HookRun),
    /// The approver is asked.
    PermissionAsked(Arc<ApprovalRequest>),
    /// An approval request was answered, or ended without an answer.
    PermissionReplied {
        /// The id of the approval request.
        ask: ApprovalId,
        /// The answer: `once`, `edited`, `session`, `always`, `reject` or `reject_with` from the approver;
        /// `refused` by a hook, or `superseded` when a hook rewrote the call;
        /// `rejected_with_batch` because another call of the batch was rejected; `not_offered` when the answer is not one of the choices;
        /// `covered` by a grant from another request; `expired`, or `aborted`.
        reply: Cow<'static, str>,
    },
    /// A warning to the host, without an effect on the call.
    Warned {
        /// The text of the warning.
        message: String,
    },
    /// The call was denied; its end follows.
    Denied(Box<Decision>),
    /// The call repeats earlier calls.
    Looped {
        /// The number of repetitions.
        times: u32,
        /// The length of the cycle; 1 for the same call repeated.
        cycle: usize,
        /// Whether the call is refused and cannot be allowed.
        stopped: bool,
    },
    /// The tool starts.
    Started {
        /// The arguments, if a hook changed them; sensitive values masked.
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<MaskedArguments>,
    },
    /// The tool reports progress.
    Progress {
        /// Steps done.
        done: u64,
        /// Total steps, when known.
        total: Option<u64>,
        /// The current activity.
        message: String,
    },
    /// The tool sets a fact about the call.
    Metadata {
        /// Its name.
        key: String,
        /// Its value; shared, because it may be large.
        value: Arc<Value>,
    },
    /// The tool sends an event of its own kind.
    Emitted {
        /// The kind.
        kind: String,
        /// The payload.
        data: Arc<Value>,
    },
    /// The tool emits a part of its output.
    Output {
        /// The text.
        text: String,
    },
    /// The text of the result was truncated.
    Truncated(Box<Truncation>),
    /// The call ended: the tool returned a result.
    Completed {
        /// The duration in milliseconds.
        elapsed_ms: u64,
        /// A short title.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Structured data for display.
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<Arc<Value>>,
        /// The attachments, by media type and name.
        #[serde(skip_serializing_if = "<[Artifact]>::is_empty")]
        artifacts: Box<[Artifact]>,
    },
    /// The call ended: it failed.
    Failed(CallFailure),
    /// The call ended: it was cancelled.
    Aborted(CallFailure),
    /// The call ended: its time limit was exceeded.
    TimedOut(CallFailure),
    /// Events were lost because the subscriber, or a program on their way, did not keep up.
    Lost {
        /// The number of lost events.
        count: u64,
    },
}

/// Converts a signal of a running tool.
impl From<Signal> for EventKind {
    fn from(signal: Signal) -> Self {
        match signal {
            Signal::Progress { done, total, message } => Self::Progress { done, total, message },
            Signal::Metadata { key, value } => Self::Metadata { key, value: value.into() },
            Signal::Emitted { kind, data } => Self::Emitted { kind, data: data.into() },
            Signal::Output { text } => Self::Output { text },
            Signal::Lost { count } => Self::Lost { count },
        }
    }
}

/// Converts a finding of the loop guard.
impl From<LoopFinding> for EventKind {
    fn from(finding: LoopFinding) -> Self {
        match finding {
            LoopFinding::NoLoop => Self::Looped { times: 0, cycle: 0, stopped: false },
            LoopFinding::Repeated { times, cycle } => Self::Looped { times, cycle, stopped: false },
            LoopFinding::Stopped { times } | LoopFinding::TooFrequent { times } => {
                Self::Looped { times, cycle: 1, stopped: true }
            }
        }
    }
}

impl EventKind {
    /// The names of all kinds, as in [`name`](Self::name).
    pub const NAMES: [&str; 19] = [
        "pending",
        "hook_started",
        "hook_finished",
        "permission_asked",
        "permission_replied",
        "warned",
        "denied",
        "looped",
        "started",
        "progress",
        "metadata",
        "emitted",
        "output",
        "truncated",
        "completed",
        "failed",
        "aborted",
        "timed_out",
        "lost",
    ];

    /// Returns the name of the kind, the `type` in its JSON.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Pending { .. } => "pending",
            Self::HookStarted { .. } => "hook_started",
            Self::HookFinished(_) => "hook_finished",
            Self::PermissionAsked(_) => "permission_asked",
            Self::PermissionReplied { .. } => "permission_replied",
            Self::Warned { .. } => "warned",
            Self::Denied(_) => "denied",
            Self::Looped { .. } => "looped",
            Self::Started { .. } => "started",
            Self::Progress { .. } => "progress",
            Self::Metadata { .. } => "metadata",
            Self::Emitted { .. } => "emitted",
            Self::Output { .. } => "output",
            Self::Truncated(_) => "truncated",
            Self::Completed { .. } => "completed",
            Self::Failed(_) => "failed",
            Self::Aborted(_) => "aborted",
            Self::TimedOut(_) => "timed_out",
            Self::Lost { .. } => "lost",
        }
    }

    /// Returns whether the event ends a call.
    #[must_use]
    #[inline]
    pub const fn is_terminal(&self) -> bool {
        matches!(
            self,
            Self::Completed { .. } | Self::Failed(_) | Self::Aborted(_) | Self::TimedOut(_)
        )
    }

    /// Returns how much the event matters to a user who looks for problems.
    #[must_use]
    pub const fn severity(&self) -> EventSeverity {
        match self {
            Self::Failed(CallFailure {
                error: ErrorKind::Internal | ErrorKind::Config, ..
            }) => EventSeverity::Error,
            Self::Failed(_)
            | Self::TimedOut(_)
            | Self::Denied(_)
            | Self::Looped { .. }
            | Self::Warned { .. }
            | Self::Lost { .. } => EventSeverity::Warning,
            Self::HookFinished(run) if run.has_failed() => EventSeverity::Warning,
            _ => EventSeverity::Info,
        }
    }

    /// Returns whether the event is a signal of a running tool.
    const fn is_signal(&self) -> bool {
        matches!(
            self,
            Self::Progress { .. }
                | Self::Metadata { .. }
                | Self::Output { .. }
                | Self::Emitted { .. }
        )
    }

    /// Returns whether the event is a message of a call, and not a step of it.
    const fn is_message(&self) -> bool {
        self.is_signal() || matches!(self, Self::Warned { .. } | Self::Lost { .. })
    }

    /// Returns whether the event starts a call.
    const fn starts_call(&self) -> bool {
        matches!(self, Self::Pending { .. })
    }
}

/// How a call without a result ended.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct CallFailure {
    /// The kind of failure.
    pub error: ErrorKind,
    /// The message for the model.
    pub message: String,
    /// The duration in milliseconds.
    pub elapsed_ms: u64,
}

impl CallFailure {
    pub(crate) fn new(error: &ToolError, elapsed: Duration) -> Self {
        let (error, message) = (error.kind(), error.to_string());
        Self { error, message, elapsed_ms: millis(elapsed) }
    }
}

/// An attachment of a result.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Artifact {
    /// The media type.
    pub mime: String,
    /// A name for people.
    pub name: Option<String>,
}

impl Artifact {
    pub(crate) fn from_attachment(attachment: &Attachment) -> Self {
        Self { mime: attachment.mime.clone(), name: attachment.name.clone() }
    }
}

#[inline]
pub(crate) fn millis(elapsed: Duration) -> u64 {
    elapsed.as_secs().saturating_mul(1000).saturating_add(elapsed.subsec_millis().into())
}
