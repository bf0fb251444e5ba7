//! Making an answer count: what was granted is kept before anybody hears of it.

use std::sync::Arc;

use crate::context::Session;
use crate::permission::{
    Answering, Ask, AskId, Grant, GrantSource, Reply, ReplyError, Settled, Taken,
};
use crate::pipeline::core::Core;
use crate::pipeline::files;

/// What an approver's answer leads to.
pub(super) fn answering(
    core: &Arc<Core>,
    session: &Session,
) -> impl FnOnce(Arc<Ask>, Option<Reply>) -> Answering + Send + use<> {
    let (core, session) = (Arc::clone(core), session.clone());
    move |ask, reply| {
        Box::pin(async move {
            let counted = match reply {
                Some(reply) if ask.backstage.is_change(&reply) => {
                    return core.desk.settle(&ask.id, Settled::Changed);
                }
                Some(reply) => answer(&core, &ask.id, &ask.fingerprint, reply).await,
                // An approver that panics has said no.
                None => return core.desk.settle(&ask.id, Settled::Gone),
            };
            match counted {
                Ok(()) => {}
                Err(error @ ReplyError::NotOffered { .. }) => {
                    let message = format!("an answer does not count: {error}");
                    core.warn(&session, &ask.tool, &ask.call, message);
                    core.desk.settle(&ask.id, Settled::NotOffered);
                }
                Err(_) => core.desk.settle(&ask.id, Settled::Gone),
            }
        })
    }
}

/// Makes an answer count: approvals are kept and siblings looked at before anybody hears.
pub(in crate::pipeline) async fn answer(
    core: &Arc<Core>,
    id: &AskId,
    shown: &str,
    reply: Reply,
) -> Result<(), ReplyError> {
    let taken = core.desk.take(id, shown, &reply)?;
    let grants = |patterns: &[String]| {
        let to = &taken.ask().grantees;
        patterns
            .iter()
            .flat_map(|pattern| to.iter().map(|to| Grant::new(to.clone(), pattern.clone())))
            .collect::<Vec<_>>()
    };
    match &reply {
        Reply::Session { .. } | Reply::Always { .. } if !reply.names_patterns() => {
            let message = "the approval names no pattern, so it holds for this call only";
            let ask = taken.ask();
            core.warn(taken.session(), &ask.tool, &ask.call, message.to_owned());
        }
        Reply::Session { patterns } => keep(core, &taken, grants(patterns)),
        Reply::Always { patterns } => store(core, &taken, grants(patterns)).await,
        Reply::Reject => core.desk.reject_beside(taken.session()),
        Reply::Once | Reply::RejectWith { .. } => {}
    }
    taken.settle(Settled::Reply(reply));
    Ok(())
}

/// Keeps approvals until the session ends.
fn keep(core: &Core, taken: &Taken, grants: Vec<Grant>) {
    let approvals = &core.kept(taken.session()).approvals;
    for grant in grants {
        approvals.add(grant);
    }
    core.desk.reconsider();
}

/// Keeps approvals for always; what cannot be stored holds for the session.
async fn store(core: &Core, taken: &Taken, grants: Vec<Grant>) {
    let ask = taken.ask();
    let error = match core.store.clone() {
        None => "nothing is stored here".to_owned(),
        Some(store) => {
            let wanted = grants.clone();
            let mut source = GrantSource::new(&*ask.session, ask.call.to_string());
            // AP3: the user, where the host says who that is; else what they answered at.
            if let Some(who) = taken.session().user().or_else(|| ask.who_answered()) {
                source = source.who(who);
            }
            let roots = files::roots(taken.session());
            let stored = move || store.grant_beside(&roots, wanted, source);
            match tokio::task::spawn_blocking(stored).await {
                Ok(Ok(_)) => return core.desk.reconsider(),
                Ok(Err(error)) => error.to_string(),
                Err(defect) => defect.to_string(),
            }
        }
    };
    let message = format!("the approval holds for this session only: {error}");
    core.warn(taken.session(), &ask.tool, &ask.call, message);
    keep(core, taken, grants);
}
