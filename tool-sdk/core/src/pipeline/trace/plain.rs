//! The span of a call: its ids and names.

use tracing::Span;
use tracing::field::Empty;

use super::TARGET;
use crate::pipeline::invocation::Invocation;

/// Returns the span of a call of `tool`; `definition` is `None` for an unknown tool.
pub(crate) fn call_span(invocation: &Invocation<'_>) -> Span {
    let (session, call) = (invocation.session, &invocation.origin.id);
    let definition = invocation.definition();
    tracing::info_span!(
        target: TARGET,
        "tool.call",
        tool = definition.name.as_str(),
        call = %call,
        session = session.id(),
        outcome = Empty,
    )
}
