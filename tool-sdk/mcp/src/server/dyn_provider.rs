//! Object-safe twins of the provider traits, whose methods return boxed futures.

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::broadcast;
use tool_sdk_core::{Attachment, ConversationMessage, Session, ToolError};

use super::resources::{PromptDefinition, PromptProvider, ResourceDefinition, ResourceProvider};

/// A [`ResourceProvider`] of any type.
pub(super) trait DynResourceProvider: Send + Sync + 'static {
    fn list(&self) -> BoxFuture<'_, Vec<ResourceDefinition>>;
    fn list_templates(&self) -> BoxFuture<'_, Vec<ResourceDefinition>>;
    fn read<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<Option<Attachment>, ToolError>>;
    fn subscribe_updates(&self) -> Option<broadcast::Receiver<String>>;
    fn start_updates(&self, uri: &str);
    fn stop_updates(&self, uri: &str);
    fn subscribe_list_changes(&self) -> Option<broadcast::Receiver<()>>;
    fn complete_argument(&self, template: &str, argument: &str, begun: &str) -> Vec<String>;
}

impl<P: ResourceProvider> DynResourceProvider for P {
    fn list(&self) -> BoxFuture<'_, Vec<ResourceDefinition>> {
        Box::pin(ResourceProvider::list(self))
    }

    fn list_templates(&self) -> BoxFuture<'_, Vec<ResourceDefinition>> {
        Box::pin(ResourceProvider::list_templates(self))
    }

    fn read<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<Option<Attachment>, ToolError>> {
        Box::pin(ResourceProvider::read(self, uri))
    }

    fn subscribe_updates(&self) -> Option<broadcast::Receiver<String>> {
        ResourceProvider::subscribe_updates(self)
    }

    fn start_updates(&self, uri: &str) {
        ResourceProvider::start_updates(self, uri);
    }

    fn stop_updates(&self, uri: &str) {
        ResourceProvider::stop_updates(self, uri);
    }

    fn subscribe_list_changes(&self) -> Option<broadcast::Receiver<()>> {
        ResourceProvider::subscribe_list_changes(self)
    }

    fn complete_argument(&self, template: &str, argument: &str, begun: &str) -> Vec<String> {
        ResourceProvider::complete_argument(self, template, argument, begun)
    }
}

/// A [`PromptProvider`] of any type.
pub(super) trait DynPromptProvider: Send + Sync + 'static {
    fn list(&self) -> BoxFuture<'_, Vec<PromptDefinition>>;
    fn get<'a>(
        &'a self,
        name: &'a str,
        arguments: &'a Map<String, Value>,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Vec<ConversationMessage>, ToolError>>;
    fn subscribe_list_changes(&self) -> Option<broadcast::Receiver<()>>;
    fn complete_argument(&self, name: &str, argument: &str, begun: &str) -> Vec<String>;
}

impl<P: PromptProvider> DynPromptProvider for P {
    fn list(&self) -> BoxFuture<'_, Vec<PromptDefinition>> {
        Box::pin(PromptProvider::list(self))
    }

    fn get<'a>(
        &'a self,
        name: &'a str,
        arguments: &'a Map<String, Value>,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Vec<ConversationMessage>, ToolError>> {
        Box::pin(PromptProvider::get(self, name, arguments, session))
    }

    fn subscribe_list_changes(&self) -> Option<broadcast::Receiver<()>> {
        PromptProvider::subscribe_list_changes(self)
    }

    fn complete_argument(&self, name: &str, argument: &str, begun: &str) -> Vec<String> {
        PromptProvider::complete_argument(self, name, argument, begun)
    }
}
