//! Metadata documents: of protected resources (RFC 9728), and of authorization servers (RFC 8414 and
//! OpenID Connect Discovery), with the places where they are published.
//!
//! **Invariant:** a document counts only for the resource or the issuer that it names itself, and no
//! endpoint of an authorization server is plain `http`, except on this machine.

use serde::Deserialize;
use tool_sdk_net::{Url, has_credentials, is_loopback_url};

use super::error::{AuthorizationError, quote_foreign};

/// The one method of PKCE that is used.
const PKCE_METHOD: &str = "S256";

/// What a server says about its authorization.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct ResourceMetadata {
    pub(super) resource: String,
    #[serde(default)]
    pub(super) authorization_servers: Vec<String>,
    pub(super) scopes_supported: Option<Vec<String>>,
}

impl ResourceMetadata {
    /// Returns the resource identifier, if it is that of `server`: of the same origin, and with a
    /// path that is the server's or above it.
    pub(super) fn matching_resource(&self, server: &Url) -> Result<String, AuthorizationError> {
        let matches = |resource: &Url| {
            let (path, own) = (resource.path().trim_end_matches('/'), server.path());
            let rest = own.strip_prefix(path);
            resource.origin() == server.origin()
                && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        match Url::parse(&self.resource) {
            Ok(resource) if resource.fragment().is_none() && matches(&resource) => {
                Ok(self.resource.clone())
            }
            _ => Err(AuthorizationError::Discovery(format!(
                "the server's metadata is about another resource: `{}`",
                quote_foreign(&self.resource)
            ))),
        }
    }
}

/// What an authorization server says about itself.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct IssuerMetadata {
    pub(super) issuer: String,
    authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
    registration_endpoint: Option<String>,
    revocation_endpoint: Option<String>,
    jwks_uri: Option<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) scopes_supported: Vec<String>,
    /// Whether each redirect names the issuer (RFC 9207).
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: bool,
    #[serde(default)]
    pub(super) client_id_metadata_document_supported: bool,
}

impl IssuerMetadata {
    pub(super) fn authorization_endpoint(&self) -> Result<Url, AuthorizationError> {
        let endpoint = parse_endpoint("authorization_endpoint", &self.authorization_endpoint)?;
        endpoint.ok_or_else(|| self.missing_endpoint("authorization_endpoint"))
    }

    pub(super) fn token_endpoint(&self) -> Result<Url, AuthorizationError> {
        let endpoint = parse_endpoint("token_endpoint", &self.token_endpoint)?;
        endpoint.ok_or_else(|| self.missing_endpoint("token_endpoint"))
    }

    pub(super) fn registration_endpoint(&self) -> Result<Option<Url>, AuthorizationError> {
        parse_endpoint("registration_endpoint", &self.registration_endpoint)
    }

    pub(super) fn revocation_endpoint(&self) -> Result<Option<Url>, AuthorizationError> {
        parse_endpoint("revocation_endpoint", &self.revocation_endpoint)
    }

    pub(super) fn jwks_uri(&self) -> Result<Url, AuthorizationError> {
        let uri = parse_endpoint("jwks_uri", &self.jwks_uri)?;
        uri.ok_or_else(|| self.missing_endpoint("jwks_uri"))
    }

    /// Fails unless the server supports PKCE with SHA-256, without which a code can be stolen.
    pub(super) fn check_pkce(&self) -> Result<(), AuthorizationError> {
        match self.code_challenge_methods_supported.iter().any(|method| method == PKCE_METHOD) {
            true => Ok(()),
            false => Err(AuthorizationError::Discovery(format!(
                "the authorization server `{}` does not support PKCE with S256",
                quote_foreign(&self.issuer)
            ))),
        }
    }

    fn missing_endpoint(&self, name: &str) -> AuthorizationError {
        AuthorizationError::Discovery(format!(
            "the metadata of the authorization server `{}` has no `{name}`",
            quote_foreign(&self.issuer)
        ))
    }
}

/// Parses an endpoint, which must be encrypted unless it is on this machine.
fn parse_endpoint(name: &str, text: &Option<String>) -> Result<Option<Url>, AuthorizationError> {
    let Some(text) = text else { return Ok(None) };
    match Url::parse(text) {
        Ok(url) if is_secure_url(&url) && url.fragment().is_none() => Ok(Some(url)),
        _ => Err(AuthorizationError::Discovery(format!(
            "the `{name}` of the authorization server is not an https URL: `{}`",
            quote_foreign(text)
        ))),
    }
}

/// Whether a URL is encrypted or of this machine, and without credentials.
pub(super) fn is_secure_url(url: &Url) -> bool {
    let is_secure = url.scheme() == "https" || (url.scheme() == "http" && is_loopback_url(url));
    is_secure && !has_credentials(url)
}

/// Returns where a server publishes its metadata when it does not say so: at its path, then at the
/// root.
pub(super) fn resource_metadata_urls(server: &Url) -> Vec<Url> {
    let path = server.path().trim_end_matches('/');
    let mut urls = vec![with_path(server, &format!("/.well-known/oauth-protected-resource{path}"))];
    if !path.is_empty() {
        urls.push(with_path(server, "/.well-known/oauth-protected-resource"));
    }
    urls
}

/// Returns where an authorization server publishes its metadata, in the protocol's order.
pub(super) fn issuer_metadata_urls(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut urls = vec![
        with_path(issuer, &format!("/.well-known/oauth-authorization-server{path}")),
        with_path(issuer, &format!("/.well-known/openid-configuration{path}")),
    ];
    if !path.is_empty() {
        urls.push(with_path(issuer, &format!("{path}/.well-known/openid-configuration")));
    }
    urls
}

fn with_path(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(urls: Vec<Url>) -> Vec<String> {
        urls.into_iter().map(String::from).collect()
    }

    #[test]
    fn metadata_is_looked_for_in_the_order_of_the_protocol() {
        let parse = |url: &str| Url::parse(url).unwrap();
        assert_eq!(
            texts(resource_metadata_urls(&parse("https://a.example/public/mcp?x=1"))),
            [
                "https://a.example/.well-known/oauth-protected-resource/public/mcp",
                "https://a.example/.well-known/oauth-protected-resource",
            ]
        );
        assert_eq!(resource_metadata_urls(&parse("https://a.example/")).len(), 1);
        assert_eq!(
            texts(issuer_metadata_urls(&parse("https://a.example/tenant1/"))),
            [
                "https://a.example/.well-known/oauth-authorization-server/tenant1",
                "https://a.example/.well-known/openid-configuration/tenant1",
                "https://a.example/tenant1/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            texts(issuer_metadata_urls(&parse("https://a.example"))),
            [
                "https://a.example/.well-known/oauth-authorization-server",
                "https://a.example/.well-known/openid-configuration",
            ]
        );
    }

    // MC8: a token for another resource is never requested.
    #[test]
    fn resource_must_be_that_of_the_server() {
        let server = Url::parse("https://a.example/team/mcp").unwrap();
        for (resource, is_own) in [
            ("https://a.example/team/mcp", true),
            ("https://A.example:443/team/", true),
            ("https://a.example", true),
            ("https://a.example/te", false),
            ("https://a.example/team/mcp/other", false),
            ("http://a.example/team/mcp", false),
            ("https://a.example:8443/team/mcp", false),
            ("https://evil.example/team/mcp", false),
            ("https://a.example/team/mcp#x", false),
            ("team/mcp", false),
        ] {
            let metadata =
                ResourceMetadata { resource: resource.to_owned(), ..ResourceMetadata::default() };
            assert_eq!(metadata.matching_resource(&server).is_ok(), is_own, "{resource}");
        }
    }

    // MC8: CVE-2025-6514 was an authorization endpoint that a shell ran.
    #[test]
    fn endpoints_are_encrypted_urls() {
        for (endpoint, is_valid) in [
            ("https://a.example/authorize?x=1", true),
            ("http://127.0.0.1:9/authorize", true),
            ("http://a.example/authorize", false),
            ("file:///etc/passwd", false),
            ("javascript:alert(1)", false),
            ("https://ada:pass@a.example/", false),
            ("$(calc.exe)", false),
        ] {
            let metadata = IssuerMetadata {
                authorization_endpoint: Some(endpoint.to_owned()),
                ..IssuerMetadata::default()
            };
            assert_eq!(metadata.authorization_endpoint().is_ok(), is_valid, "{endpoint}");
        }
        assert!(IssuerMetadata::default().token_endpoint().is_err());
        assert!(IssuerMetadata::default().check_pkce().is_err());
    }
}
