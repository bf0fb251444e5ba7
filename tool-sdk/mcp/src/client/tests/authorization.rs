//! OAuth against a local authorization server: login, refresh, more scopes, logout, and answers that
//! are not to be trusted.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard};

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use axum::routing::any;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::join_all;
use hmac_sha256::Hash;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tool_sdk_net::{GuardedClient, Url, WebRequest, WebSettings};

use super::*;
use crate::{
    AuthorizationError, AuthorizationPrompt, AuthorizationRequest, AuthorizationStatus,
    CredentialStore, HttpEndpoint, LogoutOutcome, OAuthSettings, PromptFailure,
};

type Form = BTreeMap<String, String>;

/// How the server deviates from one that works.
#[derive(Clone, Default)]
struct LoginQuirks {
    /// The issuer in the metadata.
    metadata_issuer: Option<&'static str>,
    /// The issuer in the redirect.
    redirect_issuer: Option<&'static str>,
    /// The resource in the metadata.
    resource: Option<&'static str>,
    /// Where the challenge says that the metadata is.
    metadata_url: Option<&'static str>,
    /// The scope that calls need.
    call_scope: Option<&'static str>,
    refuses_refresh: bool,
    refuses_registered_scopes: bool,
    keeps_access_tokens: bool,
    has_no_pkce: bool,
}

#[derive(Default)]
struct LoginState {
    quirks: LoginQuirks,
    /// The challenge of the last authorization request, with its scopes.
    pending: Option<(String, String)>,
    /// The valid access tokens, with their scopes.
    tokens: BTreeMap<String, BTreeSet<String>>,
    issued: usize,
    authorizations: Vec<Form>,
    token_requests: Vec<Form>,
    revocations: Vec<Form>,
    registrations: Vec<Value>,
}

/// A server on a loopback port that is an MCP server and its authorization server.
#[derive(Clone)]
struct LoginServer {
    address: SocketAddr,
    state: Arc<Mutex<LoginState>>,
    /// Notified when a request for a refresh has arrived.
    refresh_arrived: Arc<Notify>,
    /// Held while a refresh is answered; a test that holds it delays the response.
    refresh_lock: Arc<tokio::sync::Mutex<()>>,
}

impl LoginServer {
    async fn start(quirks: LoginQuirks) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = LoginState { quirks, ..LoginState::default() };
        let server = Self {
            address,
            state: Arc::new(Mutex::new(state)),
            refresh_arrived: Arc::default(),
            refresh_lock: Arc::default(),
        };
        let own = server.clone();
        let app = Router::new().fallback(any(async move |request: Request<Body>| {
            let (head, body) = request.into_parts();
            let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
            let token = head.headers.get("authorization").and_then(|it| it.to_str().ok());
            let token = token.and_then(|it| it.strip_prefix("Bearer ")).map(str::to_owned);
            let query = head.uri.query().unwrap_or_default().to_owned();
            let _turn = match body.starts_with(b"grant_type=refresh_token") {
                true => {
                    own.refresh_arrived.notify_one();
                    Some(own.refresh_lock.lock().await)
                }
                false => None,
            };
            own.answer(head.uri.path(), &query, &body, token)
        }));
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        server
    }

    fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    fn lock(&self) -> MutexGuard<'_, LoginState> {
        self.state.lock().unwrap()
    }

    /// Makes every access token invalid, as if its time were over.
    fn expire_tokens(&self) {
        self.lock().tokens.clear();
    }

    fn answer(
        &self,
        path: &str,
        query: &str,
        body: &[u8],
        token: Option<String>,
    ) -> Response<Body> {
        match path {
            "/mcp" => self.answer_mcp(&serde_json::from_slice(body).unwrap_or_default(), token),
            "/.well-known/oauth-protected-resource/mcp" => {
                let resource = self.lock().quirks.resource;
                let resource = resource.map_or(format!("{}/mcp", self.base()), str::to_owned);
                json_response(
                    200,
                    &json!({
                        "resource": resource,
                        "authorization_servers": [self.base()],
                        "scopes_supported": ["read"],
                    }),
                )
            }
            "/.well-known/oauth-authorization-server" => json_response(200, &self.metadata()),
            "/register" => {
                let body: Value = serde_json::from_slice(body).unwrap();
                let mut state = self.lock();
                if state.quirks.refuses_registered_scopes && body.get("scope").is_some() {
                    return json_response(400, &json!({ "error": "invalid_client_metadata" }));
                }
                state.registrations.push(body);
                json_response(201, &json!({ "client_id": "client-1" }))
            }
            "/authorize" => self.answer_authorization(parse_form(query)),
            "/token" => self.answer_token(parse_form(&String::from_utf8_lossy(body))),
            "/revoke" => {
                let form = parse_form(&String::from_utf8_lossy(body));
                let mut state = self.lock();
                if state.quirks.keeps_access_tokens && form["token_type_hint"] == "access_token" {
                    return json_response(400, &json!({ "error": "unsupported_token_type" }));
                }
                state.revocations.push(form);
                json_response(200, &json!({}))
            }
            _ => json_response(404, &json!({})),
        }
    }

    fn metadata(&self) -> Value {
        let base = self.base();
        let quirks = self.lock().quirks.clone();
        let methods = if quirks.has_no_pkce { json!(["plain"]) } else { json!(["S256"]) };
        json!({
            "issuer": quirks.metadata_issuer.map_or(base.clone(), str::to_owned),
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"),
            "revocation_endpoint": format!("{base}/revoke"),
            "code_challenge_methods_supported": methods,
            "token_endpoint_auth_methods_supported": ["none"],
            "scopes_supported": ["read", "write", "offline_access"],
            "authorization_response_iss_parameter_supported": true,
        })
    }

    fn answer_authorization(&self, form: Form) -> Response<Body> {
        let mut state = self.lock();
        let issuer = state.quirks.redirect_issuer.map_or(self.base(), str::to_owned);
        let mut to = Url::parse(&form["redirect_uri"]).unwrap();
        to.query_pairs_mut().extend_pairs([
            ("code", "code-1"),
            ("state", &form["state"]),
            ("iss", &issuer),
        ]);
        let scope = form.get("scope").cloned().unwrap_or_default();
        state.pending = Some((form["code_challenge"].clone(), scope));
        state.authorizations.push(form);
        let response = Response::builder().status(302).header("location", to.as_str());
        response.body(Body::empty()).unwrap()
    }

    fn answer_token(&self, form: Form) -> Response<Body> {
        let mut state = self.lock();
        state.token_requests.push(form.clone());
        let scope = match form["grant_type"].as_str() {
            "authorization_code" => {
                let (challenge, scope) = state.pending.take().unwrap();
                let verifier = Hash::hash(form["code_verifier"].as_bytes());
                assert_eq!(URL_SAFE_NO_PAD.encode(verifier), challenge);
                assert_eq!(form["code"], "code-1");
                scope
            }
            _ if state.quirks.refuses_refresh => {
                return json_response(400, &json!({ "error": "invalid_grant" }));
            }
            _ => "read write".to_owned(),
        };
        state.issued += 1;
        let token = format!("access-{}", state.issued);
        let scopes = scope.split(' ').map(str::to_owned).collect();
        state.tokens.insert(token.clone(), scopes);
        json_response(
            200,
            &json!({
                "access_token": token,
                "token_type": "bearer",
                "expires_in": 3600,
                "refresh_token": format!("refresh-{}", state.issued),
            }),
        )
    }

    /// A server of 2025, of which every request needs a token.
    fn answer_mcp(&self, message: &Value, token: Option<String>) -> Response<Body> {
        let state = self.lock();
        let usual = format!("{}/.well-known/oauth-protected-resource/mcp", self.base());
        let place = state.quirks.metadata_url.map_or(usual, str::to_owned);
        let Some(scopes) = token.as_ref().and_then(|token| state.tokens.get(token)) else {
            return challenge(401, &format!("Bearer resource_metadata=\"{place}\""));
        };
        let is_call = message["method"] == "tools/call";
        if let (Some(scope), true) = (state.quirks.call_scope, is_call)
            && !scopes.contains(scope)
        {
            let header = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
            return challenge(403, &header);
        }
        let Some(id) = message.get("id") else { return json_response(202, &json!({})) };
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "s", "version": "1" },
            }),
            "tools/list" => json!({
                "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }],
            }),
            // A server that repeats the token in an error.
            "tools/call" if message["params"]["arguments"]["leak"] == true => json!({
                "content": [{ "type": "text", "text": format!("{} is bad", token.unwrap()) }],
                "isError": true,
            }),
            "tools/call" => json!({ "content": [{ "type": "text", "text": "heard" }] }),
            _ => {
                let error = json!({ "code": -32601, "message": "unknown" });
                return json_response(200, &json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
        };
        json_response(200, &json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }
}

fn json_response(status: u16, body: &Value) -> Response<Body> {
    let response = Response::builder().status(status).header("content-type", "application/json");
    response.body(Body::from(body.to_string())).unwrap()
}

fn challenge(status: u16, header: &str) -> Response<Body> {
    let response = Response::builder().status(status).header("www-authenticate", header);
    response.body(Body::empty()).unwrap()
}

fn parse_form(text: &str) -> Form {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

/// A user who agrees at once.
#[derive(Clone, Copy)]
enum TestUser {
    /// The browser follows the redirect to this machine.
    Browser,
    /// The user pastes the address.
    Pastes,
    /// Another page sends a redirect first.
    Attacked,
    Declines,
}

impl AuthorizationPrompt for TestUser {
    async fn show_url(
        &self,
        request: AuthorizationRequest<'_>,
    ) -> Result<Option<String>, PromptFailure> {
        let mut web = WebSettings::default();
        web.urls.named_hosts.push("127.0.0.1".parse().unwrap());
        let browser = GuardedClient::new(web);
        let page = browser.send(WebRequest::get(request.url.clone())).await.unwrap();
        let to = Url::parse(page.header("location").unwrap()).unwrap();
        if matches!(self, Self::Attacked) {
            let mut forged = to.clone();
            forged.set_query(Some("code=forged&state=guessed"));
            let answer = browser.send(WebRequest::get(forged)).await.unwrap();
            assert_eq!(answer.status(), 400);
            let mut elsewhere = to.clone();
            elsewhere.set_path("/");
            assert_eq!(browser.send(WebRequest::get(elsewhere)).await.unwrap().status(), 404);
        }
        match self {
            Self::Browser | Self::Attacked => {
                let answer = browser.send(WebRequest::get(to)).await.unwrap();
                assert_eq!(answer.header("cache-control"), Some("no-store"));
                Ok(None)
            }
            Self::Pastes => Ok(Some(to.into())),
            Self::Declines => Err(PromptFailure::Cancelled),
        }
    }
}

/// A pipeline that may run the tools of the server.
fn host(server: &LoginServer, credentials: &CredentialStore) -> TestHost {
    host_with(server, credentials, OAuthSettings::default())
}

fn host_with(
    server: &LoginServer,
    credentials: &CredentialStore,
    oauth: OAuthSettings,
) -> TestHost {
    let mut setting = TestHost::trusting(|_| Vec::new());
    setting.servers = setting.servers.with_credentials(credentials.clone());
    let endpoint = HttpEndpoint::new(&format!("{}/mcp", server.base())).unwrap();
    let endpoint = endpoint.oauth(oauth);
    setting.servers.add(ServerConfig::new("s", endpoint).unwrap()).unwrap();
    setting
}

/// A host whose user authorized the server.
async fn logged_in(server: &LoginServer) -> TestHost {
    logged_in_with(server, &CredentialStore::in_memory()).await
}

async fn logged_in_with(server: &LoginServer, credentials: &CredentialStore) -> TestHost {
    let setting = host(server, credentials);
    setting.servers.connect("s").await.unwrap_err();
    setting.servers.authorize("s", &TestUser::Pastes).await.unwrap();
    setting.connect().await;
    setting
}

fn authorization(setting: &TestHost) -> Option<AuthorizationStatus> {
    setting.servers.status("s").unwrap().authorization
}

#[tokio::test]
async fn login_stores_a_token_for_the_server() {
    let server = LoginServer::start(LoginQuirks::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let store = CredentialStore::in_folder(folder.path().join("mcp"));
    let setting = host(&server, &store);
    assert_eq!(authorization(&setting), None);

    let error = setting.servers.connect("s").await.unwrap_err();
    assert!(error.needs_authorization && error.not_run);
    assert!(error.message.ends_with("the user runs `mcp login s`"), "{error}");
    assert_eq!(authorization(&setting), Some(AuthorizationStatus::LoginRequired));
    assert!(server.lock().authorizations.is_empty(), "no login starts by itself");

    setting.servers.authorize("s", &TestUser::Browser).await.unwrap();
    assert_eq!(setting.connect().await.tools, ["mcp__s__echo"]);
    assert_eq!(setting.call("echo", "{}").await.text(), "heard");
    assert_eq!(authorization(&setting), Some(AuthorizationStatus::LoggedIn));

    let resource = format!("{}/mcp", server.base());
    {
        let state = server.lock();
        let asked = &state.authorizations[0];
        assert_eq!((&*asked["client_id"], &*asked["code_challenge_method"]), ("client-1", "S256"));
        assert_eq!((&asked["resource"], &*asked["scope"]), (&resource, "read offline_access"));
        let exchanged = &state.token_requests[0];
        assert_eq!((&exchanged["resource"], &*exchanged["client_id"]), (&resource, "client-1"));
        assert_eq!(exchanged["redirect_uri"], asked["redirect_uri"]);
        let registered = &state.registrations[0];
        assert_eq!(registered["application_type"], "native");
        assert_eq!(registered["redirect_uris"], json!([asked["redirect_uri"]]));
    }

    // Another process finds the token, and only for this URL.
    let again = CredentialStore::in_folder(folder.path().join("mcp"));
    assert_eq!(host(&server, &again).connect().await.tools, ["mcp__s__echo"]);
    assert!(!again.forget_server(&format!("{resource}/other")).unwrap());
    assert!(!format!("{again:?}{:?}", setting.servers).contains("access-1"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let file = std::fs::metadata(folder.path().join("mcp/credentials.json")).unwrap();
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
    }
    assert!(again.forget_server(&resource).unwrap());
    host(&server, &again).servers.connect("s").await.unwrap_err();
}

#[tokio::test]
async fn concurrent_calls_refresh_a_token_once() {
    let server = LoginServer::start(LoginQuirks::default()).await;
    let setting = logged_in(&server).await;
    server.expire_tokens();
    let calls = join_all((0..8).map(|_| setting.call("echo", "{}"))).await;
    assert!(calls.iter().all(|outcome| outcome.text() == "heard"));
    let requests = server.lock().token_requests.clone();
    assert_eq!(requests.len(), 2, "one login, one refresh");
    assert_eq!(requests[1]["refresh_token"], "refresh-1");
    assert_eq!(requests[1]["resource"], format!("{}/mcp", server.base()));
}

#[tokio::test]
async fn void_refresh_token_requires_a_login() {
    let server = LoginServer::start(LoginQuirks::default()).await;
    let setting = logged_in(&server).await;
    server.lock().quirks.refuses_refresh = true;
    server.expire_tokens();
    let text = setting.call("echo", "{}").await.text().into_owned();
    assert!(text.contains("the user runs `mcp login s`"), "{text}");
    // The void token is not used again.
    setting.call("echo", "{}").await;
    assert_eq!(server.lock().token_requests.len(), 2);
    setting.servers.authorize("s", &TestUser::Pastes).await.unwrap();
    assert_eq!(setting.call("echo", "{}").await.text(), "heard");
}

// A refresh that ends after a login changes nothing, whether it succeeds or not.
#[tokio::test]
async fn late_refresh_keeps_the_tokens_of_a_fresh_login() {
    for refuses_refresh in [false, true] {
        let server = LoginServer::start(LoginQuirks::default()).await;
        let setting = logged_in(&server).await;
        server.lock().quirks.refuses_refresh = refuses_refresh;
        server.expire_tokens();
        let delayed = server.refresh_lock.lock().await;
        let login = async {
            server.refresh_arrived.notified().await;
            setting.servers.authorize("s", &TestUser::Pastes).await.unwrap();
            drop(delayed);
        };
        let (outcome, ()) = tokio::join!(setting.call("echo", "{}"), login);
        assert_eq!(outcome.text(), "heard");
        assert_eq!(authorization(&setting), Some(AuthorizationStatus::LoggedIn));
        server.lock().quirks.refuses_refresh = false;
        server.expire_tokens();
        assert_eq!(setting.call("echo", "{}").await.text(), "heard");
        let used = server.lock().token_requests.last().unwrap()["refresh_token"].clone();
        assert_eq!(used, "refresh-2", "that of the fresh login");
    }
}

#[tokio::test]
async fn refreshes_of_servers_do_not_wait_for_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let store = CredentialStore::in_folder(folder.path().join("mcp"));
    let slow = LoginServer::start(LoginQuirks::default()).await;
    let other = LoginServer::start(LoginQuirks::default()).await;
    let slow_host = logged_in_with(&slow, &store).await;
    let other_host = logged_in_with(&other, &store).await;
    slow.expire_tokens();
    other.expire_tokens();
    let delayed = slow.refresh_lock.lock().await;
    let meanwhile = async {
        slow.refresh_arrived.notified().await;
        assert_eq!(other_host.call("echo", "{}").await.text(), "heard");
        drop(delayed);
    };
    let (outcome, ()) = tokio::join!(slow_host.call("echo", "{}"), meanwhile);
    assert_eq!(outcome.text(), "heard");
}

#[tokio::test]
async fn logout_during_a_refresh_leaves_no_token() {
    let server = LoginServer::start(LoginQuirks::default()).await;
    let setting = logged_in(&server).await;
    server.expire_tokens();
    let delayed = server.refresh_lock.lock().await;
    let logout = async {
        server.refresh_arrived.notified().await;
        setting.servers.log_out("s").await.unwrap();
        drop(delayed);
    };
    let (outcome, ()) = tokio::join!(setting.call("echo", "{}"), logout);
    assert_ne!(outcome.text(), "heard");
    assert_eq!(setting.servers.log_out("s").await.unwrap(), LogoutOutcome::NotLoggedIn);
}

#[tokio::test]
async fn more_scopes_are_requested_with_those_before() {
    let quirks = LoginQuirks { call_scope: Some("write"), ..LoginQuirks::default() };
    let server = LoginServer::start(quirks).await;
    let setting = logged_in(&server).await;
    let text = setting.call("echo", "{}").await.text().into_owned();
    assert!(text.contains("requires the scopes `write`"), "{text}");
    assert_eq!(authorization(&setting), Some(AuthorizationStatus::ScopesMissing));
    setting.servers.authorize("s", &TestUser::Pastes).await.unwrap();
    assert_eq!(setting.call("echo", "{}").await.text(), "heard");
    assert_eq!(server.lock().authorizations[1]["scope"], "read offline_access write");
}

#[tokio::test]
async fn logout_revokes_both_tokens() {
    let server = LoginServer::start(LoginQuirks::default()).await;
    let setting = logged_in(&server).await;
    assert_eq!(setting.servers.log_out("s").await.unwrap(), LogoutOutcome::Revoked);
    let revoked: Vec<String> =
        server.lock().revocations.iter().map(|form| form["token"].clone()).collect();
    assert_eq!(revoked, ["refresh-1", "access-1"]);
    assert_eq!(authorization(&setting), None);
    assert_eq!(setting.servers.log_out("s").await.unwrap(), LogoutOutcome::NotLoggedIn);
    assert!(setting.servers.connect("s").await.unwrap_err().needs_authorization);
}

#[tokio::test]
async fn registers_without_scopes_where_they_are_refused() {
    let quirks = LoginQuirks { refuses_registered_scopes: true, ..LoginQuirks::default() };
    let server = LoginServer::start(quirks).await;
    logged_in(&server).await;
    assert_eq!(server.lock().registrations.len(), 1);
    assert_eq!(server.lock().authorizations[0]["scope"], "read offline_access");
}

// JSON Web Tokens cannot be revoked.
#[tokio::test]
async fn logout_revokes_the_refresh_token_where_access_tokens_stay_valid() {
    let quirks = LoginQuirks { keeps_access_tokens: true, ..LoginQuirks::default() };
    let server = LoginServer::start(quirks).await;
    let setting = logged_in(&server).await;
    assert_eq!(setting.servers.log_out("s").await.unwrap(), LogoutOutcome::Revoked);
    assert_eq!(server.lock().revocations.len(), 1);
}

// MC8: redirects of others do not end a login, and do not succeed.
#[tokio::test]
async fn forged_redirects_are_ignored() {
    let server = LoginServer::start(LoginQuirks::default()).await;
    let setting = host(&server, &CredentialStore::in_memory());
    setting.servers.connect("s").await.unwrap_err();
    setting.servers.authorize("s", &TestUser::Attacked).await.unwrap();
    assert_eq!(setting.connect().await.tools, ["mcp__s__echo"]);
}

// MC8: nothing is exchanged after a sign that another party is involved.
#[tokio::test]
async fn deviating_metadata_and_redirects_end_the_login() {
    let wrong = |change: fn(&mut LoginQuirks)| {
        let mut quirks = LoginQuirks::default();
        change(&mut quirks);
        quirks
    };
    for (quirks, why, was_asked) in [
        (
            wrong(|it| it.metadata_issuer = Some("https://honest.example")),
            "publishes metadata of another issuer: `https://honest.example`",
            false,
        ),
        (
            wrong(|it| it.resource = Some("https://other.example/mcp")),
            "about another resource: `https://other.example/mcp`",
            false,
        ),
        (wrong(|it| it.has_no_pkce = true), "does not support PKCE", false),
        // WF2: a server does not lead this program into the user's network.
        (
            wrong(|it| it.metadata_url = Some("http://169.254.169.254/latest/meta-data")),
            "`169.254.169.254` is not public",
            false,
        ),
        (wrong(|it| it.metadata_url = Some("file:///etc/passwd")), "not a scheme", false),
        (
            wrong(|it| it.redirect_issuer = Some("https://evil.example")),
            "it names the issuer `https://evil.example`",
            true,
        ),
    ] {
        let server = LoginServer::start(quirks).await;
        let setting = host(&server, &CredentialStore::in_memory());
        setting.servers.connect("s").await.unwrap_err();
        let error = setting.servers.authorize("s", &TestUser::Browser).await.unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(!server.lock().authorizations.is_empty(), was_asked, "{why}");
        assert!(server.lock().token_requests.is_empty(), "{why}");
    }
}

// MC8: the server chooses no authorization server for a configured secret.
#[tokio::test]
async fn client_secret_goes_to_the_configured_issuer_only() {
    let server = LoginServer::start(LoginQuirks::default()).await;
    let settings = OAuthSettings::default().client_id("known").client_secret("s3cret");
    let setting = host_with(&server, &CredentialStore::in_memory(), settings.clone());
    setting.servers.connect("s").await.unwrap_err();
    let error = setting.servers.authorize("s", &TestUser::Pastes).await.unwrap_err();
    assert!(error.to_string().contains("set `issuer` to the authorization server"), "{error}");
    assert!(server.lock().authorizations.is_empty() && server.lock().token_requests.is_empty());

    let settings = settings.issuer(&server.base()).unwrap();
    let setting = host_with(&server, &CredentialStore::in_memory(), settings);
    setting.servers.connect("s").await.unwrap_err();
    setting.servers.authorize("s", &TestUser::Pastes).await.unwrap();
    assert_eq!(server.lock().token_requests.len(), 1);
    assert_eq!(server.lock().authorizations[0]["client_id"], "known");
}

#[tokio::test]
async fn declined_login_stores_nothing() {
    let server = LoginServer::start(LoginQuirks::default()).await;
    let setting = host(&server, &CredentialStore::in_memory());
    setting.servers.connect("s").await.unwrap_err();
    let error = setting.servers.authorize("s", &TestUser::Declines).await.unwrap_err();
    assert!(matches!(error, AuthorizationError::Prompt(PromptFailure::Cancelled)), "{error}");
    assert_eq!(authorization(&setting), Some(AuthorizationStatus::LoginRequired));
    let error = setting.servers.authorize("other", &TestUser::Pastes).await.unwrap_err();
    assert!(matches!(error, AuthorizationError::UnknownServer(_)), "{error}");
}

#[tokio::test]
async fn tokens_are_redacted_in_what_the_server_says() {
    let server = LoginServer::start(LoginQuirks::default()).await;
    let setting = logged_in(&server).await;
    let text = setting.call("echo", r#"{"leak": true}"#).await.text().into_owned();
    assert!(text.contains("[hidden] is bad"), "{text}");
}

// A configured token is the host's own affair.
#[tokio::test]
async fn configured_token_excludes_a_login() {
    let server = LoginServer::start(LoginQuirks::default()).await;
    let setting = TestHost::trusting(|_| Vec::new());
    setting.servers.remove("s");
    let endpoint = HttpEndpoint::new(&format!("{}/mcp", server.base())).unwrap();
    let config = ServerConfig::new("s", endpoint.bearer_token("other")).unwrap();
    setting.servers.add(config).unwrap();
    let error = setting.servers.connect("s").await.unwrap_err();
    assert!(error.message.starts_with("the server requires a valid token (HTTP 401)"), "{error}");
    let error = setting.servers.authorize("s", &TestUser::Pastes).await.unwrap_err();
    assert!(matches!(error, AuthorizationError::NotApplicable(_)), "{error}");
}
