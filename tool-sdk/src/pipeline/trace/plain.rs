//! The span of a call: what it is and whose.

use tracing::Span;
use tracing::field::Empty;

use super::TARGET;
use crate::call::CallId;
use crate::context::Session;
use crate::name::ToolName;
use crate::tool::Definition;

/// The span of a call of `tool`, which may be one that there is not.
#[inline]
pub(in crate::pipeline) fn call_span(
    session: &Session,
    tool: &ToolName,
    _: Option<&Definition>,
    call: &CallId,
) -> Span {
    tracing::info_span!(
        target: TARGET,
        "tool.call",
        tool = tool.as_str(),
        call = %call,
        session = session.id(),
        outcome = Empty,
    )
}
