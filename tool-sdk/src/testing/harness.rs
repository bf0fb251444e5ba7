//! A pipeline in memory, for the tests of tools.

use crate::call::{Call, CallId, Outcome, RawArgs};
use crate::content::Output;
use crate::context::{Context, Session};
use crate::error::ToolError;
use crate::name::ToolName;
use crate::permission::Mode;
use crate::pipeline::Pipeline;
use crate::registry::Registry;
use crate::tool::IntoTools;

/// The context of a call that nobody watches, for calling a tool's function itself.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Context, testing};
///
/// async fn greet(name: String, cx: &Context) -> String {
///     cx.progress(1, None, "greeting");
///     format!("hello {name}")
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// assert_eq!(greet("ada".to_owned(), &testing::context()).await, "hello ada");
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use]
pub fn context() -> Context {
    Context::new(
        Session::new("test"),
        const { ToolName::from_static("test") },
        CallId::given("test"),
    )
}

/// Tools in a pipeline of their own, with a session to lend things to.
///
/// Nobody is asked: the mode is [`Mode::Bypass`], unless [`with`](Harness::with) sets another.
#[derive(Clone, Debug)]
pub struct Harness {
    pipeline: Pipeline,
    session: Session,
}

impl Harness {
    /// A harness for `tools`.
    ///
    /// # Panics
    ///
    /// Panics when two of them have the same name.
    #[must_use]
    #[track_caller]
    pub fn new(tools: impl IntoTools) -> Self {
        match Registry::builder().add(tools).build() {
            Ok(registry) => Self::of(registry),
            Err(error) => panic!("{error}"),
        }
    }

    /// A harness for all tools of a registry.
    #[must_use]
    pub fn of(registry: Registry) -> Self {
        let pipeline = Pipeline::new(registry).mode(Mode::Bypass);
        Self { pipeline, session: Session::new("test") }
    }

    /// Changes the pipeline, such as its mode, its rules, or who is asked.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(Pipeline) -> Pipeline) -> Self {
        self.pipeline = change(self.pipeline);
        self
    }

    /// Lends tools a service.
    #[must_use]
    pub fn lend<T: Send + Sync + 'static>(mut self, service: T) -> Self {
        self.session = self.session.lend(service);
        self
    }

    /// Calls tools in `session`.
    #[must_use]
    pub fn session(mut self, session: Session) -> Self {
        self.session = session;
        self
    }

    /// The pipeline.
    #[must_use]
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// Calls a tool.
    pub async fn call<'a>(&self, name: &'a str, arguments: impl Into<RawArgs<'a>>) -> Outcome {
        self.pipeline.call(&self.session, Call::new(name, arguments)).await
    }

    /// Calls a tool that is to succeed.
    ///
    /// # Panics
    ///
    /// Panics with the message for the model when it fails.
    pub async fn ok<'a>(&self, name: &'a str, arguments: impl Into<RawArgs<'a>>) -> Output {
        match self.call(name, arguments).await.result {
            Ok(output) => output,
            Err(error) => panic!("`{name}` failed: {error:?}"),
        }
    }

    /// Calls a tool that is to fail.
    ///
    /// # Panics
    ///
    /// Panics with the result when it succeeds.
    pub async fn error<'a>(&self, name: &'a str, arguments: impl Into<RawArgs<'a>>) -> ToolError {
        match self.call(name, arguments).await.result {
            Ok(output) => panic!("`{name}` succeeded: {output:?}"),
            Err(error) => error,
        }
    }

    /// Runs every example of every tool.
    ///
    /// # Panics
    ///
    /// Panics with all examples that fail.
    pub async fn run_examples(&self) {
        let view = self.pipeline.toolset().view();
        let mut failures = Vec::new();
        for tool in view.tools() {
            let definition = tool.definition();
            for example in &definition.examples {
                let name = definition.name.as_str();
                if let Err(error) = self.call(name, example.as_ref()).await.result {
                    failures.push(format!("`{name}` with {example}: {error}"));
                }
            }
        }
        assert!(failures.is_empty(), "examples that fail:\n{}", failures.join("\n"));
    }
}
