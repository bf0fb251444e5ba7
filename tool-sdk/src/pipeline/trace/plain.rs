//! The span of a call: what it is and whose.

use tracing::Span;
use tracing::field::Empty;

use super::TARGET;
use crate::call::CallId;
use crate::context::Session;
use crate::tool::Definition;

/// The span of a call.
#[inline]
pub(in crate::pipeline) fn call_span(
    session: &Session,
    definition: &Definition,
    call: &CallId,
) -> Span {
    tracing::info_span!(
        target: TARGET,
        "tool.call",
        tool = definition.name.as_str(),
        call = %call,
        session = session.id(),
        outcome = Empty,
    )
}
