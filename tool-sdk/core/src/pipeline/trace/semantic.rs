//! The span of a call, with the attributes that OpenTelemetry's conventions for generative
//! AI give the execution of a tool.
//!
//! They are plain fields: a layer that exports spans to a collector uses them as they are, and
//! takes the span's name and status from the fields that begin with `otel.`.

use tracing::Span;
use tracing::field::Empty;

use super::TARGET;
use crate::pipeline::invocation::Invocation;
use crate::tool::ToolSource;

/// Returns the span of a call of `tool`; `definition` is `None` for an unknown tool.
pub(crate) fn call_span(invocation: &Invocation<'_>) -> Span {
    let (session, call) = (invocation.session, &invocation.origin.id);
    let definition = invocation.definition();
    let (name, description) = (definition.name.as_str(), &*definition.description);
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
        gen_ai.tool.type = tool_type(&definition.source),
        gen_ai.tool.description = (!description.is_empty()).then_some(description),
        gen_ai.conversation.id = session.conversation(),
        gen_ai.agent.name = session.agent(),
    )
}

/// Returns the tool type of the conventions for this source: a tool of the program itself, or one
/// outside of it.
fn tool_type(source: &ToolSource) -> &'static str {
    match source {
        ToolSource::Native | ToolSource::Plugin { .. } => "function",
        ToolSource::Mcp { .. } | ToolSource::Remote { .. } => "extension",
    }
}
