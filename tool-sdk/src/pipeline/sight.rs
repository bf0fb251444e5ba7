//! What a running tool may show of the files that it meets: the rules' answer, without
//! asking anybody.

use std::sync::Arc;

use super::core::Core;
use super::files;
use crate::context::{Context, Sight, Visibility};
use crate::permission::{Action, Grantee, Mode, Names};
use crate::tool::Subject;

/// What the rules let the call show under `permission`.
///
/// A file that somebody would have to be asked about is left out like one that is denied,
/// unless that was approved before; but only of the former it is told that it is there. A rule that asks about everything was answered when the
/// call was let through.
pub(super) fn sight(core: &Arc<Core>, cx: &Context, permission: &str) -> Sight {
    let view = core.toolset.view_for(cx.session());
    let policy = cx.session().policy();
    let rules = match &policy {
        Some(policy) => view.rules().with(&policy.rules),
        None => view.rules().clone(),
    };
    let own = [permission, cx.tool().as_str()];
    let names = match view.definition(cx.tool().as_str()) {
        Some(definition) => Names::from(definition).and(own),
        None => Names::from(&own),
    };
    let rules = rules.about(names);
    if rules.rules().iter().all(|rule| rule.action == Action::Allow) {
        return Sight::EVERYTHING;
    }
    let mode = policy.as_ref().and_then(|policy| policy.mode);
    let mode = mode.map_or(view.mode(), |mode| mode.stricter(view.mode()));
    let to = Grantee::new(cx.tool().clone(), permission);
    let (core, session) = (Arc::clone(core), cx.session().clone());
    let roots = files::several_roots(&session);
    let stored = core.stored(cx.session());
    Sight::of(move |asked, absolute| {
        let mut subject = Subject::path(asked, absolute);
        subject.seen_from(&roots);
        let Some(rule) = rules.decisive(&subject, &|_| None, true) else {
            return Visibility::Shown;
        };
        let is_answered = || {
            rule.pattern.is_any()
                || mode == Mode::Bypass
                || core.kept(&session).approvals.covers(&to, &subject)
                || stored.as_ref().is_some_and(|stored| stored.covers(&to, &subject))
        };
        match rule.action {
            Action::Allow => Visibility::Shown,
            Action::Deny => Visibility::Hidden,
            Action::Ask if is_answered() => Visibility::Shown,
            Action::Ask => Visibility::OnRequest,
        }
    })
}
