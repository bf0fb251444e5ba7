//! What a host sets for one session: rules, a mode, and an approver.

use std::fmt;
use std::iter;
use std::sync::Arc;

use super::{Approver, Mode, Rule, RuleScope, Ruleset};
use crate::context::Session;

/// The rules and the mode of one session.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionRules {
    pub(crate) rules: Ruleset,
    pub(crate) mode: Option<Mode>,
}

/// The session that limits another one.
struct LimitingSession(Session);

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

    /// Limits the calls of this session to what `parent` may do, as for the session of a sub-agent.
    ///
    /// Each call is decided twice: by the rules, the mode and the agent of this session, and as if
    /// `parent` made the call. The stricter decision holds, and a file that is hidden from one of
    /// them is hidden. A session that limits `parent` limits this one, too.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::{Action, Call, Pipeline, Registry, Rule, Session, Toolset, tool, tools};
    ///
    /// /// Water the plants.
    /// #[tool(write)]
    /// fn water() {}
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let registry = Registry::builder().add(tools![water]).build()?;
    /// let pipeline = Pipeline::new(Toolset::new(registry));
    /// let parent = Session::new("parent").with_rules(["deny water".parse::<Rule>()?]);
    /// let child = Session::new("child").with_rules(["allow water".parse::<Rule>()?]);
    ///
    /// let free = pipeline.call(&child, Call::new("water", "{}")).await;
    /// let limited = pipeline.call(&child.limited_by(&parent), Call::new("water", "{}")).await;
    /// assert!(free.result.is_ok() && limited.result.is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn limited_by(self, parent: &Session) -> Self {
        self.with_service(LimitingSession(parent.clone()))
    }

    /// Returns the session that [limits](Self::limited_by) this one.
    #[must_use]
    pub fn limiting_session(&self) -> Option<Session> {
        if self.services().is_empty() {
            return None;
        }
        let limit: Arc<LimitingSession> = self.services().get()?;
        Some(limit.0.clone())
    }

    /// Returns the agents from the outermost to the one of this session: those of the sessions that
    /// limit it, then its own.
    #[must_use]
    pub fn agent_path(&self) -> Vec<String> {
        let sessions = iter::successors(Some(self.clone()), Session::limiting_session);
        let mut path: Vec<String> =
            sessions.filter_map(|session| session.agent().map(str::to_owned)).collect();
        path.reverse();
        path
    }

    /// Returns the path of agents as text, such as `build > explore`.
    pub(crate) fn agent_path_text(&self) -> Option<String> {
        let path = self.agent_path();
        (!path.is_empty()).then(|| path.join(" > "))
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
