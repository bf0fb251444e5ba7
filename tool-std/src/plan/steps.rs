//! The tool `update_plan`: the steps of the work, in the schema of Codex.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tool_sdk::{
    Context, InvalidArgs, Output, PlanStep, PlanStoreHandle, TodoStatus, ToolError, tool,
};

/// One step of the plan.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
#[non_exhaustive]
pub struct PlannedStep {
    /// What is done in the step, one line.
    #[schemars(length(min = 1, max = 1000))]
    pub step: String,
    /// How far the step is.
    pub status: StepStatus,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[non_exhaustive]
pub enum StepStatus {
    /// Not begun.
    Pending,
    /// Being worked on.
    InProgress,
    /// Done.
    Completed,
}

/// Show the user the steps of your plan, and how far each is.
///
/// Send all steps each time, in order; they replace the plan before. Mark the step that you work
/// on `in_progress` before you begin it, and `completed` as soon as it is done. At most one step
/// may be `in_progress`. Do not make plans of a single step. Say in `explanation` why the plan
/// changed, when it did.
#[tool(
    read,
    category = "collaboration",
    parallel = exclusive,
    approval(required = |_, _| false),
    validate = check_steps,
    display(name = "Plan", show(plan), summary = summarize),
    example = r#"{"plan": [{"step": "Read the tests", "status": "completed"}, {"step": "Fix the parser", "status": "in_progress"}]}"#
)]
pub async fn update_plan(
    /// Why the plan changed, one or two sentences.
    #[arg(length = ..=4000)]
    explanation: Option<String>,
    /// The steps, in order.
    #[arg(length = ..=100)]
    plan: Vec<PlannedStep>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let steps: Vec<PlanStep> = plan.into_iter().map(PlanStep::from).collect();
    let plans = cx.session().extension::<PlanStoreHandle>();
    let change = plans
        .update(cx.session(), |stored| {
            stored.explanation.clone_from(&explanation);
            stored.steps.clone_from(&steps);
            Ok(())
        })
        .await?;
    let data = json!({
        "explanation": explanation,
        "before": change.before.steps,
        "after": change.after.steps,
    });
    cx.emit("plan.updated", data.clone());
    Ok(Output::text("Plan updated").title(count_steps(&change.after.steps)).display(data))
}

impl From<PlannedStep> for PlanStep {
    fn from(PlannedStep { step, status }: PlannedStep) -> Self {
        let status = match status {
            StepStatus::Pending => TodoStatus::Pending,
            StepStatus::InProgress => TodoStatus::InProgress,
            StepStatus::Completed => TodoStatus::Completed,
        };
        Self { step, status }
    }
}

/// Fails when several steps are in progress, and names them.
fn check_steps(args: &UpdatePlanArgs) -> Result<(), InvalidArgs> {
    let running = args.plan.iter().filter(|step| step.status == StepStatus::InProgress);
    let names: Vec<String> = running.map(|step| format!("`{}`", step.step)).collect();
    match names.len() {
        0 | 1 => Ok(()),
        count => Err(InvalidArgs::for_argument(
            "plan",
            format_args!(
                "has {count} steps in progress, but must have at most one: {}",
                names.join(", ")
            ),
        )),
    }
}

fn summarize(args: &UpdatePlanArgs) -> String {
    match args.plan.iter().find(|step| step.status == StepStatus::InProgress) {
        Some(current) => format!("Plan: {}", current.step),
        None if args.plan.len() == 1 => "Plan of 1 step".to_owned(),
        None => format!("Plan of {} steps", args.plan.len()),
    }
}

fn count_steps(steps: &[PlanStep]) -> String {
    let done = steps.iter().filter(|step| step.status == TodoStatus::Completed).count();
    let ending = if steps.len() == 1 { "" } else { "s" };
    format!("{done} of {} step{ending} done", steps.len())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tool_sdk::testing::Harness;
    use tool_sdk::{ErrorKind, EventKind, Mode, tools};

    use super::*;

    fn plan(steps: &[(&str, &str)]) -> Value {
        let steps: Vec<Value> =
            steps.iter().map(|(step, status)| json!({ "step": step, "status": status })).collect();
        json!({ "plan": steps })
    }

    // F149
    #[tokio::test]
    async fn replaces_the_plan_and_emits_both() {
        // These modes do not ask, and there is no approver.
        for mode in [Mode::Auto, Mode::Plan, Mode::Explore] {
            let harness = Harness::new(tools![update_plan]).map_pipeline(|it| it.mode(mode));
            let mut events = harness.pipeline().subscribe();
            let first = harness.ok("update_plan", plan(&[("read", "in_progress")])).await;
            assert_eq!(first.as_text(), "Plan updated");
            let second = plan(&[("read", "completed"), ("write", "in_progress")]);
            let second = harness.ok("update_plan", second).await;
            assert_eq!(second.title_text(), Some("1 of 2 steps done"));
            let emitted: Vec<_> = std::iter::from_fn(|| events.try_recv())
                .filter_map(|event| match event.kind {
                    EventKind::Emitted { kind, data } if kind == "plan.updated" => Some(data),
                    _ => None,
                })
                .collect();
            assert_eq!(emitted.len(), 2);
            assert_eq!(emitted[0]["before"], json!([]));
            assert_eq!(emitted[1]["before"], emitted[0]["after"]);
            assert_eq!(emitted[1]["after"][1], json!({ "step": "write", "status": "in_progress" }));
        }
    }

    // F149
    #[tokio::test]
    async fn refuses_two_steps_in_progress_and_names_them() {
        let session = tool_sdk::Session::new("s1");
        let harness = Harness::new(tools![update_plan]).with_session(session.clone());
        let two = plan(&[("a", "in_progress"), ("b", "pending"), ("c", "in_progress")]);
        let error = harness.error("update_plan", two).await;
        assert_eq!(error.kind(), ErrorKind::InvalidArgs);
        let text = error.to_string();
        assert!(
            text.contains("`plan` has 2 steps in progress, but must have at most one: `a`, `c`"),
            "{text}"
        );
        let plans = session.extension::<PlanStoreHandle>();
        assert_eq!(plans.load(&session).await.unwrap().version, 0);
    }
}
