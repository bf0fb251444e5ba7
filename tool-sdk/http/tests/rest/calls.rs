//! Listing and calling tools.

use serde_json::json;

use crate::server::TestServer;

// F11, F182
#[tokio::test]
async fn lists_complete_definitions() {
    let server = TestServer::start().await;
    let list = server.get("/v1/tools").send().await.expect(200);
    assert_eq!(list.body, server.get("/v1/tools").send().await.body, "byte by byte");
    let list = list.json();
    let add = &list["tools"][0];
    assert_eq!((&add["name"], &add["category"]), (&json!("add"), &json!("math")));
    assert_eq!(add["source"], json!({ "type": "native" }));
    assert_eq!(add["parameters"]["properties"]["b"]["maximum"], 100);
    let one = server.get("/v1/tools/add").send().await.expect(200).json();
    assert_eq!(one, *add);
    let unknown = server.get("/v1/tools/ad").send().await.expect(404).json();
    assert_eq!(unknown["suggestion"], "did you mean `add`?");
}

// A handler, an extractor, a route and the checks before them refuse requests in the same form.
#[tokio::test]
async fn every_refusal_is_a_problem_document() {
    let server = TestServer::start().await;
    let session = server.new_session(crate::server::CLIENT).await;
    let get = |path: &str| server.get(path).session(&session);
    for (request, status, category) in [
        (get("/v1/tools").without("authorization"), 401, "unauthorized"),
        (get("/v1/tools").header("host", "evil.example"), 403, "denied"),
        (get("/v1/nothing"), 404, "not_found"),
        (server.request("PUT", "/v1/tools"), 405, "invalid_args"),
        (get("/v1/calls?limit=x"), 400, "invalid_args"),
        (get("/v1/calls?limit=0"), 400, "invalid_args"),
        (get("/v1/calls?limit=1001"), 400, "invalid_args"),
        (get("/v1/calls?limits=1"), 400, "invalid_args"),
        (get("/v1/tools/%ff"), 400, "invalid_args"),
        // serde would read the members of a struct from an array.
        (server.request("POST", "/v1/sessions").text("[null, null]"), 400, "invalid_args"),
        (server.request("POST", "/v1/batch").text("[[]]"), 400, "invalid_args"),
    ] {
        let response = request.send().await.expect(status);
        assert_eq!(response.header("content-type"), "application/problem+json");
        let problem = response.json();
        assert_eq!((&problem["category"], &problem["status"]), (&json!(category), &json!(status)));
        assert!(!problem["detail"].as_str().unwrap().is_empty(), "{problem}");
    }
    let refused = server.get("/v1/tools").without("authorization").send().await;
    assert_eq!(refused.header("www-authenticate"), "Bearer");
    assert!(server.request("PUT", "/v1/tools").send().await.header("allow").contains("GET"));
}

// F133, F183
#[tokio::test]
async fn returns_the_result_as_typed_json() {
    let server = TestServer::start().await;
    let sum = server.call("add", &json!({ "a": 2, "b": 3 })).send().await.expect(200);
    assert_eq!(sum.header("content-type"), "application/json");
    assert_eq!(sum.json()["structured"], json!({ "sum": 5 }));
    assert_eq!(sum.json()["call"], sum.header("call-id"));
    // `null` for an optional parameter is absent, and noted.
    let sum = server.call("add", &json!({ "a": 2, "b": null })).send().await.expect(200).json();
    assert_eq!((&sum["structured"]["sum"], &sum["notes"][0]["argument"]), (&json!(3), &json!("b")));
    // A body is not needed for a tool without parameters.
    let dot = server.request("POST", "/v1/tools/draw_dot").send().await.expect(200).json();
    assert_eq!(
        dot["attachments"],
        json!([{ "mime": "image/png", "name": "dot", "base64": "AQID" }])
    );
}

// F136
#[tokio::test]
async fn reads_arguments_from_the_query_by_their_types() {
    let server = TestServer::start().await;
    let get = async |path: &str| server.get(format!("/v1/tools/{path}")).send().await;
    assert_eq!(get("add/call?a=2&b=3").await.expect(200).json()["structured"]["sum"], 5);
    let joined = get("join_words/call?words=1&words=b%20c&loud=true").await.expect(200);
    assert_eq!(joined.json()["text"], "1 B C");
    let wrong = get("add/call?a=x").await.expect(400).json();
    assert_eq!(wrong["faults"][0]["pointer"], "/a", "{wrong}");
    assert_eq!(get("add/call?a=1&a=2").await.expect(400).json()["category"], "invalid_args");
    assert_eq!(get("add/call?c=1").await.expect(400).json()["faults"][0]["kind"], "unknown");
    let write = get("write_word/call?word=x").await.expect(405);
    assert_eq!(write.header("allow"), "POST");
    assert!(write.json()["suggestion"].as_str().unwrap().contains("POST /v1/tools/write_word"));
}

// F133, F183
#[tokio::test]
async fn reports_every_kind_of_error_as_a_problem_document() {
    let server = TestServer::start().await;
    for (kind, status) in [
        ("invalid_args", 400),
        ("not_found", 404),
        ("denied", 403),
        ("unauthorized", 401),
        ("timeout", 504),
        ("aborted", 499),
        ("conflict", 409),
        ("unavailable", 503),
        ("config", 500),
        ("failed", 500),
        ("internal", 500),
    ] {
        let problem = server.call("fail_as", &json!({ "kind": kind })).send().await.expect(status);
        assert_eq!(problem.header("content-type"), "application/problem+json");
        let problem = problem.json();
        assert_eq!(
            (&problem["category"], &problem["status"], &problem["error"], &problem["suggestion"]),
            (&json!(kind), &json!(status), &json!("it went wrong"), &json!("try again"))
        );
        assert_eq!(
            (&problem["tool"], &problem["type"]),
            (&json!("fail_as"), &json!(format!("urn:tool-sdk:problem:{kind}")),)
        );
    }
    let faults = server.call("add", &json!({ "b": 900, "c": 1 })).send().await.expect(400).json();
    let faults: Vec<_> =
        faults["faults"].as_array().unwrap().iter().map(|it| &it["kind"]).collect();
    assert_eq!(faults.len(), 3, "{faults:?}");
}

#[tokio::test]
async fn refuses_what_is_no_json() {
    let server = TestServer::start().await;
    let post = || server.request("POST", "/v1/tools/add");
    post().text("{").send().await.expect(400);
    post().text("[]").send().await.expect(400);
    post().text(r#"{"a":1,"a":2}"#).send().await.expect(400);
    post().text(format!("{}1{}", r#"{"a":"#.repeat(70), "}".repeat(70))).send().await.expect(400);
    let form = post().text("a=1").header("content-type", "application/x-www-form-urlencoded");
    form.send().await.expect(415);
    server.get("/nothing").send().await.expect(404);
    server.request("PUT", "/v1/tools/add").send().await.expect(405);
}

// F134, F183: the ids of the request reach the tool.
#[tokio::test]
async fn passes_ids_of_the_request_on() {
    let server = TestServer::start_with(
        |pipeline| pipeline.rules(["allow write_word".parse().unwrap()]),
        |options| options,
    )
    .await;
    let call = server.call("write_word", &json!({ "word": "w" })).header("x-request-id", "r-7");
    let called = call.header("project-id", "p-1").send().await.expect(200);
    assert_eq!(called.header("x-request-id"), "r-7");
    assert_eq!(called.json()["text"], "w #1 by rest in r-7 of p-1");
    let other = server.call("add", &json!({ "a": 1 })).send().await;
    assert!(other.header("x-request-id").starts_with("req-"));
}

#[tokio::test]
async fn a_client_that_disconnects_cancels_its_call() {
    let server = TestServer::start().await;
    let signals = server.signals.clone();
    let request = server.call("wait_forever", &json!({}));
    tokio::select! {
        _ = request.send() => unreachable!("it never ends"),
        () = signals.started.notified() => {}
    }
    signals.ended.notified().await;
}
