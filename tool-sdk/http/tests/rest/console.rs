//! The console: sign-in, its page, and what only an administrator and the console may read.

use serde_json::{Value, json};
use tool_sdk::http::{ConsoleAccess, HttpOptions, RestOptions, TokenScope};
use tool_sdk::{
    Action, AuditLog, Pipeline, Plugin, PluginRegistrar, Principal, Redactor, Rule, Session,
    ToolError,
};

use crate::server::{ADA, ADMIN, CLIENT, PERSON, TestRequest, TestServer, with_people};
use crate::tools::{ToolSignals, registry};

/// A browser that signed in.
struct SignedInBrowser {
    cookie: String,
    request_token: String,
}

impl SignedInBrowser {
    /// Sends a request as the page does.
    fn ask<'s>(&self, request: TestRequest<'s>) -> TestRequest<'s> {
        self.without_header(request).header("console-request", &*self.request_token)
    }

    /// Sends a request as the browser does by itself.
    fn without_header<'s>(&self, request: TestRequest<'s>) -> TestRequest<'s> {
        request.without("authorization").header("cookie", &*self.cookie)
    }
}

async fn start_with_console(
    change: impl FnOnce(Pipeline) -> Pipeline,
) -> (TestServer, ConsoleAccess) {
    let (signals, access) = (ToolSignals::default(), ConsoleAccess::default());
    let session = Session::default().with_service(signals.clone());
    let http = HttpOptions::new(CLIENT.parse().unwrap());
    let options = RestOptions::new(http).with_session(session).with_console(access.clone());
    let pipeline = change(Pipeline::new(registry()));
    (TestServer::start_options(pipeline, options, signals).await, access)
}

fn code_of(access: &ConsoleAccess) -> String {
    access.create_link("http://h").unwrap().split_once('#').unwrap().1.to_owned()
}

async fn sign_in(server: &TestServer, access: &ConsoleAccess) -> SignedInBrowser {
    sign_in_with(server, &code_of(access)).await
}

async fn sign_in_with(server: &TestServer, code: &str) -> SignedInBrowser {
    let body = json!({ "code": code });
    let request = server.post("/console/sign-in", &body).without("authorization");
    let signed_in = request.send().await.expect(200);
    let cookie = signed_in.header("set-cookie").split(';').next().unwrap().to_owned();
    let request_token = signed_in.json()["request_token"].as_str().unwrap().to_owned();
    SignedInBrowser { cookie, request_token }
}

// CN3
#[tokio::test]
async fn the_page_needs_no_token_and_allows_no_foreign_content() {
    let (server, _) = start_with_console(|pipeline| pipeline).await;
    for path in ["/", "/console/main.js", "/console/theme.css"] {
        let page = server.get(path).without("authorization").send().await.expect(200);
        let policy = page.header("content-security-policy");
        for part in
            ["default-src 'none'", "script-src 'self'", "require-trusted-types-for 'script'"]
        {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe") && page.header("cache-control") == "no-store");
        assert_eq!(page.header("x-content-type-options"), "nosniff");
    }
    server.get("/console/other.js").without("authorization").send().await.expect(404);
    // The API beside it needs a token as ever, and so does everything without a console.
    server.get("/v1/tools").without("authorization").send().await.expect(401);
    let plain = TestServer::start().await;
    plain.get("/").without("authorization").send().await.expect(401);
    plain.post("/console/sign-in", &json!({ "code": "x" })).send().await.expect(404);
}

// CN1
#[tokio::test]
async fn a_link_signs_one_browser_in() {
    let (server, access) = start_with_console(|pipeline| pipeline).await;
    let body = json!({ "code": code_of(&access) });
    let post = || server.post("/console/sign-in", &body).without("authorization");
    let signed_in = post().send().await.expect(200);
    let cookie = signed_in.header("set-cookie");
    let port = server.address.rsplit_once(':').unwrap().1;
    assert!(cookie.starts_with(&format!("tool-console-{port}=")), "{cookie}");
    for part in ["Path=/", "HttpOnly", "SameSite=Strict"] {
        assert!(cookie.split("; ").any(|it| it == part), "{cookie}");
    }
    assert_eq!(signed_in.json()["title"], "Tools");
    post().send().await.expect(401);
    // A form of another site cannot send JSON, and its origin is refused.
    post().header("content-type", "text/plain").send().await.expect(415);
    post().header("origin", "http://evil.example").send().await.expect(403);
}

// CN2
#[tokio::test]
async fn a_browser_needs_its_cookie_and_its_request_token() {
    let (server, access) = start_with_console(|pipeline| pipeline).await;
    let browser = sign_in(&server, &access).await;
    let own = format!("http://{}", server.address);
    browser.ask(server.get("/v1/tools")).send().await.expect(200);
    browser.ask(server.get("/v1/rules")).send().await.expect(200);
    let call = || server.call("add", &json!({ "a": 1 }));
    browser.ask(call()).header("origin", &*own).send().await.expect(200);

    browser.without_header(call()).send().await.expect(401);
    browser.without_header(server.get("/v1/tools/add/call?a=1")).send().await.expect(401);
    browser.ask(call()).without("cookie").send().await.expect(401);
    browser.ask(call()).header("console-request", "x").send().await.expect(401);
    browser.ask(call()).header("sec-fetch-site", "cross-site").send().await.expect(401);
    browser.ask(call()).header("origin", "http://127.0.0.1:1").send().await.expect(403);
    browser.ask(call()).header("origin", "null").send().await.expect(403);
    // A wrong token is not made up for by the cookie.
    browser.ask(call()).token("wrong").send().await.expect(401);

    // The page that is loaded again still has its token. Servers at other ports of this machine get
    // the cookie only: it is worth nothing, and no response has the token.
    let session = || server.get("/console/session");
    let reloaded = browser.ask(session()).send().await.expect(200);
    assert_eq!(reloaded.json()["title"], "Tools");
    assert!(!reloaded.body.contains(&browser.request_token), "{}", reloaded.body);
    browser.without_header(session()).send().await.expect(401);
    session().send().await.expect(401);
    session().token(&browser.request_token).send().await.expect(401);

    let leave = server.post("/console/sign-out", &json!({}));
    browser.without_header(leave).send().await.expect(401);
    let leave = server.post("/console/sign-out", &json!({}));
    browser.ask(leave).send().await.expect(204);
    browser.ask(server.get("/v1/tools")).send().await.expect(401);
}

#[tokio::test]
async fn an_administrator_makes_further_links() {
    let server = TestServer::start_with_approvals().await;
    server.post("/v1/console/links", &json!({})).token(ADMIN).send().await.expect(404);
    let (server, access) = start_with_console(|pipeline| pipeline).await;
    server.post("/v1/console/links", &json!({})).send().await.expect(403);
    let browser = sign_in(&server, &access).await;
    let made = browser.ask(server.post("/v1/console/links", &json!({}))).send().await.expect(200);
    let link = made.json()["link"].as_str().unwrap().to_owned();
    let (base, code) = link.split_once("/#").unwrap();
    assert_eq!(base, format!("http://{}", server.address));
    server.post("/console/sign-in", &json!({ "code": code })).send().await.expect(200);
}

// CN5: the audit log tells who approved.
#[tokio::test]
async fn a_browser_approves_in_the_name_of_the_person_whose_token_made_its_link() {
    let folder = tempfile::tempdir().unwrap();
    let log = AuditLog::open(folder.path().join("audit.jsonl"), Redactor::default()).unwrap();
    let (signals, access) = (ToolSignals::default(), ConsoleAccess::default());
    let http = HttpOptions::new(CLIENT.parse().unwrap());
    let http = http.with_principal_scopes(
        ADA.parse().unwrap(),
        Principal::new("ada"),
        TokenScope::Administration,
    );
    let session = Session::default().with_service(signals.clone());
    let options = RestOptions::new(http).with_session(session).with_console(access.clone());
    let pipeline = Pipeline::new(registry()).audit(log);
    let server = TestServer::start_options(pipeline, options, signals).await;

    let made = server.post("/v1/console/links", &json!({})).token(ADA).send().await.expect(200);
    let link = made.json()["link"].as_str().unwrap().to_owned();
    let ada = sign_in_with(&server, link.split_once('#').unwrap().1).await;
    let session = ada.ask(server.get("/console/session")).send().await.expect(200).json();
    assert_eq!(session["user"], "ada");
    // A link that ada makes at the console is hers as well.
    let made = ada.ask(server.post("/v1/console/links", &json!({}))).send().await.expect(200);
    let link = made.json()["link"].as_str().unwrap().to_owned();
    let second = sign_in_with(&server, link.split_once('#').unwrap().1).await;
    let owner = sign_in(&server, &access).await;
    for (browser, who) in [(ada, "ada"), (second, "ada"), (owner, "console")] {
        let mut events = browser.ask(server.get("/v1/events")).events().await;
        let call = server.call("write_word", &json!({ "word": who }));
        let (called, ()) = tokio::join!(call.send(), async {
            let request = events.next_named("permission_asked").await.data;
            let answer = json!({ "reply": "once", "fingerprint": request["fingerprint"] });
            let path = format!("/v1/approvals/{}", request["id"].as_str().unwrap());
            browser.ask(server.post(path, &answer)).send().await.expect(204);
        });
        called.expect(200);
        let page = browser.ask(server.get("/v1/audit?what=decided&limit=1")).send().await;
        assert_eq!(page.expect(200).json()["records"][0]["answer"]["who"], who);
    }
}

// A proxy that ends TLS passes the origin of the page on.
#[tokio::test]
async fn behind_tls_links_are_https_and_the_cookie_is_secure() {
    let (server, access) = start_with_console(|pipeline| pipeline).await;
    let origin = format!("https://{}", server.address);
    let browser = sign_in(&server, &access).await;
    let more = browser.ask(server.post("/v1/console/links", &json!({})));
    let made = more.header("origin", &*origin).send().await.expect(200);
    let link = made.json()["link"].as_str().unwrap().to_owned();
    let (base, code) = link.split_once("/#").unwrap();
    assert_eq!(base, origin);
    let enter = server.post("/console/sign-in", &json!({ "code": code })).without("authorization");
    let signed_in = enter.header("origin", &*origin).send().await.expect(200);
    assert!(signed_in.header("set-cookie").ends_with("; SameSite=Strict; Secure"));
}

// Without a browser a call is denied at once; with one it waits.
#[tokio::test]
async fn a_call_waits_for_a_signed_in_browser() {
    let (server, access) = start_with_console(|pipeline| pipeline).await;
    let write = || server.call("write_word", &json!({ "word": "w" }));
    write().send().await.expect(403);
    let browser = sign_in(&server, &access).await;
    let mut events = browser.ask(server.get("/v1/events")).events().await;
    let (called, ()) = tokio::join!(write().send(), async {
        let request = events.next_named("permission_asked").await.data;
        let answer = json!({ "reply": "once", "fingerprint": request["fingerprint"] });
        let path = format!("/v1/approvals/{}", request["id"].as_str().unwrap());
        browser.ask(server.post(path, &answer)).send().await.expect(204);
    });
    called.expect(200);
}

// F25: two browsers see a question, and the first answer counts.
#[tokio::test]
async fn a_question_is_answered_in_the_browser_once() {
    let (server, access) = start_with_console(|pipeline| pipeline).await;
    let asked = || server.call("ask_name", &json!({}));
    let problem = asked().send().await.expect(503).json();
    assert!(problem["error"].as_str().unwrap().contains("no user is at the console"), "{problem}");
    let (ada, bob) = (sign_in(&server, &access).await, sign_in(&server, &access).await);
    let mut events = ada.ask(server.get("/v1/events")).events().await;
    let (called, ()) = tokio::join!(asked().send(), async {
        events.next_named("questions_changed").await;
        let list = bob.ask(server.get("/v1/questions")).send().await.expect(200).json();
        let question = &list["questions"][0];
        assert_eq!((&question["mode"], &question["message"]), (&json!("form"), &json!("Who?")));
        assert!(question["schema"]["properties"]["name"].is_object(), "{question}");
        let path = format!("/v1/questions/{}", question["id"].as_str().unwrap());
        let answer = json!({ "action": "accept", "content": { "name": "ada" } });
        let wrong = json!({ "action": "decline", "content": {} });
        ada.ask(server.post(&path, &wrong)).send().await.expect(400);
        server.post(&path, &answer).send().await.expect(403);
        ada.ask(server.post(&path, &answer)).send().await.expect(204);
        bob.ask(server.post(&path, &answer)).send().await.expect(404);
    });
    assert_eq!(called.expect(200).json()["text"], "hello ada");
    // A question ends with its call.
    let cancelled = async {
        events.next_named("questions_changed").await;
    };
    tokio::select! {
        _ = asked().send() => unreachable!("nothing is answered"),
        () = cancelled => {}
    }
    loop {
        let list = ada.ask(server.get("/v1/questions")).send().await.expect(200).json();
        if list["questions"] == json!([]) {
            break;
        }
        events.next_named("questions_changed").await;
    }
}

#[tokio::test]
async fn only_administrators_read_the_policy() {
    let server = TestServer::start_with_approvals().await;
    for path in
        ["/v1/rules", "/v1/grants", "/v1/servers", "/v1/workers", "/v1/audit", "/v1/questions"]
    {
        server.get(path).send().await.expect(403);
        server.get(path).token(PERSON).send().await.expect(403);
    }
    let servers = server.get("/v1/servers").token(ADMIN).send().await.expect(200).json();
    assert_eq!(servers, json!({ "servers": [] }));
    server.get("/v1/audit").token(ADMIN).send().await.expect(404);
    server.delete("/v1/grants/none").token(ADMIN).send().await.expect(404);
    server.post("/v1/servers/x/connection", &json!({})).token(ADMIN).send().await.expect(404);
}

#[tokio::test]
async fn rules_are_listed_with_the_mode() {
    let deny = Rule::new(Action::Deny, "write_word", "*").locked();
    let server = TestServer::start_with(|pipeline| pipeline.rules([deny]), with_people).await;
    let policy = server.get("/v1/rules").token(ADMIN).send().await.expect(200).json();
    assert_eq!(policy["mode"], "auto");
    let rule = &policy["rules"][0];
    assert_eq!(
        (&rule["permission"], &rule["action"], &rule["locked"]),
        (&json!("write_word"), &json!("deny"), &json!(true))
    );
}

/// A plugin with one rule.
struct CarefulPlugin;

impl Plugin for CarefulPlugin {
    fn id(&self) -> &str {
        "careful"
    }

    fn register(&self, registrar: &mut PluginRegistrar) -> Result<(), ToolError> {
        registrar.add_rules(["deny write_word".parse().map_err(ToolError::config)?])
    }
}

#[tokio::test]
async fn rules_of_plugins_are_listed_with_their_plugin() {
    let load = |pipeline: Pipeline| {
        pipeline.plugins().load(&CarefulPlugin).unwrap();
        pipeline
    };
    let server = TestServer::start_with(load, with_people).await;
    let policy = server.get("/v1/rules").token(ADMIN).send().await.expect(200).json();
    let rule = policy["rules"].as_array().unwrap().last().unwrap();
    assert_eq!((&rule["permission"], &rule["action"]), (&json!("write_word"), &json!("deny")));
    assert!(rule["origin"].as_str().unwrap().contains("careful"), "{rule}");
}

// F76: a grant is listed, and the next call is asked about after it was revoked.
#[tokio::test]
async fn a_session_grant_is_listed_and_revoked() {
    let server = TestServer::start_with_approvals().await;
    let session = server.new_session(CLIENT).await;
    let write = || server.call("write_word", &json!({ "word": "w" })).session(&session);
    let mut events = server.get("/v1/events").token(PERSON).events().await;
    let (called, ()) = tokio::join!(write().send(), async {
        let request = events.next_named("permission_asked").await.data;
        let answer = json!({
            "reply": "session",
            "patterns": request["suggestions"],
            "fingerprint": request["fingerprint"],
        });
        let path = format!("/v1/approvals/{}", request["id"].as_str().unwrap());
        server.post(path, &answer).token(PERSON).send().await.expect(204);
    });
    called.expect(200);
    let list = || server.get("/v1/grants").token(ADMIN);
    let grants = list().send().await.expect(200).json();
    let grant = &grants["grants"][0];
    assert_eq!(
        (&grant["tool"], &grant["scope"], &grant["session"]),
        (&json!("write_word"), &json!("session"), &json!(session))
    );
    let path = format!("/v1/grants/{}", grant["id"].as_str().unwrap());
    server.delete(&path).send().await.expect(403);
    server.delete(&path).token(ADMIN).send().await.expect(204);
    server.delete(&path).token(ADMIN).send().await.expect(404);
    assert_eq!(list().send().await.expect(200).json(), json!({ "grants": [] }));
    tokio::select! {
        _ = write().send() => unreachable!("it waits for an answer"),
        _ = events.next_named("permission_asked") => {}
    }
}

#[tokio::test]
async fn the_audit_log_is_filtered() {
    let folder = tempfile::tempdir().unwrap();
    let log = AuditLog::open(folder.path().join("audit.jsonl"), Redactor::default()).unwrap();
    let server = TestServer::start_with(|pipeline| pipeline.audit(log), with_people).await;
    server.call("add", &json!({ "a": 1 })).send().await.expect(200);
    server.call("fail_as", &json!({ "kind": "conflict" })).send().await.expect(409);
    let records = async |query: &str| -> Vec<Value> {
        let page = server.get(format!("/v1/audit{query}")).token(ADMIN).send().await.expect(200);
        page.json()["records"].as_array().unwrap().clone()
    };
    assert_eq!(records("").await.len(), 4);
    let ran = records("?what=ran").await;
    assert_eq!((&ran[0]["tool"], &ran[1]["tool"]), (&json!("fail_as"), &json!("add")));
    assert_eq!(records("?tool=ad&decision=allow").await.len(), 1);
    let call = ran[1]["call"].as_str().unwrap();
    assert_eq!(records(&format!("?id={call}")).await.len(), 2);
    assert_eq!(records("?limit=1").await.len(), 1);
    for query in ["?limit=0", "?limit=1001", "?other=1"] {
        server.get(format!("/v1/audit{query}")).token(ADMIN).send().await.expect(400);
    }
}

// The results of the calls of other clients can be read in the console.
#[tokio::test]
async fn the_console_sees_and_cancels_calls_of_others() {
    let (server, access) = start_with_console(|pipeline| pipeline).await;
    let browser = sign_in(&server, &access).await;
    let session = server.new_session(CLIENT).await;
    let called = server.call("add", &json!({ "a": 1 })).session(&session).send().await.expect(200);
    let path = format!("/v1/calls/{}", called.header("call-id"));
    server.get(&path).send().await.expect(404);
    let record = browser.ask(server.get(&path)).send().await.expect(200).json();
    assert_eq!(record["response"]["structured"]["sum"], 2);

    // A call without a session is no more than its client's, but for administrators.
    let called = server.call("add", &json!({ "a": 2 })).send().await.expect(200);
    let path = format!("/v1/calls/{}", called.header("call-id"));
    server.get(&path).send().await.expect(404);
    let record = browser.ask(server.get(&path)).send().await.expect(200).json();
    assert_eq!((&record["status"], &record["response"]), (&json!("completed"), &called.json()));
    browser.ask(server.delete(&path)).send().await.expect(409);

    let wait = server.call("wait_forever", &json!({})).session(&session);
    let started = wait.header("prefer", "respond-async").send().await.expect(202);
    server.signals.started.notified().await;
    let path = format!("/v1/calls/{}", started.header("call-id"));
    browser.ask(server.delete(&path)).send().await.expect(202);
    server.signals.ended.notified().await;
}

// An MCP client that cannot ask its user waits for the console.
#[tokio::test]
async fn a_call_over_mcp_is_approved_in_the_browser() {
    let (server, access) = start_with_console(|pipeline| pipeline).await;
    let send = |body: Value| {
        let request = server.post("/mcp", &body);
        request.header("accept", "application/json, text/event-stream")
    };
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
    } });
    let begun = send(hello).send().await.expect(200);
    let session = begun.header("mcp-session-id").to_owned();
    let call = || {
        let params = json!({ "name": "write_word", "arguments": { "word": "w" } });
        let body = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
        send(body).header("mcp-session-id", &*session)
    };
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    send(ready).header("mcp-session-id", &*session).send().await.expect(202);
    let denied = call().send().await.expect(200);
    assert!(denied.body.contains("allow write_word"), "{}", denied.body);

    let browser = sign_in(&server, &access).await;
    let mut events = browser.ask(server.get("/v1/events")).events().await;
    let (called, ()) = tokio::join!(call().send(), async {
        let request = events.next_named("permission_asked").await.data;
        let answer = json!({ "reply": "once", "fingerprint": request["fingerprint"] });
        let path = format!("/v1/approvals/{}", request["id"].as_str().unwrap());
        browser.ask(server.post(path, &answer)).send().await.expect(204);
    });
    assert!(called.expect(200).body.contains("w #1"));
}
