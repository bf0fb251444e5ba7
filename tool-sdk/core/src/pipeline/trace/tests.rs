//! Tests what a `tracing` subscriber sees of a call, and what it must not see.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use futures_util::FutureExt as _;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{NoSubscriber, with_default};
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

use super::*;
use crate::batch::Batch;
use crate::call::{Call, CallId};
use crate::context::Session;
use crate::hook::{Hook, HookPriority};
use crate::name::ToolName;
use crate::permission::{ApprovalResponse, Mode, ScriptedApprover};
use crate::pipeline::Pipeline;
use crate::registry::Registry;
use crate::schema::Schema;
use crate::tool::{Definition, DynamicTool};

/// Records every field of every span and event.
#[derive(Clone, Default)]
struct FieldRecorder {
    fields: Arc<Mutex<BTreeMap<String, String>>>,
    spans: Arc<AtomicU64>,
}

struct Fields<'a>(&'a Mutex<BTreeMap<String, String>>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.lock().unwrap().insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.lock().unwrap().insert(field.name().to_owned(), value.to_owned());
    }
}

impl Subscriber for FieldRecorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == TARGET
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut Fields(&self.fields));
        Id::from_u64(self.spans.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Fields(&self.fields));
    }

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Fields(&self.fields));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Runs a closure with `subscriber` as the subscriber of this thread.
///
/// With a single subscriber, `tracing` caches for all threads whether it is interested in a span,
/// even for threads without it. So there are always two.
fn listening<T>(
    subscriber: impl Subscriber + Send + Sync + 'static,
    work: impl FnOnce() -> T,
) -> T {
    static ANOTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(FieldRecorder::default()));
    LazyLock::force(&ANOTHER);
    with_default(subscriber, work)
}

/// Returns the fields of the span of a call that ends in `result`.
fn span_fields(result: Result<Output, ToolError>) -> BTreeMap<String, String> {
    let listener = FieldRecorder::default();
    listening(listener.clone(), || end_in(result));
    assert!(listener.spans.load(Ordering::Relaxed) > 0);
    listener.fields.lock().unwrap().clone()
}

/// Makes one call that ends in `result`.
fn end_in(result: Result<Output, ToolError>) {
    let schema = Schema::from_value(json!({ "type": "object" })).unwrap();
    let definition = Definition::new(ToolName::from_static("dig"), "Digs a hole.", schema);
    let result = Mutex::new(Some(result));
    let tool = DynamicTool::new(definition, move |_: serde_json::Value, _| {
        let result = result.lock().unwrap().take().unwrap();
        async { result }
    });
    let registry = Registry::builder().add(tool).build().unwrap();
    let pipeline = Pipeline::new(registry).mode(Mode::Bypass);
    let session = Session::new("s1").with_conversation("c1");
    let call = Call::new("dig", "{}").id(&id().to_string());
    pipeline.call(&session, call).now_or_never().unwrap();
}

fn id() -> CallId {
    CallId::from_external("call-7")
}

#[track_caller]
fn check(heard: &BTreeMap<String, String>, expected: &[(&str, &str)]) {
    for (field, value) in expected {
        assert_eq!(heard.get(*field).map(String::as_str), Some(*value), "{field}");
    }
}

// F36
#[test]
fn a_span_says_which_call_it_is_and_how_it_ended() {
    let done = span_fields(Ok(Output::text("secret words")));
    check(&done, &[("tool", "dig"), ("call", "call-7"), ("session", "s1"), ("outcome", "ok")]);
    assert!(!done.values().any(|value| value.contains("secret")), "{done:?}");

    let failed = span_fields(Err(ToolError::timeout("secret words")));
    check(&failed, &[("outcome", "timeout")]);
    assert!(!failed.values().any(|value| value.contains("secret")), "{failed:?}");
}

// The cause is for the host, which asks for events of the level `debug`.
#[test]
fn an_event_holds_the_cause_of_an_error() {
    let cause = std::io::Error::other(ToolError::failed("line 1\nline 2"));
    let failed = span_fields(Err(ToolError::failed("no").source(cause)));
    check(&failed, &[("message", "the cause of the error: line 1\n  line 2"), ("tool", "dig")]);
    assert!(!span_fields(Err(ToolError::failed("no"))).contains_key("message"));
}

#[cfg(feature = "otel")]
#[test]
fn the_attributes_are_those_of_the_convention() {
    let failed = span_fields(Err(ToolError::denied("no")));
    check(
        &failed,
        &[
            ("otel.name", "execute_tool dig"),
            ("otel.status_code", "ERROR"),
            ("error.type", "denied"),
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", "dig"),
            ("gen_ai.tool.call.id", "call-7"),
            ("gen_ai.tool.type", "function"),
            ("gen_ai.tool.description", "Digs a hole."),
            ("gen_ai.conversation.id", "c1"),
        ],
    );
    assert!(!failed.contains_key("gen_ai.agent.name"));
    let done = span_fields(Ok(Output::text("")));
    assert!(!done.contains_key("error.type") && !done.contains_key("otel.status_code"));
}

#[test]
fn without_a_subscriber_there_is_no_span() {
    listening(NoSubscriber::default(), || {
        assert!(stage_span("parse").is_disabled());
        end_in(Ok(Output::text("done")));
    });
}

/// Records when spans begin and end, and their parents.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Written>>);

#[derive(Default)]
struct Written {
    /// The names of all spans; the first has the id 1.
    names: Vec<String>,
    /// The stack of entered spans.
    within: Vec<u64>,
    heard: Vec<String>,
}

impl Written {
    fn name(&self, id: u64) -> &str {
        &self.names[usize::try_from(id).unwrap() - 1]
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == TARGET
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let fields = Mutex::default();
        span.record(&mut Fields(&fields));
        let stage = fields.into_inner().unwrap().remove("stage");
        let name = stage.unwrap_or_else(|| span.metadata().name().to_owned());
        assert!(span.is_contextual());
        let mut written = self.0.lock().unwrap();
        let name = match written.within.last() {
            Some(&outer) => format!("{} > {name}", written.name(outer)),
            None => name,
        };
        written.heard.push(format!("{name} begins"));
        written.names.push(name);
        Id::from_u64(written.names.len() as u64)
    }

    fn try_close(&self, id: Id) -> bool {
        let mut written = self.0.lock().unwrap();
        let ends = format!("{} ends", written.name(id.into_u64()));
        written.heard.push(ends);
        true
    }

    fn enter(&self, id: &Id) {
        self.0.lock().unwrap().within.push(id.into_u64());
    }

    fn exit(&self, id: &Id) {
        assert_eq!(self.0.lock().unwrap().within.pop(), Some(id.into_u64()));
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
}

impl Spans {
    /// Takes the records; each clone of a span records an end.
    fn take_records(&self) -> Vec<String> {
        let mut heard = std::mem::take(&mut self.0.lock().unwrap().heard);
        heard.dedup();
        heard
    }
}

/// Returns the records that are expected of a call with these stages.
fn expected(stages: &[&str]) -> Vec<String> {
    let stages = stages.iter();
    let stages =
        stages.flat_map(|stage| ["begins", "ends"].map(|it| format!("tool.call > {stage} {it}")));
    std::iter::once("tool.call begins".to_owned())
        .chain(stages)
        .chain(["tool.call ends".to_owned()])
        .collect()
}

/// A pipeline with one tool and a hook.
fn pipeline() -> Pipeline {
    struct Looks;
    impl Hook for Looks {}

    let schema = Schema::from_value(json!({ "type": "object" })).unwrap();
    let definition = Definition::new(ToolName::from_static("dig"), "Digs a hole.", schema);
    let tool = DynamicTool::new(definition, |_: serde_json::Value, _| async { "dug" });
    let registry = Registry::builder().add(tool).build().unwrap();
    Pipeline::new(registry).mode(Mode::Bypass).hook("*", HookPriority::DEFAULT, Looks)
}

/// Returns the spans of a call of `tool`.
fn spans_of(pipeline: &Pipeline, tool: &str) -> Vec<String> {
    spans_within(async { drop(pipeline.call(&Session::default(), Call::new(tool, "{}")).await) })
}

fn spans_within(work: impl Future<Output = ()>) -> Vec<String> {
    let spans = Spans::default();
    listening(spans.clone(), || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(work);
    });
    spans.take_records()
}

// F36: a trace shows which stage takes the time.
#[test]
fn every_stage_has_its_span_inside_of_that_of_the_call() {
    let before = ["resolve", "admit", "parse", "before_hooks", "loop_guard", "authorize"];
    let behind = ["execute", "after_hooks", "truncate", "finish"];
    assert_eq!(spans_of(&pipeline(), "dig"), expected(&[&before[..], &behind].concat()));

    // The time that a prompt is open does not belong to the authorize stage.
    let asking =
        pipeline().mode(Mode::Auto).approver(ScriptedApprover::new([ApprovalResponse::Once]));
    assert_eq!(spans_of(&asking, "dig"), expected(&[&before[..], &["approval"], &behind].concat()));

    let pipeline = pipeline();
    let in_turn = spans_within(async {
        Batch::new(&pipeline).run(&Session::default(), [Call::new("dig", "{}")]).await;
    });
    assert_eq!(in_turn, expected(&[&before[..], &["schedule"], &behind].concat()));
}

#[test]
fn a_call_has_the_spans_of_the_stages_that_it_came_to() {
    let pipeline = pipeline();
    assert_eq!(spans_of(&pipeline, "dug"), expected(&["resolve", "truncate", "finish"]));
    drop(pipeline.close());
    let refused = spans_of(&pipeline, "dig");
    assert_eq!(refused, expected(&["resolve", "admit", "truncate", "finish"]));
}

#[test]
fn a_call_of_a_tool_that_there_is_not_has_its_span() {
    for (name, told) in [("dug", "dug"), ("secret words", "_")] {
        let listener = FieldRecorder::default();
        listening(listener.clone(), || {
            let (pipeline, session) = (pipeline(), Session::new("s1"));
            let call = Call::new(name, "{}").id("call-7");
            pipeline.call(&session, call).now_or_never().unwrap().result.unwrap_err();
        });
        let heard = listener.fields.lock().unwrap().clone();
        check(&heard, &[("tool", told), ("call", "call-7"), ("session", "s1")]);
        check(&heard, &[("outcome", "not_found")]);
        assert!(!heard.values().any(|value| value.contains("secret")), "{heard:?}");
        assert!(!heard.contains_key("gen_ai.tool.description"), "{heard:?}");
    }
}

#[test]
fn who_listens_to_whole_calls_alone_hears_of_no_stage() {
    /// A subscriber that is not interested in the spans inside a call.
    struct Whole(Spans);

    impl Subscriber for Whole {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            *metadata.level() <= Level::INFO && self.0.enabled(metadata)
        }

        fn new_span(&self, span: &Attributes<'_>) -> Id {
            self.0.new_span(span)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, _: &Event<'_>) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    let spans = Spans::default();
    listening(Whole(spans.clone()), || {
        let (pipeline, session) = (pipeline(), Session::default());
        let outcome = pipeline.call(&session, Call::new("dig", "{}")).now_or_never().unwrap();
        outcome.result.unwrap();
    });
    assert_eq!(spans.take_records(), ["tool.call begins"]);
}
