//! Transports: connections over stdio and streamable HTTP, built on rmcp.
//!
//! [`stdio`] starts programs, [`http`] connects to URLs. Both go through [`ids`], which drops
//! responses that were not requested. A server is first addressed with the 2026 protocol; if that
//! fails it is addressed as an older one, with `initialize`.

mod asked;
mod deep;
mod ears;
mod events;
mod http;
mod ids;
mod lines;
mod list;
mod listed;
mod news;
mod pause;
mod post;
mod refusal;
mod stdio;
mod steady;
#[cfg(test)]
mod tests;
mod unread;

use std::sync::{Arc, Mutex, PoisonError};
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
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::asked::Asked;
use self::ears::Ears;
pub(super) use self::http::dial;
use self::ids::Guarded;
use self::lines::Overflow;
use self::refusal::{Failed, no, refused, unsent};
pub(super) use self::stdio::launch;
use super::questions::Questions;
use super::remote::{Remote, RemoteCall, RemoteError, RemoteResult, RemoteTool, RemoteWork};
use crate::process::Piped;

/// The longest message that a server may send, in bytes.
const MAX_MESSAGE: usize = 4 << 20;

/// How often a server may answer a call with a request for more input.
const MOST_ROUNDS: usize = 10;

/// Connects to a server over two streams, one message a line, and enables `questions` for it.
///
/// # Errors
///
/// Fails when the handshake fails.
///
/// # Examples
///
/// ```
/// use tool_sdk::mcp::{self, Questions, Reach, Upstream};
///
/// let shelf = Upstream::new("shelf", Reach::custom(|| async {
///     let (ours, _theirs) = tokio::io::duplex(4096);
///     let (read, write) = tokio::io::split(ours);
///     mcp::talk(read, write, Questions::none()).await
/// }))?;
/// # Ok::<(), mcp::InvalidUpstream>(())
/// ```
pub async fn talk<R, W>(
    read: R,
    write: W,
    questions: Questions,
) -> Result<Arc<dyn Remote>, RemoteError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    stdio::over(read, write, None, Arc::new(Ears::new(questions)), today())
        .await
        .map_err(|failed| failed.error)
}

/// The 2026 lifecycle, with a fallback to an older version that the server names.
fn today() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

/// Connects with the 2026 protocol within `patience`. If that fails, tries the older handshake, and
/// then the 2026 protocol again without a timeout if the server may only be slow.
async fn either<F>(
    meet: impl Fn(ClientLifecycleMode) -> F,
    patience: Duration,
) -> Result<Arc<dyn Remote>, RemoteError>
where
    F: Future<Output = Result<Arc<dyn Remote>, Failed>>,
{
    let met = timeout(patience, meet(today())).await;
    let mut failed = match met.unwrap_or_else(|_| Err(Failed::late())) {
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
struct Wire {
    service: Arc<RunningService<RoleClient, Arc<Ears>>>,
    /// The runtime that drives the connection.
    runtime: Handle,
    ears: Arc<Ears>,
    closed: CancellationToken,
    overflow: Overflow,
    child: Option<Piped>,
    /// Warnings about the last list of tools.
    remarks: Mutex<Vec<String>>,
    /// Stops the subscription to changes.
    _listening: DropGuard,
}

/// Performs the handshake over a transport. `patience` is how long the server may be silent when it
/// is addressed with the 2026 protocol.
async fn begin<T>(
    transport: T,
    patience: Option<Duration>,
    overflow: Overflow,
    child: Option<Piped>,
    ears: Arc<Ears>,
    mode: ClientLifecycleMode,
) -> Result<Arc<dyn Remote>, Failed>
where
    T: Transport<RoleClient> + 'static,
{
    let closed = CancellationToken::new();
    let (own, shared) = (overflow.clone(), Arc::clone(&ears));
    let guarded = Guarded::new(transport, patience, own, shared, closed.clone())?;
    let service = serve_client_with_lifecycle(Arc::clone(&ears), guarded, mode).await;
    let service = match service {
        Ok(service) => service,
        Err(error) => {
            let words = match &child {
                Some(child) => child.last_words().await,
                None => String::new(),
            };
            return Err(refused(error, words, &overflow));
        }
    };
    // Tools are cached by the connection, not by rmcp.
    service.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
    let listening = news::listen(service.peer().clone(), Arc::clone(&ears));
    let stop = closed.child_token();
    tokio::spawn(stop.clone().run_until_cancelled_owned(listening));
    let _listening = stop.drop_guard();
    let (service, runtime) = (Arc::new(service), Handle::current());
    let remarks = Mutex::default();
    Ok(Arc::new(Wire { service, runtime, ears, closed, overflow, child, remarks, _listening }))
}

impl Wire {
    async fn send(&self, request: ClientRequest) -> Result<Asked<'_>, RemoteError> {
        let options = PeerRequestOptions::no_options();
        let sent = self.service.peer().send_cancellable_request(request, options).await;
        let handle = Some(sent.map_err(|error| self.failed(error))?);
        Ok(Asked { handle, wire: self })
    }

    async fn call_tool(&self, call: &RemoteCall<'_>) -> Result<RemoteResult, RemoteError> {
        let _answering = self.ears.answer_with(call.answers);
        let mut params =
            CallToolRequestParams::new(call.tool.to_owned()).with_arguments(call.arguments.clone());
        for _ in 0..MOST_ROUNDS {
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()));
            match self.ask(request, call).await? {
                ServerResult::CallToolResult(result) => {
                    return recast(&result).ok_or_else(no_result);
                }
                ServerResult::CustomResult(result) => {
                    return odd_result(result.0).ok_or_else(no_result);
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
                    params.input_responses = answered(call, more.input_requests).await?;
                    params.request_state = more.request_state;
                }
                _ => return Err(no_result()),
            }
        }
        Err(RemoteError::protocol("the server keeps asking for more input"))
    }

    /// Sends a request and waits for the response. Progress restarts the timeout; if the caller stops
    /// waiting, the server gets a cancellation.
    async fn ask(
        &self,
        request: ClientRequest,
        call: &RemoteCall<'_>,
    ) -> Result<ServerResult, RemoteError> {
        let mut asked = self.send(request).await?;
        let Some(handle) = &mut asked.handle else { return Err(gone()) };
        let mut steps = self.ears.listen_for(&handle.progress_token);
        let mut silence = Instant::now() + call.timeout;
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => break answer,
                // Do not wait for a write to a server that is gone.
                () = self.closed.cancelled() => {
                    asked.handle = None;
                    return Err(self.failed(ServiceError::TransportClosed));
                }
                Some(step) = steps.next() => {
                    silence = Instant::now() + call.timeout;
                    step.tell(call.report);
                }
                // The server may be silent while it waits for our answer.
                () = sleep_until(silence) => if call.answers.is_open() {
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
        while let Some(step) = steps.waiting() {
            step.tell(call.report);
        }
        match answer {
            Ok(answer) => answer.map_err(|error| self.failed(error)),
            Err(_) => Err(self.failed(ServiceError::TransportClosed)),
        }
    }

    /// Converts an error of rmcp for the caller.
    fn failed(&self, error: ServiceError) -> RemoteError {
        if let Some(error) = self.overflow.error() {
            return error;
        }
        match error {
            ServiceError::McpError(said) => no(&said).because(said),
            ServiceError::TransportClosed => gone(),
            ServiceError::TransportSend(error) => {
                let failed = unsent(error);
                if failed.is_final {
                    self.closed.cancel();
                }
                failed.error
            }
            ServiceError::Timeout { timeout } => {
                RemoteError::timeout(format_args!("the server was silent for {timeout:?}"))
            }
            ServiceError::Cancelled { .. } => RemoteError::aborted("the call was cancelled"),
            other => RemoteError::protocol("the server's response is not one to this request")
                .because(other),
        }
    }
}

/// Answers the requests for input that a server's result contains.
async fn answered(
    call: &RemoteCall<'_>,
    requests: Option<InputRequests>,
) -> Result<Option<InputResponses>, RemoteError> {
    let mut answers = InputResponses::new();
    for (name, request) in requests.into_iter().flatten() {
        let request = serde_json::to_value(&request).unwrap_or_default();
        let method = request["method"].as_str().unwrap_or_default();
        let answer = call.answers.answer(method, request["params"].clone()).await?;
        answers.insert(name, answer);
    }
    Ok((!answers.is_empty()).then_some(answers))
}

/// Reads a result with members that rmcp does not know.
fn odd_result(result: Value) -> Option<RemoteResult> {
    let kind = result.get("resultType").map(|kind| kind == "complete");
    let is_result = kind.unwrap_or(true) && result.get("content").is_some_and(Value::is_array);
    is_result.then(|| serde_json::from_value(result).ok()).flatten()
}

fn no_result() -> RemoteError {
    RemoteError::protocol("the server's response is not a tool result")
}

fn gone() -> RemoteError {
    RemoteError::connection("the server disconnected")
}

/// Converts a value of rmcp into the type of the port.
fn recast<T: serde::de::DeserializeOwned>(value: &impl serde::Serialize) -> Option<T> {
    serde_json::from_value(serde_json::to_value(value).ok()?).ok()
}

impl Remote for Wire {
    fn tools(&self) -> RemoteWork<'_, Vec<RemoteTool>> {
        Box::pin(self.list())
    }

    fn call<'a>(&'a self, call: RemoteCall<'a>) -> RemoteWork<'a, RemoteResult> {
        Box::pin(async move { self.call_tool(&call).await })
    }

    fn read<'a>(&'a self, uri: &'a str) -> RemoteWork<'a, Value> {
        Box::pin(async move {
            let params = ReadResourceRequestParams::new(uri);
            let read = self.service.peer().read_resource_once(params).await;
            let read = read.map_err(|error| self.failed(error))?;
            match read {
                ReadResourceResponse::Complete(read) => recast(&read),
                _ => None,
            }
            .ok_or_else(|| RemoteError::protocol("the server's response is not a resource"))
        })
    }

    fn changed(&self) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.ears.change())
    }

    fn closed(&self) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.closed.cancelled())
    }

    fn is_closed(&self) -> bool {
        self.closed.is_cancelled() || self.service.is_closed()
    }

    fn remarks(&self) -> Vec<String> {
        let shortfall = self.child.as_ref().and_then(Piped::shortfall);
        let unconfined = shortfall.map(|status| format!("its sandbox has gaps: {status}"));
        let odd = self.remarks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        unconfined.into_iter().chain(odd).collect()
    }

    fn complaints(&self) -> String {
        self.child.as_ref().map(|child| child.complaints().captured().text()).unwrap_or_default()
    }
}
