//! The end of every call: one terminal event, one result.

use std::sync::Arc;
use std::time::Duration;

use super::Pipeline;
use crate::call::{CallId, Outcome};
use crate::context::{Context, Session};
use crate::error::{ErrorKind, ToolError};
use crate::event::{Artifact, Ending, EventKind, millis};
use crate::name::ToolName;
use crate::tool::{Display, Source, Tool};

/// Ends a call that ran.
pub(super) fn finish(
    pipeline: &Pipeline,
    cx: &Context,
    tool: &dyn Tool,
    outcome: Outcome,
) -> Outcome {
    pipeline.event(cx, || {
        let definition = tool.definition();
        let elapsed = cx.started().elapsed();
        terminal(&definition.display, &definition.source, elapsed, &outcome)
    });
    outcome
}

/// Ends a call that was never run.
#[cold]
pub(super) fn failed(
    pipeline: &Pipeline,
    cx: &Context,
    tool: &dyn Tool,
    error: ToolError,
) -> Outcome {
    finish(pipeline, cx, tool, Outcome::new(cx.call().clone(), Err(error)))
}

/// Ends a call of a tool that there is not.
#[cold]
pub(super) fn unresolved(
    pipeline: &Pipeline,
    session: &Session,
    id: CallId,
    name: &str,
    error: ToolError,
) -> Outcome {
    let outcome = Outcome::new(id.clone(), Err(error));
    // A name that no tool can have does not go into an event either.
    let name = ToolName::new(name.to_owned()).unwrap_or(const { ToolName::from_static("_") });
    let cx = Context::new(session.clone(), name, id);
    pipeline
        .event(&cx, || terminal(&Display::default(), &Source::Native, Duration::ZERO, &outcome));
    outcome
}

fn terminal(display: &Display, source: &Source, elapsed: Duration, outcome: &Outcome) -> EventKind {
    let display = Arc::new(display.clone());
    let source = source.clone();
    match &outcome.result {
        Ok(output) => EventKind::Completed {
            display,
            source,
            elapsed_ms: millis(elapsed),
            title: output.title_text().map(str::to_owned),
            data: output.display_data().cloned(),
            artifacts: output
                .attachments()
                .iter()
                .map(|it| Artifact::new(it.mime.clone(), it.name.clone()))
                .collect(),
        },
        Err(error) => {
            let ending = Ending::new(display, source, error.kind(), error.to_string(), elapsed);
            match error.kind() {
                ErrorKind::Aborted => EventKind::Aborted(ending),
                ErrorKind::Timeout => EventKind::TimedOut(ending),
                _ => EventKind::Failed(ending),
            }
        }
    }
}
