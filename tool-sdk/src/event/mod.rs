//! What happens to calls, told as it happens to whoever listens.
//!
//! An event is plain data; what many of them say is shared and not copied.

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
use crate::call::{ArgumentNote, CallId, Truncation};
use crate::content::Attachment;
use crate::context::{Session, Signal};
use crate::error::{ErrorKind, ToolError};
use crate::hook::HookRun;
use crate::loop_guard::LoopFinding;
use crate::name::ToolName;
use crate::permission::{ApprovalId, ApprovalRequest, Decision};
use crate::tool::{ToolDisplay, ToolLabel, ToolSource};

/// Something that happened to a call.
///
/// As JSON it is one object: `tool` is the tool's name, `severity` says how much the event
/// matters, and how the tool is shown and where it comes from stand beside them where a call
/// begins and where it ends.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolEvent {
    /// Grows with every event of the pipeline.
    pub seq: u64,
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: Arc<ToolLabel>,
    /// The session's id.
    pub session: Arc<str>,
    /// What happened.
    pub kind: EventKind,
}

/// The call to which something happens.
#[derive(Clone, Copy)]
pub(crate) struct EventCall<'a> {
    pub(crate) session: &'a Session,
    pub(crate) tool: &'a Arc<ToolLabel>,
    pub(crate) call: &'a CallId,
}

impl Serialize for ToolEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Written<'a> {
            seq: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            call: Option<&'a CallId>,
            #[serde(skip_serializing_if = "Option::is_none")]
            tool: Option<&'a ToolName>,
            #[serde(skip_serializing_if = "Option::is_none")]
            session: Option<&'a str>,
            severity: EventSeverity,
            #[serde(skip_serializing_if = "Option::is_none")]
            display: Option<&'a ToolDisplay>,
            #[serde(skip_serializing_if = "Option::is_none")]
            source: Option<&'a ToolSource>,
            #[serde(flatten)]
            kind: &'a EventKind,
        }
        let label = &*self.tool;
        // An ask says itself of what it is, and no key may stand twice in an object.
        let is_named = !matches!(self.kind, EventKind::PermissionAsked(_));
        let is_labelled = self.kind.starts_call() || self.kind.is_terminal();
        Written {
            seq: self.seq,
            call: is_named.then_some(&self.call),
            tool: is_named.then_some(&label.name),
            session: is_named.then_some(&*self.session),
            severity: self.kind.severity(),
            display: is_labelled.then_some(&*label.display),
            source: is_labelled.then_some(&label.source),
            kind: &self.kind,
        }
        .serialize(serializer)
    }
}

/// How much an event matters to whoever only looks for trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum EventSeverity {
    /// All is as it should be.
    Info,
    /// A call did not do what it was made for, or the host should know of something.
    Warning,
    /// Something is broken: the tool, or how it was set up.
    Error,
}

/// What happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// The call was understood.
    Pending {
        /// The arguments, sensitive values masked.
        arguments: MaskedArguments,
        /// One line for people.
        summary: Option<String>,
        /// What was accepted beyond the contract.
        #[serde(skip_serializing_if = "<[ArgumentNote]>::is_empty")]
        notes: Box<[ArgumentNote]>,
    },
    /// A hook looks at the call.
    HookStarted {
        /// Its name.
        hook: String,
    },
    /// A hook has looked at the call.
    HookFinished(HookRun),
    /// Somebody is asked.
    PermissionAsked(Arc<ApprovalRequest>),
    /// An ask has its answer.
    PermissionReplied {
        /// The ask.
        ask: ApprovalId,
        /// The answer: `once`, `session`, `always`, `reject` or `reject_with`; `refused` by a
        /// hook, or `changed` by one into another call; `rejected_beside` another call,
        /// `not_offered` to be answered so, `covered` by an approval for another ask, `expired`,
        /// or `aborted`.
        reply: Cow<'static, str>,
    },
    /// Something that the host should know, which changes nothing for the call.
    Warned {
        /// What it is.
        message: String,
    },
    /// The call may not run; its end follows.
    Denied(Box<Decision>),
    /// The call repeats what was done before.
    Looped {
        /// How often.
        times: u32,
        /// The length of the cycle; 1 for one call again and again.
        cycle: usize,
        /// Whether it is refused for good.
        stopped: bool,
    },
    /// The tool runs.
    Started {
        /// The arguments that run, where a hook changed them; sensitive values masked.
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<MaskedArguments>,
    },
    /// The tool says how far it is.
    Progress {
        /// Steps done.
        done: u64,
        /// Steps in all, when known.
        total: Option<u64>,
        /// What it does now.
        message: String,
    },
    /// The tool says something about itself.
    Metadata {
        /// Its name.
        key: String,
        /// Its value; shared, like all values in events, because it may be large.
        value: Arc<Value>,
    },
    /// The tool sends an event of its own kind.
    Emitted {
        /// The kind.
        kind: String,
        /// What belongs to it.
        data: Arc<Value>,
    },
    /// A part of the output.
    Output {
        /// The text.
        text: String,
    },
    /// The result's text was cut.
    Truncated(Box<Truncation>),
    /// The end: the tool gave a result.
    Completed {
        /// How long it took.
        elapsed_ms: u64,
        /// A short title.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Typed data for a screen.
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<Arc<Value>>,
        /// The attachments, by media type and name.
        #[serde(skip_serializing_if = "<[Artifact]>::is_empty")]
        artifacts: Box<[Artifact]>,
    },
    /// The end: the call failed.
    Failed(CallFailure),
    /// The end: the call was cancelled.
    Aborted(CallFailure),
    /// The end: the time was up.
    TimedOut(CallFailure),
    /// Events were lost because the subscriber did not keep up.
    Lost {
        /// How many.
        count: u64,
    },
}

/// What a running tool says.
impl From<Signal> for EventKind {
    fn from(signal: Signal) -> Self {
        match signal {
            Signal::Progress { done, total, message } => Self::Progress { done, total, message },
            Signal::Metadata { key, value } => Self::Metadata { key, value: value.into() },
            Signal::Emitted { kind, data } => Self::Emitted { kind, data: data.into() },
            Signal::Output { text } => Self::Output { text },
        }
    }
}

/// What the guard against loops found.
impl From<LoopFinding> for EventKind {
    fn from(finding: LoopFinding) -> Self {
        match finding {
            LoopFinding::NoLoop => Self::Looped { times: 0, cycle: 0, stopped: false },
            LoopFinding::Repeated { times, cycle } => Self::Looped { times, cycle, stopped: false },
            LoopFinding::Stopped { times } => Self::Looped { times, cycle: 1, stopped: true },
        }
    }
}

impl EventKind {
    /// Whether it is the end of a call.
    #[must_use]
    #[inline]
    pub const fn is_terminal(&self) -> bool {
        matches!(
            self,
            Self::Completed { .. } | Self::Failed(_) | Self::Aborted(_) | Self::TimedOut(_)
        )
    }

    /// How much it matters to whoever only looks for trouble.
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

    /// Whether it is what a running tool says of itself.
    const fn is_signal(&self) -> bool {
        matches!(
            self,
            Self::Progress { .. }
                | Self::Metadata { .. }
                | Self::Output { .. }
                | Self::Emitted { .. }
        )
    }

    /// Whether it is something that a call says, and no step on its way.
    const fn is_message(&self) -> bool {
        self.is_signal() || matches!(self, Self::Warned { .. })
    }

    /// Whether it is the beginning of a call.
    const fn starts_call(&self) -> bool {
        matches!(self, Self::Pending { .. })
    }
}

/// How a call ended that gave no result.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct CallFailure {
    /// What kind of failure it was.
    pub error: ErrorKind,
    /// What the model reads.
    pub message: String,
    /// How long it took.
    pub elapsed_ms: u64,
}

impl CallFailure {
    pub(crate) fn new(error: &ToolError, elapsed: Duration) -> Self {
        let (error, message) = (error.kind(), error.to_string());
        Self { error, message, elapsed_ms: millis(elapsed) }
    }
}

/// Something that came with a result.
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
