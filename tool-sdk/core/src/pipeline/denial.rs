//! The error of a call that was denied: what the model reads, and which rule would allow it.

use std::collections::HashSet;

use super::authorize::{Assumptions, evaluate_assuming};
use super::invocation::Invocation;
use super::session_policy::SessionPolicy;
use crate::error::ToolError;
use crate::event::EventKind;
use crate::permission::{Action, Decision, DecisionSource, PolicyOverride, Rule, RuleScope};
use crate::tool::{PreparedCall, Resource};

/// Emits the denial and returns the error of a call that may not run.
pub(super) fn denied_error(
    invocation: &Invocation<'_>,
    prepared: &dyn PreparedCall,
    overrides: &[PolicyOverride],
    decision: Decision,
) -> ToolError {
    // The tool itself refuses, with its own error.
    if decision.by == DecisionSource::Tool
        && let Some(error) = decision.subjects.iter().find_map(Resource::refusal)
    {
        return error;
    }
    let name = &invocation.definition().name;
    let error = ToolError::denied(format_args!("`{name}` may not run: {}", decision.reason));
    invocation.emit(|| EventKind::Denied(decision.clone().into()));
    match decision.by {
        DecisionSource::NoApprover => {
            error.hint(allow_hint(invocation, prepared, overrides, &decision))
        }
        DecisionSource::Rule | DecisionSource::Mode | DecisionSource::Roots => {
            let of_plan =
                plan_mode_hint(invocation).filter(|_| decision.by == DecisionSource::Mode);
            error.hint(of_plan.unwrap_or_else(|| {
                "do not look for a way around it; go on without, or say what is needed".to_owned()
            }))
        }
        _ => error,
    }
}

/// Returns how plan mode ends, if the session is in it.
fn plan_mode_hint(invocation: &Invocation<'_>) -> Option<String> {
    let draft = invocation.session.plan_draft().filter(|draft| !draft.exit_tool.is_empty())?;
    Some(format!(
        "the session is in plan mode; when the plan is complete, `{}` asks the user to end it",
        draft.exit_tool
    ))
}

/// The hint where no rule can be named.
const NO_RULE: &str = "no approver is available, and no rule lifts this; try another way";

/// Returns which rules would allow a call that needs an approval when there is no approver. Only
/// rules with which the call would run are named, and none that would also lift a denial.
fn allow_hint(
    invocation: &Invocation<'_>,
    prepared: &dyn PreparedCall,
    overrides: &[PolicyOverride],
    decision: &Decision,
) -> String {
    let is_locked = decision.rules.iter().any(|rule| rule.locked);
    match decision.asked_by {
        Some(
            DecisionSource::Default
            | DecisionSource::Rule
            | DecisionSource::Mode
            | DecisionSource::Tool,
        ) if !is_locked => {}
        // No rule lifts an `ask` of hooks, the loop guard or locked rules.
        _ => return NO_RULE.to_owned(),
    }
    if decision.subjects.is_empty() {
        return "no approver is available".to_owned();
    }
    let candidates = [
        exact_rules(invocation, &decision.subjects),
        general_rules(invocation, &decision.subjects),
    ];
    let lets_run = |rules: &Vec<String>| {
        // As a rule of the command line, which comes after all others.
        let parse = |rule: &String| {
            Rule::parse(Action::Allow, rule).ok().map(|rule| rule.scope(RuleScope::Session))
        };
        let parsed: Option<Vec<Rule>> = rules.iter().map(parse).collect();
        parsed.is_some_and(|rules| {
            !rules.iter().any(|rule| could_lift_denial(invocation, rule))
                && would_allow(invocation, prepared, overrides, &decision.subjects, &rules)
        })
    };
    let Some(rules) = candidates.into_iter().find(lets_run) else { return NO_RULE.to_owned() };
    let (named, more) = rules.split_at(rules.len().min(MAX_RULES_NAMED));
    let named = named.join("` and `allow ");
    match (rules.len(), more.len()) {
        (1, _) => format!("no approver is available; the rule `allow {named}` would allow it"),
        (_, 0) => format!("no approver is available; the rules `allow {named}` would allow it"),
        (_, more) => format!(
            "no approver is available; the rules `allow {named}` and {more} more, one for each thing \
             that it touches, would allow it"
        ),
    }
}

/// Returns the permission under which the resource is judged.
fn permission_of(invocation: &Invocation<'_>, resource: &Resource) -> String {
    resource.permission().unwrap_or_else(|| invocation.definition().permission()).to_owned()
}

/// Returns a rule for each of these resources alone, where one can be written.
fn exact_rules(invocation: &Invocation<'_>, subjects: &[Resource]) -> Vec<String> {
    let rule = |resource: &Resource| {
        let (permission, text) = (permission_of(invocation, resource), resource.text());
        // Among several resources, a pattern could also mean others.
        let is_own =
            subjects.len() == 1 || resource.is_dangerous() || is_literal_rule(&permission, text);
        if text != "*" && is_own { format!("{permission}({text})") } else { permission }
    };
    sort_rules(subjects.iter().map(rule).collect())
}

/// Returns a rule for each resource that can be written literally, and for all calls of the permission
/// of the others.
fn general_rules(invocation: &Invocation<'_>, subjects: &[Resource]) -> Vec<String> {
    let of = |resource: &Resource| permission_of(invocation, resource);
    let is_exact = |resource: &Resource| {
        resource.is_dangerous()
            || !resource.is_opaque() && is_literal_rule(&of(resource), resource.text())
    };
    // The permissions that a rule can only allow as a whole.
    let whole = subjects.iter().filter(|resource| !is_exact(resource)).map(of);
    let whole: HashSet<String> = whole.collect();
    let rule = |resource: &Resource| {
        let permission = of(resource);
        match resource.is_dangerous() || !whole.contains(&permission) {
            true => format!("{permission}({})", resource.text()),
            false => permission,
        }
    };
    sort_rules(subjects.iter().map(rule).collect())
}

fn sort_rules(mut rules: Vec<String>) -> Vec<String> {
    rules.sort();
    rules.dedup();
    rules
}

/// Whether the call would run if the user's rules ended with `rules`.
fn would_allow(
    invocation: &Invocation<'_>,
    prepared: &dyn PreparedCall,
    overrides: &[PolicyOverride],
    subjects: &[Resource],
    rules: &[Rule],
) -> bool {
    // The tool names its resources again where it named none.
    let resources = if subjects.iter().any(|it| it.text() == "*") { &[] } else { subjects };
    let (arguments, context) = (invocation.arguments(), invocation.context());
    let assumptions = Assumptions { rules, resources, ..Assumptions::NONE };
    let touched = &mut Vec::new();
    evaluate_assuming(invocation, prepared, arguments, overrides, &context, &assumptions, touched)
        .action
        == Action::Allow
}

/// Whether the rule allows everything of a permission of which another rule denies something.
fn could_lift_denial(invocation: &Invocation<'_>, rule: &Rule) -> bool {
    let view = invocation.inner.toolset.view_for(invocation.session);
    let names = view.permission_names(rule.permission.as_str());
    let SessionPolicy { rules, .. } = SessionPolicy::new(&view, invocation.session);
    rule.pattern.is_any()
        && rules.for_names(names).rules().iter().any(|it| it.action == Action::Deny)
}

/// The most rules that a hint spells out.
const MAX_RULES_NAMED: usize = 5;

/// Whether a rule can be written that allows exactly this text; some texts read as a pattern, a
/// home folder or the name of an argument.
fn is_literal_rule(permission: &str, text: &str) -> bool {
    let rule = Rule::parse(Action::Allow, &format!("{permission}({text})"));
    rule.is_ok_and(|rule| {
        rule.argument.is_none()
            && !rule.pattern.is_any()
            && rule.pattern.as_str() == text
            && rule.pattern.matches_literally(text)
    })
}
