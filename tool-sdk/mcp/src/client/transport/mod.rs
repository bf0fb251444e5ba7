//! Transports: connections over stdio and streamable HTTP, built on rmcp.
//!
//! [`stdio`] starts programs, [`http`] connects to URLs. Both go through [`request_ids`], which drops
//! responses that were not requested. A server is first addressed with the 2026 protocol; if that
//! fails it is addressed as an older one, with `initialize`.

mod backoff;
mod connect_error;
mod decode_fallback;
mod depth_limit;
mod elicitation_required;
mod http;
mod http_post;
mod in_flight;
mod lent_transport;
mod line_transport;
mod list_probe;
mod notifications;
mod request_ids;
mod resource_listing;
mod sse;
mod sse_reconnect;
mod stdio;
mod subscription;
mod task_calls;
mod task_support;
#[cfg(test)]
mod tests;
mod tool_listing;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, InputRequests, InputResponses,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerResult,
};
use rmcp::service::{
    ClientCacheConfig, ClientLifecycleMode, PeerRequestOptions, RoleClient, RunningService,
    ServiceError, serve_client_with_lifecycle,
};
use rmcp::transport::Transport;
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tool_sdk_core::TaskSupport;
use tool_sdk_process::internal::PipedChild;

use self::connect_error::{ConnectError, connect_error, error_response, send_error};
use self::http::connect_http;
use self::in_flight::InFlightRequest;
use self::line_transport::ProtocolViolation;
use self::notifications::{NotificationHandler, ProgressSteps};
use self::request_ids::RequestIdGuard;
use self::stdio::start_program;
use super::authorization::TokenSource;
use super::config::{ServerConfig, TransportConfig};
use super::remote::{
    OfferChange, RemoteCall, RemoteConnection, RemoteError, RemoteFuture, RemotePrompt,
    RemoteResource, RemoteResult, RemoteTool,
};
use super::server_requests::ClientFeatures;

/// The longest message that a server may send, in bytes.
const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// How often a server may answer a call with a request for more input.
const MAX_INPUT_ROUNDS: usize = 10;

/// How long cancellations may take to be sent before a connection is closed.
const LAST_MESSAGES_TIMEOUT: Duration = Duration::from_secs(2);

/// Connects to a server over two streams, one message a line, and enables `questions` for it.
///
/// # Errors
///
/// Fails when the handshake fails.
///
/// # Examples
///
/// ```
/// use tool_sdk::mcp::{self, ClientFeatures, TransportConfig, ServerConfig};
///
/// let shelf = ServerConfig::new("shelf", TransportConfig::custom(|| async {
///     let (ours, _theirs) = tokio::io::duplex(4096);
///     let (read, write) = tokio::io::split(ours);
///     mcp::connect_streams(read, write, ClientFeatures::none()).await
/// }))?;
/// # Ok::<(), mcp::InvalidServerConfig>(())
/// ```
pub async fn connect_streams<R, W>(
    read: R,
    write: W,
    questions: ClientFeatures,
) -> Result<Arc<dyn RemoteConnection>, RemoteError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    stdio::connect_io(read, write, Arc::new(NotificationHandler::new(questions)), lifecycle_mode())
        .await
        .map_err(|failed| failed.error)
}

/// Connects to a server as its configuration says.
pub(super) async fn open_transport(
    config: &ServerConfig,
    tokens: Option<&Arc<TokenSource>>,
) -> Result<Arc<dyn RemoteConnection>, RemoteError> {
    match &config.transport {
        TransportConfig::Stdio(launch) => start_program(launch, &config.client_features).await,
        TransportConfig::Http(address) => {
            connect_http(address, &config.client_features, tokens).await
        }
        TransportConfig::Custom(connect) => connect().await,
    }
}

/// The 2026 lifecycle, with a fallback to an older version that the server names.
fn lifecycle_mode() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

/// Connects with the 2026 protocol within `patience`. If that fails, tries the older handshake, and
/// then the 2026 protocol again without a timeout if the server may only be slow.
async fn connect_with_fallback<F>(
    meet: impl Fn(ClientLifecycleMode) -> F,
    patience: Duration,
) -> Result<Arc<dyn RemoteConnection>, RemoteError>
where
    F: Future<Output = Result<Arc<dyn RemoteConnection>, ConnectError>>,
{
    let met = timeout(patience, meet(lifecycle_mode())).await;
    let mut failed = match met.unwrap_or_else(|_| Err(ConnectError::discover_timeout())) {
        Ok(met) => return Ok(met),
        Err(failed) => failed,
    };
    if failed.may_be_older {
        match meet(ClientLifecycleMode::Initialize).await {
            Ok(met) => return Ok(met),
            Err(older) => failed.error = older.error,
        }
    }
    if failed.may_be_slow {
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        if let Ok(met) = meet(ClientLifecycleMode::Discover { preferred_versions }).await {
            return Ok(met);
        }
    }
    Err(failed.error)
}

/// An established connection.
struct RmcpConnection {
    service: Arc<RunningService<RoleClient, Arc<NotificationHandler>>>,
    /// The runtime that drives the connection.
    runtime: Handle,
    notifications: Arc<NotificationHandler>,
    closed: CancellationToken,
    violation: ProtocolViolation,
    /// The cancellations that are being sent.
    cancellations: TaskTracker,
    child: Mutex<Option<PipedChild>>,
    /// Warnings about the last list of tools.
    listing_warnings: Mutex<Vec<String>>,
    /// Stops the subscription to changes.
    _subscription_guard: DropGuard,
}

/// Performs the handshake over a transport. `patience` is how long the server may be silent when it
/// is addressed with the 2026 protocol. The connection owns the child; a failed
/// handshake returns it.
async fn start_session<T>(
    transport: T,
    patience: Option<Duration>,
    violation: ProtocolViolation,
    child: Option<PipedChild>,
    notifications: Arc<NotificationHandler>,
    mode: ClientLifecycleMode,
) -> Result<Arc<dyn RemoteConnection>, ConnectError>
where
    T: Transport<RoleClient> + 'static,
{
    let closed = CancellationToken::new();
    let (own, shared) = (violation.clone(), Arc::clone(&notifications));
    let guarded = RequestIdGuard::new(transport, patience, own, shared, closed.clone())?;
    let service = serve_client_with_lifecycle(Arc::clone(&notifications), guarded, mode).await;
    let service = match service {
        Ok(service) => service,
        Err(error) => {
            let words = match &child {
                Some(child) => child.final_stderr().await,
                None => String::new(),
            };
            let child = child.map(Box::new);
            return Err(ConnectError { child, ..connect_error(error, words, &violation) });
        }
    };
    // Tools are cached by the connection, not by rmcp.
    service.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
    let listening =
        subscription::watch_subscription(service.peer().clone(), Arc::clone(&notifications));
    let stop = closed.child_token();
    tokio::spawn(stop.clone().run_until_cancelled_owned(listening));
    let _listening = stop.drop_guard();
    let (service, runtime) = (Arc::new(service), Handle::current());
    let remarks = Mutex::default();
    let connection = RmcpConnection {
        service,
        runtime,
        notifications,
        closed,
        violation,
        cancellations: TaskTracker::new(),
        child: Mutex::new(child),
        listing_warnings: remarks,
        _subscription_guard: _listening,
    };
    connection.report_first_lists();
    Ok(Arc::new(connection))
}

impl RmcpConnection {
    fn lock_child(&self) -> MutexGuard<'_, Option<PipedChild>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send_request(
        &self,
        request: ClientRequest,
    ) -> Result<InFlightRequest<'_>, RemoteError> {
        let options = PeerRequestOptions::no_options();
        let sent = self.service.peer().send_cancellable_request(request, options).await;
        let handle = Some(sent.map_err(|error| self.to_remote_error(error))?);
        Ok(InFlightRequest { handle, connection: self })
    }

    async fn send_tool_call(&self, call: &RemoteCall<'_>) -> Result<RemoteResult, RemoteError> {
        let _answering = self.notifications.register_call(call.request_handler);
        if call.task_support == TaskSupport::Required && self.is_older_server() {
            return Box::pin(self.call_as_legacy_task(call)).await;
        }
        let mut params =
            CallToolRequestParams::new(call.tool.to_owned()).with_arguments(call.arguments.clone());
        for _ in 0..MAX_INPUT_ROUNDS {
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()));
            let response = match self.await_response(request, call).await {
                Ok((response, _)) => response,
                Err(error) => {
                    return Err(elicitation_required::show_required_urls(error, call).await);
                }
            };
            match response {
                ServerResult::CallToolResult(result) => {
                    return convert_via_json(&result).ok_or_else(invalid_result_error);
                }
                ServerResult::CustomResult(result) => {
                    return parse_custom_result(result.0).ok_or_else(invalid_result_error);
                }
                ServerResult::CreateTaskResult(created) => {
                    let id = created.task.task_id;
                    return Box::pin(self.follow_task(&id, call, None)).await;
                }
                ServerResult::InputRequiredResult(more)
                    if more.input_requests.is_none() && more.request_state.is_none() =>
                {
                    return Err(RemoteError::protocol(
                        "the server asks for more input without saying which",
                    ));
                }
                ServerResult::InputRequiredResult(more) => {
                    // Responses of an earlier round are not sent again.
                    params.input_responses =
                        answer_input_requests(call, more.input_requests).await?;
                    params.request_state = more.request_state;
                }
                _ => return Err(invalid_result_error()),
            }
        }
        Err(RemoteError::protocol("the server keeps asking for more input"))
    }

    /// Sends a request and waits for the response. Progress restarts the timeout; if the caller stops
    /// waiting, the server gets a cancellation. Returns the response, and the progress that may follow.
    async fn await_response(
        &self,
        request: ClientRequest,
        call: &RemoteCall<'_>,
    ) -> Result<(ServerResult, ProgressSteps), RemoteError> {
        let mut asked = self.send_request(request).await?;
        let Some(handle) = &mut asked.handle else { return Err(disconnected_error()) };
        let mut steps = self.notifications.subscribe_progress(&handle.progress_token);
        let mut silence = Instant::now() + call.timeout;
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => break answer,
                // Do not wait for a write to a server that is gone.
                () = self.closed.cancelled() => {
                    asked.handle = None;
                    return Err(self.to_remote_error(ServiceError::TransportClosed));
                }
                Some(step) = steps.next_step() => {
                    silence = Instant::now() + call.timeout;
                    step.report_to(call.on_progress);
                }
                // The server may be silent while it waits for our answer.
                () = sleep_until(silence) => if call.request_handler.is_waiting_for_user() {
                    silence = Instant::now() + call.timeout;
                } else {
                    asked.cancel("the call timed out").await;
                    return Err(RemoteError::timeout(format_args!(
                        "the server was silent for {:?}", call.timeout
                    )));
                }
            }
        };
        asked.handle = None;
        while let Some(step) = steps.try_next_step() {
            step.report_to(call.on_progress);
        }
        match answer {
            Ok(answer) => {
                answer.map(|answer| (answer, steps)).map_err(|error| self.to_remote_error(error))
            }
            Err(_) => Err(self.to_remote_error(ServiceError::TransportClosed)),
        }
    }

    /// Converts an error of rmcp for the caller.
    fn to_remote_error(&self, error: ServiceError) -> RemoteError {
        if let Some(error) = self.violation.to_error() {
            return error;
        }
        match error {
            ServiceError::McpError(said) => error_response(&said).with_source(said),
            ServiceError::TransportClosed => disconnected_error(),
            ServiceError::TransportSend(error) => {
                let failed = send_error(error);
                if failed.is_session_lost {
                    self.closed.cancel();
                }
                failed.error
            }
            ServiceError::Timeout { timeout } => {
                RemoteError::timeout(format_args!("the server was silent for {timeout:?}"))
            }
            ServiceError::Cancelled { .. } => RemoteError::aborted("the call was cancelled"),
            other => RemoteError::protocol("the server's response is not one to this request")
                .with_source(other),
        }
    }
}

/// Answers the requests for input that a server's result contains.
async fn answer_input_requests(
    call: &RemoteCall<'_>,
    requests: Option<InputRequests>,
) -> Result<Option<InputResponses>, RemoteError> {
    let mut answers = InputResponses::new();
    for (name, request) in requests.into_iter().flatten() {
        let request = serde_json::to_value(&request).unwrap_or_default();
        let method = request["method"].as_str().unwrap_or_default();
        let answer = call.request_handler.handle_request(method, request["params"].clone()).await?;
        answers.insert(name, answer);
    }
    Ok((!answers.is_empty()).then_some(answers))
}

/// Reads a result with members that rmcp does not know.
fn parse_custom_result(result: Value) -> Option<RemoteResult> {
    let kind = result.get("resultType").map(|kind| kind == "complete");
    let is_result = kind.unwrap_or(true) && result.get("content").is_some_and(Value::is_array);
    is_result.then(|| serde_json::from_value(result).ok()).flatten()
}

fn invalid_result_error() -> RemoteError {
    RemoteError::protocol("the server's response is not a tool result")
}

fn disconnected_error() -> RemoteError {
    RemoteError::connection("the server disconnected")
}

/// Converts a value of rmcp into the type of the port.
fn convert_via_json<T: serde::de::DeserializeOwned>(value: &impl serde::Serialize) -> Option<T> {
    serde_json::from_value(serde_json::to_value(value).ok()?).ok()
}

impl RemoteConnection for RmcpConnection {
    fn list_tools(&self) -> RemoteFuture<'_, Vec<RemoteTool>> {
        Box::pin(self.list_all_tools())
    }

    fn call_tool<'a>(&'a self, call: RemoteCall<'a>) -> RemoteFuture<'a, RemoteResult> {
        Box::pin(async move { self.send_tool_call(&call).await })
    }

    fn resume_task<'a>(
        &'a self,
        call: RemoteCall<'a>,
        task: &'a str,
    ) -> RemoteFuture<'a, RemoteResult> {
        Box::pin(async move {
            let _answering = self.notifications.register_call(call.request_handler);
            self.follow_task(task, &call, None).await
        })
    }

    fn read_resource<'a>(&'a self, uri: &'a str) -> RemoteFuture<'a, Value> {
        Box::pin(async move {
            let params = ReadResourceRequestParams::new(uri);
            let read = self.service.peer().read_resource_once(params).await;
            let read = read.map_err(|error| self.to_remote_error(error))?;
            match read {
                ReadResourceResponse::Complete(read) => convert_via_json(&read),
                _ => None,
            }
            .ok_or_else(|| RemoteError::protocol("the server's response is not a resource"))
        })
    }

    fn list_resources(&self) -> RemoteFuture<'_, Vec<RemoteResource>> {
        Box::pin(self.list_all_resources())
    }

    fn list_prompts(&self) -> RemoteFuture<'_, Vec<RemotePrompt>> {
        Box::pin(self.list_all_prompts())
    }

    fn get_prompt<'a>(
        &'a self,
        name: &'a str,
        arguments: Map<String, Value>,
    ) -> RemoteFuture<'a, Value> {
        Box::pin(self.fetch_prompt(name, arguments))
    }

    fn watch_resource<'a>(&'a self, uri: &'a str) -> RemoteFuture<'a, ()> {
        Box::pin(self.subscribe_resource(uri))
    }

    fn unwatch_resource<'a>(&'a self, uri: &'a str) -> RemoteFuture<'a, ()> {
        Box::pin(self.unsubscribe_resource(uri))
    }

    fn offer_changed(&self) -> std::pin::Pin<Box<dyn Future<Output = OfferChange> + Send + '_>> {
        Box::pin(self.notifications.offer_changes().next_change())
    }

    fn instructions(&self) -> Option<String> {
        self.server_instructions()
    }

    fn tools_changed(&self) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.notifications.wait_for_change())
    }

    fn closed(&self) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.closed.cancelled())
    }

    fn is_closed(&self) -> bool {
        self.closed.is_cancelled() || self.service.is_closed()
    }

    fn shut_down(&self) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            self.cancellations.close();
            // A server that does not read them is not waited for.
            let _ = timeout(LAST_MESSAGES_TIMEOUT, self.cancellations.wait()).await;
            self.closed.cancel();
            // rmcp then closes the standard input of the server.
            self.service.cancellation_token().cancel();
            let child = self.lock_child().take();
            if let Some(child) = child {
                child.shut_down().await;
            }
        })
    }

    fn listing_warnings(&self) -> Vec<String> {
        let child = self.lock_child();
        let shortfall = child.as_ref().and_then(PipedChild::sandbox_shortfall);
        let unconfined = shortfall.map(|status| format!("its sandbox has gaps: {status}"));
        let odd = self.listing_warnings.lock().unwrap_or_else(PoisonError::into_inner).clone();
        unconfined.into_iter().chain(odd).collect()
    }

    fn stderr_tail(&self) -> String {
        self.lock_child()
            .as_ref()
            .map(|child| child.stderr().snapshot().to_text())
            .unwrap_or_default()
    }
}
