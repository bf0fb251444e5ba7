//! Traits for what a host may serve beside its tools: resources and prompts.
//!
//! A server without a provider does not announce the capability and answers "method not found".
//!
//! **Invariant:** nothing here depends on the types of the protocol; a host implements plain traits.

use std::future::ready;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::broadcast;
use tool_sdk_core::{Attachment, ConversationMessage, Session, ToolError};

/// A resource that clients may read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceDefinition {
    /// The URI; for a template a pattern such as `notes://{id}`.
    pub uri: String,
    /// A human-readable name.
    pub name: String,
    /// A description of the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

impl ResourceDefinition {
    /// Returns a resource with a URI and a name.
    #[must_use]
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: name.into(), ..Self::default() }
    }

    /// Sets the description.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets the media type.
    #[must_use]
    pub fn with_mime_type(mut self, mime: impl Into<String>) -> Self {
        self.mime_type = Some(mime.into());
        self
    }
}

/// Serves resources to clients.
///
/// # Examples
///
/// ```
/// use tool_sdk::mcp::{ResourceDefinition, ResourceProvider};
/// use tool_sdk::{Attachment, ToolError};
///
/// struct Motto;
///
/// impl ResourceProvider for Motto {
///     async fn list(&self) -> Vec<ResourceDefinition> {
///         vec![ResourceDefinition::new("shelf://motto", "motto").with_mime_type("text/plain")]
///     }
///
///     async fn read(&self, uri: &str) -> Result<Option<Attachment>, ToolError> {
///         let is_motto = uri == "shelf://motto";
///         Ok(is_motto.then(|| Attachment::bytes("text/plain", b"read more".to_vec())))
///     }
/// }
/// ```
pub trait ResourceProvider: Send + Sync + 'static {
    /// Returns the resources that `resources/list` shows.
    fn list(&self) -> impl Future<Output = Vec<ResourceDefinition>> + Send;

    /// Returns the templates, for resources that are too many to list. Each has a URI template as
    /// its URI.
    fn list_templates(&self) -> impl Future<Output = Vec<ResourceDefinition>> + Send {
        ready(Vec::new())
    }

    /// Reads a resource. Returns `None` if there is no such resource.
    fn read(&self, uri: &str)
    -> impl Future<Output = Result<Option<Attachment>, ToolError>> + Send;

    /// Subscribes to the URIs of resources that change. If this returns a receiver, clients may
    /// subscribe to single resources.
    fn subscribe_updates(&self) -> Option<broadcast::Receiver<String>> {
        None
    }

    /// Begins to report changes of this resource, because a client has subscribed to it. It is called
    /// once for each subscription, and [`stop_updates`](Self::stop_updates) at the end of it.
    fn start_updates(&self, uri: &str) {
        let _ = uri;
    }

    /// Ends what [`start_updates`](Self::start_updates) began.
    fn stop_updates(&self, uri: &str) {
        let _ = uri;
    }

    /// Subscribes to changes of the list. If this returns a receiver, clients are notified.
    fn subscribe_list_changes(&self) -> Option<broadcast::Receiver<()>> {
        None
    }

    /// Returns completions for `argument` of the template, the best first.
    fn complete_argument(&self, template: &str, argument: &str, begun: &str) -> Vec<String> {
        let _ = (template, argument, begun);
        Vec::new()
    }
}

/// A prompt: a template of messages that the client's user can start with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptDefinition {
    /// The name.
    pub name: String,
    /// When to use it, for users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The arguments that the user fills in.
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptArgument {
    /// The name.
    pub name: String,
    /// What to fill in.
    pub description: String,
    /// Whether the argument is required.
    pub required: bool,
}

impl PromptDefinition {
    /// Returns a prompt without arguments.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        let description = Some(description.into());
        Self { name: name.into(), description, arguments: Vec::new() }
    }

    /// Adds a required argument.
    #[must_use]
    pub fn with_required_argument(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
    ) -> Self {
        let (name, description) = (name.into(), description.into());
        self.arguments.push(PromptArgument { name, description, required: true });
        self
    }

    /// Adds an optional argument.
    #[must_use]
    pub fn with_optional_argument(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
    ) -> Self {
        let (name, description) = (name.into(), description.into());
        self.arguments.push(PromptArgument { name, description, required: false });
        self
    }
}

/// Serves prompts to clients.
///
/// # Examples
///
/// ```
/// use serde_json::{Map, Value};
/// use tool_sdk::mcp::{PromptDefinition, PromptProvider};
/// use tool_sdk::{ConversationMessage, Session, ToolError};
///
/// struct Greeting;
///
/// impl PromptProvider for Greeting {
///     async fn list(&self) -> Vec<PromptDefinition> {
///         vec![PromptDefinition::new("greet", "Say hello.").with_required_argument("name", "Whom to greet.")]
///     }
///
///     async fn get(
///         &self,
///         _: &str,
///         arguments: &Map<String, Value>,
///         _: &Session,
///     ) -> Result<Vec<ConversationMessage>, ToolError> {
///         Ok(vec![ConversationMessage::text("user", format!("Greet {}.", arguments["name"]))])
///     }
/// }
/// ```
pub trait PromptProvider: Send + Sync + 'static {
    /// Returns all prompts.
    fn list(&self) -> impl Future<Output = Vec<PromptDefinition>> + Send;

    /// Returns the messages of a listed prompt. `arguments` holds all required arguments. The
    /// content of a message is a string or a content block of the protocol.
    ///
    /// It may ask the client with [`Session::inquire`]; it is then called again when the answers
    /// are there.
    fn get(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        session: &Session,
    ) -> impl Future<Output = Result<Vec<ConversationMessage>, ToolError>> + Send;

    /// Subscribes to changes of the list. If this returns a receiver, clients are notified.
    fn subscribe_list_changes(&self) -> Option<broadcast::Receiver<()>> {
        None
    }

    /// Returns completions for `argument` of the prompt, the best first.
    fn complete_argument(&self, name: &str, argument: &str, begun: &str) -> Vec<String> {
        let _ = (name, argument, begun);
        Vec::new()
    }
}

/// Returns the first required argument that is missing from `given`.
pub(super) fn find_missing_argument<'p>(
    prompt: &'p PromptDefinition,
    given: &Map<String, Value>,
) -> Option<&'p str> {
    let needed = prompt.arguments.iter().filter(|argument| argument.required);
    needed.map(|argument| argument.name.as_str()).find(|name| !given.contains_key(*name))
}
