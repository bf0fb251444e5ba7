//! Decides about a call: a pure function that also returns what decided.
//!
//! Each resource is decided on its own: by the deciding rule, else by the tool, else by the mode.
//! Grants, and hooks that may allow, turn `ask` into `allow`, except when the effect cannot be
//! undone, or when a rule might deny it. Then come the limits that nothing lifts: the mode, the
//! writable roots, and hooks that deny or ask. The strictest decision about a resource is the
//! decision about the call.

mod reasons;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::mem;
use std::path::{Component, Path, PathBuf};

use serde::Serialize;

use self::reasons::DecisionReasons;
use super::{Action, ArgumentLookup, Mode, ModeSet, NoArguments, Rule, Ruleset};
use crate::risk::RiskClass;
use crate::tool::Resource;

/// Whether a call may run, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Decision {
    /// What happens to the call.
    #[serde(rename = "decision")]
    pub action: Action,
    /// What decided.
    pub by: DecisionSource,
    /// What asked for an approval, when no approver was available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<DecisionSource>,
    /// The reason, in one line.
    pub reason: Cow<'static, str>,
    /// The rules that decided, each once.
    pub rules: Vec<Rule>,
    /// The resources that led to the decision.
    pub subjects: Vec<Resource>,
}

/// What decided about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DecisionSource {
    /// No rule matched; the mode decided.
    Default,
    /// A rule.
    Rule,
    /// The tool itself.
    Tool,
    /// A grant from an earlier approval.
    Approval,
    /// The mode, which forbids what the tool does.
    Mode,
    /// The sandbox, which confines what the call does.
    Sandbox,
    /// The writable roots.
    Roots,
    /// A rule that could not be evaluated, because the tool does not name its resources.
    Unjudged,
    /// A hook.
    Hook,
    /// The loop guard.
    Loop,
    /// The user, or the approver in the user's place.
    Reply,
    /// No approver was available.
    NoApprover,
}

/// A decision of a hook or the loop guard that is added to the decision of the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyOverride {
    /// What happens to the call.
    pub action: Action,
    /// What decided.
    pub source: DecisionSource,
    /// Why, in one line.
    pub reason: String,
}

impl PolicyOverride {
    /// Returns the override of a hook that allows the call that it rewrote.
    #[doc(hidden)]
    pub fn allow_rewrite(name: &str) -> Self {
        Self::allow(format!("the hook `{name}` allows the call that it rewrote"))
    }

    /// Returns the override of a hook that allows the call.
    pub(crate) fn allow(reason: impl Into<String>) -> Self {
        Self { action: Action::Allow, source: DecisionSource::Hook, reason: reason.into() }
    }
}

/// A call to decide about.
#[derive(Clone, Copy)]
pub(crate) struct PolicyInput<'a> {
    /// The rules about the tool.
    pub(crate) tool_rules: &'a Ruleset,
    /// Returns the rules about another permission, for resources that are judged under it.
    pub(crate) rules_for_permission: &'a dyn Fn(&str) -> Ruleset,
    /// Returns the rules about files that name a tool with another permission, for each tool: what is
    /// denied to the tool that reads files is not read by another one either.
    pub(crate) file_rules_for_permission: &'a dyn Fn(&str) -> Vec<Ruleset>,
    pub(crate) modes: ModeSet,
    /// Whether lists of safe commands count as reading.
    pub(crate) trusts_safe_commands: bool,
    /// The worst that the tool can do.
    pub(crate) risk_class: RiskClass,
    /// The resources of the call; `None` when the tool does not name them.
    pub(crate) resources: Option<&'a [Resource]>,
    pub(crate) arguments: &'a dyn ArgumentLookup,
    /// Whether the tool requires an approval.
    pub(crate) approval_required: Option<bool>,
    /// Whether a grant covers a resource.
    pub(crate) is_granted: &'a dyn Fn(&Resource) -> bool,
    /// Where writing is allowed, when it is limited.
    pub(crate) writable_roots: Option<&'a [PathBuf]>,
    /// Whether the pipeline keeps its own state, such as grants, at a path.
    pub(crate) holds_pipeline_state: &'a dyn Fn(&Path) -> bool,
    /// The decisions of hooks and the loop guard. An `allow` only lifts an `ask` that the mode
    /// `bypass` would lift too.
    pub(crate) overrides: &'a [PolicyOverride],
}

impl PolicyInput<'_> {
    /// Returns the decision.
    pub(crate) fn decide(&self) -> Decision {
        let subjects = match self.resources {
            None | Some([]) => &[Resource::ANY][..],
            Some(subjects) => subjects,
        };
        let is_one = subjects.len() == 1;
        let mut decision: Option<Decision> = None;
        let mut reasons = DecisionReasons::default();
        for resource in subjects {
            let mut one = self.decide_resource(resource, is_one);
            // A part of a resource counts only when a rule denies it.
            if resource.has_deny_rules_only() && one.action == Action::Allow && decision.is_some() {
                continue;
            }
            // The reason names the resource, unless the resource is allowed without a rule, or the
            // tool's own refusal names it.
            let is_named =
                !is_one && (one.action != Action::Allow || one.by == DecisionSource::Rule);
            let is_refused = one.action == Action::Deny && one.by == DecisionSource::Tool;
            let named = (is_named && !is_refused).then_some(resource);
            match &mut decision {
                Some(so_far) if so_far.action > one.action => {}
                Some(so_far) if so_far.action == one.action => {
                    reasons.add(mem::take(&mut one.reason), named);
                    so_far.merge(one);
                }
                _ => {
                    reasons = DecisionReasons::default();
                    reasons.add(mem::take(&mut one.reason), named);
                    decision = Some(one);
                }
            }
        }
        let decision = match decision {
            Some(decision) => Decision { reason: reasons.into_text(), ..decision },
            None => Decision::new(Action::Deny, DecisionSource::Default, "nothing was judged"),
        };
        // Overrides that allow were applied before, so that nothing lifts these.
        let tightening = self.overrides.iter().filter(|added| added.action != Action::Allow);
        self.unjudged_rule().iter().chain(tightening).fold(decision, Decision::apply_override)
    }

    /// A rule about some resources cannot be evaluated for a tool that does not name its resources,
    /// so an approval is needed.
    fn unjudged_rule(&self) -> Option<PolicyOverride> {
        // A tool that needs no approval needs none for unnamed resources either.
        let silent = self.resources.is_none() && self.approval_required != Some(false);
        let rule = if silent { self.tool_rules.unjudged_rule(self.arguments) } else { None }?;
        let reason = format!(
            "the tool does not say what it touches, so that the rule `{rule}`{} cannot be judged",
            describe_origin(rule)
        );
        Some(PolicyOverride { action: Action::Ask, source: DecisionSource::Unjudged, reason })
    }

    fn decide_resource(&self, resource: &Resource, alone: bool) -> Decision {
        if let Some(error) = resource.refusal() {
            let refused =
                Decision::new(Action::Deny, DecisionSource::Tool, error.message().to_owned());
            return Decision { subjects: vec![resource.clone()], ..refused };
        }
        let class = resource.effective_class(self.trusts_safe_commands).unwrap_or(self.risk_class);
        let decided = self.decide_by_rules(resource, class, alone);
        let lifted = if decided.action == Action::Ask {
            self.apply_approvals(resource, decided)
        } else {
            decided
        };
        let looked_at = self.restrict_unknown(resource, restrict_dangerous(resource, lifted));
        let bound = self.apply_limits(resource, class, looked_at);
        Decision { subjects: vec![resource.clone()], ..prepend_reason(resource, bound) }
    }

    fn decide_by_rules(&self, resource: &Resource, class: RiskClass, alone: bool) -> Decision {
        let own = self.tool_rules.deciding_rule(resource, self.arguments, alone);
        let elsewhere = resource.permission().map(self.rules_for_permission);
        let of_tools = self.file_rules_of_tools(resource);
        let rule = match &elsewhere {
            None => own,
            // For another permission, a rule about a tool can only tighten the decision.
            Some(others) => {
                let of_tools = of_tools.iter().filter(|_| resource.absolute().is_some());
                let of_tools =
                    of_tools.map(|rules| rules.deciding_rule(resource, &NoArguments, true));
                [others.deciding_rule(resource, self.arguments, alone), own]
                    .into_iter()
                    .chain(of_tools)
                    .enumerate()
                    .filter_map(|(at, rule)| {
                        rule.filter(|it| at == 0 || it.action != Action::Allow)
                    })
                    .max_by_key(|rule| rule.action)
            }
        };
        if let Some(rule) = rule {
            let reason = format!("the rule `{rule}`{} decides", describe_origin(rule));
            let decision = Decision::new(rule.action, DecisionSource::Rule, reason);
            return Decision { rules: vec![rule.clone()], ..decision };
        }
        self.decide_without_rule(resource, class)
    }

    /// Decides when no rule matches: by the tool, else by the mode.
    fn decide_without_rule(&self, resource: &Resource, class: RiskClass) -> Decision {
        if resource.has_deny_rules_only() {
            return Decision::new(
                Action::Allow,
                DecisionSource::Tool,
                "it is judged as a part of another resource",
            );
        }
        let is_confined = resource.is_confined_by_sandbox() && !resource.is_asked_by_default();
        if is_confined && self.modes.strictest_for(class) == Mode::Auto {
            let reason = "a sandbox, enforced in full, confines it";
            return Decision::new(Action::Allow, DecisionSource::Sandbox, reason);
        }
        if resource.is_opaque() {
            let reason =
                resource.reason().unwrap_or("it is not understood well enough to allow it");
            return Decision::new(Action::Ask, DecisionSource::Default, reason.to_owned());
        }
        if resource.is_asked_by_default() {
            return Decision::new(Action::Ask, DecisionSource::Tool, "this needs an approval");
        }
        match self.approval_required {
            Some(true) => {
                Decision::new(Action::Ask, DecisionSource::Tool, "the tool requires an approval")
            }
            Some(false) if !self.modes.contains(Mode::Strict) => Decision::new(
                Action::Allow,
                DecisionSource::Tool,
                "the tool needs no approval for this",
            ),
            _ => {
                let mode = self.modes.strictest_for(class);
                let action = mode.default_action(class);
                Decision::new(action, DecisionSource::Default, default_reason(mode, action, class))
            }
        }
    }

    /// Returns the rules about files of the tools that have the permission of the resource.
    fn file_rules_of_tools(&self, resource: &Resource) -> Vec<Ruleset> {
        resource.permission().map(self.file_rules_for_permission).unwrap_or_default()
    }

    fn apply_approvals(&self, resource: &Resource, asked: Decision) -> Decision {
        if (self.is_granted)(resource) {
            return Decision {
                rules: asked.rules,
                ..Decision::new(Action::Allow, DecisionSource::Approval, "it was approved before")
            };
        }
        // PA7: only a rule or a person allows it.
        if resource.is_approval_mandatory() {
            return asked;
        }
        // A hook that allows lifts what the mode `bypass` would lift, and nothing else.
        if let Some(hook) = self.overrides.iter().find(|it| it.action == Action::Allow) {
            return Decision::new(Action::Allow, hook.source, hook.reason.clone());
        }
        if self.modes.is_bypass() {
            return Decision {
                rules: asked.rules,
                ..Decision::new(
                    Action::Allow,
                    DecisionSource::Mode,
                    "the mode `bypass` needs no approval",
                )
            };
        }
        asked
    }

    /// SH10: asks when a rule that denies something might deny this resource, whose effect is
    /// unknown.
    fn restrict_unknown(&self, resource: &Resource, decided: Decision) -> Decision {
        let is_open = resource.has_unknown_effect() || !resource.known_prefixes().is_empty();
        if decided.action != Action::Allow || !is_open {
            return decided;
        }
        let is_meant = |rule: &Rule| {
            resource.has_unknown_effect()
                || resource.known_prefixes().iter().any(|it| rule.pattern.can_match_prefix(it))
        };
        let denies = |rule: &&Rule| rule.action == Action::Deny && is_meant(rule);
        let elsewhere = resource.permission().map(self.rules_for_permission);
        let rules = elsewhere.as_ref().unwrap_or(self.tool_rules);
        let of_tools = self.file_rules_of_tools(resource);
        let mut all_rules = rules.rules().iter().chain(of_tools.iter().flat_map(Ruleset::rules));
        let Some(rule) = all_rules.find(denies) else { return decided };
        let why = resource.reason().map(|why| format!(": {why}")).unwrap_or_default();
        let reason = format!(
            "what it touches is only known when it runs, so that the rule `{rule}`{} cannot be \
             judged{why}",
            describe_origin(rule)
        );
        Decision {
            rules: vec![rule.clone()],
            ..Decision::new(Action::Ask, DecisionSource::Unjudged, reason)
        }
    }

    /// Applies the limits that nothing lifts.
    fn apply_limits(&self, resource: &Resource, class: RiskClass, decided: Decision) -> Decision {
        if decided.action == Action::Deny {
            return decided;
        }
        let mode = self.modes.strictest_for(class);
        // For a part of a resource, the limit applies to the whole.
        if mode.forbids(class) && !resource.has_deny_rules_only() {
            let reason =
                format!("the mode `{mode}` only lets tools read, and this may {}", class.as_str());
            return Decision::new(Action::Deny, DecisionSource::Mode, reason);
        }
        let is_written = class != RiskClass::Read;
        if is_written && resource.absolute().is_some_and(|path| (self.holds_pipeline_state)(path)) {
            let reason = format!(
                "`{}` holds what was approved or decided, and no tool writes there",
                resource.text()
            );
            return Decision::new(Action::Deny, DecisionSource::Roots, reason);
        }
        match self.writable_roots {
            Some(roots) if is_written => self.restrict_to_roots(roots, resource, class, decided),
            _ => decided,
        }
    }

    /// F92: denies writing outside of `roots`, and asks when the place is unknown.
    fn restrict_to_roots(
        &self,
        roots: &[PathBuf],
        resource: &Resource,
        class: RiskClass,
        decided: Decision,
    ) -> Decision {
        let holds = |path: &Path| {
            path.components().all(|part| part != Component::ParentDir)
                && roots.iter().any(|root| path.starts_with(root))
        };
        let is_known = match (resource.absolute(), resource.writable_folders()) {
            (Some(path), _) if holds(path) => true,
            (Some(_), _) => {
                let reason =
                    format!("`{}` is outside the folders that may be written", resource.text());
                return Decision::new(Action::Deny, DecisionSource::Roots, reason);
            }
            (None, Some(folders)) => folders.iter().all(|folder| holds(folder)),
            // A tool that changes data changes what it names; a tool that runs something may change
            // more.
            (None, None) => class == RiskClass::Write && self.names_files(),
        };
        // A part is checked with its whole. A tool that needs no approval needs none for unnamed
        // resources either.
        let is_exempt = resource.has_deny_rules_only() || self.approval_required == Some(false);
        if is_known || is_exempt || decided.action != Action::Allow {
            return decided;
        }
        let reason = "it may write outside the folders that may be written";
        Decision {
            rules: decided.rules,
            ..Decision::new(Action::Ask, DecisionSource::Roots, reason)
        }
    }

    /// Whether the call names the files that it changes.
    fn names_files(&self) -> bool {
        self.resources.into_iter().flatten().any(|resource| resource.absolute().is_some())
    }
}

impl Decision {
    pub(crate) fn new(
        action: Action,
        by: DecisionSource,
        reason: impl Into<Cow<'static, str>>,
    ) -> Self {
        let (rules, subjects) = Default::default();
        Self { action, by, asked_by: None, reason: reason.into(), rules, subjects }
    }

    /// Returns the stricter of two decisions about one call; if both ask, an approval is needed for
    /// what each asks about.
    #[must_use]
    pub(crate) fn strictest(mut self, other: Self) -> Self {
        match self.action.cmp(&other.action) {
            Ordering::Less => other,
            Ordering::Equal if self.action == Action::Ask => {
                let more = other.subjects.iter().filter(|it| !self.subjects.contains(it));
                let more = more.cloned().collect();
                self.merge(Self { subjects: more, ..other });
                self
            }
            _ => self,
        }
    }

    /// Returns the decision when an approval is needed and no approver is available.
    pub(crate) fn without_approver(self) -> Self {
        Self {
            action: Action::Deny,
            by: DecisionSource::NoApprover,
            asked_by: Some(self.by),
            ..self
        }
    }

    /// Returns the decision after an approval request was answered.
    pub(crate) fn with_response(
        self,
        action: Action,
        reason: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { action, by: DecisionSource::Reply, reason: reason.into(), ..self }
    }

    /// Returns the decision about a call that must not start any more.
    pub(crate) fn into_stopped(self, by: DecisionSource, reason: &'static str) -> Self {
        Self { action: Action::Deny, by, reason: reason.into(), ..self }
    }

    /// Adds another resource with the same action.
    fn merge(&mut self, other: Self) {
        for rule in other.rules {
            if !self.rules.contains(&rule) {
                self.rules.push(rule);
            }
        }
        self.subjects.extend(other.subjects);
    }

    /// Applies one override, which can only tighten the decision.
    fn apply_override(mut self, added: &PolicyOverride) -> Self {
        if added.action > self.action {
            let subjects = self.subjects;
            let heeded = Self::new(added.action, added.source, added.reason.clone());
            return Self { subjects, ..heeded };
        }
        if added.action == self.action && self.action != Action::Allow {
            // The prompt shows every reason, first the one that no approval lifts.
            self.by = added.source;
            self.reason = format!("{}; {}", added.reason, self.reason).into();
        }
        self
    }
}

/// Puts the reason of the resource itself, such as a sensitive file, before the other reasons.
fn prepend_reason(resource: &Resource, decided: Decision) -> Decision {
    // For an opaque resource the reason is there already.
    let special = resource.reason().filter(|_| !resource.is_opaque());
    match special.filter(|_| decided.action != Action::Allow) {
        Some(why) => Decision { reason: format!("{why}; {}", decided.reason).into(), ..decided },
        None => decided,
    }
}

/// Asks about what cannot be undone, unless a rule allows exactly this.
fn restrict_dangerous(resource: &Resource, decided: Decision) -> Decision {
    let is_exact =
        |rule: &Rule| !resource.is_context_dependent() && rule.pattern.is_exact(resource.text());
    let is_meant = decided.by == DecisionSource::Rule && decided.rules.iter().any(is_exact);
    if decided.action != Action::Allow || !resource.is_dangerous() || is_meant {
        return decided;
    }
    let reason = "what it does cannot be undone, and no rule allows exactly this";
    Decision { rules: decided.rules, ..Decision::new(Action::Ask, DecisionSource::Tool, reason) }
}

/// Returns the reason of a decision without a rule. The most frequent one needs no allocation.
fn default_reason(mode: Mode, action: Action, class: RiskClass) -> Cow<'static, str> {
    if (mode, action, class) == (Mode::Auto, Action::Allow, RiskClass::Read) {
        return "no rule matches it, and the mode `auto` allows what may read".into();
    }
    let verb = match action {
        Action::Allow => "allows",
        Action::Ask => "asks about",
        Action::Deny => "denies",
    };
    let class = class.as_str();
    format!("no rule matches it, and the mode `{mode}` {verb} what may {class}").into()
}

fn describe_origin(rule: &Rule) -> String {
    match rule.origin.as_str() {
        "" => format!(" ({})", rule.scope),
        origin => format!(" ({}, {origin})", rule.scope),
    }
}

#[cfg(test)]
mod tests;
