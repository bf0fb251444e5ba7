//! What somebody is asked, and what can be answered.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::call::CallId;
use crate::context::Session;
use crate::name::ToolName;
use crate::permission::{DecisionSource, Grantee, Mode, PolicyOverride, Rule};
use crate::risk::Risk;
#[cfg(feature = "hooks")]
use crate::tool::ExternalArgNames;
use crate::tool::{Resource, ToolDisplay, ToolSource};

/// The id of an ask: 128 random bits, so that nobody can answer what they were not shown.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ApprovalId(Arc<str>);

impl ApprovalId {
    pub(crate) fn new(id: &str) -> Self {
        Self(id.into())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ApprovalId {
    fn from(id: &str) -> Self {
        Self::new(id)
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// What somebody is asked: one call, frozen as it will run.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The id of this ask.
    pub id: ApprovalId,
    /// The call.
    pub call: CallId,
    /// The session's id.
    pub session: Arc<str>,
    /// The agent that calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The tool's name.
    pub tool: ToolName,
    /// How the tool is shown.
    pub display: Arc<ToolDisplay>,
    /// Where the tool comes from.
    pub source: ToolSource,
    /// What running it can do.
    pub risk: Risk,
    /// The permission that is asked for.
    pub permission: String,
    /// The arguments that will run, sensitive values masked.
    pub arguments: Value,
    /// The arguments as the model sent them, where a hook changed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original: Option<Value>,
    /// One line for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What the ask is about: what no rule or approval allows yet.
    pub subjects: Vec<Resource>,
    /// The patterns that an approval for the session or for always would grant, from
    /// specific to general; none where no such approval is offered.
    pub suggestions: Vec<String>,
    /// To whom such an approval is given.
    #[serde(skip)]
    pub(crate) grantees: Vec<Grantee>,
    /// What is not shown.
    #[serde(skip)]
    pub(crate) internals: ApprovalInternals,
    /// What led to the ask.
    pub by: DecisionSource,
    /// Why somebody is asked.
    pub reason: String,
    /// The rules that led to the ask.
    pub rules: Vec<Rule>,
    /// What a screen can show of the effect, such as a diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<Value>,
    /// Whether the tool says that this call is dangerous.
    pub dangerous: bool,
    /// The fingerprint of the call that runs when this is allowed.
    pub fingerprint: String,
    /// How long an answer is waited for, in milliseconds.
    #[serde(rename = "expires_in_ms", with = "millis")]
    pub expires_in: Duration,
}

impl ApprovalRequest {
    /// Says who answers, for the record; the first name stays.
    ///
    /// For whoever implements [`Approver`]: `terminal`, the name of a person, of a rule.
    pub fn set_responder(&self, who: impl Into<Cow<'static, str>>) {
        self.internals.responder.get_or_init(|| who.into());
    }

    /// Who answered, where they said so.
    #[must_use]
    pub fn responder(&self) -> Option<&str> {
        self.internals.responder.get().map(AsRef::as_ref)
    }
}

/// What stands behind an ask and is not shown.
#[derive(Clone, Default)]
#[cfg_attr(not(feature = "hooks"), expect(dead_code, reason = "only commands answer asks"))]
pub(crate) struct ApprovalInternals {
    /// The other names of the tool.
    pub(crate) aliases: Vec<ToolName>,
    /// Who is told of the hooks that answer in a person's place.
    pub(crate) observer: Option<Arc<dyn HookObserver>>,
    /// Whether a hook may say yes: its allow would have lifted the ask before there was one.
    pub(crate) can_hook_approve: bool,
    responder: OnceLock<Cow<'static, str>>,
    /// Why the call does not run where no person said so, in words for whoever made it.
    refusal: OnceLock<Arc<str>>,
    /// Why the model's turn ends.
    halt_reason: OnceLock<Arc<str>>,
    /// Whether a hook may make another call of it.
    can_hook_rewrite: bool,
    /// What a hook made of it, for all copies of the ask.
    rewrite: Arc<OnceLock<CallRewrite>>,
}

/// What a hook makes of the call that it was asked about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallRewrite {
    /// The arguments that are others.
    pub(crate) patch: Map<String, Value>,
    /// Who says so.
    pub(crate) hook: String,
    /// The same for the record: each of them, in order.
    pub(crate) hook_names: Vec<String>,
    /// What it thinks of what it made of the call.
    pub(crate) policy_override: Option<PolicyOverride>,
}

impl CallRewrite {
    /// The answer to the call as it was: no, so that nothing runs where the change is lost.
    fn placeholder_response(&self) -> ApprovalResponse {
        ApprovalResponse::RejectWith {
            feedback: format!("the hook `{}` changed the call", self.hook),
        }
    }
}

impl ApprovalInternals {
    pub(crate) fn new(aliases: &[ToolName], witness: Arc<dyn HookObserver>) -> Self {
        Self { aliases: aliases.to_vec(), observer: Some(witness), ..Self::default() }
    }

    /// Says whether a hook may say yes.
    pub(crate) fn with_hook_approval(self, is_liftable: bool) -> Self {
        Self { can_hook_approve: is_liftable, ..self }
    }

    /// Says whether a hook may make another call of it, which is then judged and asked about.
    pub(crate) fn with_hook_rewrite(self, is_changeable: bool) -> Self {
        Self { can_hook_rewrite: is_changeable, ..self }
    }

    /// Makes another call of it; gives the answer to this one, where that may be.
    #[cfg(feature = "hooks")]
    pub(crate) fn set_rewrite(&self, change: CallRewrite) -> Option<ApprovalResponse> {
        let answer = change.placeholder_response();
        (self.can_hook_rewrite && self.rewrite.set(change).is_ok()).then_some(answer)
    }

    /// What a hook makes of the call, if anything.
    pub(crate) fn rewrite(&self) -> Option<&CallRewrite> {
        self.rewrite.get()
    }

    /// Whether `reply` is that of the hook that makes another call of it.
    pub(crate) fn is_rewrite_response(&self, reply: &ApprovalResponse) -> bool {
        self.rewrite().is_some_and(|change| change.placeholder_response() == *reply)
    }

    /// Says that the no to this ask is not that of a person: a hook's, or nobody's.
    pub(crate) fn set_refusal(&self, words: &str) {
        self.refusal.get_or_init(|| words.into());
    }

    /// Says that the model's turn ends with this ask.
    #[cfg(feature = "hooks")]
    pub(crate) fn set_halt_reason(&self, reason: &str) {
        self.halt_reason.get_or_init(|| reason.into());
    }

    /// Why the model's turn ends with this ask, if it does.
    pub(crate) fn halt_reason(&self) -> Option<&str> {
        self.halt_reason.get().map(AsRef::as_ref)
    }

    /// Why the call does not run where no person said so.
    pub(crate) fn refusal(&self) -> Option<Arc<str>> {
        self.refusal.get().cloned()
    }
}

impl fmt::Debug for ApprovalInternals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApprovalInternals")
            .field("responder", &self.responder)
            .finish_non_exhaustive()
    }
}

/// Is told of hooks that look at an ask.
#[cfg_attr(not(feature = "hooks"), expect(dead_code, reason = "only commands answer asks"))]
pub(crate) trait HookObserver: Send + Sync {
    /// One begins to look.
    fn hook_started(&self, hook: &str);
    /// It has looked.
    fn hook_finished(&self, hook: String, outcome: String, elapsed_ms: u64);
    /// The session that asks.
    fn session(&self) -> &Session;
    /// How much the session does without asking.
    fn mode(&self) -> Mode;
    /// All names under which the tool may be forbidden.
    #[cfg(feature = "hooks")]
    fn forbidden_names(&self) -> Vec<String>;
    /// How `arguments` are told to other programs.
    #[cfg(feature = "hooks")]
    fn external_arg_names(&self, arguments: &Value) -> ExternalArgNames;
}

mod millis {
    use std::time::Duration;

    use serde::{Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        u64::try_from(time.as_millis()).unwrap_or(u64::MAX).serialize(to)
    }
}

/// The answer to an ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApprovalResponse {
    /// Yes, this once.
    Once,
    /// Yes, and whatever these patterns cover for the rest of the session.
    Session {
        /// What is granted: the suggestions, or what somebody made of them.
        patterns: Vec<String>,
    },
    /// Yes, and whatever these patterns cover from now on, in this workspace.
    Always {
        /// What is granted: the suggestions, or what somebody made of them.
        patterns: Vec<String>,
    },
    /// No. What else the session asks is answered no as well.
    Reject,
    /// No to this call only; the model reads why, and goes on.
    RejectWith {
        /// What the model reads.
        feedback: String,
    },
}

impl ApprovalResponse {
    /// Whether the call may run.
    #[must_use]
    pub const fn is_approval(&self) -> bool {
        matches!(self, Self::Once | Self::Session { .. } | Self::Always { .. })
    }

    /// Whether it is a yes to patterns, of which one says something.
    pub(crate) fn has_patterns(&self) -> bool {
        match self {
            Self::Session { patterns } | Self::Always { patterns } => {
                patterns.iter().any(|pattern| !pattern.trim().is_empty())
            }
            Self::Once | Self::Reject | Self::RejectWith { .. } => false,
        }
    }

    /// `once`, `session`, `always`, `reject` or `reject_with`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session { .. } => "session",
            Self::Always { .. } => "always",
            Self::Reject => "reject",
            Self::RejectWith { .. } => "reject_with",
        }
    }
}

/// Somebody who can be asked.
///
/// An approver that panics, or that gives no answer in time, has said no.
///
/// # Examples
///
/// ```
/// use std::future::ready;
/// use std::pin::Pin;
/// use std::sync::Arc;
/// use tool_sdk::{Approver, ApprovalRequest, ApprovalResponse};
///
/// /// Says yes to everything that is not dangerous.
/// struct Trusting;
///
/// impl Approver for Trusting {
///     fn request_approval(&self, request: Arc<ApprovalRequest>) -> Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
///         Box::pin(ready(Some(if ask.dangerous { ApprovalResponse::Reject } else { ApprovalResponse::Once })))
///     }
/// }
/// ```
pub trait Approver: Send + Sync + 'static {
    /// Shows the ask and waits for the answer; `None` when somebody else answers it by its
    /// id.
    ///
    /// The future is dropped when the ask is settled in another way: by an answer to its
    /// id, by an approval that covers it, by its end.
    fn request_approval(
        &self,
        ask: Arc<ApprovalRequest>,
    ) -> Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>>;
}
