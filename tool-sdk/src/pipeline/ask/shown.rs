//! What is shown to whoever is asked: made from the value that will run.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::context::Context;
use crate::error::ToolError;
use crate::permission::{Ask, AskId, Backstage, By, Decision};
use crate::pipeline::decide::{grantees, is_liftable, suggestions};
use crate::pipeline::frame::Frame;
use crate::pipeline::hooks::Heard;
use crate::pipeline::witness::Subscribers;
use crate::tool::Prepared;

/// The ask for a call on which nobody has decided yet. A panic of the tool is left to the caller:
/// what cannot be shown cannot be said yes to.
pub(super) fn make(
    frame: &Frame<'_>,
    heard: &Heard,
    decision: &Decision,
    cx: &Context,
) -> Result<Ask, ToolError> {
    let definition = frame.definition;
    let prepared = &*heard.prepared;
    let display = &definition.display;
    let original = heard.original().is_some();
    let grantees = grantees(definition, &decision.subjects);
    let witness = Subscribers::of(frame.shared, frame.session, &definition.name, frame.id);
    let mut ask = Ask {
        id: new_id()?,
        call: frame.id.clone(),
        session: frame.session.id().into(),
        agent: frame.session.agent().map(str::to_owned),
        tool: definition.name.clone(),
        display: Arc::clone(display),
        source: definition.source.clone(),
        risk: definition.risk,
        permission: match grantees.as_slice() {
            [one] => one.permission.clone(),
            _ => definition.permission().to_owned(),
        },
        arguments: display.masked(frame.arguments()),
        original: original.then(|| display.masked(frame.call.arguments.text())),
        summary: prepared.summary(),
        subjects: decision.subjects.clone(),
        grantees,
        backstage: Backstage::new(&definition.aliases, witness)
            .liftable(is_liftable(frame, heard, cx))
            .changeable(!heard.was_changed()),
        suggestions: suggestions(frame, heard, decision, cx, &[]),
        by: decision.by,
        reason: decision.reason.clone().into_owned(),
        rules: decision.rules.clone(),
        preview: preview(frame, prepared, decision, cx)?,
        dangerous: prepared.is_dangerous(),
        fingerprint: frame.fingerprint(prepared).into(),
        expires_in: frame.core.ask_timeout,
    };
    if !ask.offers_always() {
        ask.suggestions.clear();
    }
    Ok(ask)
}

/// What a screen shows of what the call would do. One that says that it cannot run ends here, as it
/// would after a yes; but not where people want to see even what only looks, or that it repeats.
fn preview(
    frame: &Frame<'_>,
    prepared: &dyn Prepared,
    decision: &Decision,
    cx: &Context,
) -> Result<Option<Value>, ToolError> {
    match prepared.preview(cx) {
        Err(error) if decision.by == By::Loop || frame.asks_about_looking() => {
            Ok(Some(json!({ "error": error.to_string() })))
        }
        shown => shown,
    }
}

/// 128 random bits; without them nobody could be asked safely.
pub(in crate::pipeline) fn new_id() -> Result<AskId, ToolError> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|error| {
        ToolError::internal("nobody can be asked: the system has no random numbers").source(error)
    })?;
    Ok(AskId::new(&format!("{:032x}", u128::from_be_bytes(bits))))
}
