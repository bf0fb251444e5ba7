//! One call on its way through the pipeline: what every stage may look at.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::run::panicked;
use super::{Pipeline, fit};
use crate::call::{Call, CallId, Note, Outcome};
use crate::content::Output;
use crate::context::{Context, Session};
use crate::error::{ErrorKind, ToolError};
use crate::event::{Artifact, Ending, EventKind, millis};
use crate::tool::{Definition, Prepared, Tool};

/// One call on its way through the pipeline.
pub(super) struct Frame<'a> {
    pub(super) pipeline: &'a Pipeline,
    pub(super) session: &'a Session,
    pub(super) call: &'a Call<'a>,
    pub(super) definition: &'a Definition,
    pub(super) id: CallId,
    tool: Option<&'a dyn Tool>,
    started: Instant,
    /// Whether a beginning was told whose end was not.
    open: bool,
}

/// A call that is dropped half-way was cancelled by whoever dropped it.
impl Drop for Frame<'_> {
    fn drop(&mut self) {
        if self.open {
            let dropped = ToolError::aborted("the call was dropped");
            self.event(|| self.terminal(&Err(dropped)));
        }
    }
}

impl<'a> Frame<'a> {
    #[inline]
    pub(super) fn new(
        pipeline: &'a Pipeline,
        session: &'a Session,
        call: &'a Call<'a>,
        tool: &'a dyn Tool,
    ) -> Self {
        let mut frame = Self::of(pipeline, session, call, tool.definition());
        frame.tool = Some(tool);
        frame
    }

    /// A call without a tool.
    #[inline]
    pub(super) fn of(
        pipeline: &'a Pipeline,
        session: &'a Session,
        call: &'a Call<'a>,
        definition: &'a Definition,
    ) -> Self {
        let id = call.id.clone().unwrap_or_else(CallId::next);
        let started = Instant::now();
        Self { pipeline, session, call, definition, id, tool: None, started, open: false }
    }

    /// Whether the pipeline is open, and the caller known where the tool asks for that.
    #[inline]
    pub(super) fn admit(&self) -> Result<(), ToolError> {
        if self.pipeline.events.hub().is_closed() {
            return Err(ToolError::unavailable("the host has closed its tools"));
        }
        if self.definition.flags.requires_auth && self.session.user().is_none() {
            return Err(ToolError::unauthorized(format_args!(
                "`{}` is for known users only, and nobody is signed in",
                self.definition.name
            )));
        }
        Ok(())
    }

    /// The arguments, decoded; a panic while that is done is the call's failure.
    #[inline]
    pub(super) fn prepare(&self) -> Result<Box<dyn Prepared>, ToolError> {
        let Some(tool) = self.tool else { return Err(ToolError::internal("there is no tool")) };
        let prepare = AssertUnwindSafe(|| tool.prepare(&self.call.arguments));
        match catch_unwind(prepare) {
            Ok(prepared) => prepared.map_err(ToolError::from),
            Err(panic) => Err(panicked(&*panic)),
        }
    }

    /// Tells that the call was understood and begins.
    #[inline]
    pub(super) fn announce(&mut self, prepared: &dyn Prepared) {
        let display = &self.definition.display;
        self.event(|| EventKind::Pending {
            display: Arc::new(display.clone()),
            source: self.definition.source.clone(),
            arguments: display.masked(self.call.arguments.text()),
            summary: catch_unwind(AssertUnwindSafe(|| prepared.summary())).ok().flatten(),
            notes: prepared.notes().to_vec(),
        });
        self.event(|| EventKind::Started);
        self.open = true;
    }

    /// What the tool gets to know.
    #[inline]
    pub(super) fn context(&self) -> Context {
        Context::of_call(
            self.session,
            Arc::clone(self.pipeline.events.hub()) as _,
            &self.definition.name,
            &self.id,
            self.call,
            self.started,
            self.timeout(),
        )
    }

    pub(super) fn started(&self) -> Instant {
        self.started
    }

    #[inline]
    fn timeout(&self) -> std::time::Duration {
        self.call.timeout.or(self.definition.timeout).unwrap_or(self.pipeline.timeout)
    }

    /// When the time of the call is up.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.started.checked_add(self.timeout())
    }

    /// Whether nobody wants the result any more.
    #[inline]
    pub(super) fn is_aborted(&self) -> bool {
        self.session.is_cancelled()
            || self.call.cancel.as_ref().is_some_and(CancellationToken::is_cancelled)
    }

    /// Waits until nobody wants the result any more.
    pub(super) async fn aborted(&self) {
        let call = async {
            match &self.call.cancel {
                Some(token) => token.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = call => {}
            () = self.session.cancel_token().cancelled() => {}
            () = self.pipeline.closed.cancelled() => {}
        }
    }

    /// The end of every call: its text is cut, exactly one terminal event goes out.
    #[inline]
    pub(super) fn end(
        mut self,
        mut result: Result<Output, ToolError>,
        notes: Vec<Note>,
    ) -> Outcome {
        let truncated = fit::fit(&self, &mut result);
        self.open = false;
        self.event(|| self.terminal(&result));
        Outcome { call: self.id.clone(), result, truncated, notes }
    }

    fn terminal(&self, result: &Result<Output, ToolError>) -> EventKind {
        let elapsed = self.started.elapsed();
        let display = Arc::new(self.definition.display.clone());
        let source = self.definition.source.clone();
        match result {
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

    /// Sends an event, which is not even built when nobody listens.
    #[inline]
    pub(super) fn event(&self, kind: impl FnOnce() -> EventKind) {
        let hub = self.pipeline.events.hub();
        if hub.is_open() {
            hub.send(self.session, &self.definition.name, &self.id, kind());
        }
    }
}
