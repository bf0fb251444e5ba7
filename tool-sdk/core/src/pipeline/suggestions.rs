//! The patterns that an approval request offers to grant for the session or for always.
//!
//! **Invariant:** the offered patterns would let the call run; a pattern without effect is never
//! offered.

use super::authorize::{Assumptions, evaluate_assuming, grantees};
use super::invocation::{DecodedCall, Invocation};
use crate::context::Context;
use crate::permission::{Action, Decision, DecisionSource, Grant, Pattern};
use crate::tool::Resource;

/// The most resources of a call for which more than this call is offered; a prompt does not show
/// more.
const MAX_OFFERED: usize = 256;

/// Returns the patterns that an approval could grant, from specific to general: with all of them
/// granted the call would run. `touched` is all resources of the call, or empty to get them from
/// the tool.
pub(super) fn suggested_patterns(
    invocation: &Invocation<'_>,
    call: &DecodedCall,
    decision: &Decision,
    cx: &Context,
    touched: &[Resource],
) -> Vec<String> {
    let prepared = &*call.prepared;
    // A prompt shows one permission, and no grant lifts an `ask` of a hook or the loop guard, or
    // one about an opaque call or the writable roots.
    let grantees = grantees(invocation.definition(), &decision.subjects);
    let [to] = grantees.as_slice() else { return Vec::new() };
    if decision.subjects.len() > MAX_OFFERED
        || matches!(
            decision.by,
            DecisionSource::Hook
                | DecisionSource::Loop
                | DecisionSource::Unjudged
                | DecisionSource::Roots
        )
        || prepared.is_dangerous()
        || decision.subjects.iter().any(Resource::is_opaque)
    {
        return Vec::new();
    }
    let grant = |pattern: &String| Grant::new(to.clone(), pattern.as_str());
    let is_enough = |patterns: &Vec<String>| {
        let granted: Vec<Grant> = patterns.iter().map(grant).collect();
        let (arguments, overrides) = (invocation.arguments(), &call.overrides);
        let assumptions = Assumptions { grants: &granted, resources: touched, ..Assumptions::NONE };
        let now = evaluate_assuming(
            invocation,
            prepared,
            arguments,
            overrides,
            cx,
            &assumptions,
            &mut Vec::new(),
        );
        !granted.is_empty() && now.action == Action::Allow
    };
    // A tool suggests patterns for the whole call; parts of it may be allowed already.
    let lifts = |pattern: &String| {
        prepared.covered_by(pattern).unwrap_or_else(|| {
            decision.subjects.iter().any(|resource| grant(pattern).covers(to, resource))
        })
    };
    let by_tool = || prepared.suggestions().into_iter().filter(lifts).collect();
    // The suggestions of a tool are about its own permission.
    let by_subjects = || match prepared.restricts_suggestions()
        && to.permission == invocation.definition().permission()
    {
        true => offered_patterns(&decision.subjects),
        false => exact_patterns(&decision.subjects),
    };
    let found = [&by_tool as &dyn Fn() -> Vec<String>, &by_subjects];
    found.into_iter().map(|find| find()).find(is_enough).unwrap_or_default()
}

/// The resources as literal patterns; none when one of them cannot be written as a pattern,
/// because the others would have no effect without it.
fn exact_patterns(subjects: &[Resource]) -> Vec<String> {
    let exact = |resource: &Resource| match resource.text() {
        "*" => Some("*".to_owned()),
        text => Pattern::exact(text).map(String::from),
    };
    subjects.iter().map(exact).collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// The patterns that the tool offers for its one resource, or for several equal ones.
fn offered_patterns(subjects: &[Resource]) -> Vec<String> {
    let Some((first, rest)) = subjects.split_first() else { return Vec::new() };
    match rest.iter().all(|other| other.text() == first.text()) {
        true => first.suggestions().to_vec(),
        false => Vec::new(),
    }
}
