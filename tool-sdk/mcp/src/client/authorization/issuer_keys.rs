//! Fetches the keys with which an authorization server signs tokens, for the server's side.
//!
//! **Invariant:** the metadata names the very issuer, and all requests go through the guarded client.

use tool_sdk_net::{Url, WebRequest};

use super::discovery::DiscoveryClient;
use super::error::AuthorizationError;
use super::settings::OAuthSettings;

/// Returns the JSON Web Key Set of an issuer, as bytes. The issuer is one that the host configured, so
/// its host is reached also in the network of the host.
///
/// # Errors
///
/// Fails when `issuer` is not an https URL, or when its metadata or its keys cannot be fetched.
pub async fn fetch_issuer_keys(issuer: &str) -> Result<Vec<u8>, AuthorizationError> {
    let invalid = || AuthorizationError::Discovery(format!("the issuer `{issuer}` is not a URL"));
    let url = Url::parse(issuer).map_err(|_| invalid())?;
    let http = DiscoveryClient::new(&url, &OAuthSettings::default());
    let metadata = http.fetch_issuer_metadata(issuer).await?;
    let request = WebRequest::get(metadata.jwks_uri()?);
    let response = http.send(request, "cannot fetch the keys of the issuer").await?;
    match response.is_success() {
        true => Ok(response.body().to_vec()),
        false => Err(AuthorizationError::Discovery(format!(
            "the keys of the issuer `{issuer}` are answered with HTTP {}",
            response.status()
        ))),
    }
}
