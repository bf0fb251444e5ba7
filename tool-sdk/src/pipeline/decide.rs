//! Between the hooks and the run: rules, approvals, and whoever is asked.
//!
//! **Invariant:** the value that comes out is the very one that was judged and shown.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Checked;
use super::approved::Approved;
use super::arguments::Given;
use super::ask::{self, Answered};
use super::frame::Frame;
use super::hooks::{self, Heard};
use super::run::aborted;
use super::trace;
use super::turn::{Permit, Turn};
use crate::context::{Context, Settings};
use crate::error::ToolError;
use crate::event::EventKind;
use crate::loop_guard::Finding;
use crate::permission::{
    Action, By, Case, Decision, Floor, Grant, Grantee, Modes, Pattern, Rule, definition_hash,
};
use crate::tool::{Definition, Prepared, Source, Subject, is_strict};

/// Lets a call through that may run: gives the value that was judged, or why not.
pub(super) async fn approve(
    frame: &mut Frame<'_>,
    heard: Heard,
    turn: Option<&dyn Turn>,
) -> Result<Box<dyn Prepared>, ToolError> {
    let given_up = frame.given_up();
    tokio::select! {
        biased;
        () = given_up => Err(aborted()),
        approved = gates(frame, heard, turn) => approved,
    }
}

/// Waits for the turn of an approved call, and judges it once more: others were asked
/// meanwhile, and something may have been forbidden.
pub(super) async fn in_turn(
    frame: &mut Frame<'_>,
    turn: &dyn Turn,
    prepared: &mut dyn Prepared,
) -> Result<Permit, ToolError> {
    let permit = frame.wait(turn, prepared).await?;
    still_stands(frame, prepared)?;
    Ok(permit)
}

/// An earlier call of the batch may have changed what this one does: a yes was to the call as
/// it was shown.
fn still_stands(frame: &mut Frame<'_>, prepared: &dyn Prepared) -> Result<(), ToolError> {
    let cx = frame.context(frame.started());
    let now = judge(frame, prepared, frame.arguments(), &[], &cx);
    let now = match now.action {
        Action::Allow => return Ok(()),
        Action::Ask if frame.is_as_approved(prepared) => return Ok(()),
        Action::Ask => now.replied(Action::Deny, "what it touches changed before its turn came"),
        Action::Deny => now,
    };
    frame.record(prepared, &now, None)?;
    Err(denied(frame, now))
}

async fn gates(
    frame: &mut Frame<'_>,
    mut heard: Heard,
    turn: Option<&dyn Turn>,
) -> Result<Box<dyn Prepared>, ToolError> {
    let cx = frame.context(frame.started());
    let Answered { decision, reply, heard, halted, .. } = loop {
        strictly(frame.arguments())?;
        if let Some(opinion) = looping(frame, &*heard.prepared) {
            heard.add(opinion);
        }
        let decision = decide(frame, &heard, &cx);
        let mut answered = match decision.action {
            Action::Allow | Action::Deny => Answered::by_nobody(decision, heard),
            Action::Ask => {
                trace::stage(frame, trace::is_on(), "ask");
                ask::ask(frame, heard, decision, &cx, turn).await?
            }
        };
        // What a hook makes of a call that it was asked about is looked at like any other.
        let Some(change) = answered.change.take() else { break answered };
        heard = answered.heard;
        trace::stage(frame, trace::is_on(), "hooks");
        if let Err(error) = hooks::change(frame, change, &mut heard).await {
            return Err(frame.refused(&*heard.prepared, error));
        }
        frame.pass_on_halt(turn);
        trace::stage(frame, trace::is_on(), "decide");
    };
    let shown = heard.prepared;
    if let Some(reason) = halted {
        frame.aside().halted = Some(reason);
        frame.pass_on_halt(turn);
    }
    frame.record(&*shown, &decision, reply.as_ref())?;
    match decision.action {
        Action::Allow => {
            if reply.is_some() {
                // Somebody looked at the repeats and said yes.
                frame.allow_repeat();
            }
            if turn.is_some() {
                let alone = judge(frame, &*shown, frame.arguments(), &[], &cx);
                // Only somebody's yes lets it run.
                if alone.action == Action::Ask {
                    frame.approve_as_is(&*shown);
                }
            }
            frame.let_through(&decision);
            frame.begin_now();
            Ok(shown)
        }
        Action::Ask | Action::Deny => Err(denied(frame, decision)),
    }
}

/// What the guard against loops thinks of the call.
fn looping(frame: &mut Frame<'_>, prepared: &dyn Prepared) -> Option<Floor> {
    let Some(finding) = frame.guard(prepared) else {
        return Some(Floor { action: Action::Deny, by: By::Tool, reason: UNKNOWN.to_owned() });
    };
    let reason = finding.message(frame.definition.name.as_str())?;
    let action = match finding {
        Finding::Stopped { .. } => Action::Deny,
        _ => Action::Ask,
    };
    Some(Floor { action, by: By::Loop, reason })
}

/// What would be decided.
pub(super) async fn check(
    frame: &mut Frame<'_>,
    prepared: Box<dyn Prepared>,
) -> Result<Checked, ToolError> {
    strictly(frame.arguments())?;
    let mut heard = Heard::new(prepared);
    hooks::before(frame, &mut heard).await?;
    let cx = frame.context(frame.started());
    let (mut decision, touched) = decided(frame, &heard, &cx);
    let suggestions = match decision.action {
        Action::Ask => quietly(|| suggestions(frame, &heard, &decision, &cx, &touched)),
        Action::Allow | Action::Deny => None,
    };
    let suggestions = suggestions.unwrap_or_default();
    // All that the call touches, not only what led to the answer.
    decision.subjects = touched;
    let fingerprint = frame.fingerprint_of(&*heard.prepared, &decision.subjects, &cx);
    let view = frame.core.toolset.view_for(frame.session);
    // One that decides here may still pass over other tools; of this call it says something.
    let is_unmatched = |rule: &&Rule| !decision.rules.contains(rule);
    let unmatched_rules = view.unmatched_rules().iter().filter(is_unmatched).cloned().collect();
    Ok(Checked { decision, suggestions, fingerprint, unmatched_rules })
}

/// Decides about the call as it is now, and as the model sent it; the stricter holds.
pub(super) fn decide(frame: &Frame<'_>, heard: &Heard, cx: &Context) -> Decision {
    decided(frame, heard, cx).0
}

/// The same, with all that the call touches as it is now.
fn decided(frame: &Frame<'_>, heard: &Heard, cx: &Context) -> (Decision, Vec<Subject>) {
    let mut touched = Vec::new();
    let now = &*heard.prepared;
    let last = judging(
        frame,
        now,
        frame.arguments(),
        heard.opinions(),
        cx,
        &Assumed::NOTHING,
        &mut touched,
    );
    let decision = match heard.original() {
        Some(original) => {
            // What was denied before a hook changed it stays denied.
            let first = judge(frame, original, frame.call.arguments.text(), &[], cx);
            if first.action == Action::Deny { first } else { last }
        }
        None => last,
    };
    (decision, touched)
}

/// Whether a hook's allow lifts what is asked about the call as it is now: the same where the
/// hook looks at the ask as where it looked at the call.
pub(super) fn is_liftable(frame: &Frame<'_>, heard: &Heard, cx: &Context) -> bool {
    let opinions = [heard.opinions(), &[Floor::allow("")]].concat();
    judge(frame, &*heard.prepared, frame.arguments(), &opinions, cx).action == Action::Allow
}

/// Why a call does not run whose tool became another one while somebody thought about it.
const CHANGED: &str = "the tool is another one now than when it was called; look at it as it is \
                       now, then call it again";

/// Why a call does not run of which its tool cannot say what it is.
const UNKNOWN: &str = "what the tool says about this call could not be found out";

/// What is decided where the tool panics when it is asked about the call.
pub(super) fn unknown() -> Decision {
    Decision::new(Action::Deny, By::Tool, UNKNOWN)
}

/// Decides about one form of the call; a panic on the way is a denial.
fn judge(
    frame: &Frame<'_>,
    prepared: &dyn Prepared,
    arguments: &str,
    opinions: &[Floor],
    cx: &Context,
) -> Decision {
    judging(frame, prepared, arguments, opinions, cx, &Assumed::NOTHING, &mut Vec::new())
}

/// What is taken for granted where a call is judged.
struct Assumed<'g> {
    granted: &'g [Grant],
    /// All that the call touches, where that is known; the tool is asked else.
    touched: &'g [Subject],
}

impl Assumed<'_> {
    const NOTHING: Self = Self { granted: &[], touched: &[] };
}

/// The same with what is `assumed`; leaves in `touched` all that the call touches.
fn judging(
    frame: &Frame<'_>,
    prepared: &dyn Prepared,
    arguments: &str,
    opinions: &[Floor],
    cx: &Context,
    assumed: &Assumed<'_>,
    touched: &mut Vec<Subject>,
) -> Decision {
    let judged = catch_unwind(AssertUnwindSafe(|| {
        let mut subjects = match assumed.touched {
            [] => prepared.subjects(cx),
            known => Some(known.to_vec()),
        };
        // As they are now: a person may have thought about the call for a while.
        let view = frame.core.toolset.view_for(frame.session);
        let known = view.find(frame.definition.name.as_str()).and_then(|at| view.at(at));
        let Some((tool, policy)) = known else {
            return Decision::new(Action::Deny, By::Default, "the tool was taken away");
        };
        if !frame.is_of(tool) {
            return Decision::new(Action::Deny, By::Default, CHANGED);
        }
        let session = frame.session.policy();
        let view_rules = &policy.rules;
        let rules = session.as_ref().filter(|policy| !policy.rules.is_empty());
        let (own, all) = match rules {
            None => (None, None),
            Some(policy) => {
                let own = view_rules.with(&policy.rules.about(view.names(frame.definition)));
                (Some(own), Some(view.rules().with(&policy.rules)))
            }
        };
        let all = all.as_ref().unwrap_or_else(|| view.rules());
        let given = Given::new(frame, prepared, arguments, cx, all);
        let has_files = || subjects.iter().flatten().any(|it| it.absolute().is_some());
        if !all.is_empty() && has_files() {
            subjects.iter_mut().flatten().for_each(|subject| subject.seen_from(given.ways()));
        }
        let dangerous = prepared.is_dangerous();
        let approved = Approved::new(frame, prepared, assumed.granted);
        let decision = Case {
            own: own.as_ref().unwrap_or(view_rules),
            elsewhere: &|permission| all.about(view.names_of(permission)),
            modes: Modes::new(view.mode(), session.and_then(|policy| policy.mode)),
            trusting: Settings::of(frame.session).safe_commands,
            class: frame.definition.risk.class,
            subjects: subjects.as_deref(),
            arguments: &given,
            required: prepared.approval_required(cx),
            approved: &|subject| !dangerous && approved.covers(subject),
            writable: frame.core.writable.as_deref(),
            kept: &|path| frame.core.keeps(path),
            opinions,
        }
        .decide();
        *touched = subjects.unwrap_or_default();
        decision
    }));
    judged.unwrap_or_else(|_| unknown())
}

/// To whom an approval of `subject` is given.
pub(super) fn grantee(definition: &Definition, subject: &Subject) -> Grantee {
    let permission = subject.permission().unwrap_or_else(|| definition.permission());
    let to = Grantee::new(definition.name.clone(), permission);
    match definition.source {
        Source::Native => to,
        // A foreign tool may become another one under its old name.
        _ => to.definition(definition_hash(definition)),
    }
}

/// To whom an approval of these subjects is given, each once.
pub(super) fn grantees(definition: &Definition, subjects: &[Subject]) -> Vec<Grantee> {
    let mut to: Vec<Grantee> = subjects.iter().map(|it| grantee(definition, it)).collect();
    to.sort();
    to.dedup();
    to
}

/// What a tool's hook says; nothing when it panics.
pub(super) fn quietly<T>(say: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(say)).ok()
}

/// Arguments that two readers could understand in two ways are refused, whoever decodes
/// them.
fn strictly(arguments: &str) -> Result<(), ToolError> {
    is_strict(arguments).map_err(ToolError::invalid_args)
}

/// Of how many subjects at most an approval beyond the call is offered: nobody reads more, and a
/// prompt that leaves some out offers none anyway.
const MOST_OFFERED: usize = 256;

/// The patterns that an approval could grant, from specific to general: with all of them granted
/// the call would run. All that it touches is worked out anew where that is not known.
pub(super) fn suggestions(
    frame: &Frame<'_>,
    heard: &Heard,
    decision: &Decision,
    cx: &Context,
    touched: &[Subject],
) -> Vec<String> {
    let prepared = &*heard.prepared;
    // What is granted is shown for one permission, and no approval lifts the first four.
    let grantees = grantees(frame.definition, &decision.subjects);
    let [to] = grantees.as_slice() else { return Vec::new() };
    if decision.subjects.len() > MOST_OFFERED
        || matches!(decision.by, By::Hook | By::Loop | By::Unjudged | By::Roots)
        || prepared.is_dangerous()
        || decision.subjects.iter().any(Subject::is_opaque)
    {
        return Vec::new();
    }
    let grant = |pattern: &String| Grant::new(to.clone(), pattern.as_str());
    let is_enough = |patterns: &Vec<String>| {
        let granted: Vec<Grant> = patterns.iter().map(grant).collect();
        let (arguments, opinions) = (frame.arguments(), heard.opinions());
        let assumed = Assumed { granted: &granted, touched };
        let now = judging(frame, prepared, arguments, opinions, cx, &assumed, &mut Vec::new());
        !granted.is_empty() && now.action == Action::Allow
    };
    // Of what a tool suggests for all of the call, some may be allowed anyway.
    let lifts = |pattern: &String| {
        prepared.covered_by(pattern).unwrap_or_else(|| {
            decision.subjects.iter().any(|subject| grant(pattern).covers(to, subject))
        })
    };
    let by_tool = || prepared.suggestions().into_iter().filter(lifts).collect();
    // What a tool has to suggest is about its own permission.
    let by_subjects = || match prepared.suggests() && to.permission == frame.definition.permission()
    {
        true => offered(&decision.subjects),
        false => exactly(&decision.subjects),
    };
    let found = [&by_tool as &dyn Fn() -> Vec<String>, &by_subjects];
    found.into_iter().map(|find| find()).find(is_enough).unwrap_or_default()
}

/// The subjects as they are; none where one of them cannot be written as a pattern, which would
/// leave the rest without effect.
fn exactly(subjects: &[Subject]) -> Vec<String> {
    let exact = |subject: &Subject| match subject.text() {
        "*" => Some("*".to_owned()),
        text => Pattern::exactly(text).map(String::from),
    };
    subjects.iter().map(exact).collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// What may be granted where only one of the subjects, or several that are the same, led to
/// the ask.
fn offered(subjects: &[Subject]) -> Vec<String> {
    let Some((first, rest)) = subjects.split_first() else { return Vec::new() };
    match rest.iter().all(|other| other.text() == first.text()) {
        true => first.offers().to_vec(),
        false => Vec::new(),
    }
}

/// The failure of a call that may not run.
pub(super) fn denied(frame: &Frame<'_>, decision: Decision) -> ToolError {
    // What the tool itself refuses is a failure like any other.
    if decision.by == By::Tool
        && let Some(error) = decision.subjects.iter().find_map(Subject::refusal)
    {
        return error;
    }
    let name = &frame.definition.name;
    let error = ToolError::denied(format_args!("`{name}` may not run: {}", decision.reason));
    frame.event(|| EventKind::Denied(decision.clone().into()));
    match decision.by {
        By::Nobody => error.hint(how_to_allow(frame, &decision)),
        By::Rule | By::Mode | By::Roots => {
            error.hint("do not look for a way around it; go on without, or say what is needed")
        }
        _ => error,
    }
}

/// What the person behind the host could do about an ask that nobody answers.
fn how_to_allow(frame: &Frame<'_>, decision: &Decision) -> String {
    let of = |subject: &Subject| {
        subject.permission().unwrap_or_else(|| frame.definition.permission()).to_owned()
    };
    let is_locked = decision.rules.iter().any(|rule| rule.locked);
    match decision.asked_by {
        Some(By::Default | By::Rule | By::Mode | By::Tool) if !is_locked => {}
        // What else asks is lifted by no rule.
        _ => return "nobody can be asked here, and no rule lifts this; try another way".to_owned(),
    }
    if let [one] = decision.subjects.as_slice()
        && one.text() != "*"
        && !one.is_opaque()
    {
        let (permission, text) = (of(one), one.text());
        return format!(
            "nobody can be asked here; the rule `allow {permission}({text})` would allow it"
        );
    }
    // What cannot be undone needs a rule that says exactly that, and where it is not understood
    // what is done to what, none can.
    if decision.subjects.iter().any(|subject| subject.is_dangerous() && subject.is_opaque()) {
        return "nobody can be asked here, and no rule lifts this; try another way".to_owned();
    }
    let is_exact = |subject: &Subject| {
        subject.is_dangerous() || !subject.is_opaque() && says_exactly(&of(subject), subject.text())
    };
    // Of which permissions everything has to be allowed, because no rule says less.
    let whole = decision.subjects.iter().filter(|subject| !is_exact(subject)).map(of);
    let whole: HashSet<String> = whole.collect();
    let rule = |subject: &Subject| {
        let permission = of(subject);
        match subject.is_dangerous() || !whole.contains(&permission) {
            true => format!("{permission}({})", subject.text()),
            false => permission,
        }
    };
    let mut rules: Vec<String> = decision.subjects.iter().map(rule).collect();
    rules.sort();
    rules.dedup();
    let (named, more) = rules.split_at(rules.len().min(MOST_NAMED));
    let named = named.join("` and `allow ");
    match (rules.len(), more.len()) {
        (0, _) => "nobody can be asked here".to_owned(),
        (1, _) => format!("nobody can be asked here; the rule `allow {named}` would allow it"),
        (_, 0) => format!("nobody can be asked here; the rules `allow {named}` would allow it"),
        (_, more) => format!(
            "nobody can be asked here; the rules `allow {named}` and {more} more, one for each thing \
             that it touches, would allow it"
        ),
    }
}

/// How many rules are written out of those that would allow a call.
const MOST_NAMED: usize = 5;

/// Whether a rule can be written that allows this text of the permission; as a pattern it may
/// start in a home folder, or be the name of an argument.
fn says_exactly(permission: &str, text: &str) -> bool {
    let rule = Rule::parse(Action::Allow, &format!("{permission}({text})"));
    rule.is_ok_and(|rule| {
        rule.argument.is_none()
            && !rule.pattern.is_any()
            && rule.pattern.as_str() == text
            && rule.pattern.matches_literally(text)
    })
}
