//! The audit log: a record of every decision about a call, and of every run.
//!
//! An [`AuditSink`] receives records; [`AuditLog`] writes them as JSON lines. A record that could
//! not be written is an error; the pipeline decides whether the call may still run.
//!
//! **Invariant:** this module makes no decisions, and writes nothing unredacted.

mod log;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::SystemTime;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

pub use self::log::AuditLog;
use crate::call::{CallId, CallOrigin};
use crate::context::Session;
use crate::error::ErrorKind;
use crate::name::ToolName;
use crate::permission::{
    Action, ApprovalResponse, Decision, DecisionSource, Fingerprint, Rule, RuleScope,
};
use crate::private_file::location;
use crate::rfc3339;
use crate::tool::{Definition, Resource, ToolSource};

/// Receives the audit records of calls.
///
/// # Examples
///
/// ```
/// use std::io;
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use tool_sdk::{AuditRecord, AuditSink};
///
/// /// Counts the records.
/// #[derive(Default)]
/// struct Counter(AtomicUsize);
///
/// impl AuditSink for Counter {
///     fn record(&self, _: &AuditRecord<'_>) -> io::Result<()> {
///         self.0.fetch_add(1, Ordering::Relaxed);
///         Ok(())
///     }
/// }
/// ```
pub trait AuditSink: Send + Sync {
    /// Writes one record. Called from many threads at once.
    ///
    /// # Errors
    ///
    /// Fails when the record was not written.
    fn record(&self, record: &AuditRecord<'_>) -> io::Result<()>;

    /// Returns the canonical path of the log file; no tool may write to it.
    fn file_path(&self) -> Option<&Path> {
        None
    }
}

/// Returns whether the canonical `path` is the log file of `audit`.
pub(crate) fn is_audit_file(audit: &dyn AuditSink, path: &Path) -> bool {
    audit.file_path().is_some_and(|file| location::is_at_or_below(path, file))
}

/// Writes `record`; a panic of the sink is an error.
pub(crate) fn write_record(audit: &dyn AuditSink, record: &AuditRecord<'_>) -> io::Result<()> {
    catch_unwind(AssertUnwindSafe(|| audit.record(record)))
        .unwrap_or_else(|_| Err(io::Error::other("the audit sink panicked")))
}

/// One record about a call.
///
/// The records of one call share its id and its fingerprint.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct AuditRecord<'a> {
    /// The time; serialized in UTC as RFC 3339.
    #[serde(serialize_with = "rfc3339::serialize")]
    pub time: SystemTime,
    /// The session's id.
    pub session: &'a str,
    /// The user on whose behalf the call is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<&'a str>,
    /// The agent that makes the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<&'a str>,
    /// The conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<&'a str>,
    /// The project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<&'a str>,
    /// The request that led to the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<&'a str>,
    /// The message that holds the call.
    #[serde(rename = "message_id", skip_serializing_if = "Option::is_none")]
    pub message: Option<&'a str>,
    /// The id of the call.
    pub call: &'a CallId,
    /// The call that made this one with [`Context::call`](crate::Context::call).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<&'a CallId>,
    /// The tool's name.
    pub tool: &'a ToolName,
    /// Where the tool comes from.
    pub source: &'a ToolSource,
    /// The permission that the call needs.
    pub permission: &'a str,
    /// The fingerprint of the call as it was decided, or as it ran.
    pub fingerprint: &'a Fingerprint,
    /// The hooks that changed the arguments, one for each change, in order.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub changed_by: &'a [String],
    /// How a person edited the arguments before approving the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited: Option<&'a ArgumentEdit>,
    /// What happened.
    #[serde(flatten)]
    pub event: AuditEvent<'a>,
    /// All versions of the call's arguments as text. Their secrets are redacted in the record.
    #[serde(skip)]
    pub(crate) argument_texts: &'a [&'a str],
}

/// How a person edited the arguments of a call before approving it. Sensitive values are masked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ArgumentEdit {
    /// The person, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// The arguments that were shown.
    pub from: Value,
    /// The arguments that were approved.
    pub to: Value,
}

impl ArgumentEdit {
    /// Returns what the model reads with the result.
    pub(crate) fn describe(&self) -> String {
        /// Longer arguments are not repeated.
        const MAX_BYTES: usize = 2000;
        let edited = "The user edited the arguments of this call";
        match self.to.to_string() {
            text if text.len() <= MAX_BYTES => format!("{edited}; it ran with {text}"),
            _ => format!("{edited} before it ran."),
        }
    }
}

/// What happened to a call.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AuditEvent<'a> {
    /// A decision whether the call may run.
    Decided {
        /// The decision.
        decision: Action,
        /// The source of the decision.
        by: DecisionSource,
        /// The reason.
        reason: &'a str,
        /// The rules that led to the decision.
        #[serde(serialize_with = "serialize_rules")]
        rules: &'a [Rule],
        /// The resources that the call acts on.
        subjects: &'a [Resource],
        /// The response to the approval request, if there was one.
        #[serde(skip_serializing_if = "Option::is_none")]
        answer: Option<AuditAnswer<'a>>,
    },
    /// The call ran.
    Ran {
        /// `ok`, or the kind of the error.
        #[serde(serialize_with = "serialize_outcome")]
        outcome: Result<(), ErrorKind>,
        /// The duration in milliseconds.
        elapsed_ms: u64,
        /// Facts that the tool reported, such as the program, its arguments and folder, the names
        /// of environment variables, and the exit status.
        #[serde(skip_serializing_if = "Option::is_none")]
        facts: Option<&'a Map<String, Value>>,
    },
}

/// The response to an approval request.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct AuditAnswer<'a> {
    /// The person who responded, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<&'a str>,
    /// The response.
    #[serde(flatten)]
    pub reply: &'a ApprovalResponse,
}

impl<'a> AuditRecord<'a> {
    /// Creates a record with the current time, for a call that no hook changed.
    #[must_use]
    pub fn new(
        session: &'a Session,
        definition: &'a Definition,
        call: &'a CallId,
        fingerprint: &'a Fingerprint,
        event: AuditEvent<'a>,
    ) -> Self {
        Self {
            time: SystemTime::now(),
            session: session.id(),
            user: session.user(),
            agent: session.agent(),
            conversation: session.conversation(),
            project: session.project(),
            request: session.request(),
            message: None,
            call,
            parent: None,
            tool: &definition.name,
            source: &definition.source,
            permission: definition.permission(),
            fingerprint,
            changed_by: &[],
            edited: None,
            event,
            argument_texts: &[],
        }
    }
}

impl<'a> AuditRecord<'a> {
    /// Adds where the call comes from.
    pub(crate) fn with_origin(mut self, origin: &'a CallOrigin) -> Self {
        self.message = origin.message.as_deref();
        self.parent = origin.parent_id();
        self
    }
}

impl<'a> AuditEvent<'a> {
    /// Creates the event of a decision, with the response to its approval request.
    #[must_use]
    pub fn from_decision(decision: &'a Decision, answer: Option<AuditAnswer<'a>>) -> Self {
        Self::Decided {
            decision: decision.action,
            by: decision.by,
            reason: &decision.reason,
            rules: &decision.rules,
            subjects: &decision.subjects,
            answer,
        }
    }
}

impl<'a> AuditAnswer<'a> {
    /// Creates an answer from a response and the person who gave it.
    #[must_use]
    pub const fn new(reply: &'a ApprovalResponse, who: Option<&'a str>) -> Self {
        Self { who, reply }
    }
}

/// Serializes rules as text with their scope and origin.
fn serialize_rules<S: Serializer>(rules: &&[Rule], to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct RuleEntry<'a> {
        rule: String,
        scope: RuleScope,
        #[serde(skip_serializing_if = "str::is_empty")]
        origin: &'a str,
    }
    to.collect_seq(rules.iter().map(|rule| RuleEntry {
        rule: rule.to_string(),
        scope: rule.scope,
        origin: &rule.origin,
    }))
}

fn serialize_outcome<S: Serializer>(
    outcome: &Result<(), ErrorKind>,
    to: S,
) -> Result<S::Ok, S::Error> {
    to.serialize_str(outcome.as_ref().map_or_else(|kind| kind.as_str(), |()| "ok"))
}

#[cfg(test)]
mod tests;
