//! What is written down about every call: what was decided and why, and what then ran.
//!
//! An [`Audit`] takes records; [`AuditLog`] keeps them as JSON lines. A record that could
//! not be written is an error, and whoever runs calls decides what that means.
//!
//! **Invariant:** nothing here decides anything, and nothing is written unredacted.

mod log;
mod time;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::SystemTime;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

pub use self::log::AuditLog;
use crate::call::CallId;
use crate::context::Session;
use crate::error::ErrorKind;
use crate::name::ToolName;
use crate::permission::{Action, By, Decision, Fingerprint, Reply, Rule, Scope};
use crate::store::place;
use crate::tool::{Definition, Source, Subject};

/// Takes the records of calls.
///
/// # Examples
///
/// ```
/// use std::io;
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use tool_sdk::{Audit, AuditRecord};
///
/// /// Counts the records.
/// #[derive(Default)]
/// struct Counter(AtomicUsize);
///
/// impl Audit for Counter {
///     fn record(&self, _: &AuditRecord<'_>) -> io::Result<()> {
///         self.0.fetch_add(1, Ordering::Relaxed);
///         Ok(())
///     }
/// }
/// ```
pub trait Audit: Send + Sync {
    /// Takes one record; it is called from many threads at once.
    ///
    /// # Errors
    ///
    /// Fails when the record was not kept.
    fn record(&self, record: &AuditRecord<'_>) -> io::Result<()>;

    /// The file that the records are in, without links; no tool may write to it.
    fn file(&self) -> Option<&Path> {
        None
    }
}

/// Whether `path`, which leads over no link, is the file of `audit`.
pub(crate) fn is_file(audit: &dyn Audit, path: &Path) -> bool {
    audit.file().is_some_and(|file| place::leads_through(path, file))
}

/// Has `record` kept; a log that panics is one that could not keep it.
pub(crate) fn keep(audit: &dyn Audit, record: &AuditRecord<'_>) -> io::Result<()> {
    catch_unwind(AssertUnwindSafe(|| audit.record(record)))
        .unwrap_or_else(|_| Err(io::Error::other("the log failed with a defect of its own")))
}

/// One thing that is written down about a call.
///
/// The records of one call share its id and its fingerprint.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct AuditRecord<'a> {
    /// When it happened; as JSON in UTC, by RFC 3339.
    #[serde(serialize_with = "time::serialize")]
    pub time: SystemTime,
    /// The session's id.
    pub session: &'a str,
    /// The user on whose behalf the call is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<&'a str>,
    /// The agent that calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<&'a str>,
    /// The call.
    pub call: &'a CallId,
    /// The tool's name.
    pub tool: &'a ToolName,
    /// Where the tool comes from.
    pub source: &'a Source,
    /// The permission that was judged.
    pub permission: &'a str,
    /// Identifies the call as it was judged, or as it ran.
    pub fingerprint: &'a Fingerprint,
    /// The hooks that changed the arguments, one for each change, in order.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub changed_by: &'a [String],
    /// What happened.
    #[serde(flatten)]
    pub what: Audited<'a>,
    /// The arguments of the call, as they were at any time: of secrets in them, nothing may be
    /// left in what is written.
    #[serde(skip)]
    pub(crate) made_of: &'a [&'a str],
}

/// What happened to a call.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Audited<'a> {
    /// It was decided whether the call may run.
    Decided {
        /// What was decided.
        decision: Action,
        /// What decided.
        by: By,
        /// Why.
        reason: &'a str,
        /// The rules that decided.
        #[serde(serialize_with = "as_written")]
        rules: &'a [Rule],
        /// What the decision is about.
        subjects: &'a [Subject],
        /// What somebody who was asked said.
        #[serde(skip_serializing_if = "Option::is_none")]
        answer: Option<Answer<'a>>,
    },
    /// The call ran.
    Ran {
        /// `ok`, or the kind of the error.
        #[serde(serialize_with = "ok_or_kind")]
        outcome: Result<(), ErrorKind>,
        /// How long it took, in milliseconds.
        elapsed_ms: u64,
        /// What the tool says of what ran: the program and its arguments, the folder, the
        /// names of the variables, how it ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        facts: Option<&'a Map<String, Value>>,
    },
}

/// What somebody said who was asked about a call.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Answer<'a> {
    /// Who it was, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<&'a str>,
    /// What they said.
    #[serde(flatten)]
    pub reply: &'a Reply,
}

impl<'a> AuditRecord<'a> {
    /// A record of what happens now, to a call that no hook changed.
    #[must_use]
    pub fn new(
        session: &'a Session,
        definition: &'a Definition,
        call: &'a CallId,
        fingerprint: &'a Fingerprint,
        what: Audited<'a>,
    ) -> Self {
        Self {
            time: SystemTime::now(),
            session: session.id(),
            user: session.user(),
            agent: session.agent(),
            call,
            tool: &definition.name,
            source: &definition.source,
            permission: definition.permission(),
            fingerprint,
            changed_by: &[],
            what,
            made_of: &[],
        }
    }
}

impl<'a> Audited<'a> {
    /// A decision, with what somebody answered who was asked.
    #[must_use]
    pub fn decided(decision: &'a Decision, answer: Option<Answer<'a>>) -> Self {
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

impl<'a> Answer<'a> {
    /// A reply, and whose it is.
    #[must_use]
    pub const fn new(reply: &'a Reply, who: Option<&'a str>) -> Self {
        Self { who, reply }
    }
}

/// Rules as they are written, and where.
fn as_written<S: Serializer>(rules: &&[Rule], to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Written<'a> {
        rule: String,
        scope: Scope,
        #[serde(skip_serializing_if = "str::is_empty")]
        origin: &'a str,
    }
    to.collect_seq(rules.iter().map(|rule| Written {
        rule: rule.to_string(),
        scope: rule.scope,
        origin: &rule.origin,
    }))
}

fn ok_or_kind<S: Serializer>(outcome: &Result<(), ErrorKind>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(outcome.as_ref().map_or_else(|kind| kind.as_str(), |()| "ok"))
}

#[cfg(test)]
mod tests;
