//! An in-memory pipeline for tests of tools.

use crate::call::{Call, CallId, Outcome, RawArgs};
use crate::content::Output;
use crate::context::{Context, Session};
use crate::error::ToolError;
use crate::name::ToolName;
use crate::permission::Mode;
use crate::pipeline::Pipeline;
use crate::registry::Registry;
use crate::secrets::SecretValue;
use crate::tool::IntoTools;

/// Returns a context without subscribers, for calling a tool's function directly.
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
        CallId::from_external("test"),
    )
}

/// A pipeline with a session, for tests of tools.
///
/// No approval is requested: the mode is [`Mode::Bypass`], unless
/// [`map_pipeline`](Harness::map_pipeline) sets another one.
#[derive(Clone, Debug)]
pub struct Harness {
    pipeline: Pipeline,
    session: Session,
}

impl Harness {
    /// Creates a harness for `tools`.
    ///
    /// # Panics
    ///
    /// Panics when two of them have the same name.
    #[must_use]
    #[track_caller]
    pub fn new(tools: impl IntoTools) -> Self {
        match Registry::builder().add(tools).build() {
            Ok(registry) => Self::from_registry(registry),
            Err(error) => panic!("{error}"),
        }
    }

    /// Creates a harness for all tools of a registry.
    #[must_use]
    pub fn from_registry(registry: Registry) -> Self {
        let pipeline = Pipeline::new(registry).mode(Mode::Bypass);
        Self { pipeline, session: Session::new("test") }
    }

    /// Changes the pipeline, for example its mode, its rules, or its approver.
    #[must_use]
    pub fn map_pipeline(mut self, change: impl FnOnce(Pipeline) -> Pipeline) -> Self {
        self.pipeline = change(self.pipeline);
        self
    }

    /// Adds a service to the session, for tools that take it as state.
    #[must_use]
    pub fn lend<T: Send + Sync + 'static>(mut self, service: T) -> Self {
        self.session = self.session.with_service(service);
        self
    }

    /// Sets a secret that tools read with [`Context::secret`](crate::Context::secret).
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::testing::Harness;
    /// use tool_sdk::{Context, ToolError, tool, tools};
    ///
    /// /// Tell the weather.
    /// #[tool(read, open_world)]
    /// async fn tell_weather(cx: &Context) -> Result<String, ToolError> {
    ///     let key = cx.secret("WEATHER_API_KEY").await?;
    ///     Ok(format!("sunny, says {}", key.expose()))
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let harness = Harness::new(tools![tell_weather]).with_secret("WEATHER_API_KEY", "correct horse");
    /// let output = harness.ok("tell_weather", "{}").await;
    /// assert_eq!(output.as_text(), "sunny, says [redacted]");
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// Panics when `name` is not the name of a variable, or `value` is too short for a secret.
    #[must_use]
    #[track_caller]
    pub fn with_secret(self, name: &str, value: &str) -> Self {
        let secrets = self.session.secrets();
        match secrets.set_for_session(&self.session, name, SecretValue::new(value), true) {
            Ok(()) => self,
            Err(error) => panic!("{error}"),
        }
    }

    /// Calls tools in `session`, in place of the session that had the services and secrets so far.
    #[must_use]
    pub fn with_session(mut self, session: Session) -> Self {
        self.session = session;
        self
    }

    /// Returns the pipeline.
    #[must_use]
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// Calls a tool.
    pub async fn call<'a>(&self, name: &'a str, arguments: impl Into<RawArgs<'a>>) -> Outcome {
        self.pipeline.call(&self.session, Call::new(name, arguments)).await
    }

    /// Calls a tool, and expects success.
    ///
    /// # Panics
    ///
    /// Panics with the error message for the model when the call fails.
    pub async fn ok<'a>(&self, name: &'a str, arguments: impl Into<RawArgs<'a>>) -> Output {
        match self.call(name, arguments).await.result {
            Ok(output) => output,
            Err(error) => panic!("`{name}` failed: {error:?}"),
        }
    }

    /// Calls a tool, and expects an error.
    ///
    /// # Panics
    ///
    /// Panics with the output when the call succeeds.
    pub async fn error<'a>(&self, name: &'a str, arguments: impl Into<RawArgs<'a>>) -> ToolError {
        match self.call(name, arguments).await.result {
            Ok(output) => panic!("`{name}` succeeded: {output:?}"),
            Err(error) => error,
        }
    }

    /// Runs all examples of all tools.
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
