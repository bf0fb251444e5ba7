//! The port for transports: a connection to a server, reduced to what tools need.
//!
//! **Invariant:** nothing here depends on the transport. What a server sends is passed on as it is;
//! other modules decide what to trust.

use std::borrow::Cow;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use rmcp::model::{ErrorCode, ErrorData};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;
use tokio_util::sync::CancellationToken;
use tool_sdk_core::{Output, TaskSupport, ToolError};

use super::result::convert_result;
use super::server_requests::ServerRequestHandler;

/// The future of a request to a server.
pub type RemoteFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, RemoteError>> + Send + 'a>>;

/// A connection to a server.
///
/// Implement it for a transport of your own. Dropping a returned future means that the caller has
/// stopped waiting for the response.
///
/// # Examples
///
/// ```
/// use serde_json::json;
/// use tool_sdk::mcp::{RemoteConnection, RemoteCall, RemoteResult, RemoteTool, RemoteFuture};
///
/// /// A server in this process.
/// struct Echo;
///
/// impl RemoteConnection for Echo {
///     fn list_tools(&self) -> RemoteFuture<'_, Vec<RemoteTool>> {
///         let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
///         let echo = RemoteTool::new("echo", schema).with_description("Returns the text.");
///         Box::pin(async { Ok(vec![echo]) })
///     }
///
///     fn call_tool<'a>(&'a self, call: RemoteCall<'a>) -> RemoteFuture<'a, RemoteResult> {
///         let text = call.arguments["text"].as_str().unwrap_or_default();
///         Box::pin(async move { Ok(RemoteResult::text(text)) })
///     }
/// }
/// ```
pub trait RemoteConnection: Send + Sync + 'static {
    /// Lists the tools of the server.
    fn list_tools(&self) -> RemoteFuture<'_, Vec<RemoteTool>>;

    /// Calls a tool. An implementation must not retry: a call is sent at most once.
    fn call_tool<'a>(&'a self, call: RemoteCall<'a>) -> RemoteFuture<'a, RemoteResult>;

    /// Waits for the result of a call that the server runs as a task, after the connection that made the
    /// call was lost.
    fn resume_task<'a>(
        &'a self,
        call: RemoteCall<'a>,
        task: &'a str,
    ) -> RemoteFuture<'a, RemoteResult> {
        let _ = call;
        Box::pin(async move {
            Err(RemoteError::protocol(format_args!(
                "cannot resume `{task}`: the connection does not support tasks"
            )))
        })
    }

    /// Reads a resource.
    fn read_resource<'a>(&'a self, uri: &'a str) -> RemoteFuture<'a, Value> {
        Box::pin(async move {
            Err(RemoteError::protocol(format_args!(
                "cannot read `{uri}`: the connection does not support resources"
            )))
        })
    }

    /// Lists the resources of the server, and the templates of further ones.
    fn list_resources(&self) -> RemoteFuture<'_, Vec<RemoteResource>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Lists the prompts of the server.
    fn list_prompts(&self) -> RemoteFuture<'_, Vec<RemotePrompt>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Returns the messages of a prompt, in the protocol's form.
    fn get_prompt<'a>(
        &'a self,
        name: &'a str,
        arguments: Map<String, Value>,
    ) -> RemoteFuture<'a, Value> {
        let _ = arguments;
        Box::pin(async move {
            Err(RemoteError::protocol(format_args!(
                "cannot get `{name}`: the connection does not support prompts"
            )))
        })
    }

    /// Returns what the server says about how it is used. It is not trustworthy.
    fn instructions(&self) -> Option<String> {
        None
    }

    /// Asks the server to notify changes of a resource, from now on.
    fn watch_resource<'a>(&'a self, uri: &'a str) -> RemoteFuture<'a, ()> {
        Box::pin(async move {
            Err(RemoteError::protocol(format_args!(
                "cannot watch `{uri}`: the connection does not support subscriptions"
            )))
        })
    }

    /// Ends what [`watch_resource`](Self::watch_resource) began.
    fn unwatch_resource<'a>(&'a self, uri: &'a str) -> RemoteFuture<'a, ()> {
        let _ = uri;
        Box::pin(std::future::ready(Ok(())))
    }

    /// Waits until the server notifies that something that it offers beside tools changed. Lists that
    /// the server has at all are reported once at the start.
    fn offer_changed(&self) -> Pin<Box<dyn Future<Output = OfferChange> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    /// Waits until the server notifies that its tools changed.
    fn tools_changed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    /// Waits until the connection is closed.
    fn closed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    /// Whether the connection is closed.
    fn is_closed(&self) -> bool {
        false
    }

    /// Closes the connection, and waits until the server has ended or was ended.
    fn shut_down(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }

    /// Returns warnings about the last list of tools, for people.
    fn listing_warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the end of the server's standard error.
    fn stderr_tail(&self) -> String {
        String::new()
    }
}

/// What changed of that which a server offers beside tools.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "the protocol knows these three")]
pub enum OfferChange {
    /// The list of its resources.
    ResourceList,
    /// The list of its prompts.
    PromptList,
    /// The content of the resource with this URI.
    Resource(String),
}

/// A resource as a server describes it; none of it is trustworthy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RemoteResource {
    /// The URI; for a template a pattern such as `notes://{id}`.
    #[serde(alias = "uriTemplate")]
    pub uri: String,
    /// The server's name of the resource.
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is, in the server's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// A prompt as a server describes it; none of it is trustworthy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RemotePrompt {
    /// The server's name of the prompt.
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// When to use it, in the server's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The arguments to fill in.
    #[serde(default)]
    pub arguments: Vec<RemotePromptArgument>,
}

/// An argument of a server's prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RemotePromptArgument {
    /// The name.
    pub name: String,
    /// What to fill in, in the server's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the prompt needs it.
    #[serde(default)]
    pub required: bool,
}

/// A tool as a server describes it; none of it is trustworthy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RemoteTool {
    /// The server's name of the tool.
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does, in the server's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// The JSON Schema of a structured result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The server's hints about risk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
    /// What extensions of the protocol add.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// Whether the server runs its calls as tasks; only those of 2025-11-25 say so.
    #[serde(skip)]
    pub task_support: TaskSupport,
}

impl RemoteTool {
    /// Returns a tool with a name and a schema of its arguments only.
    #[must_use]
    pub fn new(name: impl Into<String>, input_schema: Value) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            input_schema,
            output_schema: None,
            annotations: None,
            meta: None,
            task_support: TaskSupport::default(),
        }
    }

    /// Sets the description.
    #[must_use]
    pub fn with_description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// Whether models may see it; `_meta.ui.visibility` restricts some tools to user interfaces.
    pub(super) fn is_visible_to_models(&self) -> bool {
        let ui = self.meta.as_ref().and_then(|meta| meta.get("ui"));
        let Some(visibility) = ui.and_then(|ui| ui.get("visibility")) else { return true };
        match visibility {
            Value::Array(audience) => audience.iter().any(|one| one == "model"),
            other => other == "model",
        }
    }

    /// Returns the annotation `hint`, if it is a boolean.
    pub(super) fn risk_hint(&self, hint: &str) -> Option<bool> {
        self.annotations.as_ref()?.get(hint)?.as_bool()
    }
}

/// Receives progress: steps done, steps in total, and a message.
pub type ProgressCallback<'a> = &'a (dyn Fn(u64, Option<u64>, String) + Send + Sync);

/// One call of a tool.
#[non_exhaustive]
pub struct RemoteCall<'a> {
    /// The server's name in the host's configuration.
    pub server: &'a str,
    /// The server's name of the tool.
    pub tool: &'a str,
    /// The arguments, as they were approved.
    pub arguments: &'a Map<String, Value>,
    /// How long the server may be silent.
    pub timeout: Duration,
    /// Receives the progress of the call.
    pub on_progress: ProgressCallback<'a>,
    /// Answers the requests that the server sends during the call.
    pub request_handler: &'a ServerRequestHandler,
    /// Triggered when the caller stops waiting for the result.
    pub cancel: CancellationToken,
    /// Whether the server runs the call as a task.
    pub task_support: TaskSupport,
}

impl fmt::Debug for RemoteCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteCall")
            .field("server", &self.server)
            .field("tool", &self.tool)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// The result of a call, in the protocol's form.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RemoteResult {
    /// Texts, images and links, in order.
    #[serde(default)]
    pub content: Vec<Value>,
    /// The structured result.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_present"
    )]
    pub structured_content: Option<Value>,
    /// Whether the tool failed.
    #[serde(default)]
    pub is_error: bool,
    /// What extensions of the protocol add.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
}

/// Deserializes a field that is present, also when it is `null`.
fn deserialize_present<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

impl RemoteResult {
    /// Returns a result with one text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        let block = serde_json::json!({ "type": "text", "text": text.into() });
        Self::from_content(vec![block])
    }

    /// Returns a result with these content blocks, in the protocol's form.
    #[must_use]
    pub fn from_content(content: Vec<Value>) -> Self {
        Self { content, ..Self::default() }
    }

    /// Converts the result for the model: texts become the text, images and links attachments, and
    /// invisible characters are escaped.
    ///
    /// # Examples
    ///
    /// ```
    /// use tool_sdk::mcp::RemoteResult;
    ///
    /// let output = RemoteResult::text("no\u{200b}where").into_output();
    /// assert_eq!(output.as_text(), "no\\u{200b}where");
    /// ```
    #[must_use]
    pub fn into_output(self) -> Output {
        convert_result(self, false)
    }
}

impl From<RemoteError> for ToolError {
    fn from(error: RemoteError) -> Self {
        let message = format!("{error}");
        let told = match error.class {
            ErrorClass::Connection => Self::unavailable(message),
            ErrorClass::Timeout => Self::timeout(message),
            ErrorClass::Aborted => Self::aborted(message),
            ErrorClass::Protocol => Self::failed(message),
        };
        match error.source {
            Some(source) => told.source(source),
            None => told,
        }
    }
}

/// Why a request to a server failed.
#[derive(Debug, Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct RemoteError {
    /// The class of the failure.
    pub class: ErrorClass,
    /// What is wrong, fit for a model.
    pub message: Cow<'static, str>,
    /// The cause, for the host.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
    /// Whether it is certain that the server did not run the request.
    pub not_run: bool,
    /// Whether the user has to authorize the server first; see
    /// [`ServerManager::authorize`](super::ServerManager::authorize).
    pub needs_authorization: bool,
    /// The task that the call runs as, if the connection was lost while it ran; see
    /// [`RemoteConnection::resume_task`].
    pub task: Option<String>,
    /// The end of the server's standard error, if the server is gone.
    pub stderr: String,
}

/// The class of a failure of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorClass {
    /// The server is not reachable, or disconnected.
    Connection,
    /// The server was silent for too long.
    Timeout,
    /// The caller stopped waiting.
    Aborted,
    /// The server answered with an error, or violated the protocol.
    Protocol,
}

impl ErrorClass {
    /// Returns the type of the error in the metadata of outcomes: `connection_error`, `timeout`,
    /// `aborted` or `unknown`.
    #[must_use]
    pub const fn error_type(self) -> &'static str {
        match self {
            Self::Connection => "connection_error",
            Self::Timeout => "timeout",
            Self::Aborted => "aborted",
            Self::Protocol => "unknown",
        }
    }

    /// `connection`, `timeout`, `aborted` or `protocol`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Timeout => "timeout",
            Self::Aborted => "aborted",
            Self::Protocol => "protocol",
        }
    }
}

impl RemoteError {
    /// Returns a failure of `class` with a message for the model.
    pub fn new(class: ErrorClass, message: impl fmt::Display) -> Self {
        let message = message.to_string().into();
        Self {
            class,
            message,
            source: None,
            not_run: false,
            needs_authorization: false,
            task: None,
            stderr: String::new(),
        }
    }

    /// The server is not reachable, or disconnected.
    pub fn connection(message: impl fmt::Display) -> Self {
        Self::new(ErrorClass::Connection, message)
    }

    /// The server was silent for too long.
    pub fn timeout(message: impl fmt::Display) -> Self {
        Self::new(ErrorClass::Timeout, message)
    }

    /// The caller stopped waiting.
    pub fn aborted(message: impl fmt::Display) -> Self {
        Self::new(ErrorClass::Aborted, message)
    }

    /// The server violated the protocol, or returned an error.
    pub fn protocol(message: impl fmt::Display) -> Self {
        Self::new(ErrorClass::Protocol, message)
    }

    /// Marks that the server did not run the request.
    #[must_use]
    pub fn not_run(mut self) -> Self {
        self.not_run = true;
        self
    }

    /// Marks that the user has to authorize the server first.
    #[must_use]
    pub fn needs_authorization(mut self) -> Self {
        self.needs_authorization = true;
        self
    }

    /// Whether the server says that the request itself is wrong.
    pub(super) fn is_invalid_params(&self) -> bool {
        let said = self.source.as_ref().and_then(|source| source.downcast_ref::<ErrorData>());
        said.is_some_and(|said| said.code == ErrorCode::INVALID_PARAMS)
    }

    /// Adds the end of the server's standard error.
    #[must_use]
    pub fn with_stderr(mut self, words: impl Into<String>) -> Self {
        self.stderr = words.into();
        self
    }

    /// Adds the cause, for the host only.
    #[must_use]
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(source.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn visibility_app_hides_a_tool_from_models() {
        let tool = |meta: Value| {
            let mut tool = RemoteTool::new("t", json!({ "type": "object" }));
            tool.meta = meta.as_object().cloned();
            tool.is_visible_to_models()
        };
        assert!(tool(json!({})) && tool(json!({ "ui": { "resourceUri": "ui://x" } })));
        assert!(tool(json!({ "ui": { "visibility": ["app", "model"] } })));
        assert!(!tool(json!({ "ui": { "visibility": ["app"] } })));
        assert!(!tool(json!({ "ui": { "visibility": "app" } })));
    }

    #[test]
    fn null_structured_content_is_kept() {
        let read = |value: Value| serde_json::from_value::<RemoteResult>(value).unwrap();
        assert_eq!(
            read(json!({ "structuredContent": null })).structured_content,
            Some(Value::Null)
        );
        assert_eq!(read(json!({ "content": [] })).structured_content, None);
    }
}
