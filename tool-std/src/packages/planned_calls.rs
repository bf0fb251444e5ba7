//! The plans of calls that wait for their approval, so that what was shown is what is done.
//!
//! **Invariant:** a call whose plan was dropped fails; no call gets a second plan. Other arguments
//! are another call, also when a user edited them or a client uses an id again.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tool_sdk::{Context, ToolError};

use super::package::to_hex_digest;

/// How many plans are kept; those of denied calls are dropped when others come.
const MAX_PLANS: usize = 4;

/// How many calls are remembered, most of them without their plans.
const MAX_CALLS: usize = 1000;

/// A plan, or why there is none.
type PlanResult<P> = Result<Arc<P>, ToolError>;

/// The keys of calls with their plans, the oldest first. A plan that was dropped is `None`.
type PlanQueue<P> = VecDeque<(String, Option<Arc<P>>)>;

/// The plans of a session's latest calls.
struct PlannedCalls<P>(Arc<Mutex<PlanQueue<P>>>);

impl<P> Clone for PlannedCalls<P> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<P> Default for PlannedCalls<P> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<P> PlannedCalls<P> {
    fn lock(&self) -> MutexGuard<'_, PlanQueue<P>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the plan of this call, which `make` makes when it is asked for the first time. Fails when
/// the plan was dropped for later ones: a new plan could do something else than what was shown.
pub(crate) fn plan_for_call<P: Send + Sync + 'static>(
    cx: &Context,
    arguments: &impl fmt::Debug,
    make: impl FnOnce() -> Result<P, ToolError>,
) -> PlanResult<P> {
    let planned = cx.session().extension::<PlannedCalls<P>>();
    let key = call_key(cx, arguments);
    if let Some((_, plan)) = planned.lock().iter().find(|(call, _)| *call == key) {
        return plan.clone().ok_or_else(|| {
            ToolError::conflict("the plan of this call is gone")
                .hint("call again; few such calls can wait at a time")
        });
    }
    let plan = Arc::new(make()?);
    add_plan(&mut planned.lock(), key, Arc::clone(&plan));
    Ok(plan)
}

/// Adds a plan, and drops the oldest beyond the limits.
fn add_plan<P>(plans: &mut PlanQueue<P>, key: String, plan: Arc<P>) {
    plans.push_back((key, Some(plan)));
    let dropped = plans.iter_mut().rev().filter(|(_, plan)| plan.is_some()).skip(MAX_PLANS);
    dropped.for_each(|(_, plan)| *plan = None);
    if plans.len() > MAX_CALLS {
        plans.pop_front();
    }
}

/// Returns the plan of a call that runs now, and forgets it.
pub(crate) fn take_plan<P: Send + Sync + 'static>(
    cx: &Context,
    arguments: &impl fmt::Debug,
    make: impl FnOnce() -> Result<P, ToolError>,
) -> PlanResult<P> {
    let plan = plan_for_call(cx, arguments, make);
    let key = call_key(cx, arguments);
    cx.session().extension::<PlannedCalls<P>>().lock().retain(|(call, _)| *call != key);
    plan
}

/// Returns what tells a call from others: its tool, its id and its arguments.
fn call_key(cx: &Context, arguments: &impl fmt::Debug) -> String {
    let text = format!("{:?} {:?} {arguments:?}", cx.tool().as_str(), cx.call_id().to_string());
    to_hex_digest(hmac_sha256::Hash::hash(text.as_bytes()))
}
