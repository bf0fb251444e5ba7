//! What a hook thinks of a call, before it is judged.
//!
//! **Invariant:** an opinion says what a hook wants, and never what is done.

use std::fmt;

use serde_json::Value;

/// What a hook thinks of a call.
///
/// # Examples
///
/// ```
/// use serde_json::json;
/// use tool_sdk::HookDecision;
///
/// let opinion = HookDecision::ask("it is Friday").rewrite(&json!({ "path": "src/lib.rs" }));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct HookDecision(Option<Box<DecisionDetails>>);

/// What an opinion says; most hooks have none, and an empty one moves about cheaply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DecisionDetails {
    pub(crate) verdict: HookVerdict,
    pub(crate) reason: String,
    /// The reason as a sentence that names who gives it, where that is not the hook itself.
    pub(crate) sentence: Option<String>,
    pub(crate) arguments: Option<String>,
    /// Who changed the arguments, where that is not the hook itself.
    pub(crate) rewritten_by: Option<String>,
    /// The same for the record: each of them, in order.
    pub(crate) rewriters: Vec<String>,
    pub(crate) context: Vec<String>,
}

/// What a hook wants done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HookVerdict {
    /// Nothing in particular.
    #[default]
    None,
    /// Nobody needs to be asked; only from hooks that may allow.
    Allow,
    /// Somebody is asked, whatever the rules say.
    Ask,
    /// The call does not run.
    Deny,
    /// The call does not run, and the model's turn ends.
    Halt,
}

impl HookDecision {
    fn new(verdict: HookVerdict, reason: impl Into<String>) -> Self {
        Self::from_details(DecisionDetails {
            verdict,
            reason: reason.into(),
            ..DecisionDetails::default()
        })
    }

    /// No opinion.
    pub const fn none() -> Self {
        Self(None)
    }

    pub(crate) fn from_details(spoken: DecisionDetails) -> Self {
        Self((spoken != DecisionDetails::default()).then(|| Box::new(spoken)))
    }

    /// What it says, if anything.
    #[inline]
    pub(crate) fn into_details(self) -> Option<Box<DecisionDetails>> {
        self.0
    }

    /// Nobody needs to be asked; counts only from a hook that [may allow](super::Hook::may_allow).
    pub fn allow(reason: impl Into<String>) -> Self {
        Self::new(HookVerdict::Allow, reason)
    }

    /// Somebody must be asked, whatever rules, approvals and modes say.
    pub fn ask(reason: impl Into<String>) -> Self {
        Self::new(HookVerdict::Ask, reason)
    }

    /// The call must not run; the model reads why.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::new(HookVerdict::Deny, reason)
    }

    /// The call must not run, and the model's turn ends.
    pub fn halt(reason: impl Into<String>) -> Self {
        Self::new(HookVerdict::Halt, reason)
    }

    /// Replaces the arguments; they are prepared and judged like those of any call.
    pub fn rewrite(mut self, arguments: &Value) -> Self {
        self.0.get_or_insert_default().arguments = Some(arguments.to_string());
        self
    }

    /// Adds something that the model reads with the result.
    pub fn with_context(mut self, text: impl Into<String>) -> Self {
        self.0.get_or_insert_default().context.push(text.into());
        self
    }
}

impl fmt::Display for HookDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(spoken) = &self.0 else { return f.write_str("none") };
        f.write_str(match spoken.verdict {
            HookVerdict::None => "none",
            HookVerdict::Allow => "allow",
            HookVerdict::Ask => "ask",
            HookVerdict::Deny => "deny",
            HookVerdict::Halt => "halt",
        })?;
        if !spoken.reason.is_empty() {
            write!(f, ": {}", spoken.reason)?;
        }
        f.write_str(if spoken.arguments.is_some() { " (arguments changed)" } else { "" })
    }
}
