//! Tools that servers run as tasks, of both protocol generations.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio_util::sync::CancellationToken;
use tool_sdk_core::{ErrorKind, EventKind, TaskSupport};

use super::server_requests::{ScriptedUser, form};
use super::*;

/// A list with one tool that a client must run as a task.
fn list(is_modern: bool) -> Value {
    let mut tool = tool("echo", "Says it.");
    if is_modern {
        return json!({
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [tool],
        });
    }
    tool["execution"] = json!({ "taskSupport": "required" });
    json!({ "tools": [tool] })
}

/// The state of the task of these servers.
fn state(status: &str, more: Value) -> Value {
    let mut state = json!({
        "taskId": "t1", "status": status, "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": 60000, "ttl": 60000,
        "pollInterval": 100, "pollIntervalMs": 100, "resultType": "complete",
    });
    state.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    state
}

fn done() -> Value {
    json!({ "content": [{ "type": "text", "text": "done" }] })
}

/// A server whose calls are tasks; `answer` answers the other requests.
fn task_server(
    is_modern: bool,
    answer: impl Fn(&str, &Value) -> Vec<ServerAct> + Send + Sync + 'static,
) -> Arc<ScriptedServer> {
    let act = move |message: &Value| match message["method"].as_str() {
        Some("tools/list") => vec![ServerAct::Answer(list(is_modern))],
        Some("tools/call") if is_modern => {
            let extensions = "/params/_meta/io.modelcontextprotocol~1clientCapabilities/extensions";
            assert!(
                message.pointer(extensions).unwrap()["io.modelcontextprotocol/tasks"].is_object()
            );
            vec![ServerAct::Answer(state("working", json!({ "resultType": "task" })))]
        }
        Some("tools/call") => {
            assert!(message["params"]["task"]["ttl"].is_u64(), "{message}");
            vec![ServerAct::Answer(json!({ "task": state("working", json!({})) }))]
        }
        Some(method) if method.starts_with("tasks/") => answer(method, message),
        _ => Vec::new(),
    };
    match is_modern {
        true => ScriptedServer::modern(act),
        false => ScriptedServer::new(act),
    }
}

fn host(server: Arc<ScriptedServer>) -> TestHost {
    let rules = ["mcp", "mcp_definition"].map(|it| Rule::parse(Action::Allow, it).unwrap());
    TestHost::with_server(Pipeline::new(Registry::default()).rules(rules), server)
}

/// Answers `tasks/get` with the states in turn, the last one for ever.
fn states(all: Vec<Value>) -> impl Fn(&str) -> Option<ServerAct> + Send + Sync {
    let next = AtomicUsize::new(0);
    move |method| {
        let at = (method == "tasks/get").then(|| next.fetch_add(1, Ordering::Relaxed))?;
        Some(ServerAct::Answer(all[at.min(all.len() - 1)].clone()))
    }
}

#[tokio::test]
async fn a_required_task_is_followed_to_its_result() {
    for is_modern in [false, true] {
        let end = if is_modern { json!({ "result": done() }) } else { json!({}) };
        let told = state("working", json!({ "statusMessage": "half way" }));
        let states = states(vec![told.clone(), told, state("completed", end)]);
        let server = task_server(is_modern, move |method, _| match method {
            "tasks/result" => vec![ServerAct::Answer(done())],
            method => states(method).into_iter().collect(),
        });
        let host = host(server);
        host.connect().await;
        let view = host.pipeline.toolset().view();
        let support = view.definition("mcp__s__echo").unwrap().task_support;
        let expected = if is_modern { TaskSupport::Forbidden } else { TaskSupport::Optional };
        assert_eq!(support, expected);
        let mut events = host.pipeline.subscribe();
        let outcome = host.call("echo", "{}").await;
        assert_eq!(outcome.text(), "done", "{is_modern}: {:?}", outcome.result);
        let mut told = Vec::new();
        while let Some(event) = events.recv().await {
            match event.kind {
                EventKind::Progress { message, .. } => told.push(message),
                EventKind::Completed { .. } => break,
                _ => {}
            }
        }
        assert_eq!(told, ["half way"]);
        assert_eq!(host.server.heard("tasks/get").len(), 3);
        assert_eq!(host.server.heard("tools/call").len(), 1, "nothing is sent twice");
        assert!(host.server.heard("tasks/cancel").is_empty());
    }
}

#[tokio::test]
async fn progress_of_the_call_is_that_of_its_task() {
    let step = json!({
        "method": "notifications/progress",
        "params": { "progressToken": "TOKEN", "progress": 7, "message": "on its way" },
    });
    let states = states(vec![state("working", json!({})), state("completed", json!({}))]);
    let host = host(ScriptedServer::new(move |message| match message["method"].as_str() {
        Some("tools/list") => vec![ServerAct::Answer(list(false))],
        Some("tools/call") => {
            let task = json!({ "task": state("working", json!({})) });
            vec![ServerAct::Answer(task), ServerAct::Say(step.clone())]
        }
        Some("tasks/result") => vec![ServerAct::Answer(done())],
        Some(method) => states(method).into_iter().collect(),
        None => Vec::new(),
    }));
    host.connect().await;
    let mut events = host.pipeline.subscribe();
    host.call("echo", "{}").await.result.unwrap();
    let mut steps = Vec::new();
    while let Some(event) = events.recv().await {
        match event.kind {
            EventKind::Progress { done, message, .. } => steps.push((done, message)),
            EventKind::Completed { .. } => break,
            _ => {}
        }
    }
    assert_eq!(steps, [(7, "on its way".to_owned())]);
}

#[tokio::test]
async fn a_failed_task_is_a_failed_call() {
    let error = json!({ "error": { "code": -32603, "message": "the rate limit was exceeded" } });
    let states = states(vec![state("failed", error)]);
    let modern = task_server(true, move |method, _| states(method).into_iter().collect());
    let legacy = task_server(false, |method, _| match method {
        "tasks/get" => vec![ServerAct::Answer(state("failed", json!({})))],
        _ => vec![ServerAct::Refuse(-32603, "the rate limit was exceeded")],
    });
    for server in [modern, legacy] {
        let host = host(server);
        host.connect().await;
        let error = host.call("echo", "{}").await.result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Failed);
        assert!(error.to_string().contains("the rate limit was exceeded"), "{error}");
    }
}

#[tokio::test]
async fn an_aborted_call_cancels_its_task() {
    for is_modern in [false, true] {
        let server = task_server(is_modern, |method, _| match method {
            "tasks/get" => vec![ServerAct::Answer(state("working", json!({})))],
            _ => vec![ServerAct::Answer(json!({ "resultType": "complete" }))],
        });
        let host = host(server);
        host.connect().await;
        let stop = CancellationToken::new();
        let call = Call::new("mcp__s__echo", "{}").cancelled_by(stop.clone());
        let session = Session::default();
        let (outcome, ()) = tokio::join!(host.pipeline.call(&session, call), async {
            host.server.until_heard("tasks/get").await;
            stop.cancel();
        });
        assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Aborted);
        host.server.until_heard("tasks/cancel").await;
        assert_eq!(host.server.heard("tasks/cancel")[0]["params"]["taskId"], "t1");
    }
}

// MC7
#[tokio::test]
async fn the_user_answers_the_questions_of_a_task_once() {
    let asked = json!({ "inputRequests": { "1.shelf": form() } });
    let end = json!({ "result": done() });
    let states = states(vec![
        state("input_required", asked.clone()),
        state("input_required", asked),
        state("completed", end),
    ]);
    let server = task_server(true, move |method, message| match method {
        "tasks/update" => {
            let answer = &message["params"]["inputResponses"]["1.shelf"];
            assert_eq!(answer["content"]["shelf"], "B", "{message}");
            vec![ServerAct::Answer(json!({ "resultType": "complete" }))]
        }
        method => states(method).into_iter().collect(),
    });
    let user = ScriptedUser::answering(json!({ "action": "accept", "content": { "shelf": "B" } }));
    let host = host(server).answering(ClientFeatures::none().elicitation());
    host.connect().await;
    let session = host.session.clone().with_inquiry_handler(Arc::clone(&user) as _);
    let outcome = host.pipeline.call(&session, Call::new("mcp__s__echo", "{}")).await;
    assert_eq!(outcome.text(), "done", "{:?}", outcome.result);
    assert_eq!(host.server.heard("tasks/update").len(), 1);
    assert_eq!(user.shown().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_result_is_fetched_after_the_connection_was_lost() {
    for is_modern in [false, true] {
        let asked = AtomicUsize::new(0);
        let end = if is_modern { json!({ "result": done() }) } else { json!({}) };
        let server = task_server(is_modern, move |method, _| match method {
            "tasks/get" if asked.fetch_add(1, Ordering::Relaxed) == 0 => vec![ServerAct::Leave],
            "tasks/get" => vec![ServerAct::Answer(state("completed", end.clone()))],
            _ => vec![ServerAct::Answer(done())],
        });
        let host = host(server);
        host.connect().await;
        let outcome = host.call("echo", "{}").await;
        assert_eq!(outcome.text(), "done", "{is_modern}: {:?}", outcome.result);
        assert_eq!(host.server.begun(), 2);
        assert_eq!(host.server.heard("tools/call").len(), 1, "nothing is sent twice");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_lost_with_its_server_is_a_lost_call() {
    let asked = AtomicUsize::new(0);
    let server = task_server(true, move |method, _| match method {
        "tasks/get" if asked.fetch_add(1, Ordering::Relaxed) == 0 => vec![ServerAct::Leave],
        _ => vec![ServerAct::Refuse(-32602, "no such task")],
    });
    let host = host(server);
    host.connect().await;
    let error = host.call("echo", "{}").await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("it may or may not have run"), "{error}");
}
