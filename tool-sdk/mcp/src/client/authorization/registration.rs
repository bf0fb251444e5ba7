//! How this program becomes a client of an authorization server: configured, by a metadata document,
//! or registered dynamically (RFC 7591), in this order.
//!
//! **Invariant:** the id and the secret of a client go only to the authorization server that it is
//! registered with.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tool_sdk_net::{Url, WebRequest, WebResponse};

use super::discovery::DiscoveryClient;
use super::error::{AuthorizationError, quote_foreign};
use super::flow::refusal;
use super::metadata::IssuerMetadata;
use super::settings::OAuthSettings;
use super::token::ErrorBody;

const CLIENT_NAME: &str = "tool-sdk";

/// A client of an authorization server.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RegisteredClient {
    pub(super) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<String>,
    auth_method: ClientAuthMethod,
}

/// How a client authenticates at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ClientAuthMethod {
    None,
    ClientSecretBasic,
    ClientSecretPost,
}

impl ClientAuthMethod {
    /// In the order of preference for a client that has a secret.
    const WITH_SECRET: [Self; 2] = [Self::ClientSecretBasic, Self::ClientSecretPost];

    const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ClientSecretBasic => "client_secret_basic",
            Self::ClientSecretPost => "client_secret_post",
        }
    }

    /// Returns the method of this name.
    fn find(name: &str) -> Option<Self> {
        [Self::None, Self::ClientSecretBasic, Self::ClientSecretPost]
            .into_iter()
            .find(|method| method.as_str() == name)
    }

    /// Whether the server supports the method; without a list it supports Basic (RFC 8414).
    fn is_supported(self, metadata: &IssuerMetadata) -> bool {
        match &metadata.token_endpoint_auth_methods_supported {
            Some(methods) => methods.iter().any(|method| method == self.as_str()),
            None => self == Self::ClientSecretBasic,
        }
    }

    /// Chooses the method of a client that has a secret.
    fn choose_with_secret(metadata: &IssuerMetadata) -> Self {
        let mut supported = Self::WITH_SECRET.into_iter();
        supported.find(|method| method.is_supported(metadata)).unwrap_or(Self::ClientSecretBasic)
    }

    /// Chooses the method for a client that will be registered.
    fn choose_for_registration(metadata: &IssuerMetadata) -> Self {
        match metadata.token_endpoint_auth_methods_supported {
            Some(_) if !Self::None.is_supported(metadata) => Self::choose_with_secret(metadata),
            _ => Self::None,
        }
    }
}

/// The answer to a dynamic registration.
#[derive(Deserialize)]
struct RegistrationResponse {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

impl RegisteredClient {
    /// Builds a form for the token or the revocation endpoint, with what authenticates the client.
    pub(super) fn authenticated_form(&self, endpoint: Url, fields: &[(&str, &str)]) -> WebRequest {
        let secret = self.secret.as_deref().unwrap_or_default();
        let mut fields = fields.to_vec();
        match self.auth_method {
            ClientAuthMethod::ClientSecretBasic => {
                let pair = format!("{}:{}", form_encode(&self.id), form_encode(secret));
                let header = format!("Basic {}", STANDARD.encode(pair));
                return WebRequest::post_form(endpoint, fields).header("authorization", &header);
            }
            ClientAuthMethod::ClientSecretPost => {
                fields.extend([("client_id", &*self.id), ("client_secret", secret)]);
            }
            ClientAuthMethod::None => fields.push(("client_id", &self.id)),
        }
        WebRequest::post_form(endpoint, fields)
    }
}

/// Returns the client for the authorization server with this metadata.
///
/// # Errors
///
/// Fails when no way leads to one, when the registration is refused, or when the configured secret
/// does not belong to this authorization server.
pub(super) async fn obtain_client(
    http: &DiscoveryClient,
    settings: &OAuthSettings,
    metadata: &IssuerMetadata,
    redirect_uri: &str,
    scopes: &[String],
) -> Result<RegisteredClient, AuthorizationError> {
    if let Some(id) = &settings.client_id {
        let secret = settings.client_secret.clone();
        if secret.is_some() && settings.issuer_text.as_ref() != Some(&metadata.issuer) {
            return Err(AuthorizationError::Registration(
                "the client has a secret, which goes only to a configured issuer; set `issuer` to \
                 the authorization server that issued the secret"
                    .to_owned(),
            ));
        }
        let auth_method = match secret {
            Some(_) => ClientAuthMethod::choose_with_secret(metadata),
            None => ClientAuthMethod::None,
        };
        return Ok(RegisteredClient { id: id.clone(), secret, auth_method });
    }
    if let (Some(url), true) =
        (&settings.client_metadata_url, metadata.client_id_metadata_document_supported)
    {
        let auth_method = ClientAuthMethod::None;
        return Ok(RegisteredClient { id: url.clone(), secret: None, auth_method });
    }
    let Some(endpoint) = metadata.registration_endpoint()? else {
        return Err(AuthorizationError::Registration(format!(
            "the authorization server `{}` registers no clients by itself; register one there, with \
             a redirect to http://127.0.0.1, and configure its id",
            quote_foreign(&metadata.issuer)
        )));
    };
    let auth_method = ClientAuthMethod::choose_for_registration(metadata);
    let mut body = registration_body(settings, auth_method, redirect_uri, scopes);
    let mut response = send_registration(http, &endpoint, &body).await?;
    // Some servers allow a client only the scopes that it registers, others refuse those that belong
    // to a resource.
    if response.status() == 400 && body.remove("scope").is_some() {
        response = send_registration(http, &endpoint, &body).await?;
    }
    if !response.is_success() {
        let said: ErrorBody = serde_json::from_slice(response.body()).unwrap_or_default();
        let status = format!("the registration failed with HTTP {}", response.status());
        return Err(refusal(said.error.as_deref().unwrap_or(&status), &said.error_description));
    }
    let registered: RegistrationResponse =
        serde_json::from_slice(response.body()).map_err(|_| {
            AuthorizationError::Registration(
                "the authorization server's answer to the registration has no `client_id`".into(),
            )
        })?;
    registered.into_client(auth_method)
}

async fn send_registration(
    http: &DiscoveryClient,
    endpoint: &Url,
    body: &Map<String, Value>,
) -> Result<WebResponse, AuthorizationError> {
    let body = Value::Object(body.clone()).to_string();
    let request = WebRequest::post_json(endpoint.clone(), body);
    http.send(request, "cannot register at the authorization server").await
}

/// Returns the metadata with which this program is registered.
fn registration_body(
    settings: &OAuthSettings,
    auth_method: ClientAuthMethod,
    redirect_uri: &str,
    scopes: &[String],
) -> Map<String, Value> {
    let body = json!({
        "client_name": settings.client_name.as_deref().unwrap_or(CLIENT_NAME),
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": auth_method.as_str(),
        // Without it, a server of OpenID Connect refuses a redirect to this machine.
        "application_type": "native",
    });
    let mut body = body.as_object().cloned().unwrap_or_default();
    if !scopes.is_empty() {
        body.insert("scope".to_owned(), scopes.join(" ").into());
    }
    body
}

impl RegistrationResponse {
    /// Returns the client, with the method that the server chose or that was requested.
    fn into_client(
        self,
        requested: ClientAuthMethod,
    ) -> Result<RegisteredClient, AuthorizationError> {
        let auth_method = match &self.token_endpoint_auth_method {
            Some(name) => ClientAuthMethod::find(name).ok_or_else(|| {
                let name = quote_foreign(name);
                AuthorizationError::Registration(format!(
                    "the authorization server wants clients to authenticate by `{name}`, which is \
                     not supported"
                ))
            })?,
            None => requested,
        };
        let auth_method = match (auth_method, &self.client_secret) {
            (ClientAuthMethod::None, _) | (_, Some(_)) => auth_method,
            (_, None) => ClientAuthMethod::None,
        };
        Ok(RegisteredClient { id: self.client_id, secret: self.client_secret, auth_method })
    }
}

/// Encodes a text as in a form, which RFC 6749 requires inside of the Basic header.
fn form_encode(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
