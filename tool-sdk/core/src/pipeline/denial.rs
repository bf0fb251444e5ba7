//! The error of a call that was denied: what the model reads, and which rule would allow it.

use std::collections::HashSet;

use super::invocation::Invocation;
use crate::error::ToolError;
use crate::event::EventKind;
use crate::permission::{Action, Decision, DecisionSource, Rule};
use crate::tool::Resource;

/// Emits the denial and returns the error of a call that may not run.
pub(super) fn denied_error(invocation: &Invocation<'_>, decision: Decision) -> ToolError {
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
        DecisionSource::NoApprover => error.hint(allow_hint(invocation, &decision)),
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

/// Returns which rule would allow a call that needs an approval when there is no approver.
fn allow_hint(invocation: &Invocation<'_>, decision: &Decision) -> String {
    let of = |resource: &Resource| {
        resource.permission().unwrap_or_else(|| invocation.definition().permission()).to_owned()
    };
    let is_locked = decision.rules.iter().any(|rule| rule.locked);
    match decision.asked_by {
        Some(
            DecisionSource::Default
            | DecisionSource::Rule
            | DecisionSource::Mode
            | DecisionSource::Tool,
        ) if !is_locked => {}
        // No rule lifts an `ask` of hooks, the loop guard or locked rules.
        _ => return "no approver is available, and no rule lifts this; try another way".to_owned(),
    }
    if let [one] = decision.subjects.as_slice()
        && one.text() != "*"
        && !one.is_opaque()
    {
        let (permission, text) = (of(one), one.text());
        return format!(
            "no approver is available; the rule `allow {permission}({text})` would allow it"
        );
    }
    // A dangerous call needs a rule for exactly this text; an opaque one has no such text.
    if decision.subjects.iter().any(|resource| resource.is_dangerous() && resource.is_opaque()) {
        return "no approver is available, and no rule lifts this; try another way".to_owned();
    }
    let is_exact = |resource: &Resource| {
        resource.is_dangerous()
            || !resource.is_opaque() && is_literal_rule(&of(resource), resource.text())
    };
    // The permissions that a rule can only allow as a whole.
    let whole = decision.subjects.iter().filter(|resource| !is_exact(resource)).map(of);
    let whole: HashSet<String> = whole.collect();
    let rule = |resource: &Resource| {
        let permission = of(resource);
        match resource.is_dangerous() || !whole.contains(&permission) {
            true => format!("{permission}({})", resource.text()),
            false => permission,
        }
    };
    let mut rules: Vec<String> = decision.subjects.iter().map(rule).collect();
    rules.sort();
    rules.dedup();
    let (named, more) = rules.split_at(rules.len().min(MAX_RULES_NAMED));
    let named = named.join("` and `allow ");
    match (rules.len(), more.len()) {
        (0, _) => "no approver is available".to_owned(),
        (1, _) => format!("no approver is available; the rule `allow {named}` would allow it"),
        (_, 0) => format!("no approver is available; the rules `allow {named}` would allow it"),
        (_, more) => format!(
            "no approver is available; the rules `allow {named}` and {more} more, one for each thing \
             that it touches, would allow it"
        ),
    }
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
