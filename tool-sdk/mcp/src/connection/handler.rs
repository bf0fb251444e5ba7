//! The request handlers that rmcp calls, one per method.

// Log messages are deprecated in the protocol, but current clients still read them.
#![expect(deprecated, reason = "legacy clients have no replacement")]

use std::sync::atomic::Ordering;

use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, DiscoverResult, ErrorData, GetPromptRequestParams, GetPromptResponse,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerConfig, SetLevelRequestParams, SubscribeRequestMethod,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestMethod,
    UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};

use super::{Connection, Result, detect_ui_support, next_update};
use crate::call;
use crate::event_relay::log_severity;
use crate::listing::{LIST_TTL_MS, ProtocolEra};
use crate::message;
use crate::resource_adapter::ResourceSubscriptions;
use crate::result::ContentSupport;
use crate::tool_list_changes::ToolListChanges;
use crate::ui::UiSupport;

/// rmcp answers pings, unknown methods and version negotiation itself. It combines these methods
/// into one future and moves that several times per request, so large futures are boxed.
impl ServerHandler for Connection {
    async fn initialize(
        &self,
        params: InitializeRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<InitializeResult> {
        if self.principal.get().is_some() {
            let words = "the session is already initialized; open a new session instead";
            return Err(ErrorData::invalid_request(words, None));
        }
        self.principal_session(&cx)?;
        cx.peer.set_peer_info(params.clone());
        let mut result = self.negotiate_initialize(&params)?;
        let ui =
            detect_ui_support(&params.client_info.name, Some(&params.capabilities), &cx.extensions);
        result.capabilities = self.server_capabilities(ui);
        // Only legacy clients send `initialize`. Their next request may follow at once.
        self.open_fast_path(
            &params,
            ContentSupport::from_version(Some(&result.protocol_version)),
            &cx,
        );
        Ok(result)
    }

    async fn discover(&self, cx: RequestContext<RoleServer>) -> Result<DiscoverResult> {
        let mut info = self.get_info();
        info.capabilities = self.server_capabilities(self.ui_support(&cx));
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, info).with_ttl_ms(LIST_TTL_MS))
    }

    fn get_info(&self) -> ServerConfig {
        let mut config = ServerConfig::new(self.server_capabilities(UiSupport::TextOnly));
        config.server_info = self.server_info();
        config.instructions = self.server.instructions.clone();
        config
    }

    async fn list_tools(
        &self,
        from: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult> {
        let era = ProtocolEra::from_version(cx.protocol_version().as_ref());
        let page = self.server.listing.list_page(
            &self.toolset_view(&cx)?,
            (era, self.ui_support(&cx)),
            from,
        );
        page.map(|page| self.with_server_info(era, page))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse> {
        let era = ProtocolEra::from_version(cx.protocol_version().as_ref());
        let told = Box::pin(call::call_tool(self, params, cx)).await;
        told.map(|told| self.with_server_info(era, told))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let view = self.server.pipeline.toolset().view();
        self.server.listing.find_tool(&view, ProtocolEra::Modern, name)
    }

    async fn set_level(
        &self,
        params: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<()> {
        self.log_threshold.set(log_severity(params.level));
        Ok(())
    }

    async fn on_initialized(&self, cx: NotificationContext<RoleServer>) {
        // Only once, even if the client repeats the notification.
        if self.is_initialized.swap(true, Ordering::Relaxed) {
            return;
        }
        self.forward_resource_updates(&cx);
        self.open_http_fast_path(&cx);
        let (mut changes, gone) = (ToolListChanges::watch(&self.server), self.closed.clone());
        // Boxed, because the task is moved several times before it is polled.
        let telling = Box::pin(async move {
            while changes.next_change().await && cx.peer.notify_tool_list_changed().await.is_ok() {}
        });
        tokio::spawn(gone.run_until_cancelled_owned(telling));
    }

    fn accepted_subscription_filter(
        &self,
        wanted: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::builder().tools_list_changed().build();
        if self.has_resource_updates() {
            accepted.resource_subscriptions = wanted.resource_subscriptions.clone();
            accepted
                .resource_subscriptions
                .iter_mut()
                .for_each(|it| it.truncate(ResourceSubscriptions::MAX_SUBSCRIPTIONS));
        }
        Some(accepted)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<()> {
        Box::pin(self.send_changes(&subscription)).await;
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult> {
        let era = ProtocolEra::from_version(cx.protocol_version().as_ref());
        self.server.list_prompts().map(|listed| self.with_server_info(era, listed))
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse> {
        let era = ProtocolEra::from_version(cx.protocol_version().as_ref());
        let (session, modern) = match era {
            ProtocolEra::Legacy => (self.legacy_session(&cx)?, None),
            ProtocolEra::Modern => (self.request_session(&cx)?, Some(self.input_capabilities(&cx))),
        };
        let told = self.server.get_prompt(params, session, modern).await;
        told.map(|told| self.with_server_info(era, told))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult> {
        let era = ProtocolEra::from_version(cx.protocol_version().as_ref());
        self.server
            .list_resources(self.ui_support(&cx))
            .map(|listed| self.with_server_info(era, listed))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult> {
        let era = ProtocolEra::from_version(cx.protocol_version().as_ref());
        self.server.list_templates().map(|listed| self.with_server_info(era, listed))
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse> {
        let (era, ui) =
            (ProtocolEra::from_version(cx.protocol_version().as_ref()), self.ui_support(&cx));
        let read = self.server.read_resource(params.uri, ui).await?;
        Ok(self.with_server_info(era, read).into())
    }

    async fn subscribe(
        &self,
        params: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<()> {
        match self.has_resource_updates() {
            true => self.subscriptions.subscribe(params.uri),
            false => Err(ErrorData::method_not_found::<SubscribeRequestMethod>()),
        }
    }

    async fn unsubscribe(
        &self,
        params: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<()> {
        if !self.has_resource_updates() {
            return Err(ErrorData::method_not_found::<UnsubscribeRequestMethod>());
        }
        self.subscriptions.unsubscribe(&params.uri);
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        cx: RequestContext<RoleServer>,
    ) -> Result<CustomResult> {
        let can = self.server_capabilities(self.ui_support(&cx));
        let is_there = match &*request.method {
            "completion/complete" => can.completions.is_some(),
            "prompts/get" => can.prompts.is_some(),
            "resources/read" => can.resources.is_some(),
            _ => self.has_resource_updates(),
        };
        Err(message::custom_request_error(&request.method, is_there))
    }

    async fn complete(
        &self,
        params: CompleteRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CompleteResult> {
        let era = ProtocolEra::from_version(cx.protocol_version().as_ref());
        self.server.complete_argument(&params).map(|found| self.with_server_info(era, found))
    }
}

impl Connection {
    /// Sends changes to a modern client for as long as its subscription lasts.
    async fn send_changes(&self, subscription: &SubscriptionContext) {
        let (sink, mut changes) = (subscription.sink(), ToolListChanges::watch(&self.server));
        let tools = async {
            while changes.next_change().await && sink.notify_tool_list_changed().await.is_ok() {}
        };
        let watched = subscription.accepted().resource_subscriptions.as_deref().unwrap_or_default();
        let updates = self.server.resources.as_ref().filter(|_| !watched.is_empty());
        let updates = updates.and_then(|resources| resources.subscribe_updates());
        let resources = async {
            let Some(mut updates) = updates else { return };
            while let Some(uri) = next_update(&mut updates).await {
                if watched.contains(&uri) && sink.notify_resource_updated(uri).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = subscription.cancelled() => {}
            () = self.disconnected.cancelled() => {}
            ((), ()) = async { tokio::join!(tools, resources) } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Context = RequestContext<RoleServer>;

    fn size<P, F: Future>(_: impl FnOnce(&'static Connection, P, Context) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn what_the_library_moves_is_small() {
        for (method, size) in [
            ("call_tool", size(|it: &Connection, params, cx| it.call_tool(params, cx))),
            ("get_prompt", size(|it: &Connection, params, cx| it.get_prompt(params, cx))),
            ("read_resource", size(|it: &Connection, params, cx| it.read_resource(params, cx))),
            ("list_tools", size(|it: &Connection, params, cx| it.list_tools(params, cx))),
            ("initialize", size(|it: &Connection, params, cx| it.initialize(params, cx))),
            ("discover", size(|it: &Connection, (), cx| it.discover(cx))),
            ("complete", size(|it: &Connection, params, cx| it.complete(params, cx))),
            ("listen", size(|it: &Connection, on, _| it.listen(on))),
            ("on_initialized", size(|it: &Connection, cx, _| it.on_initialized(cx))),
        ] {
            assert!(size < 1500, "{method}: {size} bytes");
        }
    }
}
