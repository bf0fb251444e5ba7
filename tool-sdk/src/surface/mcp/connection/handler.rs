//! What rmcp asks of a connection, method by method.

// Log messages are on their way out of the protocol; peers of today still read them.
#![expect(deprecated, reason = "the older half of the peers knows no other way")]

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

use super::super::call;
use super::super::changes::Changes;
use super::super::library::Watched;
use super::super::listing::{Era, FRESH_MS};
use super::super::message;
use super::super::page::Shows;
use super::super::relay::severity;
use super::super::result::Blocks;
use super::{Connection, Result, next, shows};

/// What rmcp answers on our behalf: the handshake of both eras, pings, and that there is
/// nothing of what is not here. It makes one future of all of this, and moves it several times
/// for each request, so that what is large stands apart.
impl ServerHandler for Connection {
    async fn initialize(
        &self,
        params: InitializeRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<InitializeResult> {
        if self.owner.get().is_some() {
            let words = "the session is open already; begin another one to say who you are anew";
            return Err(ErrorData::invalid_request(words, None));
        }
        self.owned(&cx)?;
        cx.peer.set_peer_info(params.clone());
        let mut result = self.negotiate_initialize(&params)?;
        let shows = shows(&params.client_info.name, Some(&params.capabilities), &cx.extensions);
        result.capabilities = self.capabilities(shows);
        // Who begins like this is a legacy peer. What it says next may come at once.
        self.open(&params, Blocks::of(Some(&result.protocol_version)), &cx);
        Ok(result)
    }

    async fn discover(&self, cx: RequestContext<RoleServer>) -> Result<DiscoverResult> {
        let mut info = self.get_info();
        info.capabilities = self.capabilities(self.shows(&cx));
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, info).with_ttl_ms(FRESH_MS))
    }

    fn get_info(&self) -> ServerConfig {
        let mut config = ServerConfig::new(self.capabilities(Shows::Text));
        config.server_info = self.identity();
        config.instructions = self.server.instructions.clone();
        config
    }

    async fn list_tools(
        &self,
        from: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult> {
        let era = Era::of(cx.protocol_version().as_ref());
        let page = self.server.listing.page(&self.view(&cx)?, (era, self.shows(&cx)), from);
        page.map(|page| self.signed(era, page))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse> {
        let era = Era::of(cx.protocol_version().as_ref());
        let told = Box::pin(call::call(self, params, cx)).await;
        told.map(|told| self.signed(era, told))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let view = self.server.pipeline.toolset().view();
        self.server.listing.tool(&view, Era::Modern, name)
    }

    async fn set_level(
        &self,
        params: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<()> {
        self.level.set(severity(params.level));
        Ok(())
    }

    async fn on_initialized(&self, cx: NotificationContext<RoleServer>) {
        // Once, however often the peer says that it is ready.
        if self.listening.swap(true, Ordering::Relaxed) {
            return;
        }
        self.tell_of_updates(&cx);
        self.open_door(&cx);
        let (mut changes, gone) = (Changes::of(&self.server), self.gone.clone());
        // The task is moved several times before it stands where it stays.
        let telling = Box::pin(async move {
            while changes.next().await && cx.peer.notify_tool_list_changed().await.is_ok() {}
        });
        tokio::spawn(gone.run_until_cancelled_owned(telling));
    }

    fn accepted_subscription_filter(
        &self,
        wanted: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::builder().tools_list_changed().build();
        if self.tells_of_updates() {
            accepted.resource_subscriptions = wanted.resource_subscriptions.clone();
            accepted.resource_subscriptions.iter_mut().for_each(|it| it.truncate(Watched::ROOM));
        }
        Some(accepted)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<()> {
        Box::pin(self.tell(&subscription)).await;
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult> {
        let era = Era::of(cx.protocol_version().as_ref());
        self.server.list_prompts().map(|listed| self.signed(era, listed))
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse> {
        let era = Era::of(cx.protocol_version().as_ref());
        let (session, modern) = match era {
            Era::Legacy => (self.legacy_session(&cx)?, None),
            Era::Modern => (self.session_for(&cx)?, Some(self.abilities(&cx))),
        };
        let told = self.server.get_prompt(params, session, modern).await;
        told.map(|told| self.signed(era, told))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult> {
        let era = Era::of(cx.protocol_version().as_ref());
        self.server.list_resources(self.shows(&cx)).map(|listed| self.signed(era, listed))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult> {
        let era = Era::of(cx.protocol_version().as_ref());
        self.server.list_templates().map(|listed| self.signed(era, listed))
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse> {
        let (era, shows) = (Era::of(cx.protocol_version().as_ref()), self.shows(&cx));
        let read = self.server.read_resource(params.uri, shows).await?;
        Ok(self.signed(era, read).into())
    }

    async fn subscribe(
        &self,
        params: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<()> {
        match self.tells_of_updates() {
            true => self.watched.add(params.uri),
            false => Err(ErrorData::method_not_found::<SubscribeRequestMethod>()),
        }
    }

    async fn unsubscribe(
        &self,
        params: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<()> {
        if !self.tells_of_updates() {
            return Err(ErrorData::method_not_found::<UnsubscribeRequestMethod>());
        }
        self.watched.remove(&params.uri);
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        cx: RequestContext<RoleServer>,
    ) -> Result<CustomResult> {
        let can = self.capabilities(self.shows(&cx));
        let is_there = match &*request.method {
            "completion/complete" => can.completions.is_some(),
            "prompts/get" => can.prompts.is_some(),
            "resources/read" => can.resources.is_some(),
            _ => self.tells_of_updates(),
        };
        Err(message::of_offered(&request.method, is_there))
    }

    async fn complete(
        &self,
        params: CompleteRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CompleteResult> {
        let era = Era::of(cx.protocol_version().as_ref());
        self.server.complete(&params).map(|found| self.signed(era, found))
    }
}

impl Connection {
    /// Tells a modern peer of changes, for as long as it listens.
    async fn tell(&self, subscription: &SubscriptionContext) {
        let (sink, mut changes) = (subscription.sink(), Changes::of(&self.server));
        let tools = async {
            while changes.next().await && sink.notify_tool_list_changed().await.is_ok() {}
        };
        let watched = subscription.accepted().resource_subscriptions.as_deref().unwrap_or_default();
        let updates = self.server.resources.as_ref().filter(|_| !watched.is_empty());
        let updates = updates.and_then(|resources| resources.updates());
        let resources = async {
            let Some(mut updates) = updates else { return };
            while let Some(uri) = next(&mut updates).await {
                if watched.contains(&uri) && sink.notify_resource_updated(uri).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = subscription.cancelled() => {}
            () = self.hung_up.cancelled() => {}
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
