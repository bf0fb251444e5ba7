//! Lists the resources and prompts of a server, page by page, and gets a prompt.
//!
//! **Invariant:** every list is bounded, and a server without the capability has an empty one.

// Older servers have no other way to subscribe.
#![expect(deprecated, reason = "servers before 2026-07-28 know these requests only")]

use std::collections::HashSet;

use rmcp::model::{
    GetPromptRequestParams, GetPromptResponse, PaginatedRequestParams, SubscribeRequestParams,
    UnsubscribeRequestParams,
};
use rmcp::service::ServiceError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{RmcpConnection, convert_via_json};
use crate::client::remote::{OfferChange, RemoteError, RemotePrompt, RemoteResource};

/// The most pages and entries of a list.
const MAX_PAGES: usize = 100;
const MAX_ENTRIES: usize = 10_000;

/// One page of a list, and where the next one starts.
type ListPage<T> = (Vec<T>, Option<String>);

impl RmcpConnection {
    pub(super) async fn list_all_resources(&self) -> Result<Vec<RemoteResource>, RemoteError> {
        if !self.has_capability("resources") {
            return Ok(Vec::new());
        }
        let peer = self.service.peer();
        let mut resources = self
            .collect_pages(|from| async move {
                let page = peer.list_resources(Some(from)).await?;
                Ok((convert_entries(&page.resources), page.next_cursor))
            })
            .await?;
        let templates = self
            .collect_pages(|from| async move {
                let page = peer.list_resource_templates(Some(from)).await?;
                Ok((convert_entries(&page.resource_templates), page.next_cursor))
            })
            .await;
        // Many servers have no templates, and not all of them say so with an empty list.
        resources.extend(templates.unwrap_or_default());
        Ok(resources)
    }

    pub(super) async fn list_all_prompts(&self) -> Result<Vec<RemotePrompt>, RemoteError> {
        if !self.has_capability("prompts") {
            return Ok(Vec::new());
        }
        let peer = self.service.peer();
        self.collect_pages(|from| async move {
            let page = peer.list_prompts(Some(from)).await?;
            Ok((convert_entries(&page.prompts), page.next_cursor))
        })
        .await
    }

    pub(super) async fn fetch_prompt(
        &self,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<Value, RemoteError> {
        let params = GetPromptRequestParams::new(name).with_arguments(arguments);
        let got = self.service.peer().get_prompt_once(params).await;
        match got.map_err(|error| self.to_remote_error(error))? {
            GetPromptResponse::Complete(prompt) => convert_via_json(&prompt),
            _ => None,
        }
        .ok_or_else(|| RemoteError::protocol("the server's response is not a prompt"))
    }

    /// Asks for notifications about a resource. A modern server gets the request with the
    /// subscription of the connection.
    pub(super) async fn subscribe_resource(&self, uri: &str) -> Result<(), RemoteError> {
        if !self.has_resource_subscriptions() {
            return Err(RemoteError::protocol("the server does not notify changes of resources"));
        }
        let is_new = self.notifications.offer_changes().watch(uri);
        if is_new && self.is_older_server() {
            let params = SubscribeRequestParams::new(uri);
            let subscribed = self.service.peer().subscribe(params).await;
            subscribed.map_err(|error| self.to_remote_error(error))?;
        }
        Ok(())
    }

    /// Ends what [`subscribe_resource`](Self::subscribe_resource) began.
    pub(super) async fn unsubscribe_resource(&self, uri: &str) -> Result<(), RemoteError> {
        if self.notifications.offer_changes().unwatch(uri) && self.is_older_server() {
            let params = UnsubscribeRequestParams::new(uri);
            let unsubscribed = self.service.peer().unsubscribe(params).await;
            unsubscribed.map_err(|error| self.to_remote_error(error))?;
        }
        Ok(())
    }

    /// Reports the lists that the server has as changed, since they are new to everyone.
    pub(super) fn report_first_lists(&self) {
        let changes = self.notifications.offer_changes();
        for (capability, change) in
            [("resources", OfferChange::ResourceList), ("prompts", OfferChange::PromptList)]
        {
            if self.has_capability(capability) {
                changes.record(change);
            }
        }
    }

    /// Whether the server has the handshake `initialize`.
    pub(super) fn is_older_server(&self) -> bool {
        let info = self.service.peer().peer_info();
        info.is_some_and(|info| info.protocol_version.has_initialize())
    }

    fn has_resource_subscriptions(&self) -> bool {
        let info = self.service.peer().peer_info();
        let resources = info.and_then(|info| info.capabilities.resources.clone());
        resources.is_some_and(|resources| resources.subscribe == Some(true))
    }

    /// Returns what the server says about how it is used, in its own words.
    pub(super) fn server_instructions(&self) -> Option<String> {
        let info = self.service.peer().peer_info()?;
        let info = serde_json::to_value(&*info).ok()?;
        info["instructions"].as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned)
    }

    fn has_capability(&self, name: &str) -> bool {
        let info = self.service.peer().peer_info();
        let info = info.and_then(|info| serde_json::to_value(&*info).ok()).unwrap_or_default();
        info["capabilities"][name].is_object()
    }

    /// Requests pages until the last one.
    async fn collect_pages<T, F>(
        &self,
        fetch: impl Fn(PaginatedRequestParams) -> F,
    ) -> Result<Vec<T>, RemoteError>
    where
        F: Future<Output = Result<ListPage<T>, ServiceError>>,
    {
        let (mut entries, mut seen, mut cursor) = (Vec::new(), HashSet::new(), None);
        loop {
            let from = PaginatedRequestParams::default().with_cursor(cursor.take());
            let (page, next) = fetch(from).await.map_err(|error| self.to_remote_error(error))?;
            entries.extend(page);
            entries.truncate(MAX_ENTRIES);
            match next {
                Some(next) if seen.len() < MAX_PAGES && seen.insert(next.clone()) => {
                    cursor = Some(next);
                }
                // A cursor that repeats means that every page was read.
                _ => return Ok(entries),
            }
        }
    }
}

/// Converts the entries of a page; an invalid one does not affect the others.
fn convert_entries<T: DeserializeOwned>(entries: &[impl Serialize]) -> Vec<T> {
    entries.iter().filter_map(convert_via_json).collect()
}
