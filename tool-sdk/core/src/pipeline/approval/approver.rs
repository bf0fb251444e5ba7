//! Wraps the approver of a call: hooks answer first, and in a batch prompts come in the order of
//! the calls.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use crate::hook::DynHook;
use crate::permission::{ApprovalRequest, ApprovalResponse, Approver};
use crate::pipeline::inner::PipelineInner;
use crate::scheduler::PromptOrder;
use crate::tool::Definition;
use futures_util::future::BoxFuture;

/// Wraps `approver` in the hooks that see calls of `tool`, and in its place in `order`.
pub(super) fn wrap_approver(
    inner: &PipelineInner,
    tool: &Definition,
    approver: &Arc<dyn Approver>,
    order: Option<Arc<dyn PromptOrder>>,
) -> Arc<dyn Approver> {
    let hooks = inner.current_hooks();
    let hooks = hooks.iter().filter(|hook| hook.applies_to(tool));
    let hooks: Vec<_> = hooks.map(|hook| Arc::clone(&hook.hook)).collect();
    let approver = Arc::clone(approver);
    let approver = match &order {
        None => approver,
        Some(order) => Arc::new(OrderedApprover { order: Arc::clone(order), approver }),
    };
    match hooks.is_empty() {
        true => approver,
        false => Arc::new(HookedApprover { hooks, approver, order }),
    }
}

/// Wraps an approver in hooks. They are found when the request is made, so that a panic of a hook
/// is a denial.
struct HookedApprover {
    /// In the order in which they are called.
    hooks: Vec<Arc<dyn DynHook>>,
    approver: Arc<dyn Approver>,
    order: Option<Arc<dyn PromptOrder>>,
}

impl Approver for HookedApprover {
    fn request_approval(
        &self,
        request: Arc<ApprovalRequest>,
    ) -> BoxFuture<'static, Option<ApprovalResponse>> {
        let in_front = |inner, hook: &Arc<dyn DynHook>| Arc::clone(hook).wrap_approver(inner);
        let approver = self.hooks.iter().rev().fold(Arc::clone(&self.approver), in_front);
        let asking = approver.request_approval(request);
        let Some(order) = self.order.clone() else { return asking };
        Box::pin(async move {
            let reply = asking.await;
            // A hook may answer without showing a prompt.
            order.mark_prompt_shown();
            reply
        })
    }
}

/// An approver that waits until the prompts of earlier calls were shown.
struct OrderedApprover {
    order: Arc<dyn PromptOrder>,
    approver: Arc<dyn Approver>,
}

impl Approver for OrderedApprover {
    fn request_approval(
        &self,
        request: Arc<ApprovalRequest>,
    ) -> BoxFuture<'static, Option<ApprovalResponse>> {
        let (order, approver) = (Arc::clone(&self.order), Arc::clone(&self.approver));
        Box::pin(async move {
            Arc::clone(&order).wait_for_turn().await;
            let mut asking = approver.request_approval(request);
            // An approver that shows one prompt after the other has queued it after one poll.
            let first = poll_fn(|task| Poll::Ready(asking.as_mut().poll(task))).await;
            order.mark_prompt_shown();
            match first {
                Poll::Ready(reply) => reply,
                Poll::Pending => asking.await,
            }
        })
    }
}
