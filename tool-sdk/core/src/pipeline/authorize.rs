//! Decides whether a call may run: rules, grants, the mode, and an approval.
//!
//! [`evaluate`] evaluates a call, and what an approval request may offer for it
//! ([`suggestions`](super::suggestions)), by the rules, modes and grants of
//! [`session_policy`](super::session_policy).
//!
//! **Invariant:** an error or a panic on the way is a denial; a denial is final.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::approval::{self, ApprovalAnswer, ApprovalResult};
use super::denial::denied_error;
use super::execute::catch_panic;
use super::grant_lookup::GrantLookup;
use super::invocation::{DecodedCall, Invocation};
use super::rule_arguments::RuleArguments;
use super::session_policy::{CallPolicy, PolicyQuestion, deciding_sessions};
use super::suggestions::suggested_patterns;
use super::{CallFacts, CheckOutcome};
use crate::context::Context;
use crate::error::ToolError;
use crate::permission::{
    Action, Decision, DecisionSource, Grant, Grantee, PolicyOverride, Rule, definition_version,
};
use crate::tool::{Definition, PreparedCall, Resource, ToolSource};

/// The reason for denying a call whose tool panicked while reporting what the call does.
const UNKNOWN_CALL: &str = "the tool failed to describe this call";

impl Invocation<'_> {
    /// Authorizes the call: by rules, grants and the mode, and by an approval where these ask for
    /// one. The call that was judged and shown is the call that runs.
    pub(super) async fn authorize(&mut self, call: &mut DecodedCall) -> Result<(), ToolError> {
        let context = self.context();
        let ApprovalResult { decision, answer, halt_reason: halted, .. } = loop {
            self.enter_stage("loop_guard");
            self.check_loop_guard(call);
            self.enter_stage("authorize");
            self.complete_call(call).await?;
            let decision = self.deny_unbound(&*call.prepared, decide(self, call, &context));
            let mut result = match decision.action {
                Action::Allow | Action::Deny => ApprovalResult::without_prompt(decision),
                Action::Ask => {
                    self.enter_stage("approval");
                    let asking = approval::request_approval(self, call, decision, &context);
                    self.unless_cancelled(asking).await?
                }
            };
            // A hook may rewrite the call, and a person edit it; then the new call is authorized.
            let Some(change) = result.change.take() else { break result };
            self.enter_stage("before_hooks");
            self.apply_change(change, call).await?;
        };
        if let Some(reason) = halted {
            self.metadata.halt_reason = Some(reason);
            self.stop_batch_when_halted();
        }
        // What it touches may have changed while it was asked about.
        let decision = self.deny_unbound(&*call.prepared, decision);
        self.record_decision(&*call.prepared, &decision, answer.as_ref())?;
        if decision.action != Action::Allow {
            return Err(denied_error(self, &*call.prepared, &call.overrides, decision));
        }
        if answer.is_some() {
            self.allow_repeats();
        }
        self.was_read = answer.as_ref().is_some_and(ApprovalAnswer::is_read_approval);
        if self.scheduler.is_some() {
            let without_hooks = evaluate(self, &*call.prepared, self.arguments(), &[], &context);
            if without_hooks.action == Action::Ask {
                // Only the approval lets the call run, so it must still be the same call when its
                // turn comes.
                self.approved_fingerprint = Some(self.fingerprint(&*call.prepared));
            }
        }
        self.note_decision(&decision);
        self.reset_clock();
        Ok(())
    }

    /// Authorizes a call of a batch again that waited for its slot: an earlier call may have
    /// changed the rules, the grants, the tool or the resources of this call.
    pub(super) async fn reauthorize(&mut self, call: &mut DecodedCall) -> Result<(), ToolError> {
        if self.scheduler.is_none() {
            return Ok(());
        }
        let context = self.context();
        let now = evaluate(self, &*call.prepared, self.arguments(), &[], &context);
        let denied = match now.action {
            Action::Allow => None,
            Action::Ask if self.is_still_approved(&*call.prepared) => None,
            Action::Ask => Some(now.with_response(
                Action::Deny,
                "what it touches changed while the call waited for its turn",
            )),
            Action::Deny => Some(now),
        };
        if let Some(denied) = denied {
            self.record_decision(&*call.prepared, &denied, None)?;
            return Err(denied_error(self, &*call.prepared, &call.overrides, denied));
        }
        if self.recheck_loop_guard() {
            call.original = None;
            call.overrides.clear();
            call.is_rewrite_used = true;
            call.edit = None;
            self.authorize(call).await?;
        }
        Ok(())
    }

    /// Denies the call unless it is the one that its caller [bound](crate::Call::bound_to) it to. An
    /// approval would not let another one run, so it is not asked for.
    fn deny_unbound(&self, prepared: &dyn PreparedCall, decision: Decision) -> Decision {
        let Some(bound) = self.call.fingerprint.as_ref() else { return decision };
        if decision.action == Action::Deny || *bound == self.fingerprint(prepared).as_str() {
            return decision;
        }
        decision.with_response(Action::Deny, "it is not the call that was approved")
    }

    /// Returns what the call would do, without running it and without an approval request.
    ///
    /// # Errors
    ///
    /// Fails when the call is denied, regardless of an approval.
    pub(super) async fn describe(mut self) -> Result<CallFacts, ToolError> {
        let described = self.collect_facts().await;
        self.mask_facts(described)
    }

    async fn collect_facts(&mut self) -> Result<CallFacts, ToolError> {
        let call = self.prepare_for_check().await?;
        let context = self.context();
        let (decision, touched) = decide_with_resources(self, &call, &context);
        if decision.action == Action::Deny {
            return Err(denied_error(self, &*call.prepared, &call.overrides, decision));
        }
        let prepared = &*call.prepared;
        let fingerprint = self.fingerprint_of(prepared, &touched, &context);
        let summary = self.summarize(prepared);
        catch_panic(|| CallFacts::collect(prepared, &context, fingerprint, summary))
    }

    /// Takes a call that will not run to the point where it is decided.
    async fn prepare_for_check(&mut self) -> Result<DecodedCall, ToolError> {
        self.resolve()?;
        self.admit()?;
        self.restore_plan_mode().await;
        let mut call = self.parse_for_check()?;
        self.check_cancelled()?;
        self.consult_hooks(&mut call).await?;
        self.complete_call(&mut call).await?;
        Ok(call)
    }

    /// Returns the decision about the call, without an approval request and without running it.
    pub(super) async fn check(mut self) -> Result<CheckOutcome, ToolError> {
        let call = self.prepare_for_check().await?;
        let context = self.context();
        let (mut decision, touched) = decide_with_resources(&self, &call, &context);
        let suggestions = match decision.action {
            Action::Ask => {
                catch_panic(|| suggested_patterns(&self, &call, &decision, &context, &touched))
                    .unwrap_or_default()
            }
            Action::Allow | Action::Deny => Vec::new(),
        };
        // All resources of the call, not only those that led to the decision.
        decision.subjects = touched;
        let fingerprint = self.fingerprint_of(&*call.prepared, &decision.subjects, &context);
        let view = self.inner.toolset.view_for(self.session);
        let is_unmatched = |rule: &&Rule| !decision.rules.contains(rule);
        let unmatched_rules = view.unmatched_rules().iter().filter(is_unmatched).cloned().collect();
        Ok(CheckOutcome { decision, suggestions, fingerprint, unmatched_rules })
    }
}

/// Decides about the call as it is now and as the model sent it; the stricter decision holds.
pub(super) fn decide(
    invocation: &Invocation<'_>,
    call: &DecodedCall,
    context: &Context,
) -> Decision {
    decide_with_resources(invocation, call, context).0
}

/// Like [`decide`], and also returns all resources of the call as it is now.
fn decide_with_resources(
    invocation: &Invocation<'_>,
    call: &DecodedCall,
    context: &Context,
) -> (Decision, Vec<Resource>) {
    let mut touched = Vec::new();
    let rewritten = evaluate_assuming(
        invocation,
        &*call.prepared,
        invocation.arguments(),
        &call.overrides,
        context,
        &Assumptions::NONE,
        &mut touched,
    );
    let decision = match &call.original {
        Some(original) => {
            // A call that was denied before a hook rewrote it stays denied.
            let sent = invocation.call.arguments.text();
            let first = evaluate(invocation, &**original, sent, &[], context);
            if first.action == Action::Deny { first } else { rewritten }
        }
        None => rewritten,
    };
    (decision, touched)
}

/// Whether an `allow` of a hook would lift the approval that the call needs.
pub(super) fn can_hook_allow(
    invocation: &Invocation<'_>,
    call: &DecodedCall,
    context: &Context,
) -> bool {
    let overrides = [call.overrides.as_slice(), &[PolicyOverride::allow("")]].concat();
    let arguments = invocation.arguments();
    evaluate(invocation, &*call.prepared, arguments, &overrides, context).action == Action::Allow
}

/// Returns the decision about a call whose facts the tool cannot report.
pub(super) fn unknown_call_decision() -> Decision {
    Decision::new(Action::Deny, DecisionSource::Tool, UNKNOWN_CALL)
}

/// Returns the same decision as an override.
pub(super) fn unknown_call_override() -> PolicyOverride {
    PolicyOverride {
        action: Action::Deny,
        source: DecisionSource::Tool,
        reason: UNKNOWN_CALL.to_owned(),
    }
}

/// What an evaluation assumes.
pub(super) struct Assumptions<'g> {
    pub(super) grants: &'g [Grant],
    /// More rules of the user, after the others.
    pub(super) rules: &'g [Rule],
    /// All resources of the call; empty to get them from the tool.
    pub(super) resources: &'g [Resource],
}

impl Assumptions<'_> {
    pub(super) const NONE: Self = Self { grants: &[], rules: &[], resources: &[] };
}

/// Evaluates one form of the call; a panic on the way is a denial.
pub(super) fn evaluate(
    invocation: &Invocation<'_>,
    prepared: &dyn PreparedCall,
    arguments: &str,
    overrides: &[PolicyOverride],
    context: &Context,
) -> Decision {
    let assumptions = Assumptions::NONE;
    let mut touched = Vec::new();
    evaluate_assuming(
        invocation,
        prepared,
        arguments,
        overrides,
        context,
        &assumptions,
        &mut touched,
    )
}

/// Evaluates the call under `assumptions`; stores all resources of the call in `touched`.
pub(super) fn evaluate_assuming(
    invocation: &Invocation<'_>,
    prepared: &dyn PreparedCall,
    arguments: &str,
    overrides: &[PolicyOverride],
    context: &Context,
    assumptions: &Assumptions<'_>,
    touched: &mut Vec<Resource>,
) -> Decision {
    let decision = catch_unwind(AssertUnwindSafe(|| {
        let mut subjects = match assumptions.resources {
            [] => prepared.resources(context),
            known => Some(known.to_vec()),
        };
        let inner = invocation.inner;
        let (is_dangerous, approval_required) =
            (prepared.is_dangerous(), prepared.approval_required(context));
        let grants = GrantLookup::new(invocation, prepared, assumptions.grants);
        let decisions = deciding_sessions(inner, invocation.session).map(|session| {
            let view = inner.toolset.view_for(&session);
            let (tool, added) = (&invocation.tool, assumptions.rules);
            let policy = CallPolicy::with_added_rules(inner, &view, &session, tool, added);
            let policy = match policy {
                Ok(policy) => policy,
                Err(denied) => return denied,
            };
            let all_rules = policy.session_rules();
            let given = RuleArguments::new(invocation, prepared, arguments, context, all_rules);
            let touches_files = || subjects.iter().flatten().any(|it| it.absolute().is_some());
            if !all_rules.is_empty() && touches_files() {
                subjects
                    .iter_mut()
                    .flatten()
                    .for_each(|resource| resource.set_path_aliases(given.aliases()));
            }
            policy.decide(PolicyQuestion {
                class: invocation.definition().risk.class,
                resources: subjects.as_deref(),
                arguments: &given,
                approval_required,
                is_granted: &|resource| !is_dangerous && grants.covers(resource),
                checks_places: true,
                overrides,
            })
        });
        let decision = decisions.reduce(Decision::strictest).unwrap_or_else(unknown_call_decision);
        *touched = subjects.unwrap_or_default();
        decision
    }));
    decision.unwrap_or_else(|_| unknown_call_decision())
}

/// Returns the grantee of a grant for `resource`.
pub(super) fn grantee(definition: &Definition, resource: &Resource) -> Grantee {
    let permission = resource.permission().unwrap_or_else(|| definition.permission());
    let to = Grantee::new(definition.name.clone(), permission);
    match definition.source {
        ToolSource::Native => to,
        // A foreign tool may change under its old name, so the grant names its definition.
        _ => to.with_definition(definition_version(definition)),
    }
}

/// Returns the grantees of grants for these resources, each once.
pub(super) fn grantees(definition: &Definition, subjects: &[Resource]) -> Vec<Grantee> {
    let mut to: Vec<Grantee> = subjects.iter().map(|it| grantee(definition, it)).collect();
    to.sort();
    to.dedup();
    to
}
