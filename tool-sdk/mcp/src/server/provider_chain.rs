//! Two providers of resources or prompts as one: the lists one after the other, and each resource or
//! prompt from the first provider that has it.
//!
//! **Invariant:** a later provider never hides what an earlier one has.

use std::sync::Arc;

use futures_util::future::join;
use serde_json::{Map, Value};
use tokio::sync::broadcast;
use tool_sdk_core::{Attachment, ConversationMessage, Session, ToolError};

use super::dyn_provider::{DynPromptProvider, DynResourceProvider};
use super::resources::{PromptDefinition, PromptProvider, ResourceDefinition, ResourceProvider};

/// Two providers as one. Changes are reported by the first one that reports any.
pub(super) struct ProviderChain<P: ?Sized> {
    pub(super) first: Arc<P>,
    pub(super) second: Arc<P>,
}

impl ResourceProvider for ProviderChain<dyn DynResourceProvider> {
    async fn list(&self) -> Vec<ResourceDefinition> {
        let (mut all, second) = join(self.first.list(), self.second.list()).await;
        all.extend(second);
        all
    }

    async fn list_templates(&self) -> Vec<ResourceDefinition> {
        let lists = join(self.first.list_templates(), self.second.list_templates());
        let (mut all, second) = lists.await;
        all.extend(second);
        all
    }

    async fn read(&self, uri: &str) -> Result<Option<Attachment>, ToolError> {
        match self.first.read(uri).await? {
            Some(found) => Ok(Some(found)),
            None => self.second.read(uri).await,
        }
    }

    fn subscribe_updates(&self) -> Option<broadcast::Receiver<String>> {
        self.first.subscribe_updates().or_else(|| self.second.subscribe_updates())
    }

    fn start_updates(&self, uri: &str) {
        self.first.start_updates(uri);
        self.second.start_updates(uri);
    }

    fn stop_updates(&self, uri: &str) {
        self.first.stop_updates(uri);
        self.second.stop_updates(uri);
    }

    fn subscribe_list_changes(&self) -> Option<broadcast::Receiver<()>> {
        self.first.subscribe_list_changes().or_else(|| self.second.subscribe_list_changes())
    }

    fn complete_argument(&self, template: &str, argument: &str, begun: &str) -> Vec<String> {
        let mut all = self.first.complete_argument(template, argument, begun);
        all.extend(self.second.complete_argument(template, argument, begun));
        all
    }
}

impl PromptProvider for ProviderChain<dyn DynPromptProvider> {
    async fn list(&self) -> Vec<PromptDefinition> {
        let (mut all, second) = join(self.first.list(), self.second.list()).await;
        let is_new = |prompt: &PromptDefinition| all.iter().all(|it| it.name != prompt.name);
        let second: Vec<_> = second.into_iter().filter(is_new).collect();
        all.extend(second);
        all
    }

    async fn get(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        session: &Session,
    ) -> Result<Vec<ConversationMessage>, ToolError> {
        let is_first = self.first.list().await.iter().any(|prompt| prompt.name == name);
        let provider = if is_first { &self.first } else { &self.second };
        provider.get(name, arguments, session).await
    }

    fn subscribe_list_changes(&self) -> Option<broadcast::Receiver<()>> {
        self.first.subscribe_list_changes().or_else(|| self.second.subscribe_list_changes())
    }

    fn complete_argument(&self, name: &str, argument: &str, begun: &str) -> Vec<String> {
        let mut all = self.first.complete_argument(name, argument, begun);
        all.extend(self.second.complete_argument(name, argument, begun));
        all
    }
}
