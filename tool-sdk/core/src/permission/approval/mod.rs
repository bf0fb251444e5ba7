//! Approval requests: what is asked, who answers, and what an answer means.
//!
//! An [`ApprovalRequest`] is made from the frozen call, so that what is shown is what runs. An
//! [`Approver`] shows it and answers; [`ApprovalResponse`] says how far the answer reaches.

mod approvers;
mod edit;
mod pending;
mod request;

pub use self::approvers::unanswered_response;
pub use self::approvers::{
    ApprovalReceiver, ApprovalSender, PendingRequest, ScriptedApprover, approval_channel,
};
pub(crate) use self::edit::EditableCall;
pub use self::pending::ApprovalResponseError;
pub(crate) use self::pending::{
    ApprovalOutcome, ClaimedApproval, PendingAnswer, PendingApprovals, ResponseApplication,
};
pub use self::request::{ApprovalId, ApprovalRequest, ApprovalResponse, Approver};
pub use self::request::{ApprovalInternals, CallRewrite, HookObserver};
