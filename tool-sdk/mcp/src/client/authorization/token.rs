//! Responses of the token endpoint, and the requests for a refresh and a revocation.
//!
//! **Invariant:** only bearer tokens are accepted; an error never repeats a token.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use tool_sdk_net::{Url, WebResponse};

use super::discovery::DiscoveryClient;
use super::error::AuthorizationError;
use super::flow::refusal;
use super::store::ServerCredentials;

/// The longest token, in bytes; a header must hold it.
const MAX_TOKEN_BYTES: usize = 16 << 10;

/// How long before its end a token is renewed.
const EXPIRY_MARGIN: Duration = Duration::from_secs(30);

/// Tokens, as a token endpoint issues them.
#[derive(Clone, Deserialize)]
pub(super) struct TokenResponse {
    pub(super) access_token: String,
    token_type: String,
    /// In seconds.
    expires_in: Option<u64>,
    pub(super) refresh_token: Option<String>,
}

/// The body of an error response.
#[derive(Default, Deserialize)]
pub(super) struct ErrorBody {
    pub(super) error: Option<String>,
    #[serde(default)]
    pub(super) error_description: String,
}

/// How a refresh ended, if no request failed.
pub(super) enum RefreshOutcome {
    Renewed(TokenResponse),
    /// The refresh token is void; the user must authorize again.
    Void,
}

impl TokenResponse {
    /// Returns when the access token ends, in seconds since 1970.
    pub(super) fn expires_at(&self) -> Option<u64> {
        self.expires_in.map(|seconds| unix_seconds().saturating_add(seconds))
    }
}

/// Whether a token that ends at `expires_at` is to be renewed now.
pub(super) fn is_expiring(expires_at: Option<u64>) -> bool {
    expires_at.is_some_and(|end| end <= unix_seconds().saturating_add(EXPIRY_MARGIN.as_secs()))
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Reads the tokens of a response, or why there are none.
pub(super) fn read_token_response(
    response: &WebResponse,
) -> Result<TokenResponse, AuthorizationError> {
    if !response.is_success() {
        let said: ErrorBody = serde_json::from_slice(response.body()).unwrap_or_default();
        let status = format!("HTTP {}", response.status());
        return Err(refusal(said.error.as_deref().unwrap_or(&status), &said.error_description));
    }
    let invalid = |why: &str| AuthorizationError::InvalidToken(why.to_owned());
    let tokens: TokenResponse = serde_json::from_slice(response.body())
        .map_err(|_| invalid("it has no `access_token` and `token_type`"))?;
    if !tokens.token_type.eq_ignore_ascii_case("bearer") {
        return Err(invalid("the token is not a bearer token"));
    }
    let texts = [Some(&tokens.access_token), tokens.refresh_token.as_ref()];
    if !texts.into_iter().flatten().all(|token| is_token(token)) {
        return Err(invalid("the token cannot be sent in a header"));
    }
    Ok(tokens)
}

/// Whether a text can be sent as a bearer token.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_TOKEN_BYTES && text.bytes().all(|c| c.is_ascii_graphic())
}

/// Exchanges the refresh token for new tokens.
pub(super) async fn refresh_tokens(
    http: &DiscoveryClient,
    credentials: &ServerCredentials,
    refresh_token: &str,
) -> Result<RefreshOutcome, AuthorizationError> {
    let form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh_token),
        ("resource", &*credentials.resource),
    ];
    let endpoint = credentials.token_endpoint()?;
    let request = credentials.client.authenticated_form(endpoint, &form);
    let response = http.send(request, "cannot refresh the token").await?;
    match is_void_grant(&response) {
        true => Ok(RefreshOutcome::Void),
        false => read_token_response(&response).map(RefreshOutcome::Renewed),
    }
}

/// Whether the server refuses the refresh token or the client for good.
fn is_void_grant(response: &WebResponse) -> bool {
    let said: ErrorBody = serde_json::from_slice(response.body()).unwrap_or_default();
    let is_final =
        |error: &str| matches!(error, "invalid_grant" | "invalid_client" | "unauthorized_client");
    !response.is_success() && said.error.as_deref().is_some_and(is_final)
}

/// Revokes the tokens at the authorization server: the refresh token first, as it lives longer.
/// Returns whether the server revoked one; some have no revocation, or none of access tokens.
pub(super) async fn revoke_tokens(
    http: &DiscoveryClient,
    credentials: &ServerCredentials,
) -> Result<bool, AuthorizationError> {
    let Some(endpoint) = credentials.revocation_endpoint()? else { return Ok(false) };
    let tokens = [
        (credentials.refresh_token.as_deref(), "refresh_token"),
        (credentials.access_token.as_deref(), "access_token"),
    ];
    let mut is_revoked = false;
    for (token, hint) in tokens {
        if let Some(token) = token {
            is_revoked |= revoke_token(http, credentials, &endpoint, (token, hint)).await?;
        }
    }
    Ok(is_revoked)
}

/// Revokes a token; returns whether the server revokes tokens of this type.
async fn revoke_token(
    http: &DiscoveryClient,
    credentials: &ServerCredentials,
    endpoint: &Url,
    (token, hint): (&str, &str),
) -> Result<bool, AuthorizationError> {
    let form = [("token", token), ("token_type_hint", hint)];
    let request = credentials.client.authenticated_form(endpoint.clone(), &form);
    let response = http.send(request, "cannot revoke the token").await?;
    if response.is_success() {
        return Ok(true);
    }
    let said: ErrorBody = serde_json::from_slice(response.body()).unwrap_or_default();
    match said.error.as_deref() {
        // Such as a JSON Web Token, which ends by itself.
        Some("unsupported_token_type") => Ok(false),
        error => {
            let status = format!("the revocation failed with HTTP {}", response.status());
            Err(refusal(error.unwrap_or(&status), &said.error_description))
        }
    }
}
