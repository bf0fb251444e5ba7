//! What a running tool may show of the files that it meets: the rules' answer, without
//! asking anybody.
//!
//! Rules also count that name another tool with the same permission: who denies a file to the
//! tool that reads it does not mean that a search shows it.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::core::Core;
use super::files;
use crate::context::{Context, Session, Sight, Visibility};
use crate::effect::RiskClass;
use crate::permission::{Action, Arguments, Grantee, Modes, Names, Rule, Ruleset};
use crate::tool::{Definition, Subject, Tool};
use crate::toolset::{View, is_about_files};

/// What the rules let the call show under `permission`.
///
/// A file that somebody would have to be asked about is left out like one that is denied,
/// unless that was approved before; but only of the former it is told that it is there. What asks
/// about everything was answered when somebody who was asked let the call through, and so was a
/// rule about the tool itself that asks about what the call names. Where a rule let the call
/// through, nobody answered for what it meets.
pub(super) fn sight(core: &Arc<Core>, cx: &Context, permission: &str) -> Sight {
    let view = core.toolset.view_for(cx.session());
    let policy = cx.session().policy();
    let rules = match &policy {
        Some(policy) => view.rules().with(&policy.rules),
        None => view.rules().clone(),
    };
    let modes = Modes::new(view.mode(), policy.as_ref().and_then(|policy| policy.mode));
    let asks = modes.about(RiskClass::Read).default_action(RiskClass::Read) == Action::Ask;
    let may_restrict = restricts(&rules) || (asks && cx.is_unasked());
    if !may_restrict {
        return Sight::EVERYTHING;
    }
    let tools = core.toolset.everything();
    let rules = about_what_is_shown(&rules, &tools);
    let own = [cx.tool().as_str()];
    let (names, is_shared) = match view.definition(own[0]) {
        Some(tool) => (view.names(tool).and(own), tool.permission() == permission),
        None => (Names::from(&own), false),
    };
    let laws = Laws {
        own: rules.about(names),
        is_shared,
        others: others(&view, &tools, cx, permission, &rules, is_shared),
        outside: rules.about(&[Subject::OUTSIDE]),
    };
    // Whoever was asked about the call answered for what it meets, but not a rule.
    let is_unasked = is_shared && cx.is_unasked();
    let asks = asks && is_unasked;
    if laws.are_everything() && !asks {
        return Sight::EVERYTHING;
    }
    let to = |permission| Grantee::new(cx.tool().clone(), permission);
    let (to, to_outside) = (to(permission), to(Subject::OUTSIDE));
    let (core, session) = (Arc::clone(core), cx.session().clone());
    let ways = files::ways(&session, &rules);
    let stored = core.stored(cx.session());
    Sight::judged_by(move |asked: &str, absolute: &Path, is_named| {
        let mut subject = Subject::path(asked, absolute);
        subject.seen_from(&ways);
        let is_approved = |to: &Grantee| {
            modes.ask_nobody()
                || core.kept(&session).approvals.covers(to, &subject)
                || stored.as_ref().is_some_and(|stored| stored.covers(to, &subject))
        };
        let told = |action, was_asked: bool, to: &Grantee| match action {
            Action::Allow => Visibility::Shown,
            Action::Deny => Visibility::Hidden,
            Action::Ask if was_asked || is_approved(to) => Visibility::Shown,
            Action::Ask => Visibility::OnRequest,
        };
        let was_asked = |rule: &Rule| is_named || (rule.pattern.is_any() && !is_unasked);
        let own = match decisive(&laws.own, &subject) {
            Some(rule) => Some(told(rule.action, was_asked(rule), &to)),
            None => asks.then(|| told(Action::Ask, is_named, &to)),
        };
        let others =
            laws.of_others(&subject).map(|rule| told(rule.action, rule.pattern.is_any(), &to));
        let outside = laws.of_outside(&session, absolute, &subject);
        let outside = outside.map(|rule| told(rule.action, was_asked(rule), &to_outside));
        others.chain(own).chain(outside).max().unwrap_or(Visibility::Shown)
    })
}

/// The rules that have a say, each list judged by itself: the strictest answer holds, so that
/// what allows more to one tool does not lift what another is denied.
struct Laws {
    /// Those about the tool itself.
    own: Ruleset,
    /// Whether the permission is the tool's own, so that rules about that are among these.
    is_shared: bool,
    /// Those about every other tool that has the permission.
    others: Vec<Ruleset>,
    /// Those about what is outside of the workspace.
    outside: Ruleset,
}

impl Laws {
    /// Whether nothing can be left out.
    fn are_everything(&self) -> bool {
        let mut laws = self.others.iter().chain([&self.own, &self.outside]);
        !laws.any(restricts)
    }

    /// What the rules say about places outside of the workspace, of one that is.
    fn of_outside(&self, session: &Session, at: &Path, subject: &Subject) -> Option<&Rule> {
        let is_asked_about = restricts(&self.outside) && files::is_outside(session, at);
        is_asked_about.then(|| decisive(&self.outside, subject)).flatten()
    }

    /// What the others' rules say, unless that was judged among the tool's own.
    fn of_others<'l>(&'l self, subject: &'l Subject) -> impl Iterator<Item = &'l Rule> {
        let decisive = self.others.iter().filter_map(|rules| decisive(rules, subject));
        decisive.filter(|rule| !(self.is_shared && self.own.rules().contains(rule)))
    }
}

/// The rules about every other tool that has the permission, and those about the permission
/// where it is not the tool's own.
fn others(
    view: &View,
    tools: &[Arc<dyn Tool>],
    cx: &Context,
    permission: &str,
    rules: &Ruleset,
    is_shared: bool,
) -> Vec<Ruleset> {
    let mut laws: Vec<Ruleset> = Vec::new();
    if !is_shared {
        laws.push(rules.about(view.names_of(permission)));
    }
    for tool in tools {
        let definition = tool.definition();
        if definition.permission() != permission || definition.name == *cx.tool() {
            continue;
        }
        let law = about_files(rules, view, definition);
        if !laws.contains(&law) {
            laws.push(law);
        }
    }
    laws.retain(restricts);
    laws
}

/// What rules about a tool say about files, also for others: not that it is asked about
/// whenever it is called, nor that nobody is to have it.
fn about_files(rules: &Ruleset, view: &View, tool: &Definition) -> Ruleset {
    let names = view.names(tool);
    let rules = rules.about(names.clone());
    // Who forbids every path forbids the tool.
    let of_subjects = |rule: &Rule| Rule { argument: None, ..rule.clone() };
    let is_hidden = Ruleset::new(rules.rules().iter().map(of_subjects)).hides_all(&names);
    let permission = [tool.permission()];
    let permission = Names::from(&permission);
    let is_about_files = |rule: &&Rule| {
        let is_whole = rule.pattern.is_any() && !rule.speaks_of(&permission);
        match rule.action {
            Action::Allow => true,
            Action::Ask => !is_whole,
            Action::Deny => !(is_whole && is_hidden),
        }
    };
    Ruleset::new(rules.rules().iter().filter(is_about_files).cloned())
}

/// The rules without those on arguments that hold no paths: nothing is sent to what is shown.
fn about_what_is_shown(rules: &Ruleset, tools: &[Arc<dyn Tool>]) -> Ruleset {
    let is_about_it = |rule: &&Rule| rule.argument.is_none() || is_about_files(rule, tools.iter());
    Ruleset::new(rules.rules().iter().filter(is_about_it).cloned())
}

/// The arguments of what is shown: there are none, and rules on paths are about it.
struct Shown;

impl Arguments for Shown {
    fn value(&self, _: &str) -> Option<Value> {
        None
    }

    fn is_path(&self, _: &Rule) -> bool {
        true
    }
}

fn decisive<'r>(rules: &'r Ruleset, subject: &Subject) -> Option<&'r Rule> {
    rules.decisive(subject, &Shown, true)
}

/// Whether a rule could leave something out.
fn restricts(rules: &Ruleset) -> bool {
    rules.rules().iter().any(|rule| rule.action != Action::Allow)
}
