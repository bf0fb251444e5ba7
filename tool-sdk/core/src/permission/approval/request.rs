//! The approval request that is shown to the user, and the responses to it.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::call::{CallId, CallOrigin};
use crate::context::Session;
use crate::name::ToolName;
use crate::permission::{DecisionSource, Grantee, Mode, PolicyOverride, Rule};
use crate::risk::Risk;
use crate::tool::ExternalArgNames;
use crate::tool::{InvalidArgs, Resource, ToolDisplay, ToolSource};

use super::EditableCall;

/// The id of an approval request: 128 random bits, so that only a client that was shown the request
/// can answer it.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ApprovalId(Arc<str>);

impl ApprovalId {
    pub(crate) fn new(id: &str) -> Self {
        Self(id.into())
    }

    /// Returns the id as text.
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

/// An approval request: one call, frozen as it will run.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The id of this request.
    pub id: ApprovalId,
    /// The call.
    pub call: CallId,
    /// The id of the session.
    pub session: Arc<str>,
    /// The agent that makes the call, behind those that started it, such as `build > explore`.
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
    /// The arguments as the model sent them, when a hook changed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original: Option<Value>,
    /// A summary in one line, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The resources that no rule and no grant allows yet.
    pub subjects: Vec<Resource>,
    /// The patterns that an approval for the session or for always would grant, from specific to
    /// general; empty when no such approval is offered.
    pub suggestions: Vec<String>,
    /// The grantees of such an approval.
    #[serde(skip)]
    pub(crate) grantees: Vec<Grantee>,
    /// Data that is not shown.
    #[serde(skip)]
    pub internals: ApprovalInternals,
    /// What caused the request.
    pub by: DecisionSource,
    /// Why an approval is needed.
    pub reason: String,
    /// The rules that caused the request.
    pub rules: Vec<Rule>,
    /// A preview of the effect, such as a diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<Value>,
    /// Whether the tool says that this call is dangerous.
    pub dangerous: bool,
    /// The fingerprint of the call that runs when it is approved.
    pub fingerprint: String,
    /// How long the pipeline waits for an answer, in milliseconds.
    #[serde(rename = "expires_in_ms", with = "millis")]
    pub expires_in: Duration,
}

impl ApprovalRequest {
    /// Creates a request of the call `call` of `tool`; everything else is empty.
    #[doc(hidden)]
    #[must_use]
    pub fn new(id: &str, call: CallId, tool: ToolName) -> Self {
        Self {
            id: id.into(),
            call,
            session: "".into(),
            agent: None,
            permission: tool.as_str().to_owned(),
            tool,
            display: Arc::default(),
            source: ToolSource::default(),
            risk: Risk::default(),
            arguments: Value::Null,
            original: None,
            summary: None,
            subjects: Vec::new(),
            suggestions: Vec::new(),
            grantees: Vec::new(),
            internals: ApprovalInternals::default(),
            by: DecisionSource::Default,
            reason: String::new(),
            rules: Vec::new(),
            preview: None,
            dangerous: false,
            fingerprint: String::new(),
            expires_in: Duration::from_secs(60),
        }
    }

    /// Returns which call is asked about, and where the call comes from.
    pub(crate) fn origin(&self) -> CallOrigin {
        self.internals.origin.clone().unwrap_or_else(|| CallOrigin::new(self.call.clone()))
    }

    /// Sets who answers, for the audit log; only the first name counts.
    ///
    /// Called by an [`Approver`]: with `terminal`, or the name of a person or a rule.
    pub fn set_responder(&self, who: impl Into<Cow<'static, str>>) {
        self.internals.responder.get_or_init(|| who.into());
    }

    /// Records that a program answers, and that no person reads the request. An approval then lets
    /// only this call run: what the request shows, such as the definition of a foreign tool, does
    /// not count as seen.
    ///
    /// Called by an [`Approver`] that answers without asking.
    pub fn mark_unread(&self) {
        self.internals.unread.get_or_init(|| ());
    }

    /// Whether a person may have read the request, as far as the approver said.
    pub(crate) fn is_read(&self) -> bool {
        self.internals.unread.get().is_none()
    }

    /// Checks arguments for [`ApprovalResponse::Edited`], so that a user interface can show what is
    /// wrong with them.
    ///
    /// # Errors
    ///
    /// Fails when the tool does not accept the arguments, and when those of this request cannot be
    /// edited.
    pub fn check_edited_arguments(&self, arguments: &Value) -> Result<(), InvalidArgs> {
        match &self.internals.editable {
            Some(call) => call.edit(arguments).map(drop),
            None => Err(InvalidArgs::new(
                self.tool.as_str().to_owned(),
                "the arguments of this request cannot be edited",
            )),
        }
    }

    /// Returns who answered, when the approver said so.
    #[must_use]
    pub fn responder(&self) -> Option<&str> {
        self.internals.responder.get().map(AsRef::as_ref)
    }
}

/// The data of an approval request that is not shown.
#[derive(Clone, Default)]
pub struct ApprovalInternals {
    /// Where the call comes from.
    origin: Option<CallOrigin>,
    /// The aliases of the tool.
    pub aliases: Vec<ToolName>,
    /// Receives events of hooks that answer in the user's place.
    pub observer: Option<Arc<dyn HookObserver>>,
    /// Whether a hook may approve: its `allow` would have made the request unnecessary.
    pub can_hook_approve: bool,
    responder: OnceLock<Cow<'static, str>>,
    /// Set when a program answered and no person read the request.
    unread: OnceLock<()>,
    /// Why the call does not run although no person rejected it, as a sentence for the model.
    refusal: OnceLock<Arc<str>>,
    /// Why the model's turn ends.
    halt_reason: OnceLock<Arc<str>>,
    /// Whether a hook may rewrite the call.
    can_hook_rewrite: bool,
    /// How a hook rewrote the call, shared by all copies of the request.
    rewrite: Arc<OnceLock<CallRewrite>>,
    /// The call, when its arguments may be edited.
    editable: Option<Arc<EditableCall>>,
}

/// How a hook rewrites the call of an approval request.
#[derive(Clone, Debug, PartialEq)]
pub struct CallRewrite {
    /// The changed arguments.
    pub patch: Map<String, Value>,
    /// The name of the hook.
    pub hook: String,
    /// The names of the hooks for the audit log, in order.
    pub hook_names: Vec<String>,
    /// What the hook decided about the rewritten call.
    pub policy_override: Option<PolicyOverride>,
}

impl CallRewrite {
    /// Returns the response to the original call: a rejection, so that nothing runs when the
    /// rewrite is lost.
    fn placeholder_response(&self) -> ApprovalResponse {
        ApprovalResponse::RejectWith {
            feedback: format!("the hook `{}` changed the call", self.hook),
        }
    }
}

impl ApprovalInternals {
    #[doc(hidden)]
    pub fn new(aliases: &[ToolName], observer: Arc<dyn HookObserver>) -> Self {
        Self { aliases: aliases.to_vec(), observer: Some(observer), ..Self::default() }
    }

    /// Sets where the call comes from.
    pub(crate) fn with_origin(self, origin: &CallOrigin) -> Self {
        Self { origin: Some(origin.clone()), ..self }
    }

    /// Sets whether a hook may approve.
    #[doc(hidden)]
    pub fn with_hook_approval(self, is_liftable: bool) -> Self {
        Self { can_hook_approve: is_liftable, ..self }
    }

    /// Sets whether a hook may rewrite the call; the new call is authorized again.
    pub(crate) fn with_hook_rewrite(self, is_changeable: bool) -> Self {
        Self { can_hook_rewrite: is_changeable, ..self }
    }

    /// Sets the call whose arguments may be edited.
    pub(crate) fn with_editable(self, call: EditableCall) -> Self {
        Self { editable: Some(Arc::new(call)), ..self }
    }

    /// Returns the call, when its arguments may be edited.
    pub(crate) fn editable(&self) -> Option<&EditableCall> {
        self.editable.as_deref()
    }

    /// Sets how a hook rewrites the call; returns the response to the original call, or `None` when
    /// the call must not be rewritten.
    #[doc(hidden)]
    pub fn set_rewrite(&self, change: CallRewrite) -> Option<ApprovalResponse> {
        let answer = change.placeholder_response();
        (self.can_hook_rewrite && self.rewrite.set(change).is_ok()).then_some(answer)
    }

    /// Returns how a hook rewrites the call.
    pub(crate) fn rewrite(&self) -> Option<&CallRewrite> {
        self.rewrite.get()
    }

    /// Whether `response` is that of the hook that rewrites the call.
    pub(crate) fn is_rewrite_response(&self, response: &ApprovalResponse) -> bool {
        self.rewrite().is_some_and(|change| change.placeholder_response() == *response)
    }

    /// Records that the rejection of this request did not come from a person.
    #[doc(hidden)]
    pub fn set_refusal(&self, words: &str) {
        self.refusal.get_or_init(|| words.into());
    }

    /// Records that the model's turn ends with this request.
    #[doc(hidden)]
    pub fn set_halt_reason(&self, reason: &str) {
        self.halt_reason.get_or_init(|| reason.into());
    }

    /// Returns why the model's turn ends with this request, if it does.
    pub(crate) fn halt_reason(&self) -> Option<&str> {
        self.halt_reason.get().map(AsRef::as_ref)
    }

    /// Returns why the call does not run although no person rejected it.
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

/// Receives events of hooks that answer an approval request.
pub trait HookObserver: Send + Sync {
    /// Called before a hook runs.
    fn hook_started(&self, hook: &str);
    /// Called after a hook has run.
    fn hook_finished(&self, hook: String, outcome: String, elapsed_ms: u64);
    /// Returns the session of the call.
    fn session(&self) -> &Session;
    /// Returns the mode of the session.
    fn mode(&self) -> Mode;
    /// Returns all names under which the tool may be denied.
    fn forbidden_names(&self) -> Vec<String>;
    /// Returns how `arguments` are named for external programs.
    fn external_arg_names(&self, arguments: &Value) -> ExternalArgNames;
}

mod millis {
    use std::time::Duration;

    use serde::{Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        u64::try_from(time.as_millis()).unwrap_or(u64::MAX).serialize(to)
    }
}

/// The response to an approval request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApprovalResponse {
    /// Approves this call.
    Once,
    /// Approves this call with other arguments. They are validated before the request ends, and
    /// the new call is judged again: a denial is final, and a call that turns out to be dangerous
    /// is asked about again.
    Edited {
        /// All arguments, as an object. One that is as the request shows it keeps its value, so
        /// that a masked one need not be known.
        arguments: Value,
    },
    /// Approves this call, and what these patterns match for the rest of the session.
    Session {
        /// The granted patterns: the suggestions, or the user's own version of them.
        patterns: Vec<String>,
    },
    /// Approves this call, and what these patterns match from now on, in this workspace.
    Always {
        /// The granted patterns: the suggestions, or the user's own version of them.
        patterns: Vec<String>,
    },
    /// Rejects this call, and with it every other open request of the session.
    Reject,
    /// Rejects this call only; the model reads the feedback and continues.
    RejectWith {
        /// The text for the model.
        feedback: String,
    },
}

impl ApprovalResponse {
    /// Whether the call may run.
    #[must_use]
    pub const fn is_approval(&self) -> bool {
        matches!(
            self,
            Self::Once | Self::Edited { .. } | Self::Session { .. } | Self::Always { .. }
        )
    }

    /// Whether the response grants patterns, at least one of which is not blank.
    pub(crate) fn has_patterns(&self) -> bool {
        match self {
            Self::Session { patterns } | Self::Always { patterns } => {
                patterns.iter().any(|pattern| !pattern.trim().is_empty())
            }
            Self::Once | Self::Edited { .. } | Self::Reject | Self::RejectWith { .. } => false,
        }
    }

    /// Returns `once`, `edited`, `session`, `always`, `reject` or `reject_with`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Edited { .. } => "edited",
            Self::Session { .. } => "session",
            Self::Always { .. } => "always",
            Self::Reject => "reject",
            Self::RejectWith { .. } => "reject_with",
        }
    }
}

/// Answers approval requests.
///
/// A panic of the approver, and no answer in time, are rejections.
///
/// # Examples
///
/// ```
/// use std::future::ready;
/// use std::pin::Pin;
/// use std::sync::Arc;
/// use tool_sdk::{Approver, ApprovalRequest, ApprovalResponse};
///
/// /// Approves everything that is not dangerous.
/// struct Trusting;
///
/// impl Approver for Trusting {
///     fn request_approval(&self, request: Arc<ApprovalRequest>) -> Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
///         Box::pin(ready(Some(if request.dangerous { ApprovalResponse::Reject } else { ApprovalResponse::Once })))
///     }
/// }
/// ```
pub trait Approver: Send + Sync + 'static {
    /// Shows the request and waits for the response. Returns `None` when the answer comes through
    /// [`Pipeline::respond`](crate::Pipeline::respond), by the id of the request.
    ///
    /// The future is dropped when the request ends in another way: by an answer to its id, by a
    /// grant that covers it, or when it expires.
    fn request_approval(
        &self,
        request: Arc<ApprovalRequest>,
    ) -> Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>>;
}
