//! The decision of a hook about a call, before authorization.
//!
//! **Invariant:** a decision is a request; the pipeline decides what happens.

use std::fmt;

use serde_json::Value;

/// The decision of a hook about a call.
///
/// # Examples
///
/// ```
/// use serde_json::json;
/// use tool_sdk::HookDecision;
///
/// let decision = HookDecision::ask("it is Friday").rewrite(&json!({ "path": "src/lib.rs" }));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct HookDecision(Option<Box<DecisionDetails>>);

/// The content of a decision. Boxed, because most hooks decide nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecisionDetails {
    /// What the hook requests.
    pub verdict: HookVerdict,
    /// Why, for the model and the approver.
    pub reason: String,
    /// The reason as a sentence that names its author, when that is not the hook itself.
    pub sentence: Option<String>,
    /// The changed arguments, as JSON.
    pub arguments: Option<String>,
    /// The author of the changed arguments, when that is not the hook itself.
    pub rewritten_by: Option<String>,
    /// All authors of changed arguments in order, for the audit log.
    pub rewriters: Vec<String>,
    /// Texts that are added to the result for the model.
    pub context: Vec<String>,
}

/// What a hook requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "each crate of the SDK handles every variant")]
pub enum HookVerdict {
    /// No request.
    #[default]
    None,
    /// Run the call without a prompt; only from hooks that may allow.
    Allow,
    /// Ask the approver, regardless of the rules.
    Ask,
    /// Do not run the call.
    Deny,
    /// Do not run the call, and end the model's turn.
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

    /// Returns no decision.
    pub const fn none() -> Self {
        Self(None)
    }

    #[doc(hidden)]
    pub fn from_details(spoken: DecisionDetails) -> Self {
        Self((spoken != DecisionDetails::default()).then(|| Box::new(spoken)))
    }

    /// Returns the content, if there is any.
    #[inline]
    #[doc(hidden)]
    pub fn into_details(self) -> Option<Box<DecisionDetails>> {
        self.0
    }

    /// Allows the call without a prompt; counts only from a hook that [may
    /// allow](super::Hook::may_allow).
    pub fn allow(reason: impl Into<String>) -> Self {
        Self::new(HookVerdict::Allow, reason)
    }

    /// Requires an approval, regardless of rules, grants and modes.
    pub fn ask(reason: impl Into<String>) -> Self {
        Self::new(HookVerdict::Ask, reason)
    }

    /// Denies the call; the model reads the reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::new(HookVerdict::Deny, reason)
    }

    /// Denies the call, and ends the model's turn.
    pub fn halt(reason: impl Into<String>) -> Self {
        Self::new(HookVerdict::Halt, reason)
    }

    /// Replaces the arguments; the new ones are parsed and authorized like those of any call.
    pub fn rewrite(mut self, arguments: &Value) -> Self {
        self.0.get_or_insert_default().arguments = Some(arguments.to_string());
        self
    }

    /// Adds a text that the model reads with the result.
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
