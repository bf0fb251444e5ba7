//! Passes the resources and prompts of connected servers on to the clients of a server of this
//! program.
//!
//! Each keeps the name of its server: a resource has the URI `mcp://SERVER/URI`, and a prompt the
//! name `mcp__SERVER__PROMPT`, as the tools have.
//!
//! **Invariant:** only servers that are connected are asked, so a list starts none and waits for none.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::join_all;
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::sync::broadcast;
use tokio::time::timeout;
use tool_sdk_core::{Attachment, ConversationMessage, Session, ToolError};

use super::manager::ServerManager;
use super::naming::{name_prefix, parse_passed_uri, passed_uri};
use super::remote::{RemotePrompt, RemoteResource};
use crate::server::{
    PromptArgument, PromptDefinition, PromptProvider, ResourceDefinition, ResourceProvider,
};

/// How long a server may take to list what it has, before its part is left out.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// The resources of connected servers, for [`Server::with_resources`](crate::Server::with_resources).
///
/// # Examples
///
/// ```
/// use tool_sdk::mcp::{ForeignPrompts, ForeignResources, Server, ServerManager};
/// use tool_sdk::{Pipeline, Registry, Session};
///
/// let pipeline = Pipeline::new(Registry::default());
/// let servers = ServerManager::for_pipeline(&pipeline);
/// let server = Server::new(pipeline, Session::default())
///     .with_resources(ForeignResources::new(servers.clone()))
///     .with_prompts(ForeignPrompts::new(servers));
/// # let _ = server;
/// ```
#[derive(Debug)]
pub struct ForeignResources(ServerManager);

impl ForeignResources {
    /// Passes on what the servers of `servers` have.
    #[must_use]
    pub fn new(servers: ServerManager) -> Self {
        Self(servers)
    }

    async fn list_where(&self, is_wanted: fn(&str) -> bool) -> Vec<ResourceDefinition> {
        let listed = connected_servers(&self.0).map(|server| async move {
            let resources = timeout(LIST_TIMEOUT, self.0.list_resources(&server)).await;
            let resources = resources.ok().and_then(Result::ok).unwrap_or_default();
            let named = resources.into_iter().filter(|resource| is_wanted(&resource.uri));
            named.map(|resource| passed_resource(&server, resource)).collect::<Vec<_>>()
        });
        join_all(listed).await.concat()
    }
}

impl ForeignResources {
    /// Runs a request about a resource that is passed on, in the background.
    fn spawn_for<F>(&self, uri: &str, request: impl FnOnce(ServerManager, String, String) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let Some((server, uri)) = parse_passed_uri(uri) else { return };
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(request(self.0.clone(), server.to_owned(), uri.to_owned()));
        }
    }
}

/// Returns the names of the servers that are connected.
fn connected_servers(servers: &ServerManager) -> impl Iterator<Item = String> {
    servers.statuses().into_iter().filter(|status| status.connected).map(|status| status.name)
}

fn passed_resource(server: &str, resource: RemoteResource) -> ResourceDefinition {
    let name = resource.title.unwrap_or(resource.name);
    let mut passed =
        ResourceDefinition::new(passed_uri(server, &resource.uri), format!("{server}: {name}"));
    passed.description = resource.description;
    passed.mime_type = resource.mime_type;
    passed
}

impl ResourceProvider for ForeignResources {
    async fn list(&self) -> Vec<ResourceDefinition> {
        self.list_where(|uri| !uri.contains('{')).await
    }

    async fn list_templates(&self) -> Vec<ResourceDefinition> {
        self.list_where(|uri| uri.contains('{')).await
    }

    async fn read(&self, uri: &str) -> Result<Option<Attachment>, ToolError> {
        let Some((server, uri)) = parse_passed_uri(uri) else { return Ok(None) };
        if self.0.status(server).is_none() {
            return Ok(None);
        }
        let read = self.0.read_resource(server, uri).await?;
        Ok(read["contents"].get(0).and_then(to_attachment))
    }

    fn subscribe_updates(&self) -> Option<broadcast::Receiver<String>> {
        Some(self.0.offer_channels().resources.subscribe())
    }

    fn subscribe_list_changes(&self) -> Option<broadcast::Receiver<()>> {
        Some(self.0.offer_channels().resource_lists.subscribe())
    }

    fn start_updates(&self, uri: &str) {
        self.spawn_for(uri, |servers, server, uri| async move {
            if let Err(error) = servers.watch_resource(&server, &uri).await {
                tracing::debug!(%server, %error, "cannot subscribe to a resource");
            }
        });
    }

    fn stop_updates(&self, uri: &str) {
        self.spawn_for(uri, |servers, server, uri| async move {
            // A server that is gone notifies nothing either.
            let _ = servers.unwatch_resource(&server, &uri).await;
        });
    }
}

/// Converts the first contents of a resource.
fn to_attachment(contents: &Value) -> Option<Attachment> {
    let mime = contents["mimeType"].as_str();
    if let Some(text) = contents["text"].as_str() {
        return Some(Attachment::bytes(mime.unwrap_or("text/plain"), text.as_bytes().to_vec()));
    }
    let bytes = STANDARD.decode(contents["blob"].as_str()?).ok()?;
    Some(Attachment::bytes(mime.unwrap_or("application/octet-stream"), bytes))
}

/// The prompts of connected servers, for [`Server::with_prompts`](crate::Server::with_prompts); see
/// [`ForeignResources`].
#[derive(Debug)]
pub struct ForeignPrompts(ServerManager);

impl ForeignPrompts {
    /// Passes on what the servers of `servers` have.
    #[must_use]
    pub fn new(servers: ServerManager) -> Self {
        Self(servers)
    }
}

fn passed_prompt(server: &str, prompt: RemotePrompt) -> PromptDefinition {
    let name = format!("{}{}", name_prefix(server), prompt.name);
    let description = prompt.description.or(prompt.title).unwrap_or_default();
    let mut passed = PromptDefinition::new(name, format!("{server}: {description}"));
    passed.arguments = prompt
        .arguments
        .into_iter()
        .map(|argument| PromptArgument {
            name: argument.name,
            description: argument.description.unwrap_or_default(),
            required: argument.required,
        })
        .collect();
    passed
}

impl PromptProvider for ForeignPrompts {
    fn subscribe_list_changes(&self) -> Option<broadcast::Receiver<()>> {
        Some(self.0.offer_channels().prompt_lists.subscribe())
    }

    async fn list(&self) -> Vec<PromptDefinition> {
        let listed = connected_servers(&self.0).map(|server| async move {
            let prompts = timeout(LIST_TIMEOUT, self.0.list_prompts(&server)).await;
            let prompts = prompts.ok().and_then(Result::ok).unwrap_or_default();
            prompts.into_iter().map(|prompt| passed_prompt(&server, prompt)).collect::<Vec<_>>()
        });
        join_all(listed).await.concat()
    }

    async fn get(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        _: &Session,
    ) -> Result<Vec<ConversationMessage>, ToolError> {
        let asked = connected_servers(&self.0).find_map(|server| {
            let prompt = name.strip_prefix(&name_prefix(&server))?.to_owned();
            Some((server, prompt))
        });
        let Some((server, prompt)) = asked else {
            return Err(ToolError::not_found(format_args!("there is no prompt `{name}`")));
        };
        let got = self.0.get_prompt(&server, &prompt, arguments.clone()).await?;
        let messages = got["messages"].as_array().into_iter().flatten();
        Ok(messages
            .map(|message| ConversationMessage {
                role: message["role"].as_str().unwrap_or("user").to_owned(),
                content: message["content"].clone(),
            })
            .collect())
    }
}
