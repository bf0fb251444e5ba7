//! What a host sets for one session: rules, a mode, and an approver.

use std::fmt;
use std::sync::Arc;

use super::{Approver, Mode, Rule, RuleScope, Ruleset};
use crate::context::Session;

/// The rules and the mode of one session.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionRules {
    pub(crate) rules: Ruleset,
    pub(crate) mode: Option<Mode>,
}

/// The approver of one session.
pub(crate) struct SessionApprover(pub(crate) Arc<dyn Approver>);

impl fmt::Debug for SessionApprover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionApprover")
    }
}

/// The permissions of a session.
impl Session {
    /// Adds rules for the session's calls, after all other rules.
    #[must_use]
    pub fn with_rules(self, rules: impl IntoIterator<Item = Rule>) -> Self {
        let rules = rules.into_iter().map(|rule| rule.scope(RuleScope::Session));
        let mut policy = self.session_rules().as_deref().cloned().unwrap_or_default();
        policy.rules = policy.rules.merged_with(&Ruleset::new(rules));
        self.with_service(policy)
    }

    /// Sets the mode of the session. It has an effect only when it is stricter than the toolset's
    /// mode.
    #[must_use]
    pub fn with_mode(self, mode: Mode) -> Self {
        let policy = self.session_rules().as_deref().cloned().unwrap_or_default();
        self.with_service(SessionRules { mode: Some(mode), ..policy })
    }

    /// Sets the approver of the session, in place of the pipeline's approver.
    #[must_use]
    pub fn with_approver(self, approver: impl Approver) -> Self {
        self.with_shared_approver(Arc::new(approver))
    }

    /// Sets the approver of the session, in place of the pipeline's approver.
    #[must_use]
    pub fn with_shared_approver(self, approver: Arc<dyn Approver>) -> Self {
        self.with_service(SessionApprover(approver))
    }

    #[inline]
    pub(crate) fn session_rules(&self) -> Option<Arc<SessionRules>> {
        if self.services().is_empty() { None } else { self.services().get() }
    }

    #[doc(hidden)]
    pub fn session_approver(&self) -> Option<Arc<dyn Approver>> {
        let lent: Arc<SessionApprover> = self.services().get()?;
        Some(Arc::clone(&lent.0))
    }
}
