//! Calls of tools with callbacks, such as a summary or suggestions.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Poll, ready};

use pin_project_lite::pin_project;
use serde_json::Value;

use super::staged::not_started;
use super::table::Table;
use crate::call::ArgumentNote;
use crate::content::Output;
use crate::context::Context;
use crate::error::ToolError;
use crate::tool::args::{InvalidArgs, ParsedArgs};
use crate::tool::{ExecutionPermit, OutputFuture, PreparedCall, Resource};

/// Returns the other facts that a call depends on.
type FactsFn<A> = fn(&A, &Context) -> Vec<(&'static str, String)>;
type ValidateFn<A> = fn(&A) -> Result<(), InvalidArgs>;
type PreviewFn<A> = fn(&A, &Context) -> Result<Option<Value>, ToolError>;

/// The typed callbacks of a tool whose arguments are an `A`.
#[expect(clippy::exhaustive_structs, reason = "generated code constructs it")]
#[expect(missing_docs, reason = "the fields are the items of `approval(..)` and `display(..)`")]
pub struct ToolCallbacks<A> {
    pub required: Option<fn(&A, &Context) -> bool>,
    pub resources: Option<fn(&A, &Context) -> Vec<Resource>>,
    pub suggest: Option<fn(&A) -> Vec<String>>,
    pub covers: Option<fn(&A, &str) -> bool>,
    pub dangerous: Option<fn(&A) -> bool>,
    pub facts: Option<FactsFn<A>>,
    pub summary: Option<fn(&A) -> String>,
    pub preview: Option<PreviewFn<A>>,
    pub result: Option<fn(&Output) -> Value>,
    pub key: Option<fn(&A) -> String>,
    pub validate: Option<ValidateFn<A>>,
}

impl<A> ToolCallbacks<A> {
    /// No callbacks; a table overrides the ones that it needs.
    pub const NONE: Self = Self {
        required: None,
        resources: None,
        suggest: None,
        covers: None,
        dangerous: None,
        facts: None,
        summary: None,
        preview: None,
        result: None,
        key: None,
        validate: None,
    };
}

impl<A> fmt::Debug for ToolCallbacks<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToolCallbacks")
    }
}

/// Runs the tool's own checks of decoded arguments.
///
/// # Errors
///
/// Fails with the faults that the tool found, in the words of other faults.
pub fn validate_args<A>(
    table: &Table,
    args: &A,
    callbacks: &ToolCallbacks<A>,
) -> Result<(), InvalidArgs> {
    match callbacks.validate {
        Some(validate) => {
            validate(args).map_err(|faults| faults.for_tool(table.spec().name, table.checks()))
        }
        None => Ok(()),
    }
}

/// Prepares a call with callbacks; `start` creates the future when the pipeline runs it.
pub fn stage_with<A, S, F>(
    taken: ParsedArgs,
    args: A,
    hooks: &'static ToolCallbacks<A>,
    start: S,
) -> Box<dyn PreparedCall>
where
    A: Send + 'static,
    S: FnOnce(A, ExecutionPermit) -> F + Send + 'static,
    F: Future<Output = Result<Output, ToolError>> + Send + 'static,
{
    Box::new(Hooked {
        waiting: Some((args, start)),
        taken,
        hooks,
        summary: OnceLock::new(),
        running: None,
    })
}

pin_project! {
    /// A prepared call with callbacks, which see the arguments until the call runs.
    struct Hooked<A: 'static, S, F> {
        waiting: Option<(A, S)>,
        taken: ParsedArgs,
        hooks: &'static ToolCallbacks<A>,
        // Events and approval requests show the same one.
        summary: OnceLock<String>,
        #[pin]
        running: Option<F>,
    }
}

impl<A, S, F> Hooked<A, S, F> {
    fn args(&self) -> Option<&A> {
        self.waiting.as_ref().map(|(args, _)| args)
    }
}

impl<A, S, F> PreparedCall for Hooked<A, S, F>
where
    A: Send + 'static,
    S: FnOnce(A, ExecutionPermit) -> F + Send + 'static,
    F: Future<Output = Result<Output, ToolError>> + Send + 'static,
{
    fn run(mut self: Box<Self>, approved: ExecutionPermit) -> OutputFuture {
        self.running = self.waiting.take().map(|(args, start)| start(args, approved));
        Box::into_pin(self)
    }

    fn summary(&self) -> Option<String> {
        let (summarize, args) = (self.hooks.summary?, self.args()?);
        let first_line = || summarize(args).lines().next().unwrap_or_default().to_owned();
        Some(self.summary.get_or_init(first_line).clone())
    }

    fn resources(&self, cx: &Context) -> Option<Vec<Resource>> {
        match self.hooks.resources {
            Some(resources) => Some(resources(self.args()?, cx)),
            None => self.taken.resources(cx),
        }
    }

    fn paths(&self, cx: &Context) -> Vec<Resource> {
        self.taken.paths(cx)
    }

    fn approval_required(&self, cx: &Context) -> Option<bool> {
        Some(self.hooks.required?(self.args()?, cx))
    }

    fn suggestions(&self) -> Vec<String> {
        match (self.hooks.suggest, self.args()) {
            (Some(suggest), Some(args)) => suggest(args),
            _ => Vec::new(),
        }
    }

    fn restricts_suggestions(&self) -> bool {
        self.hooks.suggest.is_some()
    }

    fn covered_by(&self, pattern: &str) -> Option<bool> {
        Some(self.hooks.covers?(self.args()?, pattern))
    }

    fn is_dangerous(&self) -> bool {
        match (self.hooks.dangerous, self.args()) {
            (Some(dangerous), Some(args)) => dangerous(args),
            _ => false,
        }
    }

    fn fingerprint_facts(&self, cx: &Context) -> Vec<(&'static str, String)> {
        match (self.hooks.facts, self.args()) {
            (Some(facts), Some(args)) => facts(args, cx),
            _ => Vec::new(),
        }
    }

    fn preview(&self, cx: &Context) -> Result<Option<Value>, ToolError> {
        match (self.hooks.preview, self.args()) {
            (Some(preview), Some(args)) => preview(args, cx),
            _ => Ok(None),
        }
    }

    fn concurrency_key(&self) -> Option<String> {
        Some(self.hooks.key?(self.args()?))
    }

    fn notes(&self) -> &[ArgumentNote] {
        &self.taken.notes
    }
}

impl<A, S, F> Future for Hooked<A, S, F>
where
    F: Future<Output = Result<Output, ToolError>>,
{
    type Output = Result<Output, ToolError>;

    fn poll(self: Pin<&mut Self>, task: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Some(running) = this.running.as_pin_mut() else {
            return Poll::Ready(Err(not_started()));
        };
        let result = ready!(running.poll(task));
        Poll::Ready(match this.hooks.result {
            Some(display) => result.map(|output| {
                let data = display(&output);
                output.display(data)
            }),
            None => result,
        })
    }
}
