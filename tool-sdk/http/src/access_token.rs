//! Access tokens of an authorization server: JSON Web Tokens (JWT) that this server checks by itself.
//!
//! ```text
//! token ─▶ issuer_keys (fetched, cached) ─▶ signature, issuer, audience, time ─▶ principal, scopes
//! ```
//!
//! **Invariant:** the algorithm comes from a fixed list of asymmetric ones, and a token without issuer,
//! audience, subject or end is refused.

use std::fmt;

use axum::http::Uri;
use jsonwebtoken::crypto::verify;
use jsonwebtoken::jwk::{Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode, decode_header};
use serde::Deserialize;
use thiserror::Error;
use tool_sdk_core::Principal;
use tool_sdk_core::internal::spell_hidden;
use tool_sdk_net::is_loopback_host;

use super::issuer_keys::IssuerKeyCache;
use super::ring_provider::install_ring_provider;
use super::{TokenIdentity, TokenScope, TokenScopes};

/// The algorithms of signatures that are accepted.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// How far the clocks of issuer and server may differ, in seconds.
const LEEWAY_SECONDS: u64 = 30;

/// The longest token in bytes.
const MAX_TOKEN_BYTES: usize = 16 << 10;

/// The longest subject in bytes.
const MAX_SUBJECT_BYTES: usize = 256;

/// The types of tokens that are accepted (RFC 9068), beside tokens without one.
const TOKEN_TYPES: [&str; 3] = ["at+jwt", "application/at+jwt", "jwt"];

/// An authorization server whose access tokens a server accepts, beside its own tokens.
///
/// The subject of a token becomes the [`Principal`], and its scopes become the principal's permissions.
/// A principal has the same sessions and approvals whichever token of its name it uses, so the
/// subjects of the issuer and the names of configured principals are one set of names.
///
/// # Examples
///
/// ```
/// use tool_sdk::http::{AccessTokenIssuer, HttpOptions, Token};
///
/// let issuer = AccessTokenIssuer::new("https://login.example.com", "https://tools.example.com/mcp")?
///     .tools_scope("tools");
/// let options = HttpOptions::new(Token::random()?).with_access_tokens(issuer);
///
/// assert!(AccessTokenIssuer::new("http://login.example.com", "https://tools.example.com").is_err());
/// # let _ = options;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct AccessTokenIssuer {
    pub(super) issuer: String,
    pub(super) resource: String,
    audiences: Vec<String>,
    pub(super) tools_scope: Option<String>,
    approvals_scope: Option<String>,
}

/// Why an issuer of access tokens cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{subject} `{value}` must be an https URL without a query, or an http URL of this machine")]
#[non_exhaustive]
pub struct InvalidIssuer {
    /// The kind of thing that is wrong: the issuer or the resource.
    pub subject: &'static str,
    /// The value that was given.
    pub value: String,
}

impl AccessTokenIssuer {
    /// Accepts tokens that `issuer` issued for `resource`, the URL under which clients reach the MCP
    /// endpoint of this server. The metadata of the issuer names its keys.
    ///
    /// # Errors
    ///
    /// Fails when one of them is not an `https` URL, or a `http` URL of this machine, or has a query.
    pub fn new(
        issuer: impl Into<String>,
        resource: impl Into<String>,
    ) -> Result<Self, InvalidIssuer> {
        let (issuer, resource) = (issuer.into(), resource.into());
        for (subject, value) in [("the issuer", &issuer), ("the resource", &resource)] {
            if !is_secure_url(value) {
                return Err(InvalidIssuer { subject, value: value.escape_debug().to_string() });
            }
        }
        let audiences = vec![resource.clone()];
        Ok(Self { issuer, resource, audiences, tools_scope: None, approvals_scope: None })
    }

    /// Accepts another audience, for authorization servers that do not use the URL of the resource. It
    /// must stand for this server only.
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Sets the scope that a token needs to call tools; none by default.
    pub fn tools_scope(mut self, scope: impl Into<String>) -> Self {
        self.tools_scope = Some(scope.into());
        self
    }

    /// Sets the scope with which a token may answer the approval requests of its principal. Without
    /// it, no token of this issuer may.
    pub fn approvals_scope(mut self, scope: impl Into<String>) -> Self {
        self.approvals_scope = Some(scope.into());
        self
    }

    /// Whether a token may answer the approval requests of its principal.
    #[cfg(feature = "rest")]
    pub(super) fn has_approvals_scope(&self) -> bool {
        self.approvals_scope.is_some()
    }

    /// Returns the scopes that this server knows, for its metadata.
    pub(super) fn scopes(&self) -> Vec<&str> {
        self.tools_scope.iter().chain(&self.approvals_scope).map(String::as_str).collect()
    }

    /// Returns who a token stands for, from the claims that were checked.
    fn identity(&self, claims: TokenClaims) -> Option<TokenIdentity> {
        let scopes = claims.scopes();
        let has_scope = |scope: &String| scopes.contains(scope);
        let tools = self.tools_scope.as_ref().is_none_or(has_scope).then_some(TokenScope::Tools);
        let approvals =
            self.approvals_scope.as_ref().is_some_and(has_scope).then_some(TokenScope::Approvals);
        let allowed = TokenScopes::from_iter(tools.into_iter().chain(approvals));
        let subject = claims.sub;
        // The name is shown in prompts and logs.
        let is_plain = !subject.trim().is_empty()
            && subject.len() <= MAX_SUBJECT_BYTES
            && spell_hidden(&subject) == subject
            && !subject.contains(char::is_control);
        let principal =
            scopes.into_iter().fold(Principal::new(subject), Principal::with_permission);
        is_plain.then_some(TokenIdentity { principal: Some(principal), scopes: allowed })
    }
}

/// Whether a URL is encrypted, or of this machine, and has no query.
fn is_secure_url(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else { return false };
    let Some(host) = uri.host() else { return false };
    let is_secure = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => is_loopback_host(host),
        _ => false,
    };
    let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
    is_secure && uri.query().is_none() && !text.contains('#') && !has_user
}

/// The claims that are used.
#[derive(Deserialize)]
struct TokenClaims {
    sub: String,
    /// Scopes as RFC 9068 has them.
    scope: Option<String>,
    /// Scopes as some authorization servers have them.
    scp: Option<ScopeClaim>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ScopeClaim {
    Text(String),
    List(Vec<String>),
}

impl TokenClaims {
    fn scopes(&self) -> Vec<String> {
        let text = match (&self.scope, &self.scp) {
            (Some(text), _) | (None, Some(ScopeClaim::Text(text))) => text,
            (None, Some(ScopeClaim::List(list))) => return list.clone(),
            (None, None) => return Vec::new(),
        };
        text.split_ascii_whitespace().map(str::to_owned).collect()
    }
}

/// Checks the access tokens of one issuer.
pub(super) struct AccessTokenVerifier {
    pub(super) issuer: AccessTokenIssuer,
    keys: IssuerKeyCache,
    validation: Validation,
}

impl fmt::Debug for AccessTokenVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AccessTokenVerifier").field(&self.issuer).finish()
    }
}

impl AccessTokenVerifier {
    pub(super) fn new(issuer: AccessTokenIssuer) -> Self {
        let keys = IssuerKeyCache::new(&issuer.issuer);
        Self::with_keys(issuer, keys)
    }

    fn with_keys(issuer: AccessTokenIssuer, keys: IssuerKeyCache) -> Self {
        install_ring_provider();
        let mut validation = Validation::new(ALGORITHMS[0]);
        validation.leeway = LEEWAY_SECONDS;
        validation.validate_nbf = true;
        validation.set_issuer(&[&issuer.issuer]);
        validation.set_audience(&issuer.audiences);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        Self { issuer, keys, validation }
    }

    /// Fetches the keys of the issuer if there are none yet, if they are old, or if they lack the one
    /// of this token.
    pub(super) async fn refresh_keys_for(&self, token: &str) {
        if let Some(header) = read_header(token) {
            self.keys.refresh_if_due(|keys| has_key_of(keys, token, &header)).await;
        }
    }

    /// Returns who a token stands for; `None` when it is not valid. Uses the keys that are there.
    pub(super) fn verify_token(&self, token: &str) -> Option<TokenIdentity> {
        let header = read_header(token)?;
        let keys = self.keys.current_keys()?;
        let mut candidates = keys.keys.iter().filter(|key| is_signing_key_of(key, &header));
        // One of those that are accepted, which `read_header` checked.
        let mut validation = self.validation.clone();
        validation.algorithms = vec![header.alg];
        let claims = candidates.find_map(|key| decode_claims(token, key, &validation))?;
        self.issuer.identity(claims)
    }
}

fn decode_claims(token: &str, key: &Jwk, validation: &Validation) -> Option<TokenClaims> {
    let decoding = DecodingKey::from_jwk(key).ok()?;
    Some(decode::<TokenClaims>(token, &decoding, validation).ok()?.claims)
}

/// Whether the key of a token is among these: the one that it names, or else one that signed it.
fn has_key_of(keys: &JwkSet, token: &str, header: &Header) -> bool {
    match &header.kid {
        Some(id) => keys.find(id).is_some(),
        None => keys
            .keys
            .iter()
            .any(|key| is_signing_key_of(key, header) && is_signed_by(token, key, header)),
    }
}

fn is_signed_by(token: &str, key: &Jwk, header: &Header) -> bool {
    let Some((message, signature)) = token.rsplit_once('.') else { return false };
    let Ok(decoding) = DecodingKey::from_jwk(key) else { return false };
    verify(signature, message.as_bytes(), &decoding, header.alg).unwrap_or(false)
}

/// Returns the header of a token of an accepted form.
fn read_header(token: &str) -> Option<Header> {
    if token.len() > MAX_TOKEN_BYTES || token.matches('.').count() != 2 {
        return None;
    }
    let header = decode_header(token).ok()?;
    let is_access_token = match &header.typ {
        Some(kind) => TOKEN_TYPES.iter().any(|known| known.eq_ignore_ascii_case(kind)),
        None => true,
    };
    (is_access_token && ALGORITHMS.contains(&header.alg)).then_some(header)
}

/// Whether the token may be signed with this key.
fn is_signing_key_of(key: &Jwk, header: &Header) -> bool {
    let common = &key.common;
    let is_for_signatures =
        common.public_key_use.as_ref().is_none_or(|it| *it == PublicKeyUse::Signature);
    let is_named = header.kid.as_ref().is_none_or(|id| common.key_id.as_ref() == Some(id));
    let algorithm = common.key_algorithm.as_ref().map(ToString::to_string);
    let fits = algorithm.is_none_or(|algorithm| algorithm == format!("{:?}", header.alg));
    is_for_signatures && is_named && fits
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use axum::Router;
    use axum::body::Body;
    use axum::http::{Request, StatusCode};
    use axum::routing::get;
    use http_body_util::BodyExt as _;
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
    use serde_json::{Value, json};
    use tokio::net::TcpListener;
    use tool_sdk_core::{Pipeline, Registry, Session};
    use tool_sdk_mcp::Server;
    use tower::ServiceExt as _;

    use super::*;
    use crate::{HttpOptions, Token, router};

    const ISSUER: &str = "https://login.example.com";
    const RESOURCE: &str = "https://tools.example.com/mcp";
    const FUTURE: u64 = 4_000_000_000;

    fn encode(bytes: impl AsRef<[u8]>) -> String {
        use base64::Engine as _;
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
    }

    /// A key of an issuer.
    struct SigningKey {
        id: &'static str,
        pair: EcdsaKeyPair,
    }

    impl SigningKey {
        fn new(id: &'static str) -> Self {
            let (kind, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
            let document = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
            let pair = EcdsaKeyPair::from_pkcs8(kind, document.as_ref(), &random).unwrap();
            Self { id, pair }
        }

        fn jwk(&self) -> Value {
            let point = self.pair.public_key().as_ref();
            json!({
                "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": self.id,
                "x": encode(&point[1..33]), "y": encode(&point[33..]),
            })
        }

        fn sign(&self, header: &Value, claims: &Value) -> String {
            let text = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
            let signature = self.pair.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
            format!("{text}.{}", encode(signature.as_ref()))
        }

        /// A valid token with these changes of its claims.
        fn token(&self, changes: &Value) -> String {
            let mut claims = json!({
                "iss": ISSUER, "aud": RESOURCE, "sub": "ada", "exp": FUTURE, "scope": "tools notes:write",
            });
            for (name, value) in changes.as_object().unwrap() {
                match value {
                    Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
                    value => claims[name] = value.clone(),
                }
            }
            self.sign(&json!({ "alg": "ES256", "typ": "at+jwt", "kid": self.id }), &claims)
        }
    }

    fn issuer() -> AccessTokenIssuer {
        AccessTokenIssuer::new(ISSUER, RESOURCE).unwrap().tools_scope("tools")
    }

    fn verifier(issuer: AccessTokenIssuer, keys: &[&SigningKey]) -> AccessTokenVerifier {
        let keys: Vec<Value> = keys.iter().map(|key| key.jwk()).collect();
        let cache = IssuerKeyCache::new(&issuer.issuer);
        let cache = cache.with_keys(json!({ "keys": keys }).to_string().as_bytes());
        AccessTokenVerifier::with_keys(issuer, cache)
    }

    #[test]
    fn plain_http_is_accepted_for_this_machine_only() {
        let is_accepted = |issuer: &str| AccessTokenIssuer::new(issuer, RESOURCE).is_ok();
        for issuer in
            ["http://127.0.0.1:8080", "http://127.9.9.9/x", "http://[::1]", "http://localhost:1"]
        {
            assert!(is_accepted(issuer), "{issuer}");
        }
        for issuer in [
            "http://127.evil.example",
            "http://127.0.0.1.evil.example",
            "http://a@127.0.0.1",
            "http://[::2]",
        ] {
            assert!(!is_accepted(issuer), "{issuer}");
        }
    }

    #[test]
    fn subject_and_scopes_become_the_principal() {
        let key = SigningKey::new("a");
        let verifier = verifier(issuer().approvals_scope("approve"), &[&key]);
        let ada = Principal::new("ada");
        let identity =
            |principal, scopes| Some(TokenIdentity { principal: Some(principal), scopes });
        assert_eq!(
            verifier.verify_token(&key.token(&json!({}))),
            identity(
                ada.clone().with_permission("tools").with_permission("notes:write"),
                TokenScope::Tools.into()
            )
        );
        let changes = json!({ "scope": null, "scp": ["approve"], "aud": ["x", RESOURCE] });
        assert_eq!(
            verifier.verify_token(&key.token(&changes)),
            identity(ada.with_permission("approve"), TokenScope::Approvals.into())
        );
    }

    // RS2: a token that deviates in one claim or header is refused.
    #[test]
    fn deviating_tokens_are_refused() {
        let (key, other) = (SigningKey::new("a"), SigningKey::new("a"));
        let verifier = verifier(issuer(), &[&key]);
        assert!(verifier.verify_token(&key.token(&json!({}))).is_some());
        for changes in [
            json!({ "iss": "https://evil.example" }),
            json!({ "iss": "https://login.example.com/" }),
            json!({ "aud": "https://other.example.com/mcp" }),
            json!({ "aud": [] }),
            json!({ "exp": 1000 }),
            json!({ "nbf": FUTURE }),
            json!({ "iss": null }),
            json!({ "aud": null }),
            json!({ "exp": null }),
            json!({ "sub": null }),
            json!({ "sub": "" }),
            json!({ "sub": "a\u{202e}b" }),
            json!({ "sub": "a\nb" }),
            json!({ "sub": "a".repeat(300) }),
        ] {
            assert_eq!(verifier.verify_token(&key.token(&changes)), None, "{changes}");
        }
        assert_eq!(verifier.verify_token(&other.token(&json!({}))), None, "another key");
        let claims = json!({ "iss": ISSUER, "aud": RESOURCE, "sub": "ada", "exp": FUTURE });
        for header in [
            json!({ "alg": "none" }),
            json!({ "alg": "HS256", "kid": "a" }),
            json!({ "alg": "RS256", "kid": "a" }),
            json!({ "alg": "EdDSA", "kid": "a" }),
            json!({ "alg": "ES256", "kid": "b" }),
            json!({ "alg": "ES256", "kid": "a", "typ": "id+jwt" }),
        ] {
            assert_eq!(verifier.verify_token(&key.sign(&header, &claims)), None, "{header}");
        }
        let token = key.token(&json!({}));
        let (signed, _) = token.rsplit_once('.').unwrap();
        for text in ["", "a.b", "a.b.c", &format!("{signed}."), &format!("{token}.x")] {
            assert_eq!(verifier.verify_token(text), None, "{text}");
        }
    }

    /// An issuer on a loopback port with these keys; counts how often they are fetched.
    async fn start_issuer(keys: Arc<Mutex<Vec<Value>>>) -> (String, Arc<Mutex<usize>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let metadata = json!({ "issuer": base, "jwks_uri": format!("{base}/keys") }).to_string();
        let fetched = Arc::<Mutex<usize>>::default();
        let count = Arc::clone(&fetched);
        let answer = async move || {
            *count.lock().unwrap() += 1;
            json!({ "keys": *keys.lock().unwrap() }).to_string()
        };
        let app = Router::new()
            .route("/.well-known/openid-configuration", get(async move || metadata))
            .route("/keys", get(answer));
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        (base, fetched)
    }

    #[tokio::test]
    async fn rotated_keys_are_fetched_once_in_a_while() {
        let (old, new) = (SigningKey::new("old"), SigningKey::new("new"));
        let keys = Arc::new(Mutex::new(vec![old.jwk()]));
        let (base, fetched) = start_issuer(Arc::clone(&keys)).await;
        let verifier = AccessTokenVerifier::new(AccessTokenIssuer::new(&base, RESOURCE).unwrap());
        let is_valid = async |key: &SigningKey| {
            let token = key.token(&json!({ "iss": base }));
            verifier.refresh_keys_for(&token).await;
            verifier.verify_token(&token).is_some()
        };
        assert!(is_valid(&old).await && is_valid(&old).await);
        *keys.lock().unwrap() = vec![new.jwk()];
        // A stranger's key id does not make this server ask again and again.
        assert!(!is_valid(&new).await && !is_valid(&SigningKey::new("stranger")).await);
        assert_eq!(*fetched.lock().unwrap(), 1);
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(31)).await;
        tokio::time::resume();
        assert!(is_valid(&new).await && !is_valid(&old).await);
        assert_eq!(*fetched.lock().unwrap(), 2);
    }

    #[tokio::test]
    async fn rotated_keys_are_fetched_for_tokens_without_a_key_id() {
        let (old, new) = (SigningKey::new("old"), SigningKey::new("new"));
        let keys = Arc::new(Mutex::new(vec![old.jwk()]));
        let (base, fetched) = start_issuer(Arc::clone(&keys)).await;
        let verifier = AccessTokenVerifier::new(AccessTokenIssuer::new(&base, RESOURCE).unwrap());
        let is_valid = async |key: &SigningKey, end: u64| {
            let claims = json!({ "iss": base, "aud": RESOURCE, "sub": "ada", "exp": end });
            let token = key.sign(&json!({ "alg": "ES256" }), &claims);
            verifier.refresh_keys_for(&token).await;
            verifier.verify_token(&token).is_some()
        };
        let wait = async || {
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(31)).await;
            tokio::time::resume();
        };
        assert!(is_valid(&old, FUTURE).await);
        wait().await;
        // The key of a token that ended is known, so its time is no reason to fetch keys.
        assert!(is_valid(&old, FUTURE).await && !is_valid(&old, 1000).await);
        assert_eq!(*fetched.lock().unwrap(), 1);
        *keys.lock().unwrap() = vec![new.jwk()];
        assert!(is_valid(&new, FUTURE).await && !is_valid(&old, FUTURE).await);
        assert_eq!(*fetched.lock().unwrap(), 2);
    }

    #[tokio::test]
    async fn responses_tell_clients_where_to_obtain_a_token() {
        let key = SigningKey::new("a");
        let (base, _) = start_issuer(Arc::new(Mutex::new(vec![key.jwk()]))).await;
        let issuer = AccessTokenIssuer::new(&base, RESOURCE).unwrap().tools_scope("tools");
        let options = HttpOptions::new(Token::random().unwrap()).with_access_tokens(issuer);
        let server = Server::new(Pipeline::new(Registry::default()), Session::default());
        let app = router(&server, &options, ["127.0.0.1:80"]);
        let ask = async |path: &str, token: Option<&str>| {
            let mut request = Request::get(path).header("host", "127.0.0.1:80");
            if let Some(token) = token {
                request = request.header("authorization", format!("Bearer {token}"));
            }
            let request = request.body(Body::empty()).unwrap();
            let response = app.clone().oneshot(request).await.unwrap();
            let header = response.headers().get("www-authenticate").cloned();
            let header = header.map(|it| it.to_str().unwrap().to_owned()).unwrap_or_default();
            (response.status(), header, response.into_body().collect().await.unwrap().to_bytes())
        };
        let at = "resource_metadata=\"https://tools.example.com/.well-known/oauth-protected-resource/mcp\"";
        let (status, header, _) = ask("/mcp", None).await;
        assert_eq!(
            (status, header),
            (StatusCode::UNAUTHORIZED, format!("Bearer scope=\"tools\", {at}"))
        );
        let (status, header, _) = ask("/mcp", Some("unknown")).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        assert!(header.starts_with("Bearer error=\"invalid_token\", "), "{header}");
        let weak = key.token(&json!({ "iss": base, "scope": "other" }));
        let (status, header, _) = ask("/mcp", Some(&weak)).await;
        assert_eq!(status, StatusCode::FORBIDDEN);
        assert!(
            header.starts_with("Bearer error=\"insufficient_scope\", scope=\"tools\", "),
            "{header}"
        );
        // A GET without an accepted media type passed every check.
        let token = key.token(&json!({ "iss": base }));
        assert_eq!(ask("/mcp", Some(&token)).await.0, StatusCode::NOT_ACCEPTABLE);

        for path in
            ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"]
        {
            let (status, _, body) = ask(path, None).await;
            assert_eq!(status, StatusCode::OK, "{path}");
            let metadata: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(metadata["resource"], RESOURCE);
            assert_eq!(metadata["authorization_servers"], json!([base]));
            assert_eq!(metadata["scopes_supported"], json!(["tools"]));
        }
    }
}
