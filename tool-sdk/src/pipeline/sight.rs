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
use crate::context::{Context, Sight, Visibility};
use crate::effect::RiskClass;
use crate::permission::{Action, Arguments, Grantee, Mode, Names, Rule, Ruleset};
use crate::tool::{Definition, Subject, Tool};
use crate::toolset::{View, is_about_files};

/// What the rules let the call show under `permission`.
///
/// A file that somebody would have to be asked about is left out like one that is denied,
/// unless that was approved before; but only of the former it is told that it is there. What asks
/// about everything was answered when somebody let the call through, and so was a rule about the
/// tool itself that asks about what the call names.
pub(super) fn sight(core: &Arc<Core>, cx: &Context, permission: &str) -> Sight {
    let view = core.toolset.view_for(cx.session());
    let policy = cx.session().policy();
    let rules = match &policy {
        Some(policy) => view.rules().with(&policy.rules),
        None => view.rules().clone(),
    };
    let mode = policy.as_ref().and_then(|policy| policy.mode);
    let mode = mode.map_or(view.mode(), |mode| mode.stricter(view.mode()));
    // A call that a rule let through was asked nothing: what the rule does not allow is not shown.
    let asks = mode.default_action(RiskClass::Read) == Action::Ask && !cx.is_answered();
    if !restricts(&rules) && !asks {
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
    };
    let asks = asks && is_shared;
    if laws.are_everything() && !asks {
        return Sight::EVERYTHING;
    }
    let to = Grantee::new(cx.tool().clone(), permission);
    let (core, session) = (Arc::clone(core), cx.session().clone());
    let ways = files::ways(&session, &rules);
    let stored = core.stored(cx.session());
    let was_answered = cx.is_answered();
    Sight::judged_by(move |asked: &str, absolute: &Path, is_named| {
        let mut subject = Subject::path(asked, absolute);
        subject.seen_from(&ways);
        let is_approved = || {
            mode == Mode::Bypass
                || core.kept(&session).approvals.covers(&to, &subject)
                || stored.as_ref().is_some_and(|stored| stored.covers(&to, &subject))
        };
        let told = |action: Action, was_asked: bool| match action {
            Action::Allow => Visibility::Shown,
            Action::Deny => Visibility::Hidden,
            Action::Ask if was_asked || is_approved() => Visibility::Shown,
            Action::Ask => Visibility::OnRequest,
        };
        let own = match decisive(&laws.own, &subject) {
            Some(rule) => {
                let was_asked = is_named || was_answered && rule.pattern.is_any();
                told(rule.action, was_asked)
            }
            None if asks => told(Action::Ask, is_named),
            None => Visibility::Shown,
        };
        let others = laws.of_others(&subject);
        // That reading asks whenever it is done is said of no file.
        let others = others.map(|rule| told(rule.action, rule.pattern.is_any()));
        others.max().unwrap_or(Visibility::Shown).max(own)
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
}

impl Laws {
    /// Whether nothing can be left out.
    fn are_everything(&self) -> bool {
        !restricts(&self.own) && !self.others.iter().any(restricts)
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
