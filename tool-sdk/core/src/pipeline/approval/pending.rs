//! Waits for the end of one approval request: the first answer counts, and no answer is a denial.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

use super::approver::wrap_approver;
use super::response::response_handler;
use crate::context::Session;
use crate::permission::{ApprovalOutcome, ApprovalRequest, Approver, PendingAnswer};
use crate::pipeline::inner::PipelineInner;
use crate::scheduler::PromptOrder;
use crate::tool::Definition;

/// An open approval request.
pub(crate) struct PendingApproval<'a> {
    inner: &'a PipelineInner,
    answer: PendingAnswer,
    policy_changes: watch::Receiver<u64>,
    expires: Instant,
}

impl<'a> PendingApproval<'a> {
    /// Opens the request; in a batch the prompt is shown in the `order` of the calls.
    pub(crate) fn open(
        inner: &'a Arc<PipelineInner>,
        request: ApprovalRequest,
        session: &Session,
        tool: &Definition,
        approver: &Arc<dyn Approver>,
        order: Option<Arc<dyn PromptOrder>>,
    ) -> Self {
        let asked = wrap_approver(inner, tool, approver, order.clone());
        let handler = response_handler(inner, session);
        let answer =
            inner.pending_approvals.open_request(request, session, approver, asked, handler);
        if answer.is_joined()
            && let Some(order) = order
        {
            // An equal request is open already, and its prompt stands for both.
            order.mark_prompt_shown();
        }
        let expires = Instant::now() + inner.approval_timeout;
        Self { inner, answer, policy_changes: inner.pending_approvals.policy_changes(), expires }
    }

    pub(crate) fn request(&self) -> &Arc<ApprovalRequest> {
        self.answer.request()
    }

    /// Waits for the end of the request; `None` when a grant, a rule or the mode changed, so that
    /// the call must be evaluated again.
    pub(crate) async fn wait(&mut self) -> Option<ApprovalOutcome> {
        tokio::select! {
            biased;
            settled = self.answer.wait_for_outcome() => Some(settled),
            Ok(()) = self.policy_changes.changed() => None,
            () = tokio::time::sleep_until(self.expires) => {
                self.inner.pending_approvals.finish_request(&self.answer.request().id, ApprovalOutcome::Expired);
                Some(ApprovalOutcome::Expired)
            }
        }
    }
}
