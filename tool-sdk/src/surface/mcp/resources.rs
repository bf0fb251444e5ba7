//! What a host may serve beside its tools: resources and prompts.
//!
//! A server without them does not announce them, and answers that it does not know the
//! methods.
//!
//! **Invariant:** nothing here knows the protocol's library; a host implements plain traits.

use std::pin::Pin;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::broadcast;

use crate::content::Attachment;
use crate::context::{Message, Session};
use crate::error::ToolError;

/// Work of a host that is not done at once.
pub type ProviderFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ToolError>> + Send + 'a>>;

/// Something that peers may read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceDefinition {
    /// Where it is; for those that are many, a template such as `notes://{id}`.
    pub uri: String,
    /// A name for people.
    pub name: String,
    /// What it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

impl ResourceDefinition {
    /// A resource of which nothing more is known.
    #[must_use]
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: name.into(), ..Self::default() }
    }

    /// Says what it holds.
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

/// What peers may read.
///
/// # Examples
///
/// ```
/// use tool_sdk::Attachment;
/// use tool_sdk::mcp::{Resource, Resources, Work};
///
/// struct Motto;
///
/// impl Resources for Motto {
///     fn list(&self) -> Vec<Resource> {
///         vec![Resource::new("shelf://motto", "motto").mime("text/plain")]
///     }
///
///     fn read<'a>(&'a self, uri: &'a str) -> Work<'a, Option<Attachment>> {
///         let motto = (uri == "shelf://motto")
///             .then(|| Attachment::bytes("text/plain", b"read more".to_vec()));
///         Box::pin(async { Ok(motto) })
///     }
/// }
/// ```
pub trait ResourceProvider: Send + Sync + 'static {
    /// Those that can be listed.
    fn list(&self) -> Vec<ResourceDefinition>;

    /// Those that are too many to list, each with a template as its URI.
    fn list_templates(&self) -> Vec<ResourceDefinition> {
        Vec::new()
    }

    /// What stands there; nothing where there is no such resource.
    fn read<'a>(&'a self, uri: &'a str) -> ProviderFuture<'a, Option<Attachment>>;

    /// The URIs of resources that change, as they do; peers may subscribe to them then.
    fn subscribe_updates(&self) -> Option<broadcast::Receiver<String>> {
        None
    }

    /// What may stand for `argument` of the template, the best first.
    fn complete_argument(&self, template: &str, argument: &str, begun: &str) -> Vec<String> {
        let _ = (template, argument, begun);
        Vec::new()
    }
}

/// A text that a peer's user can begin with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptDefinition {
    /// Its name.
    pub name: String,
    /// When to use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What has to be filled in.
    pub arguments: Vec<PromptArgument>,
}

/// Something that has to be filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// What to write there.
    pub description: String,
    /// Whether the prompt makes no sense without it.
    pub required: bool,
}

impl PromptDefinition {
    /// A prompt in which nothing has to be filled in.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        let description = Some(description.into());
        Self { name: name.into(), description, arguments: Vec::new() }
    }

    /// Adds what has to be filled in.
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

    /// Adds what may be filled in.
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

/// Texts that a peer's user can begin with.
///
/// # Examples
///
/// ```
/// use serde_json::{Map, Value};
/// use tool_sdk::mcp::{Prompt, Prompts, Work};
/// use tool_sdk::{Message, Session};
///
/// struct Greeting;
///
/// impl Prompts for Greeting {
///     fn list(&self) -> Vec<Prompt> {
///         vec![Prompt::new("greet", "Say hello.").required("name", "Whom to greet.")]
///     }
///
///     fn get<'a>(
///         &'a self,
///         _: &'a str,
///         arguments: &'a Map<String, Value>,
///         _: &'a Session,
///     ) -> Work<'a, Vec<Message>> {
///         Box::pin(async { Ok(vec![Message::text("user", format!("Greet {}.", arguments["name"]))]) })
///     }
/// }
/// ```
pub trait PromptProvider: Send + Sync + 'static {
    /// Those that there are.
    fn list(&self) -> Vec<PromptDefinition>;

    /// The messages of one that was listed, with all required arguments. The content of a
    /// message is a text, or a block in the protocol's words.
    ///
    /// It may ask the peer by [`Session::inquire`]; then it is called again when the
    /// answers are there.
    fn get<'a>(
        &'a self,
        name: &'a str,
        arguments: &'a Map<String, Value>,
        session: &'a Session,
    ) -> ProviderFuture<'a, Vec<Message>>;

    /// What may stand for `argument` of the prompt, the best first.
    fn complete_argument(&self, name: &str, argument: &str, begun: &str) -> Vec<String> {
        let _ = (name, argument, begun);
        Vec::new()
    }
}

/// What is required and was not given.
pub(super) fn find_missing_argument<'p>(
    prompt: &'p PromptDefinition,
    given: &Map<String, Value>,
) -> Option<&'p str> {
    let needed = prompt.arguments.iter().filter(|argument| argument.required);
    needed.map(|argument| argument.name.as_str()).find(|name| !given.contains_key(*name))
}
