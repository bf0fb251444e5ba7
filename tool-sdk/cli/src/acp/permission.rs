//! Approvals by the user of the editor.
//!
//! What the user sees is made from the frozen call: the same prompt that a terminal shows, and the
//! diff of the preview beside it.
//!
//! **Invariant:** only an option that was offered approves. A cancelled request, an error, and a lost
//! connection are rejections.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, ToolCallContent,
};
use tokio::sync::oneshot;
use tool_sdk_core::internal::unanswered_response;
use tool_sdk_core::{
    Action, ApprovalRequest, ApprovalResponse, Approver, Pipeline, Rule, RuleScope, Ruleset,
};

use super::tool_calls::fence_text;
use super::update_queue::{SessionEvent, UpdateSender};

const ALLOW_ONCE: &str = "allow_once";
const ALLOW_SESSION: &str = "allow_session";
const ALLOW_ALWAYS: &str = "allow_always";
const REJECT_ONCE: &str = "reject_once";
const REJECT_ALWAYS: &str = "reject_always";

/// Asks the user of the editor.
pub(super) struct AcpApprover {
    pub(super) updates: UpdateSender,
}

impl Approver for AcpApprover {
    fn request_approval(
        &self,
        ask: Arc<ApprovalRequest>,
    ) -> Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
        let (answer, answered) = oneshot::channel();
        self.updates.push(SessionEvent::Approval { ask: Arc::clone(&ask), answer });
        Box::pin(async move {
            let lost = || unanswered_response(&ask, "the editor did not answer the request");
            Some(answered.await.unwrap_or_else(|_| lost()))
        })
    }
}

/// Returns the options for a request. Those that reach further than the call are only offered where
/// the request has patterns for them.
pub(super) fn permission_options(ask: &ApprovalRequest) -> Vec<PermissionOption> {
    use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};

    let option = |id: &'static str, name: &str, kind| PermissionOption::new(id, name, kind);
    let (once, reject) =
        (option(ALLOW_ONCE, "Allow", AllowOnce), option(REJECT_ONCE, "Reject", RejectOnce));
    if !ask.offers_always() {
        return vec![once, reject];
    }
    vec![
        once,
        option(ALLOW_SESSION, "Allow in this session", AllowAlways),
        option(ALLOW_ALWAYS, "Always allow", AllowAlways),
        reject,
        option(REJECT_ALWAYS, "Reject in this session", RejectAlways),
    ]
}

/// Returns what the user reads before answering. The diff of the preview stands beside it when the
/// client shows it.
pub(super) fn permission_content(ask: &ApprovalRequest, has_diff: bool) -> ToolCallContent {
    let prompt = if has_diff { ask.prompt_beside_diff() } else { ask.prompt() };
    ToolCallContent::from(fence_text(&prompt.text))
}

/// Converts the user's answers into approval responses.
#[derive(Debug)]
pub(super) struct PermissionAnswers {
    pipeline: Pipeline,
    /// Held while a rule is added, so that no other answer replaces it.
    adding_rules: Mutex<()>,
}

impl PermissionAnswers {
    pub(super) fn new(pipeline: Pipeline) -> Self {
        Self { pipeline, adding_rules: Mutex::default() }
    }

    /// Converts the outcome of a request. `None` is a request that failed.
    pub(super) fn convert(
        &self,
        ask: &ApprovalRequest,
        outcome: Option<&RequestPermissionOutcome>,
    ) -> ApprovalResponse {
        let selected = match outcome {
            Some(RequestPermissionOutcome::Selected(selected)) => &*selected.option_id.0,
            Some(_) => return unanswered_response(ask, "the user cancelled the request"),
            None => return unanswered_response(ask, "the editor did not answer the request"),
        };
        ask.set_responder("editor");
        // The user wrote nothing. The model goes on with the other calls.
        let rejected = || ApprovalResponse::RejectWith { feedback: String::new() };
        let patterns = || ask.suggestions.clone();
        match selected {
            ALLOW_ONCE => ApprovalResponse::Once,
            REJECT_ONCE => rejected(),
            ALLOW_SESSION if ask.offers_always() => {
                ApprovalResponse::Session { patterns: patterns() }
            }
            ALLOW_ALWAYS if ask.offers_always() => {
                ApprovalResponse::Always { patterns: patterns() }
            }
            REJECT_ALWAYS if ask.offers_always() => {
                self.deny_in_session(ask);
                rejected()
            }
            _ => unanswered_response(ask, "the editor selected an option that was not offered"),
        }
    }

    /// Denies from now on what an approval for the session would have granted.
    fn deny_in_session(&self, ask: &ApprovalRequest) {
        let _adding = self.adding_rules.lock().unwrap_or_else(PoisonError::into_inner);
        let denied = ask.suggestions.iter().map(|pattern| {
            Rule::new(Action::Deny, ask.permission.as_str(), pattern.as_str())
                .scope(RuleScope::Session)
                .origin("the user of the editor")
        });
        let view = self.pipeline.toolset().view();
        self.pipeline.set_rules(view.rules().merged_with(&Ruleset::new(denied)));
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::SelectedPermissionOutcome;
    use tool_sdk_core::{CallId, Registry, ToolName};

    use super::*;

    fn request(suggestions: &[&str]) -> ApprovalRequest {
        let name = ToolName::new("press").unwrap();
        let mut ask = ApprovalRequest::new("a1", CallId::generate(), name);
        ask.suggestions = suggestions.iter().map(|&it| it.to_owned()).collect();
        ask
    }

    fn convert(ask: &ApprovalRequest, option: &'static str) -> ApprovalResponse {
        let answers = PermissionAnswers::new(Pipeline::new(Registry::default()));
        let selected = RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option));
        answers.convert(ask, Some(&selected))
    }

    #[test]
    fn each_option_has_the_reach_that_it_names() {
        let ask = request(&["a.txt"]);
        let patterns = vec!["a.txt".to_owned()];
        let options = permission_options(&ask);
        let ids: Vec<&str> = options.iter().map(|option| &*option.option_id.0).collect();
        assert_eq!(ids, [ALLOW_ONCE, ALLOW_SESSION, ALLOW_ALWAYS, REJECT_ONCE, REJECT_ALWAYS]);
        assert_eq!(convert(&ask, ALLOW_ONCE), ApprovalResponse::Once);
        assert_eq!(
            convert(&ask, ALLOW_SESSION),
            ApprovalResponse::Session { patterns: patterns.clone() }
        );
        assert_eq!(convert(&ask, ALLOW_ALWAYS), ApprovalResponse::Always { patterns });
        assert!(!convert(&ask, REJECT_ONCE).is_approval());
        assert_eq!(ask.responder(), Some("editor"));
    }

    #[test]
    fn what_was_not_offered_is_a_rejection() {
        let ask = request(&[]);
        assert_eq!(permission_options(&ask).len(), 2);
        for option in [ALLOW_SESSION, ALLOW_ALWAYS, REJECT_ALWAYS, "yes", ""] {
            assert!(!convert(&ask, option).is_approval(), "{option}");
        }
        let answers = PermissionAnswers::new(Pipeline::new(Registry::default()));
        for outcome in [None, Some(&RequestPermissionOutcome::Cancelled)] {
            assert!(!answers.convert(&ask, outcome).is_approval());
        }
    }

    #[test]
    fn a_rejection_for_the_session_denies_the_patterns() {
        let answers = PermissionAnswers::new(Pipeline::new(Registry::default()));
        let selected =
            RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(REJECT_ALWAYS));
        answers.convert(&request(&["a.txt"]), Some(&selected));
        answers.convert(&request(&["b.txt"]), Some(&selected));
        let view = answers.pipeline.toolset().view();
        let rules: Vec<String> = view.rules().rules().iter().map(ToString::to_string).collect();
        assert_eq!(rules.len(), 2);
        assert!(
            rules[0].contains("press(a.txt)") && rules[1].contains("press(b.txt)"),
            "{rules:?}"
        );
    }
}
