//! Builds the hooks, the approver and the forms of the environment.

use std::pin::Pin;
use std::sync::Arc;

use tool_sdk_core::{ApprovalRequest, ApprovalResponse, Approver, Session};
use tool_sdk_hooks::ExternalHooks;

use crate::settings::{HooksConfig, PromptMode};
use crate::terminal::{TerminalApprover, TerminalForms, TerminalLock};
use crate::{Io, style};

/// Returns the configured hooks, and prints their warnings.
pub(super) fn build_hooks(
    configured: Option<&HooksConfig>,
    io: &mut Io<'_>,
) -> Option<Arc<ExternalHooks>> {
    let HooksConfig { commands, warnings } = configured?;
    for warning in warnings {
        io.print_stderr(style::sanitize_text(&format!("warning: hooks.{warning}")));
    }
    (!commands.is_empty()).then(|| Arc::new(commands.clone()))
}

/// Returns the approver for the prompt mode; `None` denies every call that needs approval.
pub(super) fn build_approver(
    answers: PromptMode,
    lock: &TerminalLock,
    io: &Io<'_>,
) -> Option<Arc<dyn Approver>> {
    match (answers, &io.console) {
        (PromptMode::AssumeYes, _) => Some(Arc::new(ApproveAll)),
        (PromptMode::Terminal, Some(console)) => {
            let style = style::TextStyle::for_stderr(io);
            Some(Arc::new(TerminalApprover::new(Arc::clone(console), lock.clone(), style)))
        }
        (PromptMode::Terminal, None) | (PromptMode::NoInput, _) => None,
    }
}

/// Lets the user fill in forms of tools at the terminal.
pub(super) fn with_terminal_forms(
    session: Session,
    answers: PromptMode,
    lock: &TerminalLock,
    io: &Io<'_>,
) -> Session {
    match (answers, &io.console) {
        (PromptMode::Terminal, Some(console)) => {
            let forms = TerminalForms::new(Arc::clone(console), lock.clone());
            session.with_inquiry_handler(Arc::new(forms))
        }
        _ => session,
    }
}

/// Approves every call once.
struct ApproveAll;

impl Approver for ApproveAll {
    fn request_approval(
        &self,
        ask: Arc<ApprovalRequest>,
    ) -> Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
        ask.set_responder("--yes");
        ask.mark_unread();
        Box::pin(std::future::ready(Some(ApprovalResponse::Once)))
    }
}
