//! Spans for `tracing`: one for each call, and in it one for each stage.
//!
//! With the feature `otel` the span of a call carries the attributes that OpenTelemetry's
//! semantic conventions for generative AI define for the execution of a tool.
//!
//! The cause of an error, which is for the host, is an event of the level `debug`.
//!
//! **Invariant:** a span holds names, ids and kinds, never arguments or results.

#[cfg(not(feature = "otel"))]
mod plain;
#[cfg(feature = "otel")]
mod semantic;
#[cfg(test)]
mod tests;

use tracing::Span;

#[cfg(not(feature = "otel"))]
pub(super) use self::plain::call_span;
#[cfg(feature = "otel")]
pub(super) use self::semantic::call_span;
use crate::content::Output;
use crate::error::ToolError;

/// The name by which filters select spans and events.
const TARGET: &str = "tool_sdk";

/// Returns the span of a stage, inside the current span of the call. It is never entered, so it
/// may stay open across await points.
pub(super) fn stage_span(stage: &'static str) -> Span {
    tracing::debug_span!(target: TARGET, "tool.stage", stage)
}

/// Logs the cause of an error, which the caller does not get. Its secrets are masked before.
pub(super) fn log_cause(tool: &str, error: &ToolError) {
    if tracing::enabled!(target: TARGET, tracing::Level::DEBUG)
        && let Some(mut cause) = std::error::Error::source(error)
    {
        let mut text = cause.to_string();
        while let Some(next) = cause.source() {
            text = format!("{text}: {next}");
            cause = next;
        }
        if !error.message().contains(&text) {
            let text = text.trim_end().replace('\n', "\n  ");
            tracing::debug!(target: TARGET, tool, "the cause of the error: {text}");
        }
    }
}

/// Records in the span of a call how it ended.
pub(super) fn record_outcome(span: &Span, result: &Result<Output, ToolError>) {
    match result {
        Ok(_) => {
            span.record("outcome", "ok");
        }
        Err(error) => {
            let kind = error.kind().as_str();
            // A span without this field ignores it.
            span.record("outcome", kind)
                .record("error.type", kind)
                .record("otel.status_code", "ERROR");
        }
    }
}
