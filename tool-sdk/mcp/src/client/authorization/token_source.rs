//! The token of one server: taken from the store for each request, renewed when it ends or is
//! rejected, and obtained in a login.
//!
//! **Invariant:** of concurrent requests one refreshes the token and the others wait for it. A request
//! is sent a second time only after the server answered it with 401, so it did not run. A refresh
//! changes only the credentials that it exchanged.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tool_sdk_core::PrivateFileError;
use tool_sdk_net::Url;

use super::challenge::{BearerChallenge, merge_scopes};
use super::discovery::DiscoveryClient;
use super::error::{AuthorizationError, quote_foreign};
use super::flow::{FlowTarget, run_flow};
use super::loopback::LoopbackListener;
use super::metadata::{IssuerMetadata, ResourceMetadata};
use super::prompt::AuthorizationPrompt;
use super::registration::{RegisteredClient, obtain_client};
use super::settings::OAuthSettings;
use super::store::{CredentialStore, ServerCredentials};
use super::token::{RefreshOutcome, TokenResponse, is_expiring, refresh_tokens, revoke_tokens};

/// The scope that makes some authorization servers issue a refresh token.
const OFFLINE_SCOPE: &str = "offline_access";

/// The state of the authorization of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AuthorizationStatus {
    /// There is a token, which the server did not reject.
    LoggedIn,
    /// The server requires a token, which only the user can obtain.
    LoginRequired,
    /// The token lacks scopes, which only the user can grant.
    ScopesMissing,
}

/// How a logout ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogoutOutcome {
    /// There was no token.
    NotLoggedIn,
    /// The tokens were revoked and deleted.
    Revoked,
    /// The tokens were deleted. The authorization server offers no revocation, so they end by
    /// themselves.
    Deleted,
}

/// What the server asked for last, until it is granted.
struct AuthorizationNeed {
    status: AuthorizationStatus,
    challenge: BearerChallenge,
}

/// The token of one server.
pub(crate) struct TokenSource {
    server: Url,
    settings: OAuthSettings,
    store: CredentialStore,
    http: DiscoveryClient,
    need: Mutex<Option<AuthorizationNeed>>,
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSource").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Tokens for requests.
impl TokenSource {
    pub(crate) fn new(server: &Url, settings: &OAuthSettings, store: CredentialStore) -> Self {
        Self {
            server: server.clone(),
            settings: settings.clone(),
            store,
            http: DiscoveryClient::new(server, settings),
            need: Mutex::default(),
        }
    }

    /// Returns the token for a request; `None` when there is none. It is renewed shortly before it
    /// ends.
    pub(crate) async fn current_token(&self) -> Option<String> {
        let credentials = self.load_or_warn()?;
        let token = credentials.access_token;
        if !is_expiring(credentials.expires_at) || credentials.refresh_token.is_none() {
            return token;
        }
        self.renew_token(token.as_deref()).await.unwrap_or(token)
    }

    /// Records that the server answered 401 to a request with the token `used`; returns another token
    /// with which the request can be repeated.
    pub(crate) async fn token_after_rejection(
        &self,
        used: Option<&str>,
        challenge: &str,
    ) -> Option<String> {
        self.set_need(AuthorizationStatus::LoginRequired, BearerChallenge::parse(challenge));
        used?;
        let renewed = self.renew_token(used).await.ok()??;
        *self.lock_need() = None;
        Some(renewed)
    }

    /// Records that the server answered 403 with this challenge, if it asks for scopes.
    pub(crate) async fn record_missing_scopes(&self, challenge: &str) {
        let challenge = BearerChallenge::parse(challenge);
        if !challenge.is_insufficient_scope() {
            return;
        }
        let missing = challenge.scopes.clone();
        self.set_need(AuthorizationStatus::ScopesMissing, challenge);
        let remember = move |stored: Option<ServerCredentials>| {
            let mut stored = stored?;
            let known = stored.missing_scopes.iter().chain(&missing).map(String::as_str);
            stored.missing_scopes = merge_scopes(known);
            Some(stored)
        };
        if let Err(error) = self.store.update(&self.server, remember).await {
            tracing::warn!(%error, "the scopes that an MCP server requires cannot be stored");
        }
    }

    /// Exchanges the refresh token, unless another task or process did so since `used` was read.
    /// `None` when the user must log in.
    async fn renew_token(&self, used: Option<&str>) -> Result<Option<String>, AuthorizationError> {
        let _turn = self.store.lock_refresh(&self.server).await;
        let Some(credentials) = self.store.load(&self.server)? else { return Ok(None) };
        if credentials.access_token.as_deref() != used {
            return Ok(credentials.access_token);
        }
        let Some(refresh_token) = credentials.refresh_token.as_deref() else { return Ok(None) };
        let outcome = refresh_tokens(&self.http, &credentials, refresh_token).await;
        let outcome =
            outcome.inspect_err(|error| tracing::warn!(%error, "an MCP token was not renewed"))?;
        self.store_outcome(credentials, outcome).await?;
        Ok(self.store.load(&self.server)?.and_then(|stored| stored.access_token))
    }

    /// Stores how the refresh of `exchanged` ended, unless the user logged in or out meanwhile.
    async fn store_outcome(
        &self,
        exchanged: ServerCredentials,
        outcome: RefreshOutcome,
    ) -> Result<(), PrivateFileError> {
        let change = move |stored: Option<ServerCredentials>| {
            let stored = stored?;
            let is_exchanged = stored.refresh_token == exchanged.refresh_token
                && stored.issuer == exchanged.issuer;
            Some(match outcome {
                _ if !is_exchanged => stored,
                RefreshOutcome::Renewed(tokens) => with_tokens(stored, tokens),
                RefreshOutcome::Void => without_tokens(stored),
            })
        };
        self.store.update(&self.server, change).await
    }

    fn load_or_warn(&self) -> Option<ServerCredentials> {
        let loaded = self.store.load(&self.server);
        loaded
            .inspect_err(|error| tracing::warn!(%error, "the MCP credentials cannot be read"))
            .ok()
            .flatten()
    }

    fn set_need(&self, status: AuthorizationStatus, challenge: BearerChallenge) {
        *self.lock_need() = Some(AuthorizationNeed { status, challenge });
    }

    fn lock_need(&self) -> MutexGuard<'_, Option<AuthorizationNeed>> {
        self.need.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the host sees.
impl TokenSource {
    /// Returns the state of the authorization; `None` when the server asked for none.
    pub(crate) fn status(&self) -> Option<AuthorizationStatus> {
        if let Some(need) = &*self.lock_need() {
            return Some(need.status);
        }
        let stored = self.load_or_warn()?;
        Some(match stored.access_token.is_some() || stored.refresh_token.is_some() {
            true if !stored.missing_scopes.is_empty() => AuthorizationStatus::ScopesMissing,
            true => AuthorizationStatus::LoggedIn,
            false => AuthorizationStatus::LoginRequired,
        })
    }

    /// Says what the user has to do, for a model that tells the user.
    pub(crate) fn describe_need(&self, mcp_command: &str, name: &str) -> Option<String> {
        let need = self.lock_need();
        let need = need.as_ref()?;
        Some(match need.status {
            AuthorizationStatus::ScopesMissing => format!(
                "the server requires the scopes `{}`, which only the user can grant: the user runs \
                 `{mcp_command} login {name}`",
                quote_foreign(&need.challenge.scopes.join(" "))
            ),
            _ => format!(
                "the server requires a valid token, which only the user can obtain: the user runs \
                 `{mcp_command} login {name}`"
            ),
        })
    }

    /// Returns everything that must not be shown.
    pub(crate) fn secret_values(&self) -> Vec<String> {
        let Ok(Some(stored)) = self.store.load(&self.server) else { return Vec::new() };
        let tokens = [stored.access_token, stored.refresh_token, stored.client.secret];
        tokens.into_iter().flatten().collect()
    }
}

/// Login and logout.
impl TokenSource {
    /// Lets the user authorize the server, and stores the tokens.
    pub(crate) async fn authorize<P: AuthorizationPrompt>(
        &self,
        name: &str,
        prompt: &P,
    ) -> Result<(), AuthorizationError> {
        let challenge = self.lock_need().as_ref().map(|need| need.challenge.clone());
        let challenge = challenge.unwrap_or_default();
        let found = self.http.fetch_resource_metadata(&challenge).await?;
        let resource = match &found {
            Some(found) => found.matching_resource(&self.server)?,
            None => canonical_resource(&self.server),
        };
        let stored = self.store.load(&self.server)?;
        let issuer = self.choose_issuer(found.as_ref(), stored.as_ref())?;
        let metadata = self.http.fetch_issuer_metadata(&issuer).await?;
        metadata.check_pkce()?;
        // What another authorization server granted says nothing about this one.
        let stored = stored.filter(|stored| stored.issuer == issuer);
        let offered = found.and_then(|found| found.scopes_supported).unwrap_or_default();
        let scopes = self.choose_scopes(&challenge, &offered, stored.as_ref(), &metadata);
        let listener = LoopbackListener::bind(self.settings.redirect_port).await?;
        let redirect_uri = listener.redirect_uri();
        let client =
            obtain_client(&self.http, &self.settings, &metadata, &redirect_uri, &scopes).await?;
        let target =
            FlowTarget { server: name, resource: &resource, metadata: &metadata, scopes: &scopes };
        let tokens = run_flow(&self.http, &target, &client, listener, prompt).await?;
        let credentials = build_credentials(&target, client, tokens)?;
        self.store.update(&self.server, move |_| Some(credentials)).await?;
        *self.lock_need() = None;
        Ok(())
    }

    /// Revokes the tokens and deletes them. They are deleted also when they cannot be revoked.
    pub(crate) async fn log_out(&self) -> Result<LogoutOutcome, AuthorizationError> {
        let Some(stored) = self.store.load(&self.server)? else {
            return Ok(LogoutOutcome::NotLoggedIn);
        };
        self.store.update(&self.server, |_| None).await?;
        *self.lock_need() = None;
        match revoke_tokens(&self.http, &stored).await? {
            true => Ok(LogoutOutcome::Revoked),
            false => Ok(LogoutOutcome::Deleted),
        }
    }

    /// Returns the issuer of the authorization server: the configured one, or the first that the
    /// server names. Servers of 2025-03-26 name none and are one themselves.
    fn choose_issuer(
        &self,
        found: Option<&ResourceMetadata>,
        stored: Option<&ServerCredentials>,
    ) -> Result<String, AuthorizationError> {
        let named = found.map(|found| found.authorization_servers.as_slice());
        if let Some(configured) = &self.settings.issuer_text {
            return match named {
                Some(named) if !named.contains(configured) => {
                    Err(AuthorizationError::Discovery(format!(
                        "the server does not name the configured issuer `{configured}`, but `{}`",
                        quote_foreign(&named.join(" "))
                    )))
                }
                _ => Ok(configured.clone()),
            };
        }
        let issuer = match named {
            Some([first, ..]) => first.clone(),
            Some([]) => {
                let why = "the server's metadata names no authorization server".to_owned();
                return Err(AuthorizationError::Discovery(why));
            }
            None => self.server.origin().ascii_serialization(),
        };
        // A client that was registered by hand is known to one authorization server only.
        match (&self.settings.client_id, stored) {
            (Some(_), Some(stored)) if stored.issuer != issuer => {
                Err(AuthorizationError::Registration(format!(
                    "the configured client was used with the authorization server `{}`, but the server \
                     names `{}` now; log out, then configure the client and its issuer for that one",
                    quote_foreign(&stored.issuer),
                    quote_foreign(&issuer)
                )))
            }
            _ => Ok(issuer),
        }
    }

    /// Returns the scopes to request: what was requested before, what the server asks for, and what
    /// is configured.
    fn choose_scopes(
        &self,
        challenge: &BearerChallenge,
        offered: &[String],
        stored: Option<&ServerCredentials>,
        metadata: &IssuerMetadata,
    ) -> Vec<String> {
        let before = stored.map(|stored| [&stored.scopes[..], &stored.missing_scopes[..]].concat());
        let asked = match (&before, challenge.scopes.is_empty()) {
            (None, true) => offered,
            _ => &challenge.scopes[..],
        };
        let before = before.unwrap_or_default();
        let all = before.iter().chain(asked).chain(&self.settings.scopes).map(String::as_str);
        let mut scopes = merge_scopes(all);
        let is_offline = |scope: &String| scope == OFFLINE_SCOPE;
        if !scopes.is_empty()
            && !scopes.iter().any(is_offline)
            && metadata.scopes_supported.iter().any(is_offline)
        {
            scopes.push(OFFLINE_SCOPE.to_owned());
        }
        scopes
    }
}

/// Returns what is stored after a login.
fn build_credentials(
    target: &FlowTarget<'_>,
    client: RegisteredClient,
    tokens: TokenResponse,
) -> Result<ServerCredentials, AuthorizationError> {
    let metadata = target.metadata;
    Ok(ServerCredentials {
        issuer: metadata.issuer.clone(),
        resource: target.resource.to_owned(),
        token_endpoint: metadata.token_endpoint()?.into(),
        revocation_endpoint: metadata.revocation_endpoint()?.map(String::from),
        client,
        expires_at: tokens.expires_at(),
        access_token: Some(tokens.access_token),
        refresh_token: tokens.refresh_token,
        scopes: target.scopes.to_vec(),
        missing_scopes: Vec::new(),
    })
}

/// Replaces the tokens by those of a refresh.
fn with_tokens(mut stored: ServerCredentials, tokens: TokenResponse) -> ServerCredentials {
    stored.expires_at = tokens.expires_at();
    stored.access_token = Some(tokens.access_token);
    // A server that does not rotate refresh tokens sends none.
    stored.refresh_token = tokens.refresh_token.or(stored.refresh_token);
    stored
}

/// Removes the tokens, and keeps what a new login needs.
fn without_tokens(mut stored: ServerCredentials) -> ServerCredentials {
    (stored.access_token, stored.refresh_token, stored.expires_at) = (None, None, None);
    stored
}

/// Returns the resource identifier of a server that publishes none: its URL without a fragment, and
/// without the slash of an empty path.
fn canonical_resource(server: &Url) -> String {
    let mut server = server.clone();
    server.set_fragment(None);
    match (server.path(), server.query()) {
        ("/", None) => server.origin().ascii_serialization(),
        _ => server.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_identifier_has_no_bare_slash() {
        for (server, resource) in [
            ("https://A.example/", "https://a.example"),
            ("https://a.example:8443/mcp#x", "https://a.example:8443/mcp"),
            ("https://a.example/?tenant=1", "https://a.example/?tenant=1"),
        ] {
            assert_eq!(canonical_resource(&Url::parse(server).unwrap()), resource);
        }
    }
}
