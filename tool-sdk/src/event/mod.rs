//! What happens to calls, told as it happens to whoever listens.
//!
//! An event is plain data; what many of them say is shared and not copied.

mod arguments;
mod hub;
mod redacted;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

pub use self::arguments::Arguments;
pub use self::hub::Events;
pub(crate) use self::hub::{About, Hub, HubOwner};
use crate::call::{CallId, Note, Truncated};
use crate::content::Attachment;
use crate::context::Signal;
use crate::error::ErrorKind;
use crate::hook::HookRun;
use crate::loop_guard::Finding;
use crate::name::ToolName;
use crate::permission::{Ask, AskId, Decision};
use crate::tool::{Display, Source};

/// Something that happened to a call.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ToolEvent {
    /// Grows with every event of the pipeline.
    pub seq: u64,
    /// The call.
    pub call: CallId,
    /// The tool's name, as the registry has it.
    pub tool: ToolName,
    /// The session's id.
    pub session: Arc<str>,
    /// How much it matters to whoever only looks for trouble.
    pub severity: Severity,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// How much an event matters to whoever only looks for trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Severity {
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
        /// How the tool is shown.
        display: Arc<Display>,
        /// Where the tool comes from.
        source: Source,
        /// The arguments, sensitive values masked.
        arguments: Arguments,
        /// One line for people.
        summary: Option<String>,
        /// What was accepted beyond the contract.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        notes: Vec<Note>,
    },
    /// A hook looks at the call.
    HookStarted {
        /// Its name.
        hook: String,
    },
    /// A hook has looked at the call.
    HookFinished(HookRun),
    /// Somebody is asked.
    PermissionAsked(Arc<Ask>),
    /// An ask has its answer.
    PermissionReplied {
        /// The ask.
        ask: AskId,
        /// The answer: `once`, `session`, `always`, `reject`, `reject_with`, `covered` by
        /// an approval for another ask, `expired`, or `aborted`.
        reply: Cow<'static, str>,
    },
    /// Something that the host should know, which changes nothing for the call.
    Warned {
        /// What it is.
        message: String,
    },
    /// The call may not run; its end follows.
    Denied(Decision),
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
        arguments: Option<Arguments>,
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
        /// Its value.
        value: Value,
    },
    /// The tool sends an event of its own kind.
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
    /// The result's text was cut.
    Truncated(Truncated),
    /// The end: the tool gave a result.
    Completed {
        /// How the tool is shown.
        display: Arc<Display>,
        /// Where the tool comes from.
        source: Source,
        /// How long it took.
        elapsed_ms: u64,
        /// A short title.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Typed data for a screen; shared, because it may be large.
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<Arc<Value>>,
        /// The attachments, by media type and name.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        artifacts: Vec<Artifact>,
    },
    /// The end: the call failed.
    Failed(Ending),
    /// The end: the call was cancelled.
    Aborted(Ending),
    /// The end: the time was up.
    TimedOut(Ending),
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
            Signal::Metadata { key, value } => Self::Metadata { key, value },
            Signal::Emitted { kind, data } => Self::Emitted { kind, data },
            Signal::Output { text } => Self::Output { text },
        }
    }
}

/// What the guard against loops found.
impl From<Finding> for EventKind {
    fn from(finding: Finding) -> Self {
        match finding {
            Finding::Fine => Self::Looped { times: 0, cycle: 0, stopped: false },
            Finding::Repeated { times, cycle } => Self::Looped { times, cycle, stopped: false },
            Finding::Stopped { times } => Self::Looped { times, cycle: 1, stopped: true },
        }
    }
}

impl EventKind {
    /// Whether it is the end of a call.
    #[must_use]
    pub const fn is_terminal(&self) -> bool {
        matches!(
            self,
            Self::Completed { .. } | Self::Failed(_) | Self::Aborted(_) | Self::TimedOut(_)
        )
    }

    /// How much it matters to whoever only looks for trouble.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        match self {
            Self::Failed(Ending { error: ErrorKind::Internal | ErrorKind::Config, .. }) => {
                Severity::Error
            }
            Self::Failed(_)
            | Self::TimedOut(_)
            | Self::Denied(_)
            | Self::Looped { .. }
            | Self::Warned { .. }
            | Self::Lost { .. } => Severity::Warning,
            _ => Severity::Info,
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

    /// Whether it is the beginning of a call.
    const fn is_beginning(&self) -> bool {
        matches!(self, Self::Pending { .. })
    }
}

/// How a call ended that gave no result.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Ending {
    /// How the tool is shown.
    pub display: Arc<Display>,
    /// Where the tool comes from.
    pub source: Source,
    /// What kind of failure it was.
    pub error: ErrorKind,
    /// What the model reads.
    pub message: String,
    /// How long it took.
    pub elapsed_ms: u64,
}

impl Ending {
    pub(crate) fn new(
        display: Arc<Display>,
        source: Source,
        error: ErrorKind,
        message: String,
        elapsed: Duration,
    ) -> Self {
        Self { display, source, error, message, elapsed_ms: millis(elapsed) }
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
    pub(crate) fn of(attachment: &Attachment) -> Self {
        Self { mime: attachment.mime.clone(), name: attachment.name.clone() }
    }
}

pub(crate) fn millis(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}
