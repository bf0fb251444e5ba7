//! Decides by the head whether a request is accepted: host, then origin, then token.
//!
//! A web page in a browser on this machine can reach every local port. The host header detects DNS
//! rebinding, the origin identifies the web site, and the token is a secret that no web site knows.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_REQUEST_HEADERS, AUTHORIZATION, CONNECTION, HOST, HeaderName, HeaderValue,
    ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tool_sdk_core::Principal;

#[cfg(feature = "rest")]
use super::ConsoleAccess;
use super::access_token::AccessTokenVerifier;
use super::connection_limiter::ConnectionSlot;
#[cfg(feature = "rest")]
use super::console::ConsoleUser;
use super::resource_metadata::{TokenProblem, challenge_header};
use super::token::TokenDigest;
use super::{HttpOptions, Token, TokenIdentity, TokenScope, TokenScopes, TokenVerifier};

/// The headers that a script may send; those that begin with `mcp-` belong to the protocol.
const REQUEST_HEADERS: [&str; 10] = [
    "accept",
    "authorization",
    "content-type",
    "idempotency-key",
    "last-event-id",
    "prefer",
    "project-id",
    "session-id",
    "traceparent",
    "x-request-id",
];

/// Who sends a request; `None` for the owner of the server.
pub(super) type PrincipalKey = Option<Arc<Principal>>;

/// An authenticated client: who it is, and what its token allows. Requests that passed
/// [`require_token`] carry it in their extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HttpCaller {
    pub(super) principal: PrincipalKey,
    pub(super) scopes: TokenScopes,
    /// Who uses the page of the console, if the client is one.
    #[cfg(feature = "rest")]
    pub(super) console: Option<ConsoleUser>,
}

impl HttpCaller {
    fn new(identity: TokenIdentity) -> Self {
        Self {
            principal: identity.principal.map(Arc::new),
            scopes: identity.scopes,
            #[cfg(feature = "rest")]
            console: None,
        }
    }

    /// Returns a user of the console, which acts for the owner of the server with all scopes.
    #[cfg(feature = "rest")]
    fn console(user: ConsoleUser) -> Self {
        let scopes = TokenScopes::from_iter(TokenScope::ALL);
        Self { principal: None, scopes, console: Some(user) }
    }

    /// Returns the user of the client's sessions.
    #[cfg(feature = "rest")]
    pub(super) fn user(&self) -> Option<&str> {
        self.principal.as_deref().map(Principal::name)
    }

    /// Returns the name of the person, if the client has one: that of its principal, or at the
    /// console that of the principal whose token made the link.
    #[cfg(feature = "rest")]
    pub(super) fn person(&self) -> Option<&str> {
        match &self.console {
            Some(user) => user.name(),
            None => self.user(),
        }
    }

    /// Returns who answers an approval request, for the audit log.
    #[cfg(feature = "rest")]
    pub(super) fn responder(&self) -> &str {
        let unnamed = if self.console.is_some() { "console" } else { "http" };
        self.person().unwrap_or(unnamed)
    }
}

/// Checks the heads of requests.
pub(super) struct Authenticator {
    /// The tokens and their owners.
    tokens: Vec<(TokenDigest, HttpCaller)>,
    verifier: Option<Arc<dyn TokenVerifier>>,
    access_tokens: Option<AccessTokenVerifier>,
    hosts: Vec<String>,
    origins: Vec<String>,
    /// The browsers of the console, which act for the owner with all scopes.
    #[cfg(feature = "rest")]
    console: Option<ConsoleAccess>,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HttpRejection {
    /// The host is not a name of this server.
    Host,
    /// The web site is not on the list.
    Origin,
    /// The token is missing or unknown.
    Token,
    /// The token does not allow the request.
    Scope(TokenScope),
    /// All connections of the principal have running requests.
    Connections,
}

impl IntoResponse for HttpRejection {
    /// The response carries the rejection in its extensions, for the challenge.
    fn into_response(self) -> Response {
        let mut response = self.plain_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl HttpRejection {
    fn plain_response(self) -> Response {
        match self {
            Self::Host => (
                StatusCode::FORBIDDEN,
                "this host name is not served here; the configuration of the server lists those that are",
            )
                .into_response(),
            Self::Origin => {
                (StatusCode::FORBIDDEN, "this origin may not use the server").into_response()
            }
            Self::Scope(scope) => (
                StatusCode::FORBIDDEN,
                format!("the token lacks the scope `{scope}`, which this request needs"),
            )
                .into_response(),
            Self::Connections => (
                StatusCode::SERVICE_UNAVAILABLE,
                [
                    (RETRY_AFTER, HeaderValue::from_static("1")),
                    (CONNECTION, HeaderValue::from_static("close")),
                ],
                "all your connections have running requests; retry after one of them has ended",
            )
                .into_response(),
            Self::Token => (
                StatusCode::UNAUTHORIZED,
                [(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))],
                "send `Authorization: Bearer TOKEN` with the server's token",
            )
                .into_response(),
        }
    }
}

/// The value of a header in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeaderField<'a> {
    Missing,
    Text(&'a str),
    /// It is repeated, or not text.
    Invalid,
}

impl<'a> HeaderField<'a> {
    fn find(headers: &'a HeaderMap, name: &HeaderName) -> Self {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (None, _) => Self::Missing,
            (Some(value), None) => value.to_str().map_or(Self::Invalid, Self::Text),
            (Some(_), Some(_)) => Self::Invalid,
        }
    }

    fn text(self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Missing | Self::Invalid => None,
        }
    }
}

impl Authenticator {
    /// `hosts` are the names under which clients reach the server.
    pub(super) fn new(options: &HttpOptions, mut hosts: Vec<String>) -> Self {
        hosts.extend_from_slice(&options.hosts);
        let digest = |(token, identity): &(Token, TokenIdentity)| {
            (TokenDigest::new(token.reveal()), HttpCaller::new(identity.clone()))
        };
        Self {
            tokens: options.tokens.iter().map(digest).collect(),
            verifier: options.verifier.clone(),
            access_tokens: options.issuer.clone().map(AccessTokenVerifier::new),
            hosts,
            origins: options.origins.clone(),
            #[cfg(feature = "rest")]
            console: None,
        }
    }

    /// Accepts the browsers of a console as well, whose page is of this origin.
    #[cfg(feature = "rest")]
    pub(super) fn with_console(self, console: Option<ConsoleAccess>) -> Self {
        Self { console, ..self }
    }

    /// Checks that host and origin are known; `target` is the host in the request line, which
    /// counts as well where there is one (RFC 9112, 3.2.2). Browsers ask that much without a
    /// token.
    fn check_host_and_origin(
        &self,
        headers: &HeaderMap,
        target: Option<&str>,
    ) -> Result<(), HttpRejection> {
        let one_of =
            |value: &str, list: &[String]| list.iter().any(|it| it.eq_ignore_ascii_case(value));
        let host = HeaderField::find(headers, &HOST).text();
        if !host.is_some_and(|host| one_of(host, &self.hosts))
            || !target.is_none_or(|target| one_of(target, &self.hosts))
        {
            return Err(HttpRejection::Host);
        }
        match HeaderField::find(headers, &ORIGIN) {
            HeaderField::Missing => Ok(()),
            HeaderField::Text(origin) if one_of(origin, &self.origins) => Ok(()),
            HeaderField::Text(origin) if self.is_own_origin(origin, host) => Ok(()),
            HeaderField::Text(_) | HeaderField::Invalid => Err(HttpRejection::Origin),
        }
    }

    /// Whether `origin` is that of the console's page at the accepted `host`. Browsers send it with
    /// requests that change something.
    #[cfg(feature = "rest")]
    fn is_own_origin(&self, origin: &str, host: Option<&str>) -> bool {
        let Some(host) = host.filter(|_| self.console.is_some()) else { return false };
        let site = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        site.is_some_and(|site| site.eq_ignore_ascii_case(host))
    }

    #[cfg(not(feature = "rest"))]
    fn is_own_origin(&self, _: &str, _: Option<&str>) -> bool {
        false
    }

    /// Returns the client that the token of the request belongs to.
    async fn authenticate(&self, headers: &HeaderMap) -> Result<HttpCaller, HttpRejection> {
        if let (Some(access_tokens), Some(token)) = (&self.access_tokens, bearer_token(headers)) {
            access_tokens.refresh_keys_for(token).await;
        }
        self.find_caller(headers).ok_or(HttpRejection::Token)
    }

    /// Tells the client how to obtain a token with which its request would be accepted, if there is
    /// an authorization server.
    fn add_challenge(&self, mut response: Response, headers: &HeaderMap) -> Response {
        let problem = match response.extensions().get::<HttpRejection>() {
            Some(HttpRejection::Token) if bearer_token(headers).is_none() => TokenProblem::Missing,
            Some(HttpRejection::Token) => TokenProblem::Invalid,
            Some(HttpRejection::Scope(TokenScope::Tools)) => TokenProblem::LacksToolsScope,
            _ => return response,
        };
        if let Some(access_tokens) = &self.access_tokens {
            let challenge = challenge_header(&access_tokens.issuer, problem);
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        response
    }

    fn find_caller(&self, headers: &HeaderMap) -> Option<HttpCaller> {
        match HeaderField::find(headers, &AUTHORIZATION) {
            HeaderField::Missing => self.find_console_caller(headers),
            _ => self.find_bearer(bearer_token(headers)?),
        }
    }

    /// Returns the owner with all scopes, for the page of a signed-in browser.
    #[cfg(feature = "rest")]
    fn find_console_caller(&self, headers: &HeaderMap) -> Option<HttpCaller> {
        self.console.as_ref()?.find_user(headers).map(HttpCaller::console)
    }

    #[cfg(not(feature = "rest"))]
    fn find_console_caller(&self, _: &HeaderMap) -> Option<HttpCaller> {
        None
    }

    /// Compares all tokens, so that the time tells nothing about which of them it is.
    fn find_bearer(&self, token: &str) -> Option<HttpCaller> {
        let (digest, mut found) = (TokenDigest::new(token), None);
        for (known, caller) in &self.tokens {
            if known.matches(&digest) {
                found = Some(caller);
            }
        }
        match found {
            Some(caller) => Some(caller.clone()),
            None => {
                let known = self.verifier.as_ref().and_then(|it| it.verify_token(token));
                let issued = || self.access_tokens.as_ref()?.verify_token(token);
                known.or_else(issued).map(HttpCaller::new)
            }
        }
    }

    /// Whether the token of an earlier request is still that of `caller`.
    #[cfg(feature = "rest")]
    pub(super) fn is_caller(&self, headers: &HeaderMap, caller: &HttpCaller) -> bool {
        self.find_caller(headers).is_some_and(|it| it == *caller)
    }

    /// Whether a bearer of another token may answer the approval requests of `principal`.
    #[cfg(feature = "rest")]
    pub(super) fn has_approver(&self, principal: &PrincipalKey) -> bool {
        let user = principal.as_deref().map(Principal::name);
        let answers = |caller: &HttpCaller| {
            caller.scopes.contains(TokenScope::Administration)
                || caller.scopes.contains(TokenScope::Approvals) && caller.user() == user
        };
        self.tokens.iter().any(|(_, caller)| answers(caller))
            || self.verifier.as_ref().is_some_and(|it| it.has_approver(principal.as_deref()))
            || principal.is_some() && self.issues_approvals_scope()
            || self.has_console_user()
    }

    /// Whether the authorization server issues tokens that may answer the approval requests of their
    /// principal.
    #[cfg(feature = "rest")]
    fn issues_approvals_scope(&self) -> bool {
        self.access_tokens.as_ref().is_some_and(|it| it.issuer.has_approvals_scope())
    }

    /// Whether a page of the console is open.
    #[cfg(feature = "rest")]
    pub(super) fn has_console_user(&self) -> bool {
        self.console.as_ref().is_some_and(ConsoleAccess::has_open_page)
    }
}

/// Returns the bearer token of a request.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = HeaderField::find(headers, &AUTHORIZATION).text()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Refuses requests for other hosts, and those of scripts of other web sites.
pub(super) async fn check_host_and_origin(
    State(authenticator): State<Arc<Authenticator>>,
    mut request: Request,
    next: Next,
) -> Response {
    let target = request.uri().authority().map(Authority::as_str);
    match authenticator.check_host_and_origin(request.headers(), target) {
        // A site on the net may not reach into a private network, even for a script that is let in.
        Ok(()) if is_private_network_preflight(&request) => HttpRejection::Origin.into_response(),
        Ok(()) => {
            retain_known_headers(request.headers_mut());
            next.run(request).await
        }
        Err(refused) => refused.into_response(),
    }
}

/// Removes the names of headers that no client sends from a preflight request, so that a script
/// may not send them.
fn retain_known_headers(headers: &mut HeaderMap) {
    let Some(asked) = headers.get(ACCESS_CONTROL_REQUEST_HEADERS) else { return };
    let names = asked.to_str().unwrap_or_default().split(',').map(str::trim);
    let is_known = |name: &&str| {
        let name = name.to_ascii_lowercase();
        REQUEST_HEADERS.contains(&&*name) || name.starts_with("mcp-")
    };
    let known = names.filter(is_known).collect::<Vec<_>>().join(", ");
    if let Ok(known) = HeaderValue::try_from(known) {
        headers.insert(ACCESS_CONTROL_REQUEST_HEADERS, known);
    }
}

fn is_private_network_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key("access-control-request-private-network")
}

/// Refuses requests without a token; the others carry their principal.
pub(super) async fn require_token(
    State(authenticator): State<Arc<Authenticator>>,
    mut request: Request,
    next: Next,
) -> Response {
    let headers = request.headers();
    let caller = match authenticator.authenticate(headers).await {
        Ok(caller) => caller,
        Err(refused) => return authenticator.add_challenge(refused.into_response(), headers),
    };
    let lacks_scope = !caller.scopes.contains(TokenScope::Tools);
    let asked = lacks_scope.then(|| headers.clone());
    let slot = request.extensions().get::<Arc<ConnectionSlot>>().cloned();
    if let Some(slot) = &slot
        && slot.mark_authenticated(&caller.principal).is_err()
    {
        return HttpRejection::Connections.into_response();
    }
    if let Some(principal) = caller.principal.clone() {
        request.extensions_mut().insert(principal);
    }
    request.extensions_mut().insert(caller);
    let response = match slot {
        Some(slot) => slot.track_response(next.run(slot.track_request(request)).await),
        None => next.run(request).await,
    };
    match asked {
        Some(headers) => authenticator.add_challenge(response, &headers),
        None => response,
    }
}

/// Refuses requests whose token may not call tools.
pub(super) async fn require_tools_scope(request: Request, next: Next) -> Response {
    match request.extensions().get::<HttpCaller>() {
        Some(caller) if !caller.scopes.contains(TokenScope::Tools) => {
            HttpRejection::Scope(TokenScope::Tools).into_response()
        }
        _ => next.run(request).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    /// Those of a server at an address.
    fn names() -> Vec<String> {
        ["127.0.0.1:8000", "localhost:8000", "[::1]:8000"].map(str::to_owned).to_vec()
    }

    #[track_caller]
    fn check(headers: &[(&'static str, &str)], expected: Result<(), HttpRejection>) {
        check_at(None, headers, expected);
    }

    #[track_caller]
    fn check_at(
        target: Option<&str>,
        headers: &[(&'static str, &str)],
        expected: Result<(), HttpRejection>,
    ) {
        let http = HttpOptions::new(TOKEN.parse().unwrap())
            .allow_host("Tools.example.com")
            .allow_origin("https://example.com");
        let guard = Authenticator::new(&http, names());
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        let entered = guard
            .check_host_and_origin(&map, target)
            .and_then(|()| guard.find_caller(&map).map(drop).ok_or(HttpRejection::Token));
        assert_eq!(entered, expected, "{headers:?}");
    }

    // RS2, RS3
    #[test]
    fn name_site_and_token_have_to_be_right() {
        let host = ("host", "localhost:8000");
        let bearer = format!("Bearer {TOKEN}");
        let token = ("authorization", bearer.as_str());
        check(&[host, token], Ok(()));
        check(&[("host", "[::1]:8000"), token], Ok(()));
        check(&[("host", "tools.EXAMPLE.com"), token], Ok(()));
        check(&[host, token, ("origin", "https://example.com")], Ok(()));

        check(&[token], Err(HttpRejection::Host));
        check(&[("host", "evil.example"), token], Err(HttpRejection::Host));
        check(&[("host", "localhost:8001"), token], Err(HttpRejection::Host));
        check(&[host, ("host", "evil.example"), token], Err(HttpRejection::Host));

        check(&[host, token, ("origin", "http://localhost:8000")], Err(HttpRejection::Origin));
        check(&[host, token, ("origin", "null")], Err(HttpRejection::Origin));
        check(&[host, token, ("origin", "")], Err(HttpRejection::Origin));

        check(&[host], Err(HttpRejection::Token));
        check(&[host, ("authorization", TOKEN)], Err(HttpRejection::Token));
        check(&[host, ("authorization", "Bearer ")], Err(HttpRejection::Token));
        check(&[host, ("authorization", &bearer[..bearer.len() - 1])], Err(HttpRejection::Token));
        check(&[host, token, token], Err(HttpRejection::Token));
        check(&[host, ("authorization", &bearer.replace("Bearer", "bearer"))], Ok(()));

        check_at(Some("localhost:8000"), &[host, token], Ok(()));
        check_at(Some("evil.example"), &[host, token], Err(HttpRejection::Host));
        check_at(Some("localhost:8000"), &[token], Err(HttpRejection::Host));
    }

    #[cfg(feature = "rest")]
    #[test]
    fn scope_of_the_issuer_makes_an_approver() {
        use crate::AccessTokenIssuer;

        let issuer =
            AccessTokenIssuer::new("https://login.example.com", "https://tools.example.com/mcp");
        let issuer = issuer.unwrap();
        let ada = Some(Arc::new(Principal::new("ada")));
        for (issuer, is_approved) in
            [(issuer.clone().approvals_scope("approve"), true), (issuer, false)]
        {
            let options = HttpOptions::new(TOKEN.parse().unwrap()).with_access_tokens(issuer);
            let guard = Authenticator::new(&options, names());
            assert_eq!(guard.has_approver(&ada), is_approved);
            assert!(!guard.has_approver(&None), "a token of the issuer has a principal");
        }
    }

    // F130
    #[test]
    fn a_token_says_who_it_is() {
        let ada = "ada-0123456789abcdef0123456789abcdef";
        let http = HttpOptions::new(TOKEN.parse().unwrap())
            .with_principal(ada.parse().unwrap(), Principal::new("ada"));
        let guard = Authenticator::new(&http, names());
        let who = |token: &str| {
            let mut headers = HeaderMap::new();
            headers.append(HOST, "localhost:8000".parse().unwrap());
            headers.append(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
            guard.find_caller(&headers).ok_or(HttpRejection::Token)
        };
        let caller = |principal| {
            HttpCaller::new(TokenIdentity { principal, scopes: TokenScopes::default() })
        };
        assert_eq!(who(ada), Ok(caller(Some(Principal::new("ada")))));
        assert_eq!(who(TOKEN), Ok(caller(None)));
        assert_eq!(who("bob-0123456789abcdef0123456789abcdef"), Err(HttpRejection::Token));
    }
}
