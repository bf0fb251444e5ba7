//! The events of one call as a stream.

use std::sync::Arc;

use tokio::sync::Notify;

use super::*;
use crate::pipeline::CallUpdate;

/// Returns the kinds of all events, and the text of the outcome, which comes last and once.
async fn read_all(mut events: CallEvents) -> (Vec<String>, String) {
    let mut seen = Vec::new();
    let text = loop {
        match events.next().await.expect("an outcome") {
            CallUpdate::Event(event) => seen.push(event),
            CallUpdate::Finished(outcome) => break outcome.text().into_owned(),
        }
    };
    assert!(events.next().await.is_none(), "nothing follows the outcome");
    assert!(seen.iter().all(|event| event.call == *events.id()));
    assert!(seen.is_sorted_by_key(|event| event.seq));
    (kinds(&seen), text)
}

fn owned(name: &'static str) -> Call<'static> {
    Call::new(name, "{}")
}

// F187: the events come in order, and the outcome ends them.
#[tokio::test]
async fn the_events_of_a_call_end_with_its_outcome() {
    let talking = tool("t", |_, cx| async move {
        cx.emit_output("one");
        tokio::task::yield_now().await;
        cx.emit_output("two");
        "done"
    });
    let pipeline = pipeline(talking);
    let (seen, text) = read_all(pipeline.call_with_events(Session::new("s"), owned("t"))).await;
    assert_eq!(seen, ["pending", "started", "output", "output", "completed"]);
    assert_eq!(text, "done");
    // A reader that comes late misses nothing.
    let events = pipeline.call_with_events(Session::new("s"), owned("t"));
    pipeline.call(&Session::new("other"), owned("t")).await;
    assert_eq!(read_all(events).await.0.len(), 5);
}

// F187
#[tokio::test]
async fn a_call_that_fails_ends_with_its_outcome_as_well() {
    let pipeline = pipeline(tool("t", |_, _| async { panic!("with {}", "words") as String }));
    let (seen, text) = read_all(pipeline.call_with_events(Session::new("s"), owned("t"))).await;
    assert_eq!(seen, ["pending", "started", "failed"]);
    assert!(text.contains("a defect of its own"), "{text}");
    let unknown = pipeline.call_with_events(Session::new("s"), owned("none"));
    assert!(read_all(unknown).await.1.contains("none"));
}

// F187: a reader that goes away takes the call with it.
#[tokio::test]
async fn dropping_the_events_cancels_the_call() {
    let started = Arc::new(Notify::new());
    let signal = Arc::clone(&started);
    let pipeline = pipeline(tool("t", move |_, _| {
        let signal = Arc::clone(&signal);
        async move {
            signal.notify_one();
            pending::<String>().await
        }
    }));
    let mut all = pipeline.subscribe();
    let events = pipeline.call_with_events(Session::new("s"), owned("t"));
    started.notified().await;
    drop(events);
    loop {
        let event = all.recv().await.expect("a terminal event");
        if event.kind.is_terminal() {
            assert!(matches!(event.kind, EventKind::Aborted(_)), "{event:?}");
            return;
        }
    }
}
