//! Fetches metadata, and sends the other requests of the flow, with the guarded client (WF1 to WF6).
//!
//! Hosts that are not public are reached in two cases only: the host of the server itself, because
//! the user configured it, and this machine, if the server is on it. The host of a configured issuer
//! counts as configured, too.
//!
//! **Invariant:** metadata never makes this program send a request into the user's network.

use std::time::Duration;

use serde::de::DeserializeOwned;
use tool_sdk_net::{
    FetchError, FetchOutcome, GuardedClient, RedirectDecision, RedirectHop, RedirectJudge, Url,
    WebRequest, WebResponse, WebSettings, is_loopback_url,
};

use super::challenge::BearerChallenge;
use super::error::{AuthorizationError, quote_foreign};
use super::metadata::{
    IssuerMetadata, ResourceMetadata, is_secure_url, issuer_metadata_urls, resource_metadata_urls,
};
use super::settings::OAuthSettings;

/// The largest response of a metadata or token endpoint, in bytes.
const MAX_BODY_BYTES: usize = 256 << 10;

const JSON_TYPE: &str = "application/json";

/// The hosts of this machine.
const LOOPBACK_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Sends the requests of the flow for one server.
#[derive(Debug)]
pub(super) struct DiscoveryClient {
    http: GuardedClient,
    server: Url,
}

/// Follows redirects within an origin.
struct SameOrigin;

impl RedirectJudge for SameOrigin {
    async fn judge_redirect(&self, hop: RedirectHop<'_>) -> RedirectDecision {
        match hop.from.origin() == hop.to.origin() {
            true => RedirectDecision::Follow,
            false => RedirectDecision::Stop,
        }
    }
}

impl DiscoveryClient {
    pub(super) fn new(server: &Url, settings: &OAuthSettings) -> Self {
        let mut web = WebSettings::default();
        web.cache_time = Duration::ZERO;
        web.limits.body_bytes = MAX_BODY_BYTES;
        if is_loopback_url(server) {
            web.urls.named_hosts.extend(LOOPBACK_HOSTS.iter().filter_map(|host| host.parse().ok()));
        }
        let mut http = GuardedClient::new(web).for_endpoint(server);
        if let Some(issuer) = &settings.issuer {
            http = http.for_endpoint(issuer);
        }
        Self { http, server: server.clone() }
    }

    /// Returns the metadata of the server; `None` when there is none at the well-known places.
    ///
    /// # Errors
    ///
    /// Fails when the challenge names a place without metadata, or a request fails.
    pub(super) async fn fetch_resource_metadata(
        &self,
        challenge: &BearerChallenge,
    ) -> Result<Option<ResourceMetadata>, AuthorizationError> {
        let Some(named) = &challenge.resource_metadata else {
            return self.find_document(resource_metadata_urls(&self.server)).await;
        };
        let missing = || {
            AuthorizationError::Discovery(format!(
                "there is no protected-resource metadata at `{}`, which the server names",
                quote_foreign(named)
            ))
        };
        let url = self.http.parse_url(named).map_err(AuthorizationError::request(METADATA))?;
        self.fetch_document(url).await?.ok_or_else(missing).map(Some)
    }

    /// Returns the metadata of an authorization server, which must name `issuer` as its own.
    pub(super) async fn fetch_issuer_metadata(
        &self,
        issuer: &str,
    ) -> Result<IssuerMetadata, AuthorizationError> {
        let shown = quote_foreign(issuer);
        let invalid = |why: &str| {
            AuthorizationError::Discovery(format!("the authorization server `{shown}` {why}"))
        };
        let url = match Url::parse(issuer) {
            Ok(url) if is_secure_url(&url) && url.query().is_none() && url.fragment().is_none() => {
                url
            }
            _ => return Err(invalid("is not an https URL without a query")),
        };
        let mut other_issuer = None;
        for place in issuer_metadata_urls(&url) {
            match self.fetch_document::<IssuerMetadata>(place).await? {
                Some(metadata) if metadata.issuer == issuer => return Ok(metadata),
                Some(metadata) => other_issuer = Some(metadata.issuer),
                None => {}
            }
        }
        Err(match other_issuer {
            Some(other) => invalid(&format!(
                "publishes metadata of another issuer: `{}`",
                quote_foreign(&other)
            )),
            None => invalid("publishes no metadata"),
        })
    }

    /// Sends a request of the flow. A redirect is an error, because it could lead secrets away.
    pub(super) async fn send(
        &self,
        request: WebRequest,
        purpose: &'static str,
    ) -> Result<WebResponse, AuthorizationError> {
        let request = request.header("accept", JSON_TYPE);
        let response =
            self.http.send(request).await.map_err(AuthorizationError::request(purpose))?;
        match response.status() {
            300..=399 => Err(AuthorizationError::Discovery(format!(
                "{purpose}: the authorization server redirects the request, which is not followed"
            ))),
            _ => Ok(response),
        }
    }

    /// Returns the first document that exists.
    async fn find_document<T: DeserializeOwned>(
        &self,
        places: Vec<Url>,
    ) -> Result<Option<T>, AuthorizationError> {
        for place in places {
            if let Some(document) = self.fetch_document(place).await? {
                return Ok(Some(document));
            }
        }
        Ok(None)
    }

    /// Fetches a JSON document; `None` when there is none of this type.
    async fn fetch_document<T: DeserializeOwned>(
        &self,
        place: Url,
    ) -> Result<Option<T>, AuthorizationError> {
        let failed = AuthorizationError::request(METADATA);
        let response = match self.http.fetch(place, JSON_TYPE, &SameOrigin).await {
            Ok(FetchOutcome::Response(response)) if response.is_success() => response,
            Ok(_) => return Ok(None),
            // Another place may be answered.
            Err(FetchError::MissingLocation | FetchError::TooManyRedirects(_)) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        Ok(serde_json::from_slice(response.body()).ok())
    }
}

const METADATA: &str = "cannot fetch the metadata for the authorization";
