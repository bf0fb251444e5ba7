//! Waits for the end of one approval request: the first answer counts, and silence is a denial.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

use super::approver::wrap_approver;
use super::response::response_handler;
use crate::context::Session;
use crate::permission::{Approver, Ask, Settled, Waiting};
use crate::pipeline::inner::PipelineInner;
use crate::scheduler::PromptOrder;
use crate::tool::Definition;

/// An open approval request.
pub(crate) struct PendingApproval<'a> {
    inner: &'a PipelineInner,
    waiting: Waiting,
    policy_changes: watch::Receiver<u64>,
    expires: Instant,
}

impl<'a> PendingApproval<'a> {
    /// Opens the request; in a batch the prompt is shown in the `order` of the calls.
    pub(crate) fn open(
        inner: &'a Arc<PipelineInner>,
        request: Ask,
        session: &Session,
        tool: &Definition,
        approver: &Arc<dyn Approver>,
        order: Option<Arc<dyn PromptOrder>>,
    ) -> Self {
        let asked = wrap_approver(inner, tool, approver, order.clone());
        let handler = response_handler(inner, session);
        let waiting = inner.desk.put_up(request, session, approver, asked, handler);
        if waiting.is_joined()
            && let Some(order) = order
        {
            // An equal request is open already, and its prompt stands for both.
            order.mark_prompt_shown();
        }
        let expires = Instant::now() + inner.ask_timeout;
        Self { inner, waiting, policy_changes: inner.desk.epoch(), expires }
    }

    pub(crate) fn request(&self) -> &Arc<Ask> {
        self.waiting.ask()
    }

    /// Waits for the end of the request; `None` when a grant, a rule or the mode changed, so that
    /// the call must be evaluated again.
    pub(crate) async fn wait(&mut self) -> Option<Settled> {
        tokio::select! {
            biased;
            settled = self.waiting.settled() => Some(settled),
            Ok(()) = self.policy_changes.changed() => None,
            () = tokio::time::sleep_until(self.expires) => {
                self.inner.desk.settle(&self.waiting.ask().id, Settled::Expired);
                Some(Settled::Expired)
            }
        }
    }
}
