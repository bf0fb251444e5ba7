//! The client: one request, or a page with its redirects.
//!
//! **Invariant:** a redirect is judged by the URL policy and by the caller before its target is
//! requested, and no header of the caller goes to another origin.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, USER_AGENT,
};
use reqwest::redirect::Policy;
use reqwest::{Method, StatusCode};
use tokio::time::Instant;
use url::Url;

use crate::body::{ACCEPTED_ENCODINGS, read_body};
use crate::resolver::{DynHostResolver, GuardedResolver};
use crate::response_cache::{CacheLookup, ResponseCache, conditional_headers};
use crate::{FetchError, HostResolver, SystemResolver, UrlPolicy, WebSettings};

/// A client for addresses from a model.
///
/// It connects only to public addresses, follows redirects hop by hop, keeps no cookies, sends no
/// referrer and uses no proxy. Its clones share connections and cached responses.
///
/// # Examples
///
/// ```no_run
/// use tool_sdk::net::{FetchOutcome, GuardedClient, RedirectDecision, RedirectHop, RedirectJudge, WebSettings};
///
/// /// Follows redirects within a host.
/// struct SameHost;
///
/// impl RedirectJudge for SameHost {
///     async fn judge_redirect(&self, hop: RedirectHop<'_>) -> RedirectDecision {
///         match hop.from.host() == hop.to.host() {
///             true => RedirectDecision::Follow,
///             false => RedirectDecision::Stop,
///         }
///     }
/// }
///
/// # async fn example() -> Result<(), tool_sdk::net::FetchError> {
/// let client = GuardedClient::new(WebSettings::default());
/// let url = client.parse_url("https://docs.rs/tokio")?;
/// match client.fetch(url, "text/html", &SameHost).await? {
///     FetchOutcome::Response(page) => println!("{} {}", page.status(), page.url()),
///     FetchOutcome::Redirect { to, .. } => println!("redirects to {to}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct GuardedClient {
    inner: Arc<ClientInner>,
}

struct ClientInner {
    settings: WebSettings,
    resolver: Arc<dyn DynHostResolver>,
    /// Connects to named hosts at any address. Set up when first used.
    named_http: OnceLock<reqwest::Client>,
    /// Connects to public addresses only. Set up when first used.
    public_http: OnceLock<reqwest::Client>,
    cache: Mutex<ResponseCache>,
}

impl fmt::Debug for GuardedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedClient").field("settings", self.settings()).finish_non_exhaustive()
    }
}

/// A redirect.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RedirectHop<'a> {
    /// The URL that redirects.
    pub from: &'a Url,
    /// The target, judged by the URL policy.
    pub to: &'a Url,
}

/// Whether a redirect is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is nothing else to do with a redirect")]
pub enum RedirectDecision {
    /// The target is requested.
    Follow,
    /// The fetch ends with [`FetchOutcome::Redirect`].
    Stop,
}

/// Decides about redirects.
pub trait RedirectJudge: Sync {
    /// Decides about one redirect. Time limits do not count this time, so a person may be asked.
    fn judge_redirect(&self, hop: RedirectHop<'_>)
    -> impl Future<Output = RedirectDecision> + Send;
}

/// How a fetch ended.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a page is there, or somewhere else")]
pub enum FetchOutcome {
    /// A response that is not a redirect, of any status.
    Response(WebResponse),
    /// A redirect that was not followed.
    Redirect {
        /// The URL that redirects.
        from: Url,
        /// Its target.
        to: Url,
    },
}

/// A response with its whole body, decompressed.
#[derive(Clone, Debug)]
pub struct WebResponse {
    pub(crate) url: Url,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Arc<[u8]>,
}

impl WebResponse {
    /// Returns the URL that was requested last.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the status code.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// Returns whether the status code is one of success.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.status.is_success()
    }

    /// Returns a header as text, if it is there and ASCII.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the body.
    #[must_use]
    pub fn body(&self) -> &Arc<[u8]> {
        &self.body
    }
}

/// One request.
#[derive(Clone, Debug)]
#[must_use]
pub struct WebRequest {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
}

impl WebRequest {
    /// Requests `url`.
    pub fn get(url: Url) -> Self {
        Self { method: Method::GET, url, headers: HeaderMap::new(), body: None }
    }

    /// Sends JSON to `url`.
    pub fn post_json(url: Url, body: impl Into<Vec<u8>>) -> Self {
        let json = HeaderValue::from_static("application/json");
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, json)]);
        Self { method: Method::POST, url, headers, body: Some(body.into()) }
    }

    /// Sends a form to `url`, encoded as `application/x-www-form-urlencoded`.
    pub fn post_form<'a>(url: Url, fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, form)]);
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish()
            .into_bytes();
        Self { method: Method::POST, url, headers, body: Some(body) }
    }

    /// Uses another method, such as `PATCH`. Keeps the method when `method` is none.
    pub fn method(mut self, method: &str) -> Self {
        if let Ok(method) = method.parse() {
            self.method = method;
        }
        self
    }

    /// Adds a header; debug output shows only its name. A header that HTTP does not allow is left
    /// out, so check what comes from a user before.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let (Ok(name), Ok(mut value)) =
            (HeaderName::try_from(name), HeaderValue::from_str(value))
        {
            value.set_sensitive(true);
            self.headers.insert(name, value);
        }
        self
    }
}

impl GuardedClient {
    /// Creates a client with the resolver of the system.
    #[must_use]
    pub fn new(settings: WebSettings) -> Self {
        Self::with_resolver(settings, SystemResolver)
    }

    /// Creates a client with another resolver. Its answers are judged all the same.
    #[must_use]
    pub fn with_resolver(settings: WebSettings, resolver: impl HostResolver) -> Self {
        Self::from_parts(settings, Arc::new(resolver))
    }

    fn from_parts(settings: WebSettings, resolver: Arc<dyn DynHostResolver>) -> Self {
        let (named_http, public_http) = (OnceLock::new(), OnceLock::new());
        let cache = Mutex::default();
        Self { inner: Arc::new(ClientInner { settings, resolver, named_http, public_http, cache }) }
    }

    /// Returns a client that also reaches the host of `endpoint`, an URL from the configuration,
    /// for requests to an API. It shares no connections with this one.
    #[must_use]
    pub fn for_endpoint(&self, endpoint: &Url) -> Self {
        let mut settings = self.settings().clone();
        let port = endpoint.port_or_known_default().map(|port| format!(":{port}"));
        let place =
            format!("{}{}", endpoint.host_str().unwrap_or_default(), port.unwrap_or_default());
        settings.urls.named_hosts.extend(place.parse());
        Self::from_parts(settings, Arc::clone(&self.inner.resolver))
    }

    /// Returns the settings.
    #[must_use]
    pub fn settings(&self) -> &WebSettings {
        &self.inner.settings
    }

    /// Parses and judges a URL: [`UrlPolicy::parse_url`](crate::UrlPolicy::parse_url).
    ///
    /// # Errors
    ///
    /// Fails when it is not requested.
    pub fn parse_url(&self, text: &str) -> Result<Url, FetchError> {
        Ok(self.settings().urls.parse_url(text)?)
    }

    /// Sends one request. A redirect is returned as it is.
    ///
    /// # Errors
    ///
    /// Fails when the URL is not requested, its host has an address that is not public or does not
    /// answer, or a limit is exceeded.
    pub async fn send(&self, request: WebRequest) -> Result<WebResponse, FetchError> {
        let limit = self.settings().limits.total_timeout;
        let sending = self.send_once(request);
        tokio::time::timeout(limit, sending).await.map_err(|_| FetchError::Timeout(limit))?
    }

    /// Gets a page and follows redirects that `judge` does not stop. A cached response is used
    /// while it is fresh, or when the server confirms it.
    ///
    /// # Errors
    ///
    /// Fails as [`send`](Self::send) does, for each hop, and for too many redirects.
    pub async fn fetch<J: RedirectJudge>(
        &self,
        url: Url,
        accept: &str,
        judge: &J,
    ) -> Result<FetchOutcome, FetchError> {
        let limits = self.settings().limits;
        let (mut url, mut left) = (url, limits.total_timeout);
        for _ in 0..=limits.redirects {
            let start = Instant::now();
            let hop = self.get_cached(url.clone(), accept);
            let response = tokio::time::timeout(left, hop).await;
            let response = response.map_err(|_| FetchError::Timeout(limits.total_timeout))??;
            left = left.saturating_sub(start.elapsed());
            if !is_redirect(response.status) {
                return Ok(FetchOutcome::Response(response));
            }
            let location = response.header(LOCATION.as_str()).ok_or(FetchError::MissingLocation)?;
            let to = self.settings().urls.parse_redirect(&url, location)?;
            match judge.judge_redirect(RedirectHop { from: &url, to: &to }).await {
                RedirectDecision::Follow => url = to,
                RedirectDecision::Stop => return Ok(FetchOutcome::Redirect { from: url, to }),
            }
        }
        Err(FetchError::TooManyRedirects(limits.redirects))
    }

    async fn get_cached(&self, url: Url, accept: &str) -> Result<WebResponse, FetchError> {
        let found = self.lock_cache().find_response(&url);
        let mut request = WebRequest::get(url).header("accept", accept);
        let stale = match found {
            CacheLookup::Fresh(response) => return Ok(response),
            CacheLookup::Stale(response) => {
                for (name, value) in conditional_headers(&response.headers) {
                    request.headers.insert(HeaderName::from_static(name), value);
                }
                Some(response)
            }
            CacheLookup::Missing => None,
        };
        let response = self.send_once(request).await?;
        let response = match stale {
            Some(stale) if response.status == StatusCode::NOT_MODIFIED => {
                let mut headers = stale.headers;
                headers.extend(response.headers);
                WebResponse { headers, ..stale }
            }
            _ => response,
        };
        if response.status == StatusCode::OK {
            self.lock_cache().store_response(&response, self.settings().cache_time);
        }
        Ok(response)
    }

    /// One request and its response, with every limit but the time.
    async fn send_once(&self, request: WebRequest) -> Result<WebResponse, FetchError> {
        let limits = self.settings().limits;
        // A caller may have a URL that no policy has seen.
        let url = self.settings().urls.parse_url(request.url.as_str())?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let builder =
            self.http_for(&url)?.request(request.method, url.clone()).headers(request.headers);
        let builder = match request.body {
            Some(body) => builder.body(body),
            None => builder,
        };
        let response = builder
            .send()
            .await
            .map_err(|error| classify_error(error, host, limits.connect_timeout))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let size: usize =
            headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if size > limits.header_bytes {
            return Err(FetchError::HeadersTooLarge(limits.header_bytes));
        }
        let body = match is_redirect(status) || status == StatusCode::NOT_MODIFIED {
            true => Vec::new(),
            false => read_body(response, limits.body_bytes).await?,
        };
        Ok(WebResponse { url, status, headers, body: body.into() })
    }

    /// Returns the client for `url`. A resolver learns no port, so that a host that is named with a
    /// port is reached through a client of its own, and its other ports are not.
    fn http_for(&self, url: &Url) -> Result<&reqwest::Client, FetchError> {
        let inner = &self.inner;
        let (slot, urls) = match inner.settings.urls.names_url(url) {
            true => (&inner.named_http, inner.settings.urls.clone()),
            false => (&inner.public_http, UrlPolicy::default()),
        };
        if let Some(client) = slot.get() {
            return Ok(client);
        }
        let resolver =
            GuardedResolver { resolver: Arc::clone(&inner.resolver), urls: Arc::new(urls) };
        let client = build_http_client(&inner.settings, resolver)
            .map_err(|error| FetchError::Exchange(error.into()))?;
        Ok(slot.get_or_init(|| client))
    }

    fn lock_cache(&self) -> std::sync::MutexGuard<'_, ResponseCache> {
        self.inner.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn build_http_client(
    settings: &WebSettings,
    resolver: GuardedResolver,
) -> Result<reqwest::Client, reqwest::Error> {
    // Fails when the host installed a provider before, which then stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED_ENCODINGS));
    if let Ok(name) = HeaderValue::from_str(&settings.user_agent) {
        headers.insert(USER_AGENT, name);
    }
    reqwest::Client::builder()
        .default_headers(headers)
        .dns_resolver(resolver)
        .connect_timeout(settings.limits.connect_timeout)
        .redirect(Policy::none())
        .referer(false)
        // A proxy would resolve the names itself.
        .no_proxy()
        .build()
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Returns why a request was not sent, or not answered.
fn classify_error(error: reqwest::Error, host: String, connect_timeout: Duration) -> FetchError {
    if error.is_timeout() {
        return FetchError::Timeout(connect_timeout);
    }
    if let Some(refusal) = find_refusal(&error) {
        return refusal;
    }
    let source = error.without_url();
    match source.is_connect() {
        true => FetchError::Connect { host, source: source.into() },
        false => FetchError::Exchange(source.into()),
    }
}

/// Returns the error of the guarded resolver among the causes.
fn find_refusal(error: &reqwest::Error) -> Option<FetchError> {
    let first: &(dyn std::error::Error + 'static) = error;
    let mut causes = std::iter::successors(Some(first), |cause| cause.source());
    causes.find_map(|cause| match cause.downcast_ref::<FetchError>()? {
        FetchError::PrivateAddress { host, address } => {
            Some(FetchError::PrivateAddress { host: host.clone(), address: *address })
        }
        FetchError::UnknownHost { host, source } => {
            let source = std::io::Error::new(source.kind(), source.to_string());
            Some(FetchError::UnknownHost { host: host.clone(), source })
        }
        _ => None,
    })
}
