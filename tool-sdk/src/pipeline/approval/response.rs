//! Applies the answer to an approval request: grants are kept before the call goes on.

use std::sync::Arc;

use crate::context::Session;
use crate::permission::{
    Answering, Ask, AskId, Grant, GrantSource, Reply, ReplyError, Settled, Taken,
};
use crate::pipeline::inner::PipelineInner;
use crate::pipeline::session_files;

/// Returns the handler of an approver's answer.
pub(super) fn response_handler(
    inner: &Arc<PipelineInner>,
    session: &Session,
) -> impl FnOnce(Arc<Ask>, Option<Reply>) -> Answering + Send + use<> {
    let (inner, session) = (Arc::clone(inner), session.clone());
    move |ask, reply| {
        Box::pin(async move {
            let counted = match reply {
                Some(reply) if ask.backstage.is_change(&reply) => {
                    return inner.desk.settle(&ask.id, Settled::Changed);
                }
                Some(reply) => apply_response(&inner, &ask.id, &ask.fingerprint, reply).await,
                // An approver that panics has said no.
                None => return inner.desk.settle(&ask.id, Settled::Gone),
            };
            match counted {
                Ok(()) => {}
                Err(error @ ReplyError::NotOffered { .. }) => {
                    let message = format!("an answer does not count: {error}");
                    inner.warn(&session, &ask.tool, &ask.call, message);
                    inner.desk.settle(&ask.id, Settled::NotOffered);
                }
                Err(_) => inner.desk.settle(&ask.id, Settled::Gone),
            }
        })
    }
}

/// Applies an answer: keeps the grants, evaluates other open requests again, ends this one.
pub(crate) async fn apply_response(
    inner: &Arc<PipelineInner>,
    id: &AskId,
    shown: &str,
    reply: Reply,
) -> Result<(), ReplyError> {
    let taken = inner.desk.take(id, shown, &reply)?;
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
            inner.warn(taken.session(), &ask.tool, &ask.call, message.to_owned());
        }
        Reply::Session { patterns } => keep_for_session(inner, &taken, grants(patterns)),
        Reply::Always { patterns } => store_grants(inner, &taken, grants(patterns)).await,
        Reply::Reject => inner.desk.reject_beside(taken.session()),
        Reply::Once | Reply::RejectWith { .. } => {}
    }
    taken.settle(Settled::Reply(reply));
    Ok(())
}

/// Keeps grants until the session ends.
fn keep_for_session(inner: &PipelineInner, taken: &Taken, grants: Vec<Grant>) {
    let approvals = &inner.session_state(taken.session()).approvals;
    for grant in grants {
        approvals.add(grant);
    }
    inner.desk.reconsider();
}

/// Stores grants for always; those that cannot be stored hold for the session.
async fn store_grants(inner: &PipelineInner, taken: &Taken, grants: Vec<Grant>) {
    let ask = taken.ask();
    let error = match inner.store.clone() {
        None => "nothing is stored here".to_owned(),
        Some(store) => {
            let wanted = grants.clone();
            let mut source = GrantSource::new(&*ask.session, ask.call.to_string());
            // The user that the host names, else the place where the answer was given.
            if let Some(who) = taken.session().user().or_else(|| ask.who_answered()) {
                source = source.who(who);
            }
            let roots = session_files::roots(taken.session());
            let stored = move || store.grant_beside(&roots, wanted, source);
            match tokio::task::spawn_blocking(stored).await {
                Ok(Ok(_)) => return inner.desk.reconsider(),
                Ok(Err(error)) => error.to_string(),
                Err(defect) => defect.to_string(),
            }
        }
    };
    let message = format!("the approval holds for this session only: {error}");
    inner.warn(taken.session(), &ask.tool, &ask.call, message);
    keep_for_session(inner, taken, grants);
}
