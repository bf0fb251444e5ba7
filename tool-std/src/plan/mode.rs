//! The tools `plan_enter`, `plan_update` and `plan_exit`: plan mode, in which only tools that read
//! may run until the user approves the plan.

use serde_json::{Value, json};
use tool_sdk::{Context, Output, PlanDraft, Resource, RiskClass, ToolError, tool};

/// How long a plan may be, in characters.
const MAX_PLAN: usize = 50_000;

/// Start plan mode: from now on only tools that read may run, until the user approves your plan.
///
/// Use it before work whose way should be agreed on first. Explore, write the plan with
/// `plan_update`, then call `plan_exit` to ask the user. Commands and tools that change something
/// are refused in between; do not try them.
#[tool(
    read,
    category = "collaboration",
    parallel = exclusive,
    approval(required = |_, _| false),
    display(name = "Plan mode", show(plan), summary = "Starting plan mode"),
    example = "{}"
)]
pub async fn plan_enter(
    /// A first draft of the plan, Markdown.
    #[arg(default = "", length = ..=MAX_PLAN)]
    plan: &str,
    cx: &Context,
) -> Result<Output, ToolError> {
    let entered = cx.enter_plan_mode(plan, "plan_exit").await;
    let change =
        entered.map_err(|error| with_hint(error, "write the plan with `plan_update`", cx))?;
    let mode_before = change.after.draft.map(|draft| draft.mode_before);
    cx.emit("plan_mode.entered", json!({ "mode_before": mode_before }));
    Ok(Output::text(
        "Plan mode has started: only tools that read may run. Write the plan with `plan_update`, \
         and call `plan_exit` when it is complete.",
    ))
}

/// Write the plan of plan mode; the text replaces the draft before.
#[tool(
    read,
    category = "collaboration",
    parallel = exclusive,
    approval(required = |_, _| false),
    display(name = "Plan mode", show(plan), summary = "Writing the plan")
)]
pub async fn plan_update(
    /// The whole plan, Markdown: what will be changed, where, in which order, and how it is tested.
    #[arg(length = 1..=MAX_PLAN)]
    plan: &str,
    cx: &Context,
) -> Result<Output, ToolError> {
    let updated = cx.update_plan_draft(plan).await;
    let change =
        updated.map_err(|error| with_hint(error, "start plan mode with `plan_enter`", cx))?;
    let text = |draft: Option<PlanDraft>| draft.map(|draft| draft.text);
    let data = json!({ "before": text(change.before.draft), "after": text(change.after.draft) });
    cx.emit("plan_mode.updated", data.clone());
    Ok(Output::text("The plan is written.").display(data))
}

/// Returns the error with a hint, where the session can be in plan mode.
fn with_hint(error: ToolError, hint: &str, cx: &Context) -> ToolError {
    if cx.session().is_ephemeral() { error } else { error.hint(hint) }
}

/// Ask the user to approve the plan, and end plan mode when they do.
///
/// The user sees the text of the last `plan_update`. When the user rejects the plan, plan mode goes
/// on: change the plan as the user says, and ask again.
#[tool(
    read,
    category = "collaboration",
    parallel = exclusive,
    approval(
        required = |_, cx| cx.session().plan_draft().is_some(),
        resources = leave_resources,
        suggest = |_| Vec::new(),
        facts = shown_plan,
    ),
    display(name = "Plan mode", summary = "Ending plan mode, to carry out the plan", preview = preview)
)]
pub async fn plan_exit(cx: &Context) -> Result<Output, ToolError> {
    let draft = cx.session().plan_draft().ok_or_else(|| {
        ToolError::conflict("the session is not in plan mode").hint("go on with the work")
    })?;
    cx.leave_plan_mode(&draft).await?;
    cx.emit("plan_mode.left", json!({ "plan": draft.text, "mode": draft.mode_before }));
    Ok(Output::text(format!(
        "The user approved the plan. Plan mode has ended, and the mode is `{}` again. The plan:\n\n{}",
        draft.mode_before, draft.text
    )))
}

/// Only a person or a rule allows leaving plan mode, also in the mode `bypass`.
fn leave_resources(_: &PlanExitArgs, cx: &Context) -> Vec<Resource> {
    let resource = Resource::new("leave plan mode").with_class(RiskClass::Read);
    match cx.session().plan_draft() {
        Some(_) => vec![resource.requires_approval()],
        None => vec![resource],
    }
}

/// The plan that the user approves is a part of the approval.
fn shown_plan(_: &PlanExitArgs, cx: &Context) -> Vec<(&'static str, String)> {
    let draft = cx.session().plan_draft();
    draft.map(|draft| ("plan", draft.text.clone())).into_iter().collect()
}

fn preview(_: &PlanExitArgs, cx: &Context) -> Result<Option<Value>, ToolError> {
    match cx.session().plan_draft() {
        Some(draft) if draft.text.trim().is_empty() => {
            Err(ToolError::failed("there is no plan that the user could approve")
                .hint("write it with `plan_update` first"))
        }
        Some(draft) => Ok(Some(Value::String(draft.text.clone()))),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::json;
    use tool_sdk::testing::Harness;
    use tool_sdk::{
        ApprovalRequest, ApprovalResponse, Approver, CallId, ErrorKind, Mode, Rule,
        ScriptedApprover, Session, tool, tools,
    };

    use super::*;

    /// Change something.
    #[tool(write, register = false)]
    fn change() {}

    fn harness(mode: Mode) -> Harness {
        Harness::new(tools![plan_enter, plan_update, plan_exit, change])
            .map_pipeline(|pipeline| pipeline.mode(mode))
    }

    /// Approves everything, and remembers the previews.
    #[derive(Clone, Default)]
    struct WatchfulUser(Arc<Mutex<Vec<Option<Value>>>>);

    impl Approver for WatchfulUser {
        fn request_approval(
            &self,
            ask: Arc<ApprovalRequest>,
        ) -> std::pin::Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
            assert!(!ask.offers_always(), "each plan is approved by itself");
            self.0.lock().unwrap().push(ask.preview.clone());
            Box::pin(std::future::ready(Some(ApprovalResponse::Once)))
        }
    }

    // F155
    #[tokio::test]
    async fn exit_shows_the_plan_and_restores_the_mode_before() {
        let user = WatchfulUser::default();
        let harness = harness(Mode::Bypass).map_pipeline(|it| it.approver(user.clone()));
        harness.ok("plan_enter", json!({})).await;
        let refused = harness.error("change", json!({})).await;
        assert_eq!(refused.kind(), ErrorKind::Denied);
        let hint = refused.suggestion().unwrap_or_default();
        assert!(hint.contains("`plan_exit` asks the user to end it"), "{hint}");
        let empty = harness.error("plan_exit", json!({})).await;
        assert!(empty.message().contains("no plan"), "{empty}");
        harness.ok("plan_update", json!({ "plan": "1. change it" })).await;
        let left = harness.ok("plan_exit", json!({})).await.into_text();
        assert!(left.contains("`bypass` again") && left.ends_with("1. change it"), "{left}");
        assert_eq!(*user.0.lock().unwrap(), [Some(json!("1. change it"))]);
        harness.ok("change", json!({})).await;
        assert_eq!(harness.error("plan_exit", json!({})).await.kind(), ErrorKind::Conflict);
        assert_eq!(user.0.lock().unwrap().len(), 1, "outside of plan mode nothing is asked");
    }

    // F155
    #[tokio::test]
    async fn a_rejected_plan_leaves_plan_mode() {
        let feedback = "first the tests".to_owned();
        let answers = [ApprovalResponse::RejectWith { feedback }];
        let approver = ScriptedApprover::new(answers);
        let harness = harness(Mode::Bypass).map_pipeline(|it| it.approver(approver));
        harness.ok("plan_enter", json!({ "plan": "x" })).await;
        assert_eq!(harness.error("plan_enter", json!({})).await.kind(), ErrorKind::Conflict);
        let rejected = harness.error("plan_exit", json!({})).await;
        assert_eq!(rejected.kind(), ErrorKind::Denied);
        assert!(rejected.to_string().contains("first the tests"), "{rejected}");
        assert_eq!(harness.error("change", json!({})).await.kind(), ErrorKind::Denied);
    }

    /// Changes the draft while the user is asked, then approves what was shown.
    struct SlowUser(Session);

    impl Approver for SlowUser {
        fn request_approval(
            &self,
            _: Arc<ApprovalRequest>,
        ) -> std::pin::Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
            let tool = tool_sdk::ToolName::new("another").unwrap();
            let cx = Context::new(self.0.clone(), tool, CallId::generate());
            Box::pin(async move {
                cx.update_plan_draft("delete everything").await.unwrap();
                Some(ApprovalResponse::Once)
            })
        }
    }

    #[tokio::test]
    async fn only_the_plan_that_was_shown_is_approved() {
        let session = Session::new("s1");
        let harness = harness(Mode::Auto)
            .map_pipeline(|it| it.approver(SlowUser(session.clone())))
            .with_session(session);
        harness.ok("plan_enter", json!({ "plan": "read a little" })).await;
        assert_eq!(harness.error("plan_exit", json!({})).await.kind(), ErrorKind::Denied);
        assert_eq!(harness.error("change", json!({})).await.kind(), ErrorKind::Denied);
    }

    // F155: without a user, only a rule lets a session out.
    #[tokio::test]
    async fn without_an_approver_a_rule_decides() {
        let without = harness(Mode::Auto);
        without.ok("plan_enter", json!({ "plan": "x" })).await;
        let denied = without.error("plan_exit", json!({})).await;
        assert_eq!(denied.kind(), ErrorKind::Denied);
        assert!(denied.to_string().contains("plan_exit"), "{denied}");
        let rule: Rule = "allow plan_exit".parse().unwrap();
        without.pipeline().set_rules([rule].into_iter().collect());
        without.ok("plan_exit", json!({})).await;
    }

    #[tokio::test]
    async fn there_is_no_plan_to_update_outside_of_plan_mode() {
        let error = harness(Mode::Auto).error("plan_update", json!({ "plan": "x" })).await;
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.suggestion().is_some_and(|hint| hint.contains("plan_enter")), "{error}");
    }
}
