//! Filters which files a result may mention, by the rules and without a prompt.
//!
//! Rules that name another tool with the same permission count as well: a file that is denied to
//! the tool that reads files must not show up in a search.

use std::path::Path;
use std::sync::Arc;

use super::file_rules::{can_restrict, file_rules_of_tools, rules_about_shown_files};
use super::inner::PipelineInner;
use super::session_files;
use super::session_policy::{SessionPolicy, deciding_sessions, is_granted};
use crate::context::{Context, Session, Visibility, VisibilityFilter};
use crate::permission::{Action, Grantee, NoArguments, Rule, RuleNames, Ruleset};
use crate::risk::RiskClass;
use crate::tool::{Resource, Tool};
use crate::toolset::ToolsetView;

/// Returns which files the call may show under `permission`.
///
/// A file about which a rule asks is left out like a denied one, unless a grant covers it; only of
/// the former the result says that it exists. An approval of the call also answers rules that ask
/// about everything, and rules about the tool itself that ask about the resources of the call. A
/// rule that allowed the call answers nothing for the files that the call finds.
pub(super) fn visibility_filter(
    inner: &Arc<PipelineInner>,
    cx: &Context,
    permission: &str,
) -> VisibilityFilter {
    let filters: Vec<_> = deciding_sessions(inner, cx.session())
        .map(|session| session_filter(inner, cx, &session, permission))
        .collect();
    VisibilityFilter::strictest(filters)
}

/// Returns which files the call may show by the policy of one of the deciding sessions.
fn session_filter(
    inner: &Arc<PipelineInner>,
    cx: &Context,
    session: &Session,
    permission: &str,
) -> VisibilityFilter {
    let view = inner.toolset.view_for(session);
    let SessionPolicy { rules, modes } = SessionPolicy::new(&view, session);
    let asks = modes.strictest_for(RiskClass::Read).default_action(RiskClass::Read) == Action::Ask;
    let may_restrict = can_restrict(&rules) || (asks && cx.is_unprompted());
    if !may_restrict {
        return VisibilityFilter::SHOW_ALL;
    }
    let tools = inner.toolset.all_tools();
    let rules = rules_about_shown_files(&rules, &tools);
    let own = [cx.tool().as_str()];
    let (names, is_shared) = match view.definition(own[0]) {
        Some(tool) => (view.tool_names(tool).with_names(own), tool.permission() == permission),
        None => (RuleNames::from(&own), false),
    };
    let rules_by_source = VisibilityRules {
        own: rules.for_names(names),
        is_shared,
        others: rules_of_other_tools(&view, &tools, cx, permission, &rules, is_shared),
        outside: rules.for_names(&[Resource::OUTSIDE]),
    };
    // An approval of the call covers the files that it finds; a rule does not.
    let is_unasked = is_shared && cx.is_unprompted();
    let asks = asks && is_unasked;
    if rules_by_source.show_everything() && !asks {
        return VisibilityFilter::SHOW_ALL;
    }
    let to = |permission| Grantee::new(cx.tool().clone(), permission);
    let (to, to_outside) = (to(permission), to(Resource::OUTSIDE));
    let (inner, session) = (Arc::clone(inner), cx.session().clone());
    let aliases = session_files::path_aliases(&session, &rules);
    let stored = inner.stored_grants(cx.session());
    VisibilityFilter::from_named_fn(move |asked: &str, absolute: &Path, is_named| {
        let mut resource = Resource::path(asked, absolute);
        resource.set_path_aliases(&aliases);
        let is_approved = |to: &Grantee| {
            modes.is_bypass() || is_granted(&inner, &session, stored.as_ref(), to, &resource)
        };
        let to_visibility = |action, was_asked: bool, to: &Grantee| match action {
            Action::Allow => Visibility::Shown,
            Action::Deny => Visibility::Hidden,
            Action::Ask if was_asked || is_approved(to) => Visibility::Shown,
            Action::Ask => Visibility::OnRequest,
        };
        let was_asked = |rule: &Rule| is_named || (rule.pattern.is_any() && !is_unasked);
        let own = match deciding_rule(&rules_by_source.own, &resource) {
            Some(rule) => Some(to_visibility(rule.action, was_asked(rule), &to)),
            None => asks.then(|| to_visibility(Action::Ask, is_named, &to)),
        };
        let others = rules_by_source
            .other_rules(&resource)
            .map(|rule| to_visibility(rule.action, rule.pattern.is_any(), &to));
        let outside = rules_by_source.outside_rule(&session, absolute, &resource);
        let outside = outside.map(|rule| to_visibility(rule.action, was_asked(rule), &to_outside));
        others.chain(own).chain(outside).max().unwrap_or(Visibility::Shown)
    })
}

/// The rules that count, in lists that are evaluated one by one: the strictest decision holds, so a
/// rule that allows more to one tool does not lift what another tool is denied.
struct VisibilityRules {
    /// The rules about the tool itself.
    own: Ruleset,
    /// Whether the permission is the tool's own, so that `own` holds the rules about it.
    is_shared: bool,
    /// The rules about every other tool that has the permission.
    others: Vec<Ruleset>,
    /// The rules about places outside of the workspace.
    outside: Ruleset,
}

impl VisibilityRules {
    /// Whether no file can be left out.
    fn show_everything(&self) -> bool {
        let mut rules_by_source = self.others.iter().chain([&self.own, &self.outside]);
        !rules_by_source.any(can_restrict)
    }

    /// Returns the deciding rule about a place outside of the workspace; `None` inside.
    fn outside_rule(&self, session: &Session, at: &Path, resource: &Resource) -> Option<&Rule> {
        let is_asked_about = can_restrict(&self.outside) && session_files::is_outside(session, at);
        is_asked_about.then(|| deciding_rule(&self.outside, resource)).flatten()
    }

    /// Returns the deciding rules of the other tools, unless they are among the tool's own.
    fn other_rules<'l>(&'l self, resource: &'l Resource) -> impl Iterator<Item = &'l Rule> {
        let decisive = self.others.iter().filter_map(|rules| deciding_rule(rules, resource));
        decisive.filter(|rule| !(self.is_shared && self.own.rules().contains(rule)))
    }
}

/// Returns the rules about every other tool that has the permission, and about the permission
/// itself when it is not the tool's own.
fn rules_of_other_tools(
    view: &ToolsetView,
    tools: &[Arc<dyn Tool>],
    cx: &Context,
    permission: &str,
    rules: &Ruleset,
    is_shared: bool,
) -> Vec<Ruleset> {
    let mut rules_by_source: Vec<Ruleset> = Vec::new();
    if !is_shared {
        rules_by_source.push(rules.for_names(view.permission_names(permission)));
    }
    rules_by_source.extend(file_rules_of_tools(rules, view, tools, permission, cx.tool().as_str()));
    rules_by_source.retain(can_restrict);
    rules_by_source
}

fn deciding_rule<'r>(rules: &'r Ruleset, resource: &Resource) -> Option<&'r Rule> {
    rules.deciding_rule(resource, &NoArguments, true)
}
