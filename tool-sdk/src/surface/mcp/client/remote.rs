//! A connection to a server, as far as its tools need one: the port for other transports.
//!
//! **Invariant:** nothing here knows how a message travels. What a server says is kept as it
//! was said; others decide what to believe.

use std::borrow::Cow;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::questions::Answers;

/// What a connection is asked to do, on its way.
pub type RemoteWork<'a, T> = Pin<Box<dyn Future<Output = Result<T, RemoteError>> + Send + 'a>>;

/// A connection to a server.
///
/// Hosts with a transport of their own implement it; dropping a future of it means that
/// nobody waits for the answer any more.
///
/// # Examples
///
/// ```
/// use serde_json::json;
/// use tool_sdk::mcp::{Remote, RemoteCall, RemoteResult, RemoteTool, RemoteWork};
///
/// /// A server in this very process.
/// struct Echo;
///
/// impl Remote for Echo {
///     fn tools(&self) -> RemoteWork<'_, Vec<RemoteTool>> {
///         let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
///         let echo = RemoteTool::new("echo", schema).described("Says it again.");
///         Box::pin(async { Ok(vec![echo]) })
///     }
///
///     fn call<'a>(&'a self, call: RemoteCall<'a>) -> RemoteWork<'a, RemoteResult> {
///         let text = call.arguments["text"].as_str().unwrap_or_default();
///         Box::pin(async move { Ok(RemoteResult::text(text)) })
///     }
/// }
/// ```
pub trait Remote: Send + Sync + 'static {
    /// Every tool of the server.
    fn tools(&self) -> RemoteWork<'_, Vec<RemoteTool>>;

    /// Calls a tool, once: nothing is sent a second time.
    fn call<'a>(&'a self, call: RemoteCall<'a>) -> RemoteWork<'a, RemoteResult>;

    /// Reads a resource.
    fn read<'a>(&'a self, uri: &'a str) -> RemoteWork<'a, Value> {
        Box::pin(async move {
            Err(RemoteError::protocol(format_args!("`{uri}`: the connection reads no resources")))
        })
    }

    /// Waits until the server says that its tools are others now.
    fn changed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    /// Waits until the connection is gone.
    fn closed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    /// Whether the connection is gone.
    fn is_closed(&self) -> bool {
        false
    }

    /// What was odd about the tools when they were listed last, for people.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// What the server said of its own troubles: the end of its standard error.
    fn complaints(&self) -> String {
        String::new()
    }
}

/// A tool as a server describes it; nothing of it is to be believed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RemoteTool {
    /// The name by which the server knows it.
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does, in the server's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The schema of its arguments.
    pub input_schema: Value,
    /// The schema of a structured result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What the server says about the risk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
    /// What extensions of the protocol add.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
}

impl RemoteTool {
    /// A tool with nothing but a name and a schema of its arguments.
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
        }
    }

    /// Says what it does.
    #[must_use]
    pub fn described(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// Whether models may see it; some tools are there for screens only.
    pub(super) fn is_for_models(&self) -> bool {
        let ui = self.meta.as_ref().and_then(|meta| meta.get("ui"));
        let Some(visibility) = ui.and_then(|ui| ui.get("visibility")) else { return true };
        match visibility {
            Value::Array(audience) => audience.iter().any(|one| one == "model"),
            other => other == "model",
        }
    }

    /// What the server says about the risk under `hint`.
    pub(super) fn hint(&self, hint: &str) -> Option<bool> {
        self.annotations.as_ref()?.get(hint)?.as_bool()
    }
}

/// What is told about how far a call is: steps done, steps in all, and words.
pub type Report<'a> = &'a (dyn Fn(u64, Option<u64>, String) + Send + Sync);

/// One call of a tool, by the names that the server knows.
#[non_exhaustive]
pub struct RemoteCall<'a> {
    /// The server's name in the host's configuration.
    pub server: &'a str,
    /// The server's own name of the tool.
    pub tool: &'a str,
    /// The arguments, as they were approved.
    pub arguments: &'a Map<String, Value>,
    /// For how long the server may say nothing.
    pub timeout: Duration,
    /// Who hears how far the call is.
    pub report: Report<'a>,
    /// Who answers what the server asks meanwhile.
    pub answers: &'a Answers,
    /// Triggered when nobody waits for the result any more.
    pub cancel: CancellationToken,
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

/// What became of a call, in the protocol's own form.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RemoteResult {
    /// Texts, images, links, in order.
    #[serde(default)]
    pub content: Vec<Value>,
    /// The result for programs.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub structured_content: Option<Value>,
    /// Whether the tool failed.
    #[serde(default)]
    pub is_error: bool,
    /// What extensions of the protocol add.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
}

/// A value that is there is there, also when it is `null`.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

impl RemoteResult {
    /// One text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        let block = serde_json::json!({ "type": "text", "text": text.into() });
        Self { content: vec![block], ..Self::default() }
    }
}

/// Why a server did not do what it was asked to.
#[derive(Debug, Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct RemoteError {
    /// Which class of failure it is.
    pub class: ErrorClass,
    /// What is wrong, fit for a model.
    pub message: Cow<'static, str>,
    /// The cause, for the host.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
    /// Whether it is certain that the server did nothing of what it was asked.
    pub not_run: bool,
    /// What the server said of its own troubles, where it went away for good.
    pub complaints: String,
}

/// The classes of failures of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorClass {
    /// The server is not there, or went away.
    Connection,
    /// The server said nothing for too long.
    Timeout,
    /// Nobody wanted the answer any more.
    Aborted,
    /// The server answered with an error, or with something that is no answer.
    Protocol,
}

impl ErrorClass {
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
    /// A failure of `class`, with what a model should read.
    pub fn new(class: ErrorClass, message: impl fmt::Display) -> Self {
        let message = message.to_string().into();
        Self { class, message, source: None, not_run: false, complaints: String::new() }
    }

    /// The server is not there.
    pub fn connection(message: impl fmt::Display) -> Self {
        Self::new(ErrorClass::Connection, message)
    }

    /// The server said nothing for too long.
    pub fn timeout(message: impl fmt::Display) -> Self {
        Self::new(ErrorClass::Timeout, message)
    }

    /// Nobody wanted the answer any more.
    pub fn aborted(message: impl fmt::Display) -> Self {
        Self::new(ErrorClass::Aborted, message)
    }

    /// The server does not keep to the protocol, or says no.
    pub fn protocol(message: impl fmt::Display) -> Self {
        Self::new(ErrorClass::Protocol, message)
    }

    /// Says that the server did nothing of what it was asked.
    #[must_use]
    pub fn not_run(mut self) -> Self {
        self.not_run = true;
        self
    }

    /// Adds what the server said of its own troubles.
    #[must_use]
    pub fn complaining(mut self, words: impl Into<String>) -> Self {
        self.complaints = words.into();
        self
    }

    /// Adds the cause, for the host only.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tools_for_screens_are_not_for_models() {
        let tool = |meta: Value| {
            let mut tool = RemoteTool::new("t", json!({ "type": "object" }));
            tool.meta = meta.as_object().cloned();
            tool.is_for_models()
        };
        assert!(tool(json!({})) && tool(json!({ "ui": { "resourceUri": "ui://x" } })));
        assert!(tool(json!({ "ui": { "visibility": ["app", "model"] } })));
        assert!(!tool(json!({ "ui": { "visibility": ["app"] } })));
        assert!(!tool(json!({ "ui": { "visibility": "app" } })));
    }

    #[test]
    fn a_result_that_is_null_is_a_result() {
        let read = |value: Value| serde_json::from_value::<RemoteResult>(value).unwrap();
        assert_eq!(
            read(json!({ "structuredContent": null })).structured_content,
            Some(Value::Null)
        );
        assert_eq!(read(json!({ "content": [] })).structured_content, None);
    }
}
