//! Decides by the header whether a request is accepted: host, then origin, then token.
//!
//! A web page in a browser on this machine can reach every local port. The host header detects DNS
//! rebinding, the origin identifies the web site, and the token is a secret that no web site knows.

use std::sync::Arc;

use hyper::StatusCode;

use super::request_head::{HeaderField, RequestHead};
use super::token::TokenDigest;
use super::{HttpOptions, Principal};

/// What is asked of a request before anything of it is read.
#[derive(Debug)]
pub(super) struct Authenticator {
    /// The tokens and their principals; the shared token is first.
    tokens: Vec<(TokenDigest, Option<Arc<Principal>>)>,
    hosts: Vec<String>,
    origins: Vec<String>,
}

/// Why a request is sent away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HttpRejection {
    /// It came under a name that is not ours.
    Host,
    /// It comes from a web site that is not on the list.
    Origin,
    /// It does not have the token.
    Token,
    /// It came to another path.
    Path,
    /// It names a session that does not exist or belongs to another principal.
    Session,
}

impl HttpRejection {
    pub(super) const fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::Token => StatusCode::UNAUTHORIZED,
            Self::Path | Self::Session => StatusCode::NOT_FOUND,
        }
    }

    pub(super) const fn message(self) -> &'static str {
        match self {
            Self::Host => "this host name is not served here",
            Self::Origin => "this origin may not use the server",
            Self::Token => "send `Authorization: Bearer TOKEN` with the server's token",
            Self::Path => "the protocol is spoken at /mcp",
            Self::Session => "there is no such session",
        }
    }
}

impl Authenticator {
    /// `hosts` are the names under which this machine reaches the server.
    pub(super) fn new(http: &HttpOptions, mut hosts: Vec<String>) -> Self {
        hosts.extend_from_slice(&http.hosts);
        let own = http.principals.iter();
        let own = own.map(|(token, it)| (token, Some(Arc::new(it.clone()))));
        let tokens = [(&http.token, None)].into_iter().chain(own);
        let tokens =
            tokens.map(|(token, whose)| (TokenDigest::new(token.reveal()), whose)).collect();
        Self { tokens, hosts, origins: http.origins.clone() }
    }

    /// Whether the names and the site are known; `target` is the name in the first line, which
    /// counts as well where there is one (RFC 9112, 3.2.2). Browsers ask that much without a
    /// token.
    pub(super) fn check_host_and_origin(
        &self,
        head: &RequestHead<'_>,
        target: Option<&str>,
    ) -> Result<(), HttpRejection> {
        let one_of = |value: &str, list: &[String]| {
            list.iter().any(|known| known == value)
                || list.iter().any(|known| known.eq_ignore_ascii_case(value))
        };
        let is_known =
            |field: HeaderField<'_>, list| field.as_text().is_some_and(|it| one_of(it, list));
        if !is_known(head.host, &self.hosts) || !target.is_none_or(|it| one_of(it, &self.hosts)) {
            return Err(HttpRejection::Host);
        }
        if head.origin.is_present() && !is_known(head.origin, &self.origins) {
            return Err(HttpRejection::Origin);
        }
        Ok(())
    }

    /// Returns the principal of the request; `None` for the shared token. Call
    /// [`check_host_and_origin`](Self::check_host_and_origin) before.
    pub(super) fn authenticate(
        &self,
        head: &RequestHead<'_>,
    ) -> Result<Option<Arc<Principal>>, HttpRejection> {
        self.find_principal(head).ok_or(HttpRejection::Token)
    }

    /// All tokens are compared, so that the time tells nothing about which of them it is.
    fn find_principal(&self, head: &RequestHead<'_>) -> Option<Option<Arc<Principal>>> {
        let (scheme, token) = head.authorization.as_text()?.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let print = TokenDigest::new(token.trim());
        let mut found = None;
        for (known, whose) in &self.tokens {
            if known.matches(&print) {
                found = Some(whose.clone());
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use hyper::HeaderMap;
    use hyper::header::{AUTHORIZATION, HOST};

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
        let head = RequestHead::from_headers(&map);
        let entered = guard
            .check_host_and_origin(&head, target)
            .and_then(|()| guard.authenticate(&head).map(drop));
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
            guard.authenticate(&RequestHead::from_headers(&headers))
        };
        assert_eq!(who(ada), Ok(Some(Arc::new(Principal::new("ada")))));
        assert_eq!(who(TOKEN), Ok(None));
        assert_eq!(who("bob-0123456789abcdef0123456789abcdef"), Err(HttpRejection::Token));
    }
}
