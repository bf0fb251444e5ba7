//! Redirects of a page: each is a resource of its own.
//!
//! Within the origin (scheme, host and port) that the user allowed, a redirect is followed unless a
//! rule denies it or asks about it. To another origin it needs what a call needs: a rule, a grant, or
//! the user.

use tool_sdk::net::{RedirectDecision, RedirectHop, RedirectJudge};
use tool_sdk::{AccessDecision, Context};

use super::url_resource::redirect_access;

/// Judges the redirects of one call.
pub(super) struct PermissionJudge<'a> {
    pub(super) cx: &'a Context,
    /// The permission of the tool.
    pub(super) permission: &'static str,
}

impl RedirectJudge for PermissionJudge<'_> {
    async fn judge_redirect(&self, hop: RedirectHop<'_>) -> RedirectDecision {
        let is_same_origin = hop.from.origin() == hop.to.origin();
        let access = redirect_access(hop.to);
        let is_allowed = match self.cx.evaluate_permission(self.permission, access.clone()) {
            AccessDecision::Allowed => true,
            AccessDecision::NeedsApproval if is_same_origin => true,
            AccessDecision::NeedsApproval | AccessDecision::AskedByRule => {
                self.cx.request_permission(self.permission, access).await
            }
            AccessDecision::Denied => false,
        };
        if is_allowed { RedirectDecision::Follow } else { RedirectDecision::Stop }
    }
}
