//! Many calls at once, as a model makes them in one message.
//!
//! Everything is judged and asked, in the order of the calls, before anything runs; only a call
//! that turns out to repeat those before it is asked about in its turn. Then neighbours run side by
//! side:
//! shared calls, or calls with a key, those of one key one after the other; exclusive calls
//! run alone. What a call changed is seen by those behind it, and a yes to one of them holds
//! only where it is still the call that was shown. The outcomes come in the order of the
//! calls, one for each, whatever becomes of the others.
//!
//! **Invariant:** a call that fails stops nobody; a person's plain no, and a hook that ends
//! the turn, stop what has not begun yet.

use std::collections::HashSet;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::Notify;

use crate::call::{Call, Outcome};
use crate::context::Session;
use crate::error::ToolError;
use crate::pipeline::{Facts, Line, Permit, Pipeline, Stop, Turn};
use crate::tool::Parallel;

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
    most: usize,
}

impl<'p> Batch<'p> {
    /// How many calls run at once when nobody says otherwise.
    pub const DEFAULT_MOST: usize = 10;

    /// Batches of calls through `pipeline`.
    #[must_use]
    pub fn new(pipeline: &'p Pipeline) -> Self {
        Self { pipeline, most: Self::DEFAULT_MOST }
    }

    /// Sets how many calls run at once, at least one.
    #[must_use]
    pub fn most(mut self, calls: usize) -> Self {
        self.most = calls.max(1);
        self
    }

    /// Runs the calls; gives one outcome for each, in their order.
    pub async fn run<'c>(
        &self,
        session: &Session,
        calls: impl IntoIterator<Item = Call<'c>>,
    ) -> Vec<Outcome> {
        let calls: Vec<Call<'c>> = calls.into_iter().collect();
        let hall = Arc::new(Hall::new(calls.len(), self.most));
        let running: FuturesUnordered<_> = calls
            .into_iter()
            .enumerate()
            .map(|(at, call)| {
                let place = Place { hall: Arc::clone(&hall), at };
                async move { (at, self.pipeline.call_in_turn(session, &call, &place).await) }
            })
            .collect();
        let mut outcomes: Vec<(usize, Outcome)> = running.collect().await;
        outcomes.sort_by_key(|(at, _)| *at);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }
}

/// Where approved calls wait for their turn.
struct Hall {
    most: usize,
    state: Mutex<State>,
}

struct State {
    places: Vec<Standing>,
    /// How many calls are neither approved nor ended.
    coming: usize,
    running: usize,
    stopped: Option<Stop>,
    /// All calls before this one are decided, or wait for an answer.
    decided_to: usize,
    /// All calls before this one are decided, or their question was shown.
    shown_to: usize,
}

/// How far one call is.
struct Standing {
    stage: Stage,
    class: Class,
    called: Arc<Notify>,
    asks: bool,
    is_shown: bool,
    /// Told when all before it are decided, or asked.
    in_line: Arc<Notify>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Coming,
    Approved,
    Running,
    Gone,
}

/// Beside which other calls one may run.
#[derive(Clone)]
enum Class {
    Shared,
    Keyed(String),
    Exclusive,
}

impl Class {
    fn of(facts: &Facts) -> Self {
        match (&facts.parallel, &facts.key) {
            (Parallel::Shared, _) => Self::Shared,
            (Parallel::By(_), Some(key)) => Self::Keyed(key.clone()),
            (Parallel::By(_), None) | (Parallel::Exclusive, _) => Self::Exclusive,
        }
    }
}

impl Hall {
    fn new(calls: usize, most: usize) -> Self {
        let places = std::iter::repeat_with(Standing::new).take(calls).collect();
        let (running, stopped, decided_to, shown_to) = Default::default();
        let state = State { places, coming: calls, running, stopped, decided_to, shown_to };
        Self { most, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, at: usize, to: Stage) {
        let mut state = self.state();
        let stage = std::mem::replace(&mut state.places[at].stage, to);
        state.coming -= usize::from(stage == Stage::Coming && to != Stage::Coming);
        state.running -= usize::from(stage == Stage::Running);
        state.advance(self.most);
        state.close_up();
    }

    /// Waits until all calls before the one at `at` are behind what `reached` says.
    async fn come(&self, at: usize, reached: fn(&State) -> usize) {
        let in_line = Arc::clone(&self.state().places[at].in_line);
        loop {
            let mut told = pin!(in_line.notified());
            // What is told from here on is heard, by all who wait for this place.
            told.as_mut().enable();
            if reached(&self.state()) >= at {
                return;
            }
            told.await;
        }
    }
}

impl Standing {
    fn new() -> Self {
        let (called, in_line) = Default::default();
        let (stage, class) = (Stage::Coming, Class::Exclusive);
        Self { stage, class, called, asks: false, is_shown: false, in_line }
    }
}

impl State {
    /// Lets those come whose place in the line it is.
    fn close_up(&mut self) {
        let places = &self.places;
        let close_up = |reached: &mut usize, is_past: fn(&Standing) -> bool| {
            let is_past = |place: &&Standing| place.stage != Stage::Coming || is_past(place);
            let from = *reached;
            *reached += places[from..].iter().take_while(is_past).count();
            // Also one that is past may wait again, with another question.
            let up_to = places.len().min(*reached + 1);
            places[from.min(up_to)..up_to].iter().for_each(|place| place.in_line.notify_waiters());
        };
        close_up(&mut self.decided_to, |place| place.asks);
        close_up(&mut self.shown_to, |place| place.is_shown);
    }

    /// Calls whoever may run now, in the order of the calls: nobody overtakes one that it
    /// could not run beside.
    fn advance(&mut self, most: usize) {
        if self.coming > 0 {
            return;
        }
        let (mut shared, mut exclusive, mut keys) = (false, false, HashSet::new());
        for place in &mut self.places {
            if place.stage == Stage::Gone {
                continue;
            }
            let is_free = match &place.class {
                // What is serialised by a resource writes it: who only looks sees it whole.
                Class::Shared => !exclusive && keys.is_empty(),
                Class::Keyed(key) => !exclusive && !shared && !keys.contains(key.as_str()),
                Class::Exclusive => !exclusive && !shared && keys.is_empty(),
            };
            if place.stage == Stage::Approved && self.stopped.is_some() {
                place.called.notify_one();
            } else if place.stage == Stage::Approved && is_free && self.running < most {
                place.stage = Stage::Running;
                self.running += 1;
                place.called.notify_one();
            }
            match &place.class {
                Class::Shared => shared = true,
                Class::Keyed(key) => {
                    keys.insert(key.as_str());
                }
                Class::Exclusive => exclusive = true,
            }
        }
    }
}

/// The place of one call in the hall.
struct Place {
    hall: Arc<Hall>,
    at: usize,
}

impl Turn for Place {
    fn in_line(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.hall.come(self.at, |state| state.decided_to))
    }

    fn asks(&self) {
        let mut state = self.hall.state();
        state.places[self.at].asks = true;
        state.close_up();
    }

    fn line(&self) -> Arc<dyn Line> {
        let mut state = self.hall.state();
        if state.shown_to <= self.at {
            // It has another question than the one that was shown.
            state.places[self.at].is_shown = false;
        }
        drop(state);
        Arc::new(Spot { hall: Arc::clone(&self.hall), at: self.at })
    }

    fn wait<'a>(
        &'a self,
        facts: &Facts,
    ) -> Pin<Box<dyn Future<Output = Result<Permit, ToolError>> + Send + 'a>> {
        let called = {
            let mut state = self.hall.state();
            let place = &mut state.places[self.at];
            place.class = Class::of(facts);
            Arc::clone(&place.called)
        };
        self.hall.change(self.at, Stage::Approved);
        Box::pin(async move {
            called.notified().await;
            let (stage, stopped) = {
                let state = self.hall.state();
                (state.places[self.at].stage, state.stopped)
            };
            if stage == Stage::Running {
                let permit = Ran { hall: Arc::clone(&self.hall), at: self.at };
                return Ok(Box::new(permit) as Permit);
            }
            let why = stopped.map_or("the batch is over", Stop::as_str);
            Err(ToolError::aborted(format_args!("it was not run: {why}")))
        })
    }

    fn stop(&self, why: Stop) {
        self.hall.state().stopped.get_or_insert(why);
    }

    fn stopped(&self) -> Option<Stop> {
        self.hall.state().stopped
    }
}

/// The same place, for the question of the call.
struct Spot {
    hall: Arc<Hall>,
    at: usize,
}

impl Line for Spot {
    fn come(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { self.hall.come(self.at, |state| state.shown_to).await })
    }

    fn shown(&self) {
        let mut state = self.hall.state();
        state.places[self.at].is_shown = true;
        state.close_up();
    }
}

/// A call that ends in any way makes room.
impl Drop for Place {
    fn drop(&mut self) {
        self.hall.change(self.at, Stage::Gone);
    }
}

/// A call that has run makes room once hooks have looked at its result: one of them may end
/// the turn, or still be at work on what the call wrote.
struct Ran {
    hall: Arc<Hall>,
    at: usize,
}

impl Drop for Ran {
    fn drop(&mut self) {
        self.hall.change(self.at, Stage::Gone);
    }
}

#[cfg(test)]
mod changed;
#[cfg(test)]
mod tests;
