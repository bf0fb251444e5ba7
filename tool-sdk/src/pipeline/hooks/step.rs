//! One hook at work: asked, waited for, and told to subscribers.
//!
//! **Invariant:** a panic of a hook, and an answer that comes too late, are failures of the hook
//! and of nothing else.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::ToolError;
use crate::event::{EventKind, millis};
use crate::hook::{HookRun, Later, Opinion, Registered, Step};
use crate::pipeline::frame::Seen;
use crate::pipeline::run::{Waiting, aborted, panicked};

/// What becomes of a hook that was asked.
pub(super) enum Begun<'a, T> {
    /// Most answer at once.
    Done(Answer<T>),
    Waits(Box<Waits<'a, T>>),
}

pub(super) type Answer<T> = Result<T, ToolError>;

/// What a hook can answer.
pub(super) trait Told {
    /// The answer, as subscribers read it.
    fn told(&self) -> String;

    /// Whether nothing comes of it.
    fn is_nothing(&self) -> bool;
}

impl Told for Opinion {
    fn told(&self) -> String {
        self.to_string()
    }

    #[inline]
    fn is_nothing(&self) -> bool {
        self.is_none()
    }
}

impl Told for () {
    fn told(&self) -> String {
        "done".to_owned()
    }

    #[inline]
    fn is_nothing(&self) -> bool {
        true
    }
}

/// A hook that takes its time.
pub(super) struct Waits<'a, T> {
    seen: &'a Seen<'a>,
    hook: &'a Registered,
    run: Option<Box<Run<'a>>>,
    later: Waiting<'a, T>,
}

/// Asks a hook; gives nothing where nothing comes of that, at once. A panic is a failure of the
/// hook.
#[inline(always)]
pub(super) fn begun<'a, T: Told>(
    seen: &'a Seen<'a>,
    hook: &'a Registered,
    step: impl FnOnce() -> Step<'a, Answer<T>>,
) -> Option<Begun<'a, T>> {
    let run = Run::begin(seen, hook);
    let is_told = run.is_some();
    let answer = || match step().answer() {
        // Most answers are looked at where they are and go no further.
        Ok(Ok(answer)) if !is_told && answer.is_nothing() => None,
        answer => Some(answer),
    };
    match catch_unwind(AssertUnwindSafe(answer)) {
        Ok(None) => None,
        Ok(Some(answer)) => Some(heard(seen, hook, run, answer)),
        Err(panic) => Some(heard(seen, hook, run, Ok(Err(panicked(&*panic))))),
    }
}

/// What became of a hook that was asked.
#[inline(never)]
fn heard<'a, T: Told>(
    seen: &'a Seen<'a>,
    hook: &'a Registered,
    run: Option<Box<Run<'a>>>,
    answer: Result<Answer<T>, Later<'a, Answer<T>>>,
) -> Begun<'a, T> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(later) => {
            let later = Waiting::on(later);
            return Begun::Waits(Box::new(Waits { seen, hook, run, later }));
        }
    };
    if let Some(run) = run {
        run.finish(&answer);
    }
    Begun::Done(answer)
}

/// Waits for a hook, while anybody wants the result of the call. A panic is a failure of the
/// hook, and so is taking longer than it may.
pub(super) async fn done<T: Told>(waits: Box<Waits<'_, T>>) -> Result<Answer<T>, ToolError> {
    let Waits { seen, hook, run, mut later } = *waits;
    let limit = hook.time_limit.unwrap_or(Duration::MAX);
    let answer = tokio::select! {
        biased;
        answer = poll_fn(|task| later.poll(task)) => answer,
        () = seen.given_up() => {
            if let Some(run) = run {
                run.finish(&Answer::<T>::Err(aborted()));
            }
            return Err(aborted());
        }
        () = tokio::time::sleep(limit) => {
            Err(ToolError::timeout(format_args!("no answer within {limit:?}")))
        }
    };
    if let Some(run) = run {
        run.finish(&answer);
    }
    Ok(answer)
}

/// One hook at work, told to subscribers when it begins and when it is done.
struct Run<'a> {
    seen: &'a Seen<'a>,
    hook: &'a Registered,
    began: Instant,
}

impl<'a> Run<'a> {
    /// Nothing where nobody listens.
    #[inline]
    fn begin(seen: &'a Seen<'a>, hook: &'a Registered) -> Option<Box<Self>> {
        seen.is_heard().then(|| Self::told(seen, hook))
    }

    #[inline(never)]
    fn told(seen: &'a Seen<'a>, hook: &'a Registered) -> Box<Self> {
        seen.event(|| EventKind::HookStarted { hook: hook.name.to_string() });
        Box::new(Self { seen, hook, began: Instant::now() })
    }

    #[inline(never)]
    fn finish<T: Told>(self, answer: &Answer<T>) {
        let outcome = match answer {
            Ok(answer) => answer.told(),
            Err(error) => format!("failed: {error}"),
        };
        let elapsed_ms = millis(self.began.elapsed());
        let run = HookRun { hook: self.hook.name.to_string(), outcome, elapsed_ms };
        self.seen.event(|| EventKind::HookFinished(run));
    }
}
