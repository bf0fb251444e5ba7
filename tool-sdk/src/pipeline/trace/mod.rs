//! What `tracing` hears of calls: a span for each, and in it one for each stage.
//!
//! It is for whoever looks at a whole program; what happens in one call is told by the
//! pipeline's own events. With the feature `otel` the span carries the attributes that
//! OpenTelemetry's conventions for generative AI give the execution of a tool.
//!
//! **Invariant:** neither arguments nor results are in a span, only names, ids and kinds,
//! and a call that nobody listens to pays for one look at whether somebody does.

#[cfg(not(feature = "otel"))]
mod plain;
#[cfg(feature = "otel")]
mod semantic;
#[cfg(test)]
mod tests;

use tracing::level_filters::LevelFilter;
use tracing::{Instrument as _, Level, Span};

#[cfg(not(feature = "otel"))]
pub(super) use self::plain::call_span;
#[cfg(feature = "otel")]
pub(super) use self::semantic::call_span;
use crate::call::Outcome;
use crate::content::Output;
use crate::error::ToolError;
use crate::pipeline::frame::Frame;

/// The name that filters know spans and events by.
const TARGET: &str = "tool_sdk";

/// Whether anybody could listen to the spans of calls.
#[inline]
pub(super) fn is_on() -> bool {
    LevelFilter::current() >= Level::INFO
}

/// Lets a call run inside its span, which hears how it ends.
pub(super) async fn traced(span: Span, call: impl Future<Output = Outcome>) -> Outcome {
    let outcome = call.instrument(span.clone()).await;
    end(&span, &outcome.result);
    outcome
}

/// Whether a call is traced: a type, so that the way of one that is not has no trace of it.
pub(super) trait Traced: Send {
    const IS_ON: bool;
}

/// A call that nobody traces.
pub(super) struct Off;

/// A call that is traced, with the span of the stage before there is a frame to keep it.
pub(super) struct On {
    _resolving: Span,
}

impl Traced for Off {
    const IS_ON: bool = false;
}

impl Traced for On {
    const IS_ON: bool = true;
}

impl On {
    /// Lets the call with this span be resolved.
    pub(super) fn resolving(call: &Span) -> Self {
        Self { _resolving: call.in_scope(|| span_of("resolve")) }
    }
}

/// Says that a call that is traced goes into a stage: its span lasts until the next stage, or
/// the end.
#[inline]
pub(super) fn stage(frame: &mut Frame<'_>, is_traced: bool, stage: &'static str) {
    if is_traced {
        enter(frame, stage);
    }
}

#[cold]
fn enter(frame: &mut Frame<'_>, stage: &'static str) {
    if LevelFilter::current() >= Level::DEBUG {
        frame.enter(|| span_of(stage));
    }
}

/// The span of a stage, inside of that of the call. Nothing enters it: it only has a beginning
/// and an end, so that it may stay open across waits.
#[cold]
fn span_of(stage: &'static str) -> Span {
    tracing::debug_span!(target: TARGET, "tool.stage", stage)
}

/// Writes into a call's span how the call ended.
fn end(span: &Span, result: &Result<Output, ToolError>) {
    match result {
        Ok(_) => {
            span.record("outcome", "ok");
        }
        Err(error) => {
            let kind = error.kind().as_str();
            // A span without such a field leaves it out.
            span.record("outcome", kind)
                .record("error.type", kind)
                .record("otel.status_code", "ERROR");
        }
    }
}
