//! The span of a call, with the attributes that OpenTelemetry's conventions for generative
//! AI give the execution of a tool.
//!
//! They are plain fields: a layer that sends spans to a collector takes them as they are,
//! and the fields that begin with `otel.` tell it the span's name and status.

use tracing::Span;
use tracing::field::Empty;

use super::TARGET;
use crate::call::CallId;
use crate::context::Session;
use crate::name::ToolName;
use crate::tool::{Definition, Source};

/// The span of a call of `tool`, which may be one that there is not.
#[inline]
pub(in crate::pipeline) fn call_span(
    session: &Session,
    tool: &ToolName,
    definition: Option<&Definition>,
    call: &CallId,
) -> Span {
    let name = tool.as_str();
    tracing::info_span!(
        target: TARGET,
        "tool.call",
        tool = name,
        call = %call,
        session = session.id(),
        outcome = Empty,
        otel.name = %format_args!("execute_tool {name}"),
        otel.status_code = Empty,
        error.type = Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = name,
        gen_ai.tool.call.id = %call,
        gen_ai.tool.type = definition.map(|it| kind(&it.source)),
        gen_ai.tool.description = definition.map(|it| &*it.description),
        gen_ai.conversation.id = session.conversation(),
        gen_ai.agent.name = session.agent(),
    )
}

/// What the conventions call a tool of this source: one of the program itself, or one that
/// reaches outside of it.
fn kind(source: &Source) -> &'static str {
    match source {
        Source::Native | Source::Plugin { .. } => "function",
        Source::Mcp { .. } | Source::Remote => "extension",
    }
}
