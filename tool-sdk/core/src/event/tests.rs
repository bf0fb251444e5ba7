//! Events for a subscriber that falls behind, or that may not see secrets.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt;

use futures_util::FutureExt as _;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::json;

use super::*;
use crate::permission::{Action, ApprovalInternals, DecisionSource};
use crate::redact::Redactor;
use crate::risk::{Risk, RiskClass};

fn pending() -> EventKind {
    let arguments = MaskedArguments::new(r#"{"key": "hunter2hunter2"}"#, &ToolDisplay::default());
    let summary = Some("with hunter2hunter2".to_owned());
    EventKind::Pending { arguments, summary, notes: Box::default() }
}

fn call_failure() -> CallFailure {
    CallFailure::new(&ToolError::failed("it failed"), Duration::ZERO)
}

/// A bus, and a function that publishes an event of a call, which says whether the call had a
/// start.
fn event_bus() -> (Arc<EventBus>, impl Fn(u64, EventKind, bool)) {
    let hub = Arc::<EventBus>::default();
    let sending = Arc::clone(&hub);
    let session = Session::new("s");
    let tool = Arc::new(ToolLabel::from_name(ToolName::from_static("t")));
    let beginnings = RefCell::new(HashMap::new());
    let send = move |call: u64, kind: EventKind, begun: bool| {
        let id = CallOrigin::new(CallId::from_external(&call.to_string()));
        let mut beginnings = beginnings.borrow_mut();
        let began = if begun { beginnings[&call] } else { 0 };
        let is_beginning = kind.starts_call();
        let about = EventCall { session: &session, tool: &tool, origin: &id };
        let seq = sending.publish(began, about, kind);
        if is_beginning {
            beginnings.insert(call, seq);
        }
    };
    (hub, send)
}

/// Drains the queue: the calls that started, those that ended, and the number of lost events.
fn drain_events(events: &mut Subscription) -> (HashSet<CallId>, Vec<CallId>, u64) {
    let (mut begun, mut ended, mut lost) = (HashSet::new(), Vec::new(), 0);
    let mut last = None;
    while let Some(event) = events.try_recv() {
        assert!(last.replace(event.seq) < Some(event.seq), "the numbers grow");
        match event.kind {
            EventKind::Pending { .. } => drop(begun.insert(event.call)),
            EventKind::Lost { count } => lost += count,
            kind if kind.is_terminal() => ended.push(event.call),
            _ => {}
        }
    }
    (begun, ended, lost)
}

// F62: the queue is bounded, and a subscriber that saw a call start sees its end.
#[test]
fn a_stalled_subscriber_keeps_a_bounded_number_of_events() {
    const CALLS: u64 = 100_000;
    let (hub, send) = event_bus();
    let mut events = hub.subscribe();
    // Calls that started before the subscriber stalled.
    for call in CALLS..CALLS + 100 {
        send(call, pending(), false);
    }
    assert_eq!(drain_events(&mut events).0.len(), 100);

    for call in 0..CALLS {
        send(call, pending(), false);
        send(call, EventKind::Started { arguments: None }, true);
        send(call, EventKind::Failed(call_failure()), true);
    }
    for call in 0..CALLS + 100 {
        // One whose arguments were invalid, and one that started before the subscription.
        send(CALLS * 2 + call, EventKind::Failed(call_failure()), false);
        send(call, EventKind::Failed(call_failure()), call >= CALLS);
    }
    let sent = CALLS * 3 + (CALLS + 100) * 2;

    let (begun, ended, lost) = drain_events(&mut events);
    let unread = begun.len() + ended.len();
    let ended: HashSet<_> = ended.into_iter().collect();
    assert!(begun.is_subset(&ended));
    assert!(
        (CALLS..CALLS + 100).all(|call| ended.contains(&CallId::from_external(&call.to_string())))
    );
    // All ends of the first calls, although their starts were lost.
    assert!((0..50_000_u64).all(|call| ended.contains(&CallId::from_external(&call.to_string()))));
    assert!(unread < 100_000, "{unread} events were kept");
    assert!(lost < sent && lost > sent - 100_000, "{lost} of {sent} were lost");

    // The queue is empty now, and a subscriber that reads again misses nothing.
    send(0, pending(), false);
    send(0, EventKind::Failed(call_failure()), true);
    let (begun, ended, lost) = drain_events(&mut events);
    assert_eq!((begun.len(), ended.len(), lost), (1, 1, 0));
}

// A subscriber to one call gets only the signals of that call.
#[test]
fn one_call_may_be_listened_to() {
    let (hub, send) = event_bus();
    let mut one = hub.subscribe_to(&CallId::from_external("1"));
    assert!(hub.has_signal_subscribers() && !hub.has_subscribers());
    let mut all = hub.subscribe();
    let mut last = hub.subscribe();
    for call in 0..3 {
        send(call, pending(), false);
        send(call, EventKind::Warned { message: format!("by {call}") }, false);
        send(call, EventKind::Failed(call_failure()), true);
    }
    let said = std::iter::from_fn(|| one.try_recv());
    let said: Vec<_> = said.map(|event| (event.call, event.kind)).collect();
    let [(call, EventKind::Warned { message })] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!((call, message.as_str()), (&CallId::from_external("1"), "by 1"));
    for other in [&mut all, &mut last] {
        assert_eq!(drain_events(other).1.len(), 3);
    }
    drop((all, last));
    assert!(hub.has_signal_subscribers() && !hub.has_subscribers());
    drop(one);
    assert!(!hub.has_signal_subscribers());
}

// LG1: no event contains what the redactor calls a secret.
#[test]
fn what_a_redactor_finds_is_in_no_event() {
    let secret = "hunter2hunter2";
    let value = || json!({ "a": [secret] });
    let text = || secret.to_owned();
    let mut decision = Decision::new(Action::Deny, DecisionSource::Rule, text());
    decision.subjects = vec![crate::tool::Resource::path("a", format!("/{secret}"))];
    decision.rules = vec![format!("deny t({secret})").parse().unwrap()];
    let failed = || CallFailure { message: text(), ..call_failure() };
    let completed = EventKind::Completed {
        elapsed_ms: 0,
        title: Some(text()),
        data: Some(Arc::new(value())),
        artifacts: [Artifact { mime: "text/plain".to_owned(), name: Some(text()) }].into(),
    };
    let run = HookRun { hook: "h".to_owned(), outcome: text(), elapsed_ms: 0 };
    let arguments = match pending() {
        EventKind::Pending { arguments, .. } => Some(arguments),
        _ => None,
    };
    let redactor = Redactor::new([secret]);
    for mut kind in [
        pending(),
        EventKind::Started { arguments },
        EventKind::HookFinished(run),
        EventKind::Denied(decision.into()),
        EventKind::Warned { message: text() },
        EventKind::Progress { done: 0, total: None, message: text() },
        EventKind::Metadata { key: "k".to_owned(), value: value().into() },
        EventKind::Emitted { kind: "k".to_owned(), data: value().into() },
        EventKind::Output { text: text() },
        completed,
        EventKind::Failed(failed()),
        EventKind::Aborted(failed()),
        EventKind::TimedOut(failed()),
    ] {
        assert!(format!("{kind:?}").contains(secret));
        kind.redact(&redactor, &[]);
        let shown = format!("{kind:?}{}", serde_json::to_string(&kind).unwrap());
        assert!(!shown.contains(secret), "{shown}");
        assert!(shown.contains("[redacted]"));
    }
}

/// JSON without duplicate keys in any object.
struct Strict;

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Strict;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_unit<E>(self) -> Result<Strict, E> {
                Ok(Strict)
            }

            fn visit_bool<E>(self, _: bool) -> Result<Strict, E> {
                Ok(Strict)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Strict, E> {
                Ok(Strict)
            }

            fn visit_str<E>(self, _: &str) -> Result<Strict, E> {
                Ok(Strict)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Strict, A::Error> {
                while items.next_element::<Strict>()?.is_some() {}
                Ok(Strict)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Strict, A::Error> {
                let mut seen = HashSet::new();
                while let Some((key, Strict)) = members.next_entry::<String, Strict>()? {
                    if !seen.insert(key.clone()) {
                        return Err(de::Error::custom(format_args!("`{key}` stands twice")));
                    }
                }
                Ok(Strict)
            }
        }
        from.deserialize_any(Any)
    }
}

fn permission_asked() -> EventKind {
    EventKind::PermissionAsked(Arc::new(ApprovalRequest {
        id: ApprovalId::from("1"),
        call: CallId::from_external("c"),
        session: "s".into(),
        agent: Some("a".to_owned()),
        tool: ToolName::from_static("t"),
        display: Arc::default(),
        source: ToolSource::Native,
        risk: Risk::new(RiskClass::Execute),
        permission: "t".to_owned(),
        arguments: json!({ "a": 1 }),
        original: Some(json!({ "a": 2 })),
        summary: Some("it".to_owned()),
        subjects: vec!["it".into()],
        suggestions: vec!["*".to_owned()],
        grantees: Vec::new(),
        internals: ApprovalInternals::default(),
        by: DecisionSource::Default,
        reason: "no rule matches it".to_owned(),
        rules: vec!["ask t(it)".parse().unwrap()],
        preview: Some(json!("x")),
        dangerous: false,
        fingerprint: "f".to_owned(),
        expires_in: Duration::from_secs(60),
    }))
}

// F41: JSON parsers differ in how they treat duplicate keys.
#[test]
fn no_key_stands_twice_in_an_event() {
    let run = HookRun { hook: "h".to_owned(), outcome: "none".to_owned(), elapsed_ms: 0 };
    let truncated = Truncation {
        original_lines: 2,
        original_bytes: 2,
        omitted_lines: 1,
        omitted_bytes: 1,
        dropped_lines: 0,
        dropped_bytes: 0,
        unprintable_bytes: 0,
        full_output_path: Some("/f".into()),
    };
    let mut names = Vec::new();
    for kind in [
        pending(),
        EventKind::HookStarted { hook: "h".to_owned() },
        EventKind::HookFinished(run),
        permission_asked(),
        EventKind::PermissionReplied { ask: ApprovalId::from("1"), reply: "once".into() },
        EventKind::Warned { message: "w".to_owned() },
        EventKind::Denied(Decision::new(Action::Deny, DecisionSource::Rule, "no").into()),
        EventKind::Looped { times: 3, cycle: 1, stopped: true },
        EventKind::Started { arguments: Some(MaskedArguments::new("{}", &ToolDisplay::default())) },
        EventKind::Progress { done: 1, total: Some(2), message: "m".to_owned() },
        EventKind::Metadata { key: "k".to_owned(), value: Arc::new(json!(1)) },
        EventKind::Emitted { kind: "k".to_owned(), data: Arc::new(json!(1)) },
        EventKind::Output { text: "o".to_owned() },
        EventKind::Truncated(truncated.into()),
        EventKind::Completed {
            elapsed_ms: 1,
            title: Some("t".to_owned()),
            data: Some(Arc::new(json!(1))),
            artifacts: [Artifact { mime: "text/plain".to_owned(), name: None }].into(),
        },
        EventKind::Failed(call_failure()),
        EventKind::Aborted(call_failure()),
        EventKind::TimedOut(call_failure()),
        EventKind::Lost { count: 1 },
    ] {
        let (call, session) = (CallId::from_external("c"), "s".into());
        names.push(kind.name());
        let tool = Arc::new(ToolLabel::from_name(ToolName::from_static("t")));
        let event = ToolEvent {
            seq: 1,
            call,
            parent: None,
            message: None,
            tool,
            session,
            ids: Arc::default(),
            kind,
        };
        let text = serde_json::to_string(&event).unwrap();
        serde_json::from_str::<Strict>(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!([&value["call"], &value["session"], &value["tool"]], ["c", "s", "t"], "{text}");
        assert_eq!(Some(value["type"].as_str().unwrap()), names.last().copied());
    }
    assert_eq!(names, EventKind::NAMES);
}

// The failure of an ignored hook is not a denial, and is still reported.
#[test]
fn the_failure_of_a_hook_matters() {
    for (outcome, severity) in [
        ("none", EventSeverity::Info),
        ("deny: failed: no", EventSeverity::Info),
        ("failed: it exited with 1", EventSeverity::Warning),
    ] {
        let run = HookRun { hook: "h".to_owned(), outcome: outcome.to_owned(), elapsed_ms: 0 };
        assert_eq!(EventKind::HookFinished(run).severity(), severity);
    }
}

// LG1: a secret that a summary contains only in part is masked, too.
#[test]
fn a_secret_that_was_cut_is_in_no_event() {
    let text = r#"{"text": "some words and hunter2-secret"}"#;
    let mut kind = EventKind::Pending {
        arguments: MaskedArguments::new(text, &ToolDisplay::default()),
        summary: Some("Saying some words and hunter2-sec…".to_owned()),
        notes: Box::default(),
    };
    kind.redact(&Redactor::new(["hunter2-secret"]), &[]);
    let shown = serde_json::to_string(&kind).unwrap();
    assert!(!shown.contains("hunter") && shown.contains("words and [redacted]…"), "{shown}");
}

// Events are read in order, once.
#[test]
fn reads_events_in_order() {
    let (hub, send) = event_bus();
    let mut events = hub.subscribe();
    assert!(events.try_recv().is_none());
    for call in 0..3 {
        send(call, pending(), false);
        send(call, EventKind::Failed(call_failure()), true);
    }
    let numbers: Vec<_> = std::iter::from_fn(|| events.try_recv()).map(|it| it.seq).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    send(3, EventKind::Warned { message: "late".to_owned() }, false);
    let event = events.try_recv().unwrap();
    assert_eq!((event.seq, &event.call), (7, &CallId::from_external("3")));
    assert!(matches!(&event.kind, EventKind::Warned { message } if message == "late"));
    assert!(events.try_recv().is_none());
}

// A worker reports what it could not pass on; such reports take no room.
#[test]
fn events_that_were_lost_elsewhere_are_counted_in_their_place() {
    let (hub, send) = event_bus();
    let mut events = hub.subscribe();
    let step = |done| EventKind::Progress { done, total: None, message: String::new() };
    send(1, step(1), false);
    for _ in 0..1000 {
        send(1, EventKind::Lost { count: 3 }, false);
    }
    send(1, step(2), false);
    let received: Vec<_> = std::iter::from_fn(|| events.try_recv()).map(|it| it.kind).collect();
    let [EventKind::Progress { done: 1, .. }, EventKind::Lost { count: 3000 }, last] = &*received
    else {
        panic!("{received:?}");
    };
    assert!(matches!(last, EventKind::Progress { done: 2, .. }));
}

// A `recv` that is dropped while it waits loses nothing.
#[tokio::test]
async fn a_dropped_recv_loses_no_event() {
    let (hub, send) = event_bus();
    let mut events = hub.subscribe();
    assert!(events.recv().now_or_never().is_none());
    send(1, EventKind::Warned { message: "one".to_owned() }, false);
    assert_eq!(events.recv().await.unwrap().call, CallId::from_external("1"));
    hub.close();
    assert!(events.recv().await.is_none());
}
