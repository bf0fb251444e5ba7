//! Runs the calls that a model makes in one message.
//!
//! All calls are authorized, with prompts in the order of the calls, before any runs; only a call
//! that turns out to repeat earlier ones is asked about when its turn comes. Then neighbours run
//! concurrently: shared calls, and calls with different keys; calls of one key run one after the
//! other, and exclusive calls run alone. A call sees what the calls before it changed, and its
//! approval holds only while it is still the call that was shown. The outcomes come in the order
//! of the calls.
//!
//! **Invariant:** a call that fails stops no other; a rejection without feedback, and a hook that
//! ends the turn, stop the calls that have not started.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::Notify;

use crate::call::{Call, Outcome};
use crate::context::Session;
use crate::error::ToolError;
use crate::pipeline::Pipeline;
use crate::scheduler::{BatchStopReason, ConcurrencyKey, PromptOrder, RunSlot, Scheduler};
use crate::tool::Parallel;
use futures_util::future::BoxFuture;

/// Runs many calls of one session.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Batch, Call, Pipeline, Registry, Session, tool, tools};
///
/// /// Say it again.
/// #[tool(read)]
/// fn echo(
///     /// What to say.
///     text: String,
/// ) -> String {
///     text
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let pipeline = Pipeline::new(Registry::builder().add(tools![echo]).build()?);
/// let calls = ["a", "b"].map(|text| Call::new("echo", format!(r#"{{"text": "{text}"}}"#)));
///
/// let outcomes = Batch::new(&pipeline).run(&Session::default(), calls).await;
/// assert_eq!(outcomes.iter().map(|it| it.text()).collect::<Vec<_>>(), ["a", "b"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Batch<'p> {
    pipeline: &'p Pipeline,
    max_concurrent: usize,
}

impl<'p> Batch<'p> {
    /// How many calls run at once by default.
    pub const DEFAULT_MAX_CONCURRENT: usize = 10;

    /// Batches of calls through `pipeline`.
    #[must_use]
    pub fn new(pipeline: &'p Pipeline) -> Self {
        Self { pipeline, max_concurrent: Self::DEFAULT_MAX_CONCURRENT }
    }

    /// Sets how many calls run at once, at least one.
    #[must_use]
    pub fn max_concurrent(mut self, calls: usize) -> Self {
        self.max_concurrent = calls.max(1);
        self
    }

    /// Runs the calls; gives one outcome for each, in their order.
    pub async fn run<'c>(
        &self,
        session: &Session,
        calls: impl IntoIterator<Item = Call<'c>>,
    ) -> Vec<Outcome> {
        let calls: Vec<Call<'c>> = calls.into_iter().collect();
        let scheduler = Arc::new(BatchScheduler::new(calls.len(), self.max_concurrent));
        let running: FuturesUnordered<_> = calls
            .into_iter()
            .enumerate()
            .map(|(at, call)| {
                let slot = CallSlot { scheduler: Arc::clone(&scheduler), at };
                async move { (at, self.pipeline.call_scheduled(session, &call, &slot).await) }
            })
            .collect();
        let mut outcomes: Vec<(usize, Outcome)> = running.collect().await;
        outcomes.sort_by_key(|(at, _)| *at);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }
}

/// Decides which calls of a batch may run at the same time.
struct BatchScheduler {
    max_concurrent: usize,
    state: Mutex<State>,
}

struct State {
    calls: Vec<CallState>,
    /// How many calls are neither authorized nor ended.
    undecided: usize,
    running: usize,
    stopped: Option<BatchStopReason>,
    /// All calls before this one are decided, or wait for an approval.
    decided_to: usize,
    /// All calls before this one are decided, or their prompt was shown.
    shown_to: usize,
}

/// How far one call is.
struct CallState {
    progress: Progress,
    class: ConcurrencyClass,
    /// Notified when the call may run.
    may_run: Arc<Notify>,
    waits_for_approval: bool,
    is_prompt_shown: bool,
    /// Notified when the calls before it made progress.
    earlier_progress: Arc<Notify>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Undecided,
    Authorized,
    Running,
    Ended,
}

/// The other calls beside which a call may run.
#[derive(Clone)]
enum ConcurrencyClass {
    Shared,
    Keyed(String),
    Exclusive,
}

impl ConcurrencyClass {
    fn from_key(key: &ConcurrencyKey) -> Self {
        match (&key.parallel, &key.resource) {
            (Parallel::Shared, _) => Self::Shared,
            (Parallel::By(_), Some(resource)) => Self::Keyed(resource.clone()),
            (Parallel::By(_), None) | (Parallel::Exclusive, _) => Self::Exclusive,
        }
    }
}

impl BatchScheduler {
    fn new(calls: usize, max_concurrent: usize) -> Self {
        let states = std::iter::repeat_with(CallState::new).take(calls).collect();
        let (running, stopped, decided_to, shown_to) = Default::default();
        let state =
            State { calls: states, undecided: calls, running, stopped, decided_to, shown_to };
        Self { max_concurrent, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_progress(&self, at: usize, to: Progress) {
        let mut state = self.state();
        let before = std::mem::replace(&mut state.calls[at].progress, to);
        let is_decided = before == Progress::Undecided && to != Progress::Undecided;
        state.undecided -= usize::from(is_decided);
        state.running -= usize::from(before == Progress::Running);
        state.start_calls(self.max_concurrent);
        state.advance_order();
    }

    /// Waits until `reached` says that all calls before the one at `at` have come that far.
    async fn wait_for_earlier_calls(&self, at: usize, reached: fn(&State) -> usize) {
        let earlier_progress = Arc::clone(&self.state().calls[at].earlier_progress);
        loop {
            let mut notified = pin!(earlier_progress.notified());
            // Registered before the check, so that no notification is missed.
            notified.as_mut().enable();
            if reached(&self.state()) >= at {
                return;
            }
            notified.await;
        }
    }
}

impl CallState {
    fn new() -> Self {
        Self {
            progress: Progress::Undecided,
            class: ConcurrencyClass::Exclusive,
            may_run: Arc::default(),
            waits_for_approval: false,
            is_prompt_shown: false,
            earlier_progress: Arc::default(),
        }
    }
}

impl State {
    /// Notifies the calls whose turn to be decided, or to show a prompt, has come.
    fn advance_order(&mut self) {
        let calls = &self.calls;
        let advance = |reached: &mut usize, is_past: fn(&CallState) -> bool| {
            let is_past = |call: &&CallState| call.progress != Progress::Undecided || is_past(call);
            let from = *reached;
            *reached += calls[from..].iter().take_while(is_past).count();
            // A call that is past may wait again, with another prompt.
            let up_to = calls.len().min(*reached + 1);
            let notified = &calls[from.min(up_to)..up_to];
            notified.iter().for_each(|call| call.earlier_progress.notify_waiters());
        };
        advance(&mut self.decided_to, |call| call.waits_for_approval);
        advance(&mut self.shown_to, |call| call.is_prompt_shown);
    }

    /// Starts the calls that may run now, in their order: none overtakes a call that it could not
    /// run beside.
    fn start_calls(&mut self, most: usize) {
        if self.undecided > 0 {
            return;
        }
        let (mut shared, mut exclusive, mut keys) = (false, false, HashSet::new());
        for call in &mut self.calls {
            if call.progress == Progress::Ended {
                continue;
            }
            let is_free = match &call.class {
                // A keyed call writes its resource, so no shared call reads beside it.
                ConcurrencyClass::Shared => !exclusive && keys.is_empty(),
                ConcurrencyClass::Keyed(key) => {
                    !exclusive && !shared && !keys.contains(key.as_str())
                }
                ConcurrencyClass::Exclusive => !exclusive && !shared && keys.is_empty(),
            };
            if call.progress == Progress::Authorized && self.stopped.is_some() {
                call.may_run.notify_one();
            } else if call.progress == Progress::Authorized && is_free && self.running < most {
                call.progress = Progress::Running;
                self.running += 1;
                call.may_run.notify_one();
            }
            match &call.class {
                ConcurrencyClass::Shared => shared = true,
                ConcurrencyClass::Keyed(key) => {
                    keys.insert(key.as_str());
                }
                ConcurrencyClass::Exclusive => exclusive = true,
            }
        }
    }
}

/// One call of a batch, as its pipeline call sees the scheduler.
struct CallSlot {
    scheduler: Arc<BatchScheduler>,
    at: usize,
}

impl Scheduler for CallSlot {
    fn wait_for_earlier_decisions(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.scheduler.wait_for_earlier_calls(self.at, |state| state.decided_to))
    }

    fn mark_waiting_for_approval(&self) {
        let mut state = self.scheduler.state();
        state.calls[self.at].waits_for_approval = true;
        state.advance_order();
    }

    fn prompt_order(&self) -> Arc<dyn PromptOrder> {
        let mut state = self.scheduler.state();
        if state.shown_to <= self.at {
            // Another prompt than the one that was shown.
            state.calls[self.at].is_prompt_shown = false;
        }
        drop(state);
        Arc::new(BatchPromptOrder { scheduler: Arc::clone(&self.scheduler), at: self.at })
    }

    fn wait_for_slot(&self, key: &ConcurrencyKey) -> BoxFuture<'_, Result<RunSlot, ToolError>> {
        let may_run = {
            let mut state = self.scheduler.state();
            let call = &mut state.calls[self.at];
            call.class = ConcurrencyClass::from_key(key);
            Arc::clone(&call.may_run)
        };
        self.scheduler.set_progress(self.at, Progress::Authorized);
        Box::pin(async move {
            may_run.notified().await;
            let (progress, stopped) = {
                let state = self.scheduler.state();
                (state.calls[self.at].progress, state.stopped)
            };
            if progress == Progress::Running {
                let slot = EndOnDrop { scheduler: Arc::clone(&self.scheduler), at: self.at };
                return Ok(Box::new(slot) as RunSlot);
            }
            let why = stopped.map_or("the batch is over", BatchStopReason::as_str);
            Err(ToolError::aborted(format_args!("it was not run: {why}")))
        })
    }

    fn stop(&self, reason: BatchStopReason) {
        self.scheduler.state().stopped.get_or_insert(reason);
    }

    fn stop_reason(&self) -> Option<BatchStopReason> {
        self.scheduler.state().stopped
    }
}

/// The prompt of one call of a batch.
struct BatchPromptOrder {
    scheduler: Arc<BatchScheduler>,
    at: usize,
}

impl PromptOrder for BatchPromptOrder {
    fn wait_for_turn(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.scheduler.wait_for_earlier_calls(self.at, |state| state.shown_to).await;
        })
    }

    fn mark_prompt_shown(&self) {
        let mut state = self.scheduler.state();
        state.calls[self.at].is_prompt_shown = true;
        state.advance_order();
    }
}

/// A call that ends in any way makes room for others.
impl Drop for CallSlot {
    fn drop(&mut self) {
        self.scheduler.set_progress(self.at, Progress::Ended);
    }
}

/// The slot of a running call. It is held until the after-hooks have seen the result: a hook may
/// end the turn, or still work on what the call wrote.
struct EndOnDrop {
    scheduler: Arc<BatchScheduler>,
    at: usize,
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.scheduler.set_progress(self.at, Progress::Ended);
    }
}

#[cfg(test)]
mod changed_tests;
#[cfg(test)]
mod tests;
