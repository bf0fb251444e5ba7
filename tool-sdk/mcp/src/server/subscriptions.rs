//! Notifies clients of changes of lists and of resources: legacy clients for as long as
//! they are connected, modern clients for as long as their `subscriptions/listen` request runs.

use std::sync::Arc;

use futures_util::future::{join, join_all};
use rmcp::model::{
    ErrorData, GetMeta as _, NotificationMetaObject, PromptListChangedNotification,
    ResourceListChangedNotification, ResourceUpdatedNotification, ResourceUpdatedNotificationParam,
    ServerJsonRpcMessage, ServerNotification, ServerResult, SubscriptionFilter,
    SubscriptionsAcknowledgedNotification, SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams, SubscriptionsListenResult, ToolListChangedNotification,
};
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::connection::Connection;
use super::listing::ProtocolEra;
use super::message::MessageParams;
use super::request_context::RequestContext;
use super::resource_adapter::{ResourceSubscriptions, WatchedResource};
use super::tasks::notify_subscriber;
use super::tool_list_changes::ToolListChanges;

impl Connection {
    /// Notifies a legacy client of changes until the connection is closed.
    pub(super) fn forward_changes(self: &Arc<Self>) {
        let (sink, closed) = (self.sink.clone(), self.closed.clone());
        let mut changes = ToolListChanges::watch(&self.server, self.session());
        tokio::spawn(closed.run_until_cancelled_owned(async move {
            while changes.next_change().await && sink.notify(tool_list_changed()).await.is_ok() {}
        }));
        for (changes, notification) in self.list_changes() {
            let (sink, closed) = (self.sink.clone(), self.closed.clone());
            tokio::spawn(closed.run_until_cancelled_owned(async move {
                let mut changes = changes;
                while next_list_change(&mut changes).await
                    && sink.notify(notification.clone()).await.is_ok()
                {}
            }));
        }
        let Some(mut updates) = self.subscribe_updates() else { return };
        // The task must not keep the connection open.
        let connection = Arc::downgrade(self);
        let (sink, closed) = (self.sink.clone(), self.closed.clone());
        tokio::spawn(closed.run_until_cancelled_owned(async move {
            while let Some(uri) = next_update(&mut updates).await {
                let Some(connection) = connection.upgrade() else { return };
                let is_subscribed = connection.subscriptions.contains(&uri);
                drop(connection);
                if is_subscribed && sink.notify(resource_updated(uri)).await.is_err() {
                    return;
                }
            }
        }));
    }

    /// Notifies a modern client of changes until it disconnects.
    pub(super) async fn listen(
        &self,
        params: &MessageParams,
        cx: &RequestContext,
    ) -> Result<ServerResult, ErrorData> {
        let tasks = self.subscribed_tasks(params, cx)?;
        let params = params.decode::<SubscriptionsListenRequestParams>("subscriptions/listen")?;
        let accepted = self.accept_filter(params.notifications, cx);
        // Watched before the client knows, so that it misses no change.
        let changes = self.send_changes(&accepted, cx);
        let changes = join(changes, notify_subscriber(&tasks, &cx.sink, &cx.id));
        let params = SubscriptionsAcknowledgedNotificationParams::new(accepted.clone());
        let mut acknowledged = SubscriptionsAcknowledgedNotification::new(params);
        let mut meta = NotificationMetaObject::new();
        meta.set_subscription_id(cx.id.clone());
        acknowledged.extensions.insert(meta);
        let acknowledged = ServerNotification::SubscriptionsAcknowledgedNotification(acknowledged);
        let mut acknowledged = json!(ServerJsonRpcMessage::notification(acknowledged));
        if !tasks.is_empty() {
            // The protocol type has only what the protocol itself has.
            let ids: Vec<&str> = tasks.iter().map(|task| &*task.id).collect();
            acknowledged["params"]["notifications"]["taskIds"] = json!(ids);
        }
        // A client that is gone needs nothing more.
        if cx.sink.send_alone(acknowledged.to_string().into_bytes()).await.is_ok() {
            let until_shutdown = self.server.shutdown.run_until_cancelled(changes);
            self.outgoing.disconnected.run_until_cancelled(until_shutdown).await;
        }
        let result = SubscriptionsListenResult::complete(cx.id.clone());
        Ok(ServerResult::SubscriptionsListenResult(result))
    }

    /// Returns the part of the filter that this server supports.
    fn accept_filter(&self, wanted: SubscriptionFilter, cx: &RequestContext) -> SubscriptionFilter {
        let mut accepted = SubscriptionFilter::builder()
            .tools_list_changed()
            .resources_list_changed()
            .prompts_list_changed()
            .build();
        if self.has_resource_updates() {
            accepted.resource_subscriptions = wanted.resource_subscriptions.clone();
            if let Some(uris) = &mut accepted.resource_subscriptions {
                uris.truncate(ResourceSubscriptions::MAX_SUBSCRIPTIONS);
            }
        }
        let capabilities = self.server_capabilities(ProtocolEra::Modern, cx.client.ui);
        wanted.intersection(&accepted).intersection(&wanted.supported_by(&capabilities))
    }

    /// Returns a future that sends the changes from now on until it is dropped.
    fn send_changes<'a>(
        &self,
        accepted: &'a SubscriptionFilter,
        cx: &'a RequestContext,
    ) -> impl Future<Output = ()> + Send + use<'a> {
        let watches_tools = accepted.tools_list_changed == Some(true);
        let mut changes =
            watches_tools.then(|| ToolListChanges::watch(&self.server, self.session()));
        let watched = accepted.resource_subscriptions.as_deref().unwrap_or_default();
        let mut updates = self.subscribe_updates().filter(|_| !watched.is_empty());
        let provider = self.server.resources.as_ref();
        let watching: Vec<_> = provider
            .iter()
            .flat_map(|provider| {
                watched.iter().map(|uri| WatchedResource::watch(provider, uri.clone()))
            })
            .collect();
        let mut lists = self.list_changes();
        lists.retain(|(_, notification)| match notification {
            ServerNotification::ResourceListChangedNotification(_) => {
                accepted.resources_list_changed == Some(true)
            }
            _ => accepted.prompts_list_changed == Some(true),
        });
        let send = async |mut notification: ServerNotification| {
            notification.get_meta_mut().set_subscription_id(cx.id.clone());
            cx.sink.notify(notification).await.is_ok()
        };
        async move {
            let tools = async {
                let Some(changes) = &mut changes else { return };
                while changes.next_change().await && send(tool_list_changed()).await {}
            };
            let resources = async {
                let Some(updates) = &mut updates else { return };
                while let Some(uri) = next_update(updates).await {
                    if watched.contains(&uri) && !send(resource_updated(uri)).await {
                        return;
                    }
                }
            };
            let lists = join_all(lists.into_iter().map(async |(mut changes, notification)| {
                while next_list_change(&mut changes).await && send(notification.clone()).await {}
            }));
            tokio::join!(tools, resources, lists);
            // Nothing will change any more, but the subscription lasts until the client ends it.
            std::future::pending::<()>().await;
            drop(watching);
        }
    }

    /// Returns true if the host reports changes of resources.
    pub(super) fn has_resource_updates(&self) -> bool {
        self.subscribe_updates().is_some()
    }

    /// Subscribes to the lists whose changes the host reports, each with the notification.
    fn list_changes(&self) -> Vec<(Receiver<()>, ServerNotification)> {
        let (resources, prompts) = (&self.server.resources, &self.server.prompts);
        let resources = resources.as_ref().and_then(|provider| provider.subscribe_list_changes());
        let prompts = prompts.as_ref().and_then(|provider| provider.subscribe_list_changes());
        let resources = resources.map(|changes| (changes, resource_list_changed()));
        let prompts = prompts.map(|changes| (changes, prompt_list_changed()));
        resources.into_iter().chain(prompts).collect()
    }

    fn subscribe_updates(&self) -> Option<Receiver<String>> {
        self.server.resources.as_ref()?.subscribe_updates()
    }
}

fn tool_list_changed() -> ServerNotification {
    ServerNotification::ToolListChangedNotification(ToolListChangedNotification::default())
}

fn resource_list_changed() -> ServerNotification {
    let notification = ResourceListChangedNotification::default();
    ServerNotification::ResourceListChangedNotification(notification)
}

fn prompt_list_changed() -> ServerNotification {
    let notification = PromptListChangedNotification::default();
    ServerNotification::PromptListChangedNotification(notification)
}

fn resource_updated(uri: String) -> ServerNotification {
    let params = ResourceUpdatedNotificationParam::new(uri);
    ServerNotification::ResourceUpdatedNotification(ResourceUpdatedNotification::new(params))
}

/// Returns the next resource that changed. A receiver that lags behind skips the oldest changes.
async fn next_update(updates: &mut Receiver<String>) -> Option<String> {
    loop {
        match updates.recv().await {
            Ok(uri) => return Some(uri),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return None,
        }
    }
}

/// Waits for the next change of a list; several that were missed count as one. Returns false when
/// there will be no more.
async fn next_list_change(changes: &mut Receiver<()>) -> bool {
    match changes.recv().await {
        Ok(()) | Err(RecvError::Lagged(_)) => {
            *changes = changes.resubscribe();
            true
        }
        Err(RecvError::Closed) => false,
    }
}
