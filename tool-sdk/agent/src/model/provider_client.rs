//! The client for the APIs of model providers, over HTTP with server-sent events.
//!
//! **Invariant:** a request is sent again only while nothing of its message has arrived.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Body, RequestBuilder, Response, Url};
use serde_json::Value;
use sse_stream::SseStream;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tool_sdk_core::provider::{
    MessageAccumulator, MessageDelta, ModelApi, ModelMessage, StopReason,
};
use tool_sdk_net::{has_credentials, is_loopback_url};

use super::api_key::ApiKey;
use super::request_body;
use super::{ModelClient, ModelError, ModelErrorKind, ModelEvent, ModelRequest, RetryPolicy};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// How much of the explanation of an error is read.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// A model of a provider: OpenAI and everything compatible with its chat completions (OpenRouter,
/// Ollama, vLLM, LM Studio, llama.cpp), OpenAI's Responses API, Anthropic, Gemini.
///
/// # Examples
///
/// ```
/// use tool_sdk::agent::{ApiKey, ProviderClient};
/// use tool_sdk::provider::ModelApi;
///
/// let hosted = ProviderClient::new(ModelApi::Anthropic, "claude-sonnet-4-5")?
///     .with_key(ApiKey::variable("ANTHROPIC_API_KEY"));
/// let local = ProviderClient::new(ModelApi::OpenAiChat, "qwen3")?
///     .with_base_url("http://localhost:11434/v1")?;
/// # let _ = (hosted, local);
/// # Ok::<(), tool_sdk::agent::InvalidEndpoint>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct ProviderClient {
    api: ModelApi,
    model: String,
    base_url: Url,
    key: Option<ApiKey>,
    /// The key once it was read; a command may ask for a password.
    read_key: Arc<OnceCell<String>>,
    headers: HeaderMap,
    retry: RetryPolicy,
    first_byte_timeout: Duration,
    idle_timeout: Duration,
    http: reqwest::Client,
}

/// The error for an endpoint to which no request can be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidEndpoint(String);

impl fmt::Debug for ProviderClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderClient")
            .field("api", &self.api)
            .field("model", &self.model)
            .field("base_url", &self.base_url.as_str())
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl ProviderClient {
    /// Creates a client for `model` at the provider that invented the API.
    ///
    /// # Errors
    ///
    /// Fails when the certificates of the system cannot be loaded.
    pub fn new(api: ModelApi, model: impl Into<String>) -> Result<Self, InvalidEndpoint> {
        let base_url = parse_base_url(default_base_url(api))?;
        Ok(Self {
            api,
            model: model.into(),
            http: build_http_client(&base_url)?,
            base_url,
            key: None,
            read_key: Arc::default(),
            headers: HeaderMap::new(),
            retry: RetryPolicy::default(),
            first_byte_timeout: Duration::from_secs(180),
            idle_timeout: Duration::from_secs(120),
        })
    }

    /// Sets the URL below which the API is found, such as `http://localhost:11434/v1`. It must use
    /// `https`; `http` is accepted for loopback hosts.
    ///
    /// # Errors
    ///
    /// Fails for another scheme, credentials in the URL, or what is no URL.
    pub fn with_base_url(mut self, url: &str) -> Result<Self, InvalidEndpoint> {
        self.base_url = parse_base_url(url)?;
        self.http = build_http_client(&self.base_url)?;
        Ok(self)
    }

    /// Sets the key, which is read before the first request.
    pub fn with_key(mut self, key: ApiKey) -> Self {
        self.key = Some(key);
        self.read_key = Arc::default();
        self
    }

    /// Adds a header to every request.
    ///
    /// # Errors
    ///
    /// Fails when the name or the value is not valid in an HTTP header.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, InvalidEndpoint> {
        let wrong = || InvalidEndpoint(format!("the header `{name}` is not valid in HTTP"));
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        self.headers.insert(header, value);
        Ok(self)
    }

    /// Sets when failed requests are sent again.
    pub fn with_retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// Sets how long the response may take to begin (default: 180 s), and how long nothing may
    /// arrive after that (default: 120 s).
    pub fn with_timeouts(mut self, first_byte: Duration, idle: Duration) -> Self {
        self.first_byte_timeout = first_byte;
        self.idle_timeout = idle;
        self
    }

    /// Sends the body once, and returns the response if it is a success.
    async fn send_once(&self, body: &str) -> Result<Response, ModelError> {
        let sending = self.build_request(body).await?.send();
        let response = match timeout(self.first_byte_timeout, sending).await {
            Ok(response) => response.map_err(|error| self.network_error(&error))?,
            Err(_) => {
                return Err(timeout_error("the response did not begin", self.first_byte_timeout));
            }
        };
        if response.status().is_success() {
            return Ok(response);
        }
        let (status, delay) = (response.status().as_u16(), retry_after(response.headers()));
        let reading = read_limited(response);
        let body = timeout(self.idle_timeout, reading).await.unwrap_or_default();
        Err(ModelError::from_status(status, &body, delay))
    }

    async fn build_request(&self, body: &str) -> Result<RequestBuilder, ModelError> {
        let mut url = self.base_url.clone();
        let path = match self.api {
            ModelApi::OpenAiChat => "chat/completions".to_owned(),
            ModelApi::OpenAiResponses => "responses".to_owned(),
            ModelApi::Anthropic => "v1/messages".to_owned(),
            ModelApi::Gemini => "v1beta/interactions".to_owned(),
            ModelApi::GeminiGenerate => {
                url.set_query(Some("alt=sse"));
                format!("v1beta/models/{}:streamGenerateContent", self.model)
            }
        };
        url.set_path(&format!("{}/{path}", self.base_url.path().trim_end_matches('/')));
        let mut request = self
            .http
            .post(url)
            .header("content-type", "application/json")
            .header("accept", "text/event-stream")
            .headers(self.headers.clone())
            .body(body.to_owned());
        if self.api == ModelApi::Anthropic {
            request = request.header("anthropic-version", "2023-06-01");
        }
        let Some(key) = &self.key else { return Ok(request) };
        let key =
            self.read_key.get_or_try_init(|| key.read()).await.map_err(|error| {
                ModelError::new(ModelErrorKind::Unauthorized, error.to_string())
            })?;
        let (name, value) = match self.api {
            ModelApi::OpenAiChat | ModelApi::OpenAiResponses => {
                ("authorization", format!("Bearer {key}"))
            }
            ModelApi::Anthropic => ("x-api-key", key.clone()),
            ModelApi::Gemini | ModelApi::GeminiGenerate => ("x-goog-api-key", key.clone()),
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| {
            ModelError::new(ModelErrorKind::Unauthorized, "the API key is not valid in HTTP")
        })?;
        value.set_sensitive(true);
        Ok(request.header(name, value))
    }

    /// Reads the events of a response to its end. A failure has what arrived of the message before
    /// it, if anything did.
    async fn read_stream(
        &self,
        response: Response,
        events: &mut (dyn FnMut(ModelEvent) + Send),
    ) -> Result<ModelMessage, ModelError> {
        let mut stream = SseStream::new(Body::from(response));
        let mut message = MessageAccumulator::new(self.api);
        let mut has_begun = false;
        let mut is_done = false;
        let failure = loop {
            let event = match timeout(self.idle_timeout, stream.next()).await {
                Err(_) => break timeout_error("nothing arrived", self.idle_timeout),
                Ok(None) => return finish_message(message, has_begun, is_done),
                Ok(Some(Err(error))) => {
                    let problem = format!("the connection broke: {error}");
                    break ModelError::new(ModelErrorKind::Network, problem);
                }
                Ok(Some(Ok(event))) => event,
            };
            let Some(data) = event.data else { continue };
            if data == "[DONE]" {
                is_done = true;
                continue;
            }
            let Ok(data) = serde_json::from_str::<Value>(&data) else {
                let problem = "the provider sent an event that is no JSON";
                break ModelError::new(ModelErrorKind::Unavailable, problem);
            };
            match message.push(&data) {
                Ok(deltas) => {
                    has_begun |= !deltas.is_empty();
                    deltas.into_iter().for_each(|delta| events(ModelEvent::Delta(delta)));
                }
                Err(failure) => break ModelError::from_stream(&failure),
            }
        };
        Err(if has_begun { failure.with_partial(message.finish()) } else { failure })
    }

    /// Reads a response that is not streamed, as servers send it that do not know streams.
    async fn read_whole(
        &self,
        response: Response,
        events: &mut (dyn FnMut(ModelEvent) + Send),
    ) -> Result<ModelMessage, ModelError> {
        let reading = timeout(self.first_byte_timeout, response.bytes()).await;
        let body = match reading {
            Ok(body) => body.map_err(|error| self.network_error(&error))?,
            Err(_) => {
                return Err(timeout_error("the response did not end", self.first_byte_timeout));
            }
        };
        let unreadable = |problem: &dyn fmt::Display| {
            let problem = format!("{} did not answer as a model: {problem}", self.base_url);
            ModelError::new(ModelErrorKind::InvalidRequest, problem)
        };
        let body: Value = serde_json::from_slice(&body).map_err(|error| unreadable(&error))?;
        let message = ModelMessage::from_response(&body, self.api);
        let message = message.map_err(|error| unreadable(&error))?;
        let text = message.text();
        if !text.is_empty() {
            events(ModelEvent::Delta(MessageDelta::Text(text)));
        }
        Ok(message)
    }

    /// Describes a failure of the connection. The cause says what happened, such as a refused
    /// connection.
    fn network_error(&self, error: &reqwest::Error) -> ModelError {
        let mut cause: &dyn std::error::Error = error;
        while let Some(next) = cause.source() {
            cause = next;
        }
        let is_timeout = error.is_timeout();
        let kind = if is_timeout { ModelErrorKind::Timeout } else { ModelErrorKind::Network };
        ModelError::new(kind, format!("{} cannot be reached: {cause}", self.base_url))
    }

    async fn try_respond(
        &self,
        body: &str,
        events: &mut (dyn FnMut(ModelEvent) + Send),
    ) -> Result<ModelMessage, ModelError> {
        let response = self.send_once(body).await?;
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        if kind.is_some_and(|kind| kind.starts_with("application/json")) {
            return self.read_whole(response, events).await;
        }
        self.read_stream(response, events).await
    }
}

impl ModelClient for ProviderClient {
    fn name(&self) -> &str {
        &self.model
    }

    async fn respond(
        &self,
        request: &ModelRequest<'_>,
        events: &mut (dyn FnMut(ModelEvent) + Send),
    ) -> Result<ModelMessage, ModelError> {
        let body = request_body::encode_body(request, self.api, &self.model).to_string();
        let mut attempt = 0;
        loop {
            let error = match self.try_respond(&body, events).await {
                Ok(message) => return Ok(message),
                Err(error) => error,
            };
            let delay = self.retry.next_delay(attempt, &error).filter(|_| error.partial.is_none());
            let Some(delay) = delay else { return Err(error) };
            attempt += 1;
            tracing::debug!(%error, attempt, ?delay, "the request to the model is sent again");
            events(ModelEvent::Retry { delay, reason: error.message });
            tokio::time::sleep(delay).await;
        }
    }
}

/// Ends a message whose response has ended. Proxies end a response that broke off behind them like a
/// whole one, so a message without a stop reason is a failure, unless the provider said `[DONE]`.
fn finish_message(
    message: MessageAccumulator,
    has_begun: bool,
    is_done: bool,
) -> Result<ModelMessage, ModelError> {
    let mut message = message.finish();
    if message.stop != StopReason::CutOff {
        return Ok(message);
    }
    if is_done {
        let has_calls = !message.calls().is_empty();
        message.stop = if has_calls { StopReason::ToolCalls } else { StopReason::EndTurn };
        return Ok(message);
    }
    let problem = match has_begun {
        true => "the response ended within the message",
        false => "the response ended without a message; is the URL that of the API?",
    };
    let failure = ModelError::new(ModelErrorKind::Network, problem);
    Err(if has_begun { failure.with_partial(message) } else { failure })
}

const fn default_base_url(api: ModelApi) -> &'static str {
    match api {
        ModelApi::OpenAiChat | ModelApi::OpenAiResponses => "https://api.openai.com/v1",
        ModelApi::Anthropic => "https://api.anthropic.com",
        ModelApi::Gemini | ModelApi::GeminiGenerate => "https://generativelanguage.googleapis.com",
    }
}

fn parse_base_url(text: &str) -> Result<Url, InvalidEndpoint> {
    let wrong = |problem: &str| InvalidEndpoint(format!("the URL of the model: {problem}"));
    let url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
    if has_credentials(&url) {
        return Err(wrong("it must not contain credentials"));
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback_url(&url) => Ok(url),
        "http" => Err(wrong("plain http is allowed for this machine only; use https")),
        _ => Err(wrong("it must start with https://")),
    }
}

fn build_http_client(base_url: &Url) -> Result<reqwest::Client, InvalidEndpoint> {
    // Fails when the host installed a provider before, which then stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // A redirect would send the key to another host.
    let client =
        reqwest::Client::builder().redirect(Policy::none()).connect_timeout(CONNECT_TIMEOUT);
    let client = if is_loopback_url(base_url) { client.no_proxy() } else { client };
    client.build().map_err(|error| InvalidEndpoint(format!("no HTTP client: {error}")))
}

fn timeout_error(what: &str, limit: Duration) -> ModelError {
    ModelError::new(ModelErrorKind::Timeout, format!("{what} within {} s", limit.as_secs()))
}

/// Returns the delay that the provider asks for, in seconds or milliseconds. A date is not used.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds =
        number("retry-after-ms").map(|millis| millis / 1000.0).or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok()
}

async fn read_limited(mut response: Response) -> String {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() >= MAX_ERROR_BYTES {
            break;
        }
    }
    String::from_utf8_lossy(&body).into_owned()
}
