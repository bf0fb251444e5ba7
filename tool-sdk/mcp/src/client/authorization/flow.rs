//! One authorization-code flow with PKCE: the request, the check of the redirect, the exchange.
//!
//! **Invariant:** a code goes to the token endpoint only if the redirect carries the state of this
//! very request, and names the recorded issuer where it names one or has to (RFC 9207). An error in
//! a redirect is not even read before that.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac_sha256::Hash;
use tool_sdk_net::{Url, WebRequest};

use super::discovery::DiscoveryClient;
use super::error::{AuthorizationError, quote_foreign};
use super::loopback::LoopbackListener;
use super::metadata::IssuerMetadata;
use super::prompt::{AuthorizationPrompt, AuthorizationRequest, PromptFailure};
use super::registration::RegisteredClient;
use super::token::{TokenResponse, read_token_response};

/// How long the user may take.
const USER_TIMEOUT: Duration = Duration::from_mins(10);

/// What is authorized, and by whom.
pub(super) struct FlowTarget<'a> {
    /// The name of the server in the host's configuration.
    pub(super) server: &'a str,
    pub(super) resource: &'a str,
    pub(super) metadata: &'a IssuerMetadata,
    pub(super) scopes: &'a [String],
}

/// What belongs to one request and is checked or sent afterwards.
pub(super) struct PendingAuthorization {
    verifier: String,
    state: String,
    issuer: String,
    requires_issuer: bool,
}

/// What a redirect is.
#[derive(Debug)]
pub(super) enum RedirectVerdict {
    /// The code of this request.
    Code(String),
    /// Not the redirect of this request, such as one that another page made up.
    Unrelated,
    /// The redirect ends the flow.
    Rejected(AuthorizationError),
}

/// Runs a flow until there are tokens.
pub(super) async fn run_flow<P: AuthorizationPrompt>(
    http: &DiscoveryClient,
    target: &FlowTarget<'_>,
    client: &RegisteredClient,
    listener: LoopbackListener,
    prompt: &P,
) -> Result<TokenResponse, AuthorizationError> {
    let pending = PendingAuthorization::new(target.metadata)?;
    let redirect_uri = listener.redirect_uri();
    let url = pending.authorization_url(target, client, &redirect_uri)?;
    let request = AuthorizationRequest {
        server: target.server,
        issuer: &target.metadata.issuer,
        scopes: target.scopes,
        url: &url,
        redirect_uri: &redirect_uri,
    };
    let answered = tokio::time::timeout(USER_TIMEOUT, async {
        let received = listener.receive_code(&pending);
        let shown = async {
            match prompt.show_url(request).await? {
                Some(pasted) => pending.parse_pasted(&pasted),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            code = received => code,
            code = shown => code,
        }
    });
    let code = answered.await.map_err(|_| PromptFailure::Timeout)??;
    let form = [
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("redirect_uri", &redirect_uri),
        ("code_verifier", &pending.verifier),
        ("resource", target.resource),
    ];
    let endpoint = target.metadata.token_endpoint()?;
    let request: WebRequest = client.authenticated_form(endpoint, &form);
    read_token_response(&http.send(request, "cannot exchange the code for a token").await?)
}

impl PendingAuthorization {
    /// Begins a request to the authorization server with this metadata.
    fn new(metadata: &IssuerMetadata) -> Result<Self, AuthorizationError> {
        Ok(Self {
            verifier: random_text()?,
            state: random_text()?,
            issuer: metadata.issuer.clone(),
            requires_issuer: metadata.authorization_response_iss_parameter_supported,
        })
    }

    fn authorization_url(
        &self,
        target: &FlowTarget<'_>,
        client: &RegisteredClient,
        redirect_uri: &str,
    ) -> Result<Url, AuthorizationError> {
        let mut url = target.metadata.authorization_endpoint()?;
        let challenge = URL_SAFE_NO_PAD.encode(Hash::hash(self.verifier.as_bytes()));
        let scopes = target.scopes.join(" ");
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("state", &self.state)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", target.resource);
        if !scopes.is_empty() {
            query.append_pair("scope", &scopes);
        }
        drop(query);
        Ok(url)
    }

    /// Judges the query of a redirect.
    pub(super) fn judge_redirect(&self, query: &str) -> RedirectVerdict {
        let rejected =
            |why: String| RedirectVerdict::Rejected(AuthorizationError::RejectedRedirect(why));
        let Ok([code, state, issuer, error, description]) =
            unique_parameters(query, ["code", "state", "iss", "error", "error_description"])
        else {
            return RedirectVerdict::Unrelated;
        };
        if state.as_deref() != Some(&*self.state) {
            return RedirectVerdict::Unrelated;
        }
        match issuer {
            Some(issuer) if issuer != self.issuer => {
                return rejected(format!(
                    "it names the issuer `{}` instead of `{}`",
                    quote_foreign(&issuer),
                    quote_foreign(&self.issuer)
                ));
            }
            None if self.requires_issuer => {
                return rejected(
                    "it does not name its issuer, which this server always does".into(),
                );
            }
            _ => {}
        }
        match (code, error) {
            (_, Some(error)) => {
                let said = description.unwrap_or_default();
                RedirectVerdict::Rejected(refusal(&error, &said))
            }
            (Some(code), None) if !code.is_empty() => RedirectVerdict::Code(code),
            _ => rejected("it has no code".to_owned()),
        }
    }

    /// Judges an address that the user pasted.
    fn parse_pasted(&self, pasted: &str) -> Result<String, AuthorizationError> {
        let unrelated = || {
            let why = "the pasted address is not that of this login; paste the whole address that \
                       the browser shows at the end, with `code` and `state`";
            AuthorizationError::RejectedRedirect(why.to_owned())
        };
        let pasted = pasted.trim();
        let (_, query) = pasted.split_once('?').ok_or_else(unrelated)?;
        let query = query.split('#').next().unwrap_or_default();
        match self.judge_redirect(query) {
            RedirectVerdict::Code(code) => Ok(code),
            RedirectVerdict::Unrelated => Err(unrelated()),
            RedirectVerdict::Rejected(error) => Err(error),
        }
    }
}

/// Returns the refusal that an authorization server states by a code and a description.
pub(super) fn refusal(error: &str, description: &str) -> AuthorizationError {
    let error = quote_foreign(error);
    AuthorizationError::Refused(match description.trim() {
        "" => error,
        said => format!("{error} ({})", quote_foreign(said)),
    })
}

/// Returns the values of these parameters; fails when one is there twice.
fn unique_parameters<const N: usize>(
    query: &str,
    names: [&str; N],
) -> Result<[Option<String>; N], ()> {
    let mut values = [const { None }; N];
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let Some(at) = names.iter().position(|known| *known == name) else { continue };
        if values[at].replace(value.into_owned()).is_some() {
            return Err(());
        }
    }
    Ok(values)
}

/// Returns 32 random bytes in Base64 for URLs.
fn random_text() -> Result<String, AuthorizationError> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        AuthorizationError::RejectedRedirect(format!("the system has no random numbers: {error}"))
    })?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(requires_issuer: bool) -> PendingAuthorization {
        PendingAuthorization {
            verifier: "v".to_owned(),
            state: "s1".to_owned(),
            issuer: "https://a.example".to_owned(),
            requires_issuer,
        }
    }

    fn judged(requires_issuer: bool, query: &str) -> String {
        match pending(requires_issuer).judge_redirect(query) {
            RedirectVerdict::Code(code) => code,
            RedirectVerdict::Unrelated => "unrelated".to_owned(),
            RedirectVerdict::Rejected(error) => error.to_string(),
        }
    }

    // MC8: mix-up and tampered redirects.
    #[test]
    fn redirects_are_checked_before_their_code_is_used() {
        const ISSUER: &str = "iss=https%3A%2F%2Fa.example";
        assert_eq!(judged(false, "code=c&state=s1"), "c");
        assert_eq!(judged(true, &format!("{ISSUER}&code=c%2B1&state=s1")), "c+1");
        assert_eq!(judged(false, &format!("{ISSUER}&code=c&state=s1")), "c");
        for query in
            ["", "code=c", "code=c&state=s2", "code=c&code=d&state=s1", "error=x&state=s1&state=s1"]
        {
            assert_eq!(judged(false, query), "unrelated", "{query}");
        }
        for (requires_issuer, query, why) in [
            (true, "code=c&state=s1", "does not name its issuer"),
            (false, "iss=https%3A%2F%2Fa.example%2F&code=c&state=s1", "names the issuer"),
            (false, "iss=https%3A%2F%2FA.example&code=c&state=s1", "names the issuer"),
            (true, "iss=https%3A%2F%2Fevil.example&error=x&state=s1", "names the issuer"),
            (false, "state=s1", "has no code"),
            (
                false,
                "error=access_denied&error_description=no%0Ano&state=s1",
                "access_denied (no\\nno)",
            ),
        ] {
            let answer = judged(requires_issuer, query);
            assert!(answer.contains(why), "{query}: {answer}");
        }
        let mixed = judged(true, "iss=https%3A%2F%2Fevil.example&error=evil_text&state=s1");
        assert!(!mixed.contains("evil_text"), "{mixed}");
    }

    #[test]
    fn pasted_addresses_are_checked_like_redirects() {
        let pending = pending(false);
        let paste = |text: &str| pending.parse_pasted(text).map_err(|error| error.to_string());
        assert_eq!(paste(" http://127.0.0.1:9/callback?code=c&state=s1#x\n"), Ok("c".to_owned()));
        for wrong in ["c", "", "http://127.0.0.1:9/callback?code=c", "?code=c&state=other"] {
            assert!(paste(wrong).unwrap_err().contains("paste the whole address"), "{wrong}");
        }
    }
}
