//! Calls that end early: cancelled, timed out, dropped, or closed with their pipeline.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, OnceLock};
use std::thread;

use super::*;
use crate::context::WorkStop;
use crate::error::ToolError;
use crate::hook::{Hook, HookContext, HookDecision, HookPriority};

// F57: cancellation ends a tool that does not cooperate.
#[tokio::test(start_paused = true)]
async fn cancellation_ends_the_call_at_once() {
    let pipeline = pipeline(tool("t", |_, _| pending::<String>()));
    let started = tokio::time::Instant::now();

    let token = CancellationToken::new();
    let waiting = call(&pipeline, Call::new("t", "{}").cancelled_by(token.clone()));
    let cancel = async { token.cancel() };
    let (outcome, ()) = tokio::join!(waiting, cancel);
    assert_eq!(kind(&outcome), ErrorKind::Aborted);

    let session = CancellationToken::new();
    let lent = Session::new("s").with_cancel(session.clone());
    let (outcome, ()) =
        tokio::join!(pipeline.call(&lent, Call::new("t", "{}")), async { session.cancel() });
    assert_eq!(kind(&outcome), ErrorKind::Aborted);

    assert!(started.elapsed() < Duration::from_millis(100));
    // A call that is already cancelled does not start.
    let mut events = pipeline.subscribe();
    let ran = call(&pipeline, Call::new("t", "{}").cancelled_by(token)).await;
    assert_eq!(kind(&ran), ErrorKind::Aborted);
    assert_eq!(kinds(&drain(&mut events)), ["pending", "aborted"]);
}

// F16: after the pipeline was closed, calls fail.
#[tokio::test]
async fn a_closed_pipeline_ends_its_calls_and_takes_no_more() {
    let pipeline = pipeline(tool("t", |_, _| pending::<String>()));
    let mut events = pipeline.subscribe();
    let (outcome, unclosed) =
        tokio::join!(call(&pipeline, Call::new("t", "{}")), async { pipeline.close().await });
    assert!(unclosed.is_empty());
    assert_eq!(kind(&outcome), ErrorKind::Aborted);
    assert_eq!(kind(&call(&pipeline, Call::new("t", "{}")).await), ErrorKind::Unavailable);
    while events.recv().await.is_some() {}
}

// F16: `close` runs what registered, once each, and names what did not end.
#[tokio::test(start_paused = true)]
async fn closing_runs_each_callback_once_and_names_those_that_fail() {
    let tool = tool("t", |_, cx: Context| async move {
        let state = cx.session().extension::<Arc<AtomicUsize>>();
        let weak = Arc::downgrade(&state);
        cx.on_close("connection", async move || {
            weak.upgrade().unwrap().fetch_add(1, Ordering::Relaxed);
        });
        "opened"
    });
    let pipeline = pipeline(tool);
    let closed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&closed);
    pipeline.on_close("database", async move || {
        count.fetch_add(1, Ordering::Relaxed);
    });
    pipeline.on_close("stuck", pending);
    pipeline.on_close("broken", async || panic!("it breaks"));
    pipeline.on_close("broken at once", || {
        if true {
            panic!("it breaks");
        }
        pending()
    });
    let (kept, ended) = (Session::new("kept"), Session::new("ended"));
    for session in [&kept, &kept, &ended] {
        assert_eq!(pipeline.call(session, Call::new("t", "{}")).await.text(), "opened");
    }
    // The callback of a session that ended by itself does not run: it would panic.
    drop(ended);
    pipeline.call(&kept, Call::new("t", "{}")).await;
    let mut unclosed = pipeline.close().await;
    unclosed.sort();
    assert_eq!(unclosed, ["broken", "broken at once", "stuck"]);
    assert!(pipeline.close().await.is_empty());
    assert_eq!(closed.load(Ordering::Relaxed), 1);
    assert_eq!(kept.extension::<Arc<AtomicUsize>>().load(Ordering::Relaxed), 1);
}

// F40: the time limit of the tool, and that of the call.
#[tokio::test(start_paused = true)]
async fn time_limits_go_from_the_call_to_the_tool_to_the_pipeline() {
    async fn after(pipeline: &Pipeline, request: Call<'_>) -> Duration {
        let started = tokio::time::Instant::now();
        let outcome = call(pipeline, request).await;
        assert_eq!(kind(&outcome), ErrorKind::Timeout);
        assert!(outcome.text().contains("hint: ask for less at once"), "{}", outcome.text());
        started.elapsed()
    }
    let slow = pipeline(tool("t", |_, _| pending::<String>())).timeout(Duration::from_secs(9));
    assert_eq!(after(&slow, Call::new("t", "{}")).await, Duration::from_secs(9));

    let own = definition("t").timeout(Duration::from_secs(5));
    let own = pipeline(DynamicTool::new(own, |_, _| pending::<String>()));
    assert_eq!(after(&own, Call::new("t", "{}")).await, Duration::from_secs(5));
    let call = Call::new("t", "{}").timeout(Duration::from_secs(1));
    assert_eq!(after(&own, call).await, Duration::from_secs(1));
}

// F33: a call whose future is dropped has a terminal event too.
#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_aborted_for_its_subscribers() {
    let pipeline = pipeline(tool("t", |_, _| pending::<String>()));
    let mut events = pipeline.subscribe();
    let dropped =
        tokio::time::timeout(Duration::from_secs(1), call(&pipeline, Call::new("t", "{}"))).await;
    assert!(dropped.is_err());
    assert_eq!(kinds(&drain(&mut events)), ["pending", "started", "aborted"]);
}

// F62: also when the pipeline is closed in between.
#[tokio::test]
async fn a_subscriber_that_saw_the_start_sees_the_end() {
    let pipeline = pipeline(tool("t", |_, _| pending::<String>()));
    let mut events = pipeline.subscribe();
    let read = async {
        let mut seen = Vec::new();
        while let Some(event) = events.recv().await {
            if matches!(event.kind, EventKind::Started { .. }) {
                assert!(pipeline.close().await.is_empty());
            }
            seen.push(event);
        }
        seen
    };
    let (seen, _) = tokio::join!(read, call(&pipeline, Call::new("t", "{}")));
    assert_eq!(kinds(&seen), ["pending", "started", "aborted"]);
}

#[tokio::test]
async fn a_subscription_to_a_closed_pipeline_ends_at_once() {
    let pipeline = pipeline(tool("t", |_, _| async { "t" }));
    pipeline.close().await;
    assert!(pipeline.subscribe().recv().await.is_none());
}

/// A tool that counts how often it was started.
fn counted(begun: &Arc<AtomicUsize>) -> DynamicTool {
    let begun = Arc::clone(begun);
    tool("t", move |_, _| {
        begun.fetch_add(1, Ordering::SeqCst);
        async { "t" }
    })
}

/// A hook that closes the pipeline in the last step before the tool.
#[derive(Default)]
struct Closes(OnceLock<Pipeline>);

impl Hook for Arc<Closes> {
    async fn before(&self, _: &HookContext<'_>) -> Result<HookDecision, ToolError> {
        drop(self.0.get().unwrap().close());
        Ok(HookDecision::none())
    }
}

// F16: after the pipeline was closed no tool starts, in whichever stage its call was.
#[tokio::test]
async fn no_tool_begins_in_a_closed_pipeline() {
    let (begun, closes) = (Arc::default(), Arc::<Closes>::default());
    let pipeline = pipeline(counted(&begun)).hook("*", HookPriority::DEFAULT, Arc::clone(&closes));
    assert!(closes.0.set(pipeline.clone()).is_ok());
    assert_eq!(kind(&call(&pipeline, Call::new("t", "{}")).await), ErrorKind::Aborted);
    assert_eq!(kind(&call(&pipeline, Call::new("t", "{}")).await), ErrorKind::Unavailable);
    assert_eq!(begun.load(Ordering::SeqCst), 0);
}

// The same with another thread: a call that fails has not started, and a call after the close does
// not start.
#[test]
fn calls_and_a_close_may_meet_anywhere() {
    for _ in 0..200 {
        let begun = Arc::default();
        let pipeline = pipeline(counted(&begun));
        let start = Barrier::new(2);
        let calls = || {
            start.wait();
            let done = |()| call(&pipeline, Call::new("t", "{}")).now_or_never().unwrap();
            std::iter::repeat(()).map(done).take_while(|outcome| outcome.result.is_ok()).count()
        };
        let worked = thread::scope(|scope| {
            let calls = scope.spawn(calls);
            start.wait();
            drop(pipeline.close());
            calls.join().unwrap()
        });
        assert_eq!(begun.load(Ordering::SeqCst), worked);
        let after = call(&pipeline, Call::new("t", "{}")).now_or_never().unwrap();
        assert_eq!(kind(&after), ErrorKind::Unavailable);
        assert_eq!(begun.load(Ordering::SeqCst), worked);
    }
}

// F40, F57: a tool that does not wait is not interrupted, and its result counts; when it waits, the
// limits apply.
#[tokio::test]
async fn limits_hold_where_a_tool_waits() {
    fn block() {
        thread::sleep(Duration::from_millis(20));
    }
    let limit = Duration::from_millis(5);
    let blocks = pipeline(tool("t", |_, _| async {
        block();
        "t"
    }));
    let outcome = call(&blocks, Call::new("t", "{}").timeout(limit)).await;
    assert_eq!(outcome.text(), "t");

    let waits = pipeline(tool("t", |_, _| async {
        block();
        pending::<String>().await
    }));
    let outcome = call(&waits, Call::new("t", "{}").timeout(limit)).await;
    assert_eq!(kind(&outcome), ErrorKind::Timeout);

    // Work on another thread is abandoned when the time is up.
    let elsewhere = pipeline(tool("t", |_, cx: Context| async move {
        let work = |stop: &WorkStop| {
            while !stop.is_stopped() {
                thread::sleep(Duration::from_millis(1));
            }
            Err::<String, _>(ToolError::timeout("it was told to stop"))
        };
        cx.run_blocking(work).await
    }));
    let outcome = call(&elsewhere, Call::new("t", "{}").timeout(limit)).await;
    assert_eq!(kind(&outcome), ErrorKind::Timeout);
}

/// A tool that works on another thread until it is stopped. With `heeds` it stops when told to,
/// else when the test lets it; with `holds` it holds the call first.
fn working(holds: bool, heeds: bool, at: &Arc<Barrier>) -> Pipeline {
    let at = Arc::clone(at);
    pipeline(tool("t", move |_, cx: Context| {
        let at = Arc::clone(&at);
        let work = move |stop: &WorkStop| {
            if holds {
                stop.hold()?;
            }
            at.wait();
            if heeds {
                while !stop.is_stopped() {
                    thread::yield_now();
                }
            } else {
                at.wait();
            }
            match stop.hold() {
                Ok(()) => Err(ToolError::internal("it was not told to stop")),
                Err(_) if holds => Ok("changed"),
                Err(error) => Err(error),
            }
        };
        async move { cx.run_blocking(work).await }
    }))
}

// F57: the result of work that had begun to change something is reported, even when the call has
// timed out.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_over_waits_for_work_that_is_held() {
    const LIMIT: Duration = Duration::from_secs(2);
    let both = Arc::new(Barrier::new(2));
    for (holds, limited) in [(true, false), (true, true), (false, false), (false, true)] {
        let pipeline = working(holds, holds, &both);
        let token = CancellationToken::new();
        let request = Call::new("t", "{}").cancelled_by(token.clone());
        let request = if limited { request.timeout(LIMIT) } else { request };
        // The clock stands still until the work has begun.
        let over = async {
            tokio::task::yield_now().await;
            both.wait();
            match limited {
                true => tokio::time::advance(LIMIT + Duration::from_millis(1)).await,
                false => token.cancel(),
            }
        };
        let (outcome, ()) = tokio::join!(call(&pipeline, request), over);
        if !holds {
            // The call did not wait for the work, which still runs.
            both.wait();
        }
        let over = if limited { ErrorKind::Timeout } else { ErrorKind::Aborted };
        match holds {
            true => assert_eq!(outcome.text(), "changed", "{limited}"),
            false => assert_eq!(kind(&outcome), over),
        }
    }
}

// F57: the wait is limited, and the hint says what may have happened.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_over_does_not_wait_for_ever() {
    let both = Arc::new(Barrier::new(2));
    let (pipeline, token) = (working(true, false, &both), CancellationToken::new());
    let over = async {
        tokio::task::yield_now().await;
        both.wait();
        token.cancel();
        tokio::task::yield_now().await;
        tokio::time::advance(Duration::from_secs(6)).await;
    };
    let request = Call::new("t", "{}").cancelled_by(token.clone());
    let (outcome, ()) = tokio::join!(call(&pipeline, request), over);
    both.wait();
    assert_eq!(kind(&outcome), ErrorKind::Aborted);
    assert!(outcome.text().contains("had begun to make its changes"), "{}", outcome.text());
}
