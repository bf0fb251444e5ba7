//! A call that a person approved with other arguments: the call is judged again, as if the model
//! had sent the new arguments.
//!
//! Hooks, rules and the loop guard see the new call, and a new approval request shows it to hooks
//! and subscribers. The person who edited the call has answered that request already, unless the
//! call is not the one that the person wrote, or is dangerous and the one that was shown was not.

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::audit::ArgumentEdit;
use crate::call::RawArgs;
use crate::permission::{ApprovalRequest, ApprovalResponse, Approver};
use crate::pipeline::invocation::{DecodedCall, Invocation};
use crate::tool::InvalidArgs;

/// The new arguments of a call, and who approved the call with them.
pub(crate) struct ApprovedEdit {
    pub(crate) arguments: RawArgs<'static>,
    pub(crate) audit: ArgumentEdit,
    was_dangerous: bool,
}

impl ApprovedEdit {
    /// Returns the edit of the call that `request` shows.
    pub(super) fn new(
        invocation: &Invocation<'_>,
        request: &ApprovalRequest,
        edited: &Value,
    ) -> Result<Self, InvalidArgs> {
        let arguments = match request.internals.editable() {
            Some(call) => call.edit(edited)?,
            None => return Err(InvalidArgs::new("", "the arguments cannot be edited")),
        };
        let audit = ArgumentEdit {
            who: request.responder().map(str::to_owned),
            from: request.arguments.clone(),
            to: invocation.label.display.mask_arguments(arguments.text()),
        };
        Ok(Self { arguments, audit, was_dangerous: request.dangerous })
    }

    /// Returns an approver that gives the person's answer, if the person answered for this call.
    pub(super) fn approver(
        &self,
        invocation: &Invocation<'_>,
        call: &DecodedCall,
    ) -> Option<Arc<dyn Approver>> {
        let is_same = invocation.arguments() == self.arguments.text();
        let is_known = self.was_dangerous || !call.prepared.is_dangerous();
        let who = self.audit.who.clone();
        (is_same && is_known).then(|| Arc::new(EditorApprover { who }) as _)
    }
}

/// Approves the call for the person who edited it.
struct EditorApprover {
    who: Option<String>,
}

impl Approver for EditorApprover {
    fn request_approval(
        &self,
        request: Arc<ApprovalRequest>,
    ) -> BoxFuture<'static, Option<ApprovalResponse>> {
        if let Some(who) = &self.who {
            request.set_responder(who.clone());
        }
        Box::pin(ready(Some(ApprovalResponse::Once)))
    }
}
