//! The plans of calls that wait for their approval, so that what was shown is what is done.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tool_sdk::{Context, ToolError};

use super::plan::SkillPlan;

/// How many plans are kept; those of denied calls are dropped when others come.
const MAX_PLANS: usize = 4;

/// A plan, or why there is none.
type PlanResult = Result<Arc<SkillPlan>, ToolError>;

/// Plans with the ids of their calls, the oldest first.
type PlanQueue = VecDeque<(String, Arc<SkillPlan>)>;

/// The plans of a session's latest calls.
#[derive(Clone, Default)]
struct PlannedCalls(Arc<Mutex<PlanQueue>>);

/// Returns the plan of this call, which `make` makes when it is asked for the first time.
pub(super) fn plan_for_call(
    cx: &Context,
    make: impl FnOnce() -> Result<SkillPlan, ToolError>,
) -> PlanResult {
    let planned = cx.session().extension::<PlannedCalls>();
    let id = cx.call_id().to_string();
    let find = |plans: &PlanQueue| {
        plans.iter().find(|(call, _)| *call == id).map(|(_, plan)| Arc::clone(plan))
    };
    if let Some(plan) = find(&planned.0.lock().unwrap_or_else(PoisonError::into_inner)) {
        return Ok(plan);
    }
    let plan = Arc::new(make()?);
    let mut plans = planned.0.lock().unwrap_or_else(PoisonError::into_inner);
    plans.push_back((id, Arc::clone(&plan)));
    if plans.len() > MAX_PLANS {
        plans.pop_front();
    }
    Ok(plan)
}

/// Forgets the plan of a call that is done.
pub(super) fn forget_plan(cx: &Context) {
    let planned = cx.session().extension::<PlannedCalls>();
    let id = cx.call_id().to_string();
    planned.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|(call, _)| *call != id);
}
