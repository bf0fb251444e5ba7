//! The rules, the modes and the grants of a session, and the one evaluation by them.
//!
//! It serves calls ([`authorize`](super::authorize)), permissions that a running tool asks for
//! ([`runtime_permission`](super::runtime_permission)), and the visibility of files
//! ([`visibility`](super::visibility)).

use std::borrow::Cow;
use std::iter;
use std::sync::Arc;

use super::file_rules::{can_restrict, file_rules_of_tools, rules_about_shown_files};
use super::inner::PipelineInner;
use crate::context::{Session, ToolSettings};
use crate::permission::{
    Action, ArgumentLookup, Decision, DecisionSource, Grantee, ModeSet, PolicyInput,
    PolicyOverride, Rule, Ruleset, StoredGrants,
};
use crate::risk::RiskClass;
use crate::tool::{Resource, Tool};
use crate::toolset::ToolsetView;

/// The reason for denying a call whose tool was replaced after the lookup.
const TOOL_REPLACED: &str =
    "the tool's definition changed while the call waited; review it and call again";

/// The reason for denying a call whose tool is not there after the lookup: it was removed, or the
/// session that limits this one does not have it.
const NO_SUCH_TOOL: &str =
    "the tool was removed, or the agent that started this one does not have it";

/// The rules and the modes of one session at this moment: those of the toolset or of the agent,
/// then those of the session itself.
pub(super) struct SessionPolicy<'a> {
    pub(super) rules: Cow<'a, Ruleset>,
    pub(super) modes: ModeSet,
}

/// Returns the sessions by whose policies a call is decided, one after the other: its own, those that
/// limit it, and its own with the rules of plugins. The strictest decision holds.
pub(super) fn deciding_sessions<'a>(
    inner: &'a PipelineInner,
    session: &Session,
) -> impl Iterator<Item = Session> + 'a {
    let with_plugins = inner.toolset.session_with_plugin_rules(session);
    iter::successors(Some(session.clone()), |session| inner.toolset.next_deciding_session(session))
        .chain(with_plugins)
}

impl<'a> SessionPolicy<'a> {
    pub(super) fn new(view: &'a ToolsetView, session: &Session) -> Self {
        Self::with_added_rules(view, session, &[])
    }

    /// Returns the policy as it would be if the user's rules ended with `added`.
    fn with_added_rules(view: &'a ToolsetView, session: &Session, added: &[Rule]) -> Self {
        let own = session.session_rules();
        let modes = ModeSet::new(view.mode(), session.own_mode());
        let mut rules = Cow::Borrowed(view.rules());
        if !added.is_empty() {
            rules = Cow::Owned(rules.merged_with(&Ruleset::new(added.iter().cloned())));
        }
        if let Some(own) = own.filter(|own| !own.rules.is_empty()) {
            rules = Cow::Owned(rules.merged_with(&own.rules));
        }
        Self { rules, modes }
    }
}

/// The policy of a session for one tool. It is read again after an approval, which may have taken
/// a while.
pub(super) struct CallPolicy<'a> {
    inner: &'a PipelineInner,
    view: &'a ToolsetView,
    session: SessionPolicy<'a>,
    tool_rules: Cow<'a, Ruleset>,
    trusts_safe_commands: bool,
}

/// The input of [`CallPolicy::decide`].
pub(super) struct PolicyQuestion<'a> {
    pub(super) class: RiskClass,
    pub(super) resources: Option<&'a [Resource]>,
    pub(super) arguments: &'a dyn ArgumentLookup,
    /// Whether the tool requires an approval.
    pub(super) approval_required: Option<bool>,
    pub(super) is_granted: &'a dyn Fn(&Resource) -> bool,
    /// Whether writable roots and the pipeline's own files are checked, as for a call; a permission
    /// that a running tool asks for names no files.
    pub(super) checks_places: bool,
    pub(super) overrides: &'a [PolicyOverride],
}

impl<'a> CallPolicy<'a> {
    /// Returns the policy for `tool`, or a denial when the tool was removed or replaced.
    pub(super) fn new(
        inner: &'a PipelineInner,
        view: &'a ToolsetView,
        session: &Session,
        tool: &Arc<dyn Tool>,
    ) -> Result<Self, Decision> {
        Self::with_added_rules(inner, view, session, tool, &[])
    }

    /// Returns the policy for `tool` as it would be if the user's rules ended with `added`, or a denial
    /// when the tool was removed or replaced.
    pub(super) fn with_added_rules(
        inner: &'a PipelineInner,
        view: &'a ToolsetView,
        session: &Session,
        tool: &Arc<dyn Tool>,
        added: &[Rule],
    ) -> Result<Self, Decision> {
        let definition = tool.definition();
        let denied = |reason| Err(Decision::new(Action::Deny, DecisionSource::Default, reason));
        let found = view.find(definition.name.as_str()).and_then(|at| view.entry_at(at));
        let session_policy = SessionPolicy::with_added_rules(view, session, added);
        let own_rules = |rules: &Ruleset| rules.for_names(view.tool_names(definition));
        let tool_rules = match (found, &session_policy.rules) {
            (Some((current, _)), _) if !Arc::ptr_eq(current, tool) => return denied(TOOL_REPLACED),
            // The view holds the rules for each tool, unless the session has rules of its own.
            (Some((_, policy)), Cow::Borrowed(_)) => Cow::Borrowed(&policy.rules),
            (Some(_), Cow::Owned(rules)) => Cow::Owned(own_rules(rules)),
            // The host gave the tool to a sub-agent alone, whose calls this session limits.
            (None, rules) if inner.toolset.has_limited_audience(tool) => {
                Cow::Owned(own_rules(rules))
            }
            (None, _) => return denied(NO_SUCH_TOOL),
        };
        let trusts_safe_commands = ToolSettings::from_session(session).safe_commands;
        Ok(Self { inner, view, session: session_policy, tool_rules, trusts_safe_commands })
    }

    /// Returns the rules about all tools.
    pub(super) fn session_rules(&self) -> &Ruleset {
        &self.session.rules
    }

    /// Returns the rules about files of the tools that have the permission.
    fn file_rules_for_permission(&self, permission: &str) -> Vec<Ruleset> {
        if !can_restrict(&self.session.rules) {
            return Vec::new();
        }
        let tools = self.inner.toolset.all_tools();
        let rules = rules_about_shown_files(&self.session.rules, &tools);
        file_rules_of_tools(&rules, self.view, &tools, permission, "")
    }

    /// The one evaluation of permissions.
    pub(super) fn decide(&self, question: PolicyQuestion<'_>) -> Decision {
        let PolicyQuestion { checks_places, .. } = question;
        PolicyInput {
            tool_rules: &self.tool_rules,
            rules_for_permission: &|permission| {
                self.session.rules.for_names(self.view.permission_names(permission))
            },
            file_rules_for_permission: &|permission| self.file_rules_for_permission(permission),
            modes: self.session.modes,
            trusts_safe_commands: checks_places && self.trusts_safe_commands,
            risk_class: question.class,
            resources: question.resources,
            arguments: question.arguments,
            approval_required: question.approval_required,
            is_granted: question.is_granted,
            writable_roots: self.inner.writable_roots.as_deref().filter(|_| checks_places),
            holds_pipeline_state: &|path| checks_places && self.inner.keeps_state_in(path),
            overrides: question.overrides,
        }
        .decide()
    }
}

/// Whether a grant of the session, or one of `stored`, covers `resource`.
pub(super) fn is_granted(
    inner: &PipelineInner,
    session: &Session,
    stored: Option<&StoredGrants>,
    to: &Grantee,
    resource: &Resource,
) -> bool {
    inner.session_state(session).grants.covers(to, resource)
        || stored.is_some_and(|stored| stored.covers(to, resource))
}
