//! Dispatches requests by method to their handlers.
//!
//! Requests that only read the state of the server are answered at once. Those that run a tool or
//! code of the host become futures, which the transport runs.
//!
//! **Invariant:** a panic of the host's code is an error of one request.

// Log messages are deprecated in the protocol, but current clients still read them.
#![expect(deprecated, reason = "legacy clients have no replacement")]

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt as _;
use rmcp::model::{
    DiscoverResult, EmptyResult, ErrorCode, ErrorData, ProtocolVersion, ServerResult,
    SetLevelRequestParams, SubscribeRequestParams, UnsubscribeRequestParams,
};
use serde_json::json;
use tool_sdk_core::internal::LazyCancelToken;

use super::call;
use super::connection::Connection;
use super::dyn_provider::DynResourceProvider;
use super::in_flight::InFlightGuard;
use super::listing::{LIST_TTL_MS, ProtocolEra};
use super::message::{ClientRequest, MessageParams};
use super::message_sink::MessageSink;
use super::request_context::{CancelOnDrop, RequestContext};
use super::response::{HandlerResult, JsonRpcResponse, ResultText, result_text};

/// The methods that 2026-07-28 removed.
const REMOVED_METHODS: &[&str] =
    &["initialize", "logging/setLevel", "ping", "resources/subscribe", "resources/unsubscribe"];

/// A request that was dispatched.
pub(super) enum DispatchedRequest {
    /// It has its response.
    Answered(JsonRpcResponse),
    /// It has to be run. A cancelled request gets no response.
    Running { request: RunningRequest, cancel: LazyCancelToken },
}

pub(super) type RunningRequest = Pin<Box<dyn Future<Output = Option<JsonRpcResponse>> + Send>>;

impl Connection {
    /// Dispatches a request. Messages that belong to it go to `sink`.
    pub(super) fn begin_request(
        self: &Arc<Self>,
        request: ClientRequest,
        sink: MessageSink,
        user_agent: Option<&str>,
    ) -> DispatchedRequest {
        let id = request.id.clone();
        tracing::debug!(%id, method = request.method, "received a request");
        self.dispatch(request, sink, user_agent).unwrap_or_else(|error| {
            tracing::debug!(%id, error = %error.message, "refused a request");
            DispatchedRequest::Answered(JsonRpcResponse::error(Some(&id), &error))
        })
    }

    fn dispatch(
        self: &Arc<Self>,
        mut request: ClientRequest,
        sink: MessageSink,
        user_agent: Option<&str>,
    ) -> Result<DispatchedRequest, ErrorData> {
        if !self.is_stateless() {
            self.in_flight.check_free(&request.id)?;
        }
        let states_modern =
            request.meta.protocol_version().is_some_and(|version| !version.has_initialize());
        if states_modern && REMOVED_METHODS.contains(&&*request.method) {
            let words =
                format!("`{}` does not exist in protocol version 2026-07-28", request.method);
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, words, None));
        }
        let result = match &*request.method {
            "initialize" => {
                let result = self.initialize(&request.params, user_agent)?;
                let mut result = json!(result);
                if result["protocolVersion"] == ProtocolVersion::V_2025_11_25.as_str()
                    && self.has_task_tools()
                {
                    result["capabilities"]["tasks"] = self.legacy_task_capability();
                }
                Ok(ResultText::Owned(result.to_string().into_bytes()))
            }
            // Clients may ping before they begin the connection.
            "ping" if !self.has_handshake() => Ok(empty_result()),
            _ => {
                let cx = self.request_context(&mut request, sink, user_agent)?;
                match self.answer(&request.method, &request.params, &cx) {
                    Some(result) => result,
                    None => return self.start(request, cx),
                }
            }
        };
        Ok(DispatchedRequest::Answered(JsonRpcResponse::new(&request.id, result)))
    }

    /// Returns the result of a request that is answered at once.
    fn answer(
        &self,
        method: &str,
        params: &MessageParams,
        cx: &RequestContext,
    ) -> Option<HandlerResult> {
        let result = match method {
            "ping" => Ok(ServerResult::EmptyResult(EmptyResult {})),
            "server/discover" => Ok(self.discover(cx)),
            "logging/setLevel" => self.set_level(params),
            "tools/list" => return Some(self.list_tools(params, cx)),
            "resources/subscribe" => self.subscribe(params),
            "resources/unsubscribe" => self.unsubscribe(params),
            task_method if task_method.starts_with("tasks/") => {
                return self.answer_task_request(method, params, cx);
            }
            "tools/call"
            | "prompts/list"
            | "prompts/get"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
            | "completion/complete" => return None,
            "subscriptions/listen" if cx.era() == ProtocolEra::Modern => return None,
            unknown => {
                let words = format!("the method `{unknown}` is unknown");
                Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, words, None))
            }
        };
        Some(result.and_then(|result| self.result(cx.era(), result)))
    }

    /// Starts a request that may wait.
    fn start(
        self: &Arc<Self>,
        request: ClientRequest,
        cx: RequestContext,
    ) -> Result<DispatchedRequest, ErrorData> {
        // Over HTTP, stateless requests of several clients may have the same id.
        let guard = match self.is_stateless() {
            true => None,
            false => Some(self.in_flight.insert(&cx.id, cx.cancel.clone())?),
        };
        let cancel = cx.cancel.clone();
        let request = Box::pin(Arc::clone(self).run(request, cx, guard));
        Ok(DispatchedRequest::Running { request, cancel })
    }

    /// Runs a request until it has its response or is cancelled.
    async fn run(
        self: Arc<Self>,
        request: ClientRequest,
        cx: RequestContext,
        guard: Option<InFlightGuard>,
    ) -> Option<JsonRpcResponse> {
        // A client that disconnects drops this future.
        let mut cancel_on_drop = CancelOnDrop::new(cx.cancel.clone());
        let permit = match &*request.method {
            "subscriptions/listen" => self.in_flight.acquire_listener(),
            _ => self.in_flight.acquire_permit(request.size, &cx.cancel).await,
        };
        let permit = match permit {
            Ok(permit) => permit,
            Err(error) => {
                let is_refused = !cx.cancel.is_cancelled() || self.closed.is_cancelled();
                return is_refused.then(|| JsonRpcResponse::error(Some(&cx.id), &error));
            }
        };
        // Boxed, because this future is moved while it is small.
        let result = match &*request.method {
            // A cancelled call ends by itself, and the pipeline contains its panics.
            "tools/call" => Box::pin(call::call_tool(&self, request.params, &cx)).await,
            method => {
                let handling = Box::pin(self.handle(method, &request.params, &cx));
                let handling = AssertUnwindSafe(handling).catch_unwind();
                let result = cx.cancel.token().run_until_cancelled(handling).await?;
                result.unwrap_or_else(|_| Err(panic_error()))
            }
        };
        cancel_on_drop.disarm();
        drop((permit, guard));
        (!cx.cancel.is_cancelled()).then(|| JsonRpcResponse::new(&cx.id, result))
    }

    async fn handle(
        &self,
        method: &str,
        params: &MessageParams,
        cx: &RequestContext,
    ) -> HandlerResult {
        let result = match method {
            "tasks/result" => return self.task_result(params, cx).await,
            "prompts/get" => self.get_prompt(params, cx).await?,
            "resources/read" => self.read_resource(params, cx).await?,
            "subscriptions/listen" => self.listen(params, cx).await?,
            "completion/complete" => {
                ServerResult::CompleteResult(self.server.complete_argument(params)?)
            }
            list => self.list(list, params, cx).await?,
        };
        self.result(cx.era(), result)
    }

    /// Writes a result of the protocol.
    pub(super) fn result(&self, era: ProtocolEra, result: ServerResult) -> HandlerResult {
        Ok(result_text(result, era, || json!(self.server_info())))
    }

    fn discover(&self, cx: &RequestContext) -> ServerResult {
        let versions = ProtocolVersion::KNOWN_VERSIONS.to_vec();
        let result = DiscoverResult::from_server_info(
            versions,
            self.server_config(ProtocolEra::Modern, cx.client.ui),
        );
        ServerResult::DiscoverResult(result.with_ttl_ms(LIST_TTL_MS))
    }

    fn set_level(&self, params: &MessageParams) -> Result<ServerResult, ErrorData> {
        let params = params.decode::<SetLevelRequestParams>("logging/setLevel")?;
        self.log_threshold.set(params.level);
        Ok(ServerResult::EmptyResult(EmptyResult {}))
    }

    fn list_tools(&self, params: &MessageParams, cx: &RequestContext) -> HandlerResult {
        let cursor: Option<String> = params.member("cursor")?;
        let (view, listing) = (self.toolset_view(), &self.server.listing);
        if cx.era() == ProtocolEra::Legacy
            && let Some(page) = listing.page_json(&view, cx.client.ui, cursor.as_deref())
        {
            return Ok(ResultText::Shared(page));
        }
        let page = listing.list_page(&view, (cx.era(), cx.client.ui), cursor.as_deref())?;
        self.result(cx.era(), ServerResult::ListToolsResult(page))
    }

    /// Lists what the host provides, in one page.
    async fn list(
        &self,
        method: &str,
        params: &MessageParams,
        cx: &RequestContext,
    ) -> Result<ServerResult, ErrorData> {
        // No page has a cursor, but one that is not a string is an error.
        params.member::<String>("cursor")?;
        let server = &self.server;
        match method {
            "prompts/list" => server.list_prompts().await.map(ServerResult::ListPromptsResult),
            "resources/list" => {
                server.list_resources(cx.client.ui).await.map(ServerResult::ListResourcesResult)
            }
            _ => server.list_templates().await.map(ServerResult::ListResourceTemplatesResult),
        }
    }

    fn subscribe(&self, params: &MessageParams) -> Result<ServerResult, ErrorData> {
        let provider = self.updating_resources("resources/subscribe")?;
        let params = params.decode::<SubscribeRequestParams>("resources/subscribe")?;
        self.subscriptions.subscribe(provider, params.uri)?;
        Ok(ServerResult::EmptyResult(EmptyResult {}))
    }

    fn unsubscribe(&self, params: &MessageParams) -> Result<ServerResult, ErrorData> {
        self.updating_resources("resources/unsubscribe")?;
        let params = params.decode::<UnsubscribeRequestParams>("resources/unsubscribe")?;
        self.subscriptions.unsubscribe(&params.uri);
        Ok(ServerResult::EmptyResult(EmptyResult {}))
    }

    /// Returns the resources of the host; fails if the host does not report their changes.
    fn updating_resources(
        &self,
        method: &'static str,
    ) -> Result<&Arc<dyn DynResourceProvider>, ErrorData> {
        let provider = self.server.resources.as_ref();
        provider
            .filter(|_| self.has_resource_updates())
            .ok_or_else(|| ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None))
    }
}

fn panic_error() -> ErrorData {
    ErrorData::internal_error("the handler of the request panicked", None)
}

fn empty_result() -> ResultText {
    ResultText::Owned(b"{}".to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_future<F>(
        _: &impl FnOnce(Arc<Connection>, ClientRequest, RequestContext) -> F,
    ) -> usize {
        size_of::<F>()
    }

    // A future is copied to the heap for each request.
    #[test]
    fn the_future_of_a_request_is_small() {
        let run = |connection: Arc<Connection>, request, cx| connection.run(request, cx, None);
        assert!(size_of_future(&run) < 2048, "{}", size_of_future(&run));
        let call = |connection: Arc<Connection>, request: ClientRequest, cx| async move {
            call::call_tool(&connection, request.params, &cx).await
        };
        assert!(size_of_future(&call) < 2560, "{}", size_of_future(&call));
    }
}
