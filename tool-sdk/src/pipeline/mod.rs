//! The one way to run a tool: every gate stands here, in this order.
//!
//! ```text
//! resolve   name or alias; unknown names get close ones back
//! admit     the pipeline is open, the caller is known where the tool asks for that
//! prepare   strict JSON, decoded once, every fault in one message
//! run       time limit, cancellation, panics contained; events flow
//! fit       the text is cut to what a model can read; the whole goes to a file
//! finish    exactly one terminal event, exactly one result
//! ```
//!
//! **Invariant:** nothing here knows a surface, or any tool by its name.

mod fit;
mod frame;
mod run;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use self::frame::Frame;
use crate::call::{Call, Outcome};
use crate::context::Session;
use crate::error::{ErrorKind, ToolError};
use crate::event::{Events, HubOwner};
use crate::name::ToolName;
use crate::schema::Schema;
use crate::tool::Definition;
use crate::toolset::Toolset;
use crate::truncate::Budget;

/// Runs calls of the tools in a [`Toolset`].
///
/// Cheap to clone; clones share the toolset and the subscribers.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Call, Pipeline, Registry, Session, tool, tools};
///
/// /// Add two numbers.
/// #[tool(read)]
/// fn add(
///     /// The first.
///     a: i64,
///     /// The second.
///     b: i64,
/// ) -> String {
///     (a + b).to_string()
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let registry = Registry::builder().add(tools![add]).build()?;
/// let pipeline = Pipeline::new(registry);
///
/// let outcome = pipeline.call(&Session::default(), Call::new("add", r#"{"a": 2, "b": 3}"#)).await;
/// assert_eq!(outcome.text(), "5");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pipeline {
    toolset: Arc<Toolset>,
    events: HubOwner,
    timeout: Duration,
    budget: Budget,
    output_dir: Option<PathBuf>,
    closed: CancellationToken,
}

impl Pipeline {
    /// A pipeline over `toolset`, with every limit at its default.
    #[must_use]
    pub fn new(toolset: impl Into<Toolset>) -> Self {
        Self {
            toolset: Arc::new(toolset.into()),
            events: HubOwner::default(),
            timeout: Duration::from_mins(2),
            budget: Budget::default(),
            output_dir: None,
            closed: CancellationToken::new(),
        }
    }

    /// Sets how long a call may take whose tool does not say; two minutes by default.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how much text comes back from a tool that does not say; 2000 lines or 50 KiB
    /// by default.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Keeps the whole of texts that were cut, in one folder per session below `folder`.
    #[must_use]
    pub fn output_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.output_dir = Some(folder.into());
        self
    }

    /// The tools that can be called.
    #[must_use]
    pub fn toolset(&self) -> &Toolset {
        &self.toolset
    }

    /// Listens to what happens to calls from now on.
    #[must_use]
    pub fn subscribe(&self) -> Events {
        self.events.hub().subscribe()
    }

    /// Ends every running call and every subscription; later calls fail.
    pub fn close(&self) {
        self.events.hub().close();
        self.closed.cancel();
    }

    /// Runs one call from beginning to end.
    ///
    /// Whatever happens, there is exactly one outcome: a panic of the tool is a failed call.
    /// Dropping the future drops the tool's future too.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime with its timer, once a tool waits for something.
    pub async fn call(&self, session: &Session, call: Call<'_>) -> Outcome {
        // resolve
        let Some(tool) = self.toolset.get(&call.name) else {
            return self.unresolved(session, call);
        };
        let mut frame = Frame::new(self, session, &call, &*tool);

        // admit
        if let Err(error) = frame.admit() {
            return frame.end(Err(error), Vec::new());
        }

        // prepare
        let prepared = match frame.prepare() {
            Ok(prepared) => prepared,
            Err(error) => return frame.end(Err(error), Vec::new()),
        };
        frame.announce(&*prepared);

        // run
        let notes = prepared.notes().to_vec();
        let result = run::run(&frame, prepared).await;

        // fit, finish
        frame.end(result, notes)
    }

    /// Ends a call of a tool that there is not.
    #[cold]
    fn unresolved(&self, session: &Session, call: Call<'_>) -> Outcome {
        let error = self.unknown(&call.name);
        // A name that no tool can have does not go into an event either.
        let name = ToolName::new(call.name.clone().into_owned());
        let name = name.unwrap_or(const { ToolName::from_static("_") });
        let nothing = Definition::new(name, "", Schema::default());
        Frame::of(self, session, &call, &nothing).end(Err(error), Vec::new())
    }

    #[cold]
    fn unknown(&self, name: &str) -> ToolError {
        let shown: String = name.chars().take(ToolName::MAX).collect();
        let error = ToolError::new(
            ErrorKind::NotFound,
            format_args!("there is no tool `{}`", shown.escape_debug()),
        );
        let view = self.toolset.view();
        match view.close_names(name).as_slice() {
            [] => {
                let names: Vec<&str> = view
                    .definitions()
                    .take(20)
                    .map(|definition| definition.name.as_str())
                    .collect();
                error.hint(format_args!("the tools are: {}", names.join(", ")))
            }
            close => error.hint(format_args!("did you mean `{}`?", close.join("` or `"))),
        }
    }
}
