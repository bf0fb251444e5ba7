//! Subscribers that lose no event: calls wait until they have read.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Lets the other tasks of the test run until they wait for something.
async fn let_tasks_run() {
    for _ in 0..10_000 {
        tokio::task::yield_now().await;
    }
}

fn counting_tool(counter: &Arc<AtomicUsize>) -> DynamicTool {
    let counter = Arc::clone(counter);
    tool("count", move |_, _| {
        counter.fetch_add(1, Ordering::Relaxed);
        async {}
    })
}

// F163: an event that a lossless subscriber selects is never lost, and memory stays bounded.
#[tokio::test]
async fn calls_wait_while_a_lossless_subscriber_is_full() {
    const CALLS: usize = 100;
    let runs = Arc::<AtomicUsize>::default();
    let pipeline = pipeline(counting_tool(&runs));
    let mut ends = pipeline.subscribe_lossless(8, |event| event.kind.is_terminal());
    let caller = pipeline.clone();
    let calls = tokio::spawn(async move {
        for _ in 0..CALLS {
            call(&caller, Call::new("count", "{}")).await;
            call(&caller, Call::new("unknown", "{}")).await;
        }
    });
    let_tasks_run().await;
    assert_eq!(runs.load(Ordering::Relaxed), 4, "as many calls as the capacity ran");

    // The subscriber's own calls would wait for itself.
    let reader = Session::new("reader").with_event_reader();
    assert!(pipeline.call(&reader, Call::new("count", "{}")).await.result.is_ok());
    for _ in 0..=CALLS * 2 {
        assert!(ends.recv().await.is_some_and(|event| event.kind.is_terminal()));
    }
    calls.await.unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), CALLS + 1);
    assert!(ends.try_recv().is_none());
}

#[tokio::test]
async fn a_running_tool_waits_while_a_lossless_subscriber_is_full() {
    const EVENTS: usize = 1000;
    let emitted = Arc::<AtomicUsize>::default();
    let counter = Arc::clone(&emitted);
    let pipeline = pipeline(tool("emit", move |_, cx| {
        let counter = Arc::clone(&counter);
        async move {
            for number in 0..EVENTS {
                cx.emit("number", number);
                counter.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        }
    }));
    let is_wanted = |event: &ToolEvent| matches!(event.kind, EventKind::Emitted { .. });
    let mut numbers = pipeline.subscribe_lossless(8, is_wanted);
    let mut all = pipeline.subscribe();
    let caller = pipeline.clone();
    let running = tokio::spawn(async move { call(&caller, Call::new("emit", "{}")).await });
    let_tasks_run().await;
    assert_eq!(emitted.load(Ordering::Relaxed), 8);
    for wanted in 0..EVENTS {
        let event = numbers.recv().await.unwrap();
        let EventKind::Emitted { data, .. } = event.kind else { panic!("{event:?}") };
        assert_eq!(*data, json!(wanted));
    }
    assert!(running.await.unwrap().result.is_ok());
    assert!(drain(&mut all).len() >= EVENTS, "another subscriber loses nothing by it");
}

#[tokio::test]
async fn held_calls_go_on_when_the_subscriber_ends_and_end_when_they_are_cancelled() {
    let runs = Arc::<AtomicUsize>::default();
    let pipeline = pipeline(counting_tool(&runs));
    let ends = pipeline.subscribe_lossless(1, |event| event.kind.is_terminal());
    call(&pipeline, Call::new("count", "{}")).await;

    let cancel = CancellationToken::new();
    cancel.cancel();
    let cancelled = call(&pipeline, Call::new("count", "{}").cancelled_by(cancel)).await;
    assert_eq!(kind(&cancelled), ErrorKind::Aborted);

    let caller = pipeline.clone();
    let held = tokio::spawn(async move { call(&caller, Call::new("count", "{}")).await });
    let_tasks_run().await;
    assert!(!held.is_finished());
    drop(ends);
    assert!(held.await.unwrap().result.is_ok());

    let _never_read = pipeline.subscribe_lossless(1, |_| true);
    let caller = pipeline.clone();
    let held = tokio::spawn(async move {
        call(&caller, Call::new("count", "{}")).await;
        call(&caller, Call::new("count", "{}")).await
    });
    let_tasks_run().await;
    assert!(!held.is_finished());
    pipeline.close().await;
    assert!(held.await.unwrap().result.is_err());
}
