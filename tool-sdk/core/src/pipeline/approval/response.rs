//! Applies the answer to an approval request: grants are stored before the call continues.

use std::sync::Arc;

use crate::context::Session;
use crate::permission::{
    ApprovalId, ApprovalOutcome, ApprovalRequest, ApprovalResponse, ApprovalResponseError,
    ClaimedApproval, Grant, GrantSource, ResponseApplication,
};
use crate::pipeline::inner::PipelineInner;
use crate::pipeline::session_files;

/// Returns the handler of an approver's answer.
pub(super) fn response_handler(
    inner: &Arc<PipelineInner>,
    session: &Session,
) -> impl FnOnce(Arc<ApprovalRequest>, Option<ApprovalResponse>) -> ResponseApplication + Send + use<>
{
    let (inner, session) = (Arc::clone(inner), session.clone());
    move |request, response| {
        Box::pin(async move {
            let counted = match response {
                Some(response) if request.internals.is_rewrite_response(&response) => {
                    return inner
                        .pending_approvals
                        .finish_request(&request.id, ApprovalOutcome::Superseded);
                }
                Some(response) => {
                    apply_response(&inner, &request.id, &request.fingerprint, response, None).await
                }
                // A panic of the approver is a rejection.
                None => {
                    return inner
                        .pending_approvals
                        .finish_request(&request.id, ApprovalOutcome::Cancelled);
                }
            };
            match counted {
                Ok(()) => {}
                Err(
                    error @ (ApprovalResponseError::NotOffered { .. }
                    | ApprovalResponseError::InvalidArguments { .. }),
                ) => {
                    let message = format!("an answer was not accepted: {error}");
                    inner.warn(&session, &request.tool, &request.origin(), message);
                    inner
                        .pending_approvals
                        .finish_request(&request.id, ApprovalOutcome::NotOffered);
                }
                Err(_) => {
                    inner.pending_approvals.finish_request(&request.id, ApprovalOutcome::Cancelled)
                }
            }
        })
    }
}

/// Applies an answer: stores the grants, makes other open requests evaluate their permissions
/// again, and ends this request.
pub(crate) async fn apply_response(
    inner: &Arc<PipelineInner>,
    id: &ApprovalId,
    shown: &str,
    response: ApprovalResponse,
    who: Option<&str>,
) -> Result<(), ApprovalResponseError> {
    if let ApprovalResponse::Edited { arguments } = &response {
        inner.pending_approvals.check_edit(id, shown, arguments)?;
    }
    let taken = inner.pending_approvals.claim(id, shown, &response)?;
    if let Some(who) = who {
        taken.request().set_responder(who.to_owned());
    }
    let grants = |patterns: &[String]| {
        let to = &taken.request().grantees;
        patterns
            .iter()
            .flat_map(|pattern| to.iter().map(|to| Grant::new(to.clone(), pattern.clone())))
            .collect::<Vec<_>>()
    };
    match &response {
        ApprovalResponse::Session { .. } | ApprovalResponse::Always { .. }
            if !response.has_patterns() =>
        {
            let message = "the approval names no pattern, so it holds for this call only";
            let request = taken.request();
            inner.warn(taken.session(), &request.tool, &request.origin(), message.to_owned());
        }
        ApprovalResponse::Session { patterns } => keep_for_session(inner, &taken, grants(patterns)),
        ApprovalResponse::Always { patterns } => {
            store_grants(inner, &taken, grants(patterns)).await
        }
        ApprovalResponse::Reject => inner.pending_approvals.reject_session(taken.session()),
        ApprovalResponse::Once
        | ApprovalResponse::Edited { .. }
        | ApprovalResponse::RejectWith { .. } => {}
    }
    taken.finish(ApprovalOutcome::Response(response));
    Ok(())
}

/// Grants until the session ends.
fn keep_for_session(inner: &PipelineInner, taken: &ClaimedApproval, grants: Vec<Grant>) {
    let approvals = &inner.session_state(taken.session()).grants;
    for grant in grants {
        approvals.add(grant);
    }
    inner.pending_approvals.notify_policy_change();
}

/// Stores grants for always; those that cannot be stored hold for the session.
async fn store_grants(inner: &PipelineInner, taken: &ClaimedApproval, grants: Vec<Grant>) {
    let request = taken.request();
    let error = match inner.grant_store.clone() {
        None => "there is no grant store".to_owned(),
        Some(store) => {
            let wanted = grants.clone();
            let mut source = GrantSource::new(&*request.session, request.call.to_string());
            // The user that the host names, or else the approver's name for the responder.
            if let Some(who) = taken.session().user().or_else(|| request.responder()) {
                source = source.with_responder(who);
            }
            let roots = session_files::roots(taken.session());
            let stored = move || store.add_grants_with_roots(&roots, wanted, source);
            match tokio::task::spawn_blocking(stored).await {
                Ok(Ok(_)) => return inner.pending_approvals.notify_policy_change(),
                Ok(Err(error)) => error.to_string(),
                Err(defect) => defect.to_string(),
            }
        }
    };
    let message = format!("the approval holds for this session only: {error}");
    inner.warn(taken.session(), &request.tool, &request.origin(), message);
    keep_for_session(inner, taken, grants);
}
