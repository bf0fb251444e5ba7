//! Calls that run as tasks, in both eras, over streams and over sockets.

use std::time::Duration;

use tokio::time::timeout;
use tool_sdk_core::{Action, Call, EventKind, Inquiry, Rule, TaskSupport};
use tool_sdk_mcp::{HttpEndpoint, ServerConfig, ServerManager};

use super::http::{ADA, BOB, Served, next, status};
use super::*;

/// Lets the tool `job` end.
#[derive(Default)]
struct TaskGate(Notify);

/// A tool for every way in which a task can go.
fn task_server(gate: &Arc<TaskGate>) -> Server {
    let with = |name, risk, support| definition(name, risk).task_support(support);
    let gate = Arc::clone(gate);
    let job = with("job", RiskClass::Read, TaskSupport::Required);
    let job = DynamicTool::new(job, move |_: Value, cx: Context| {
        let gate = Arc::clone(&gate);
        async move {
            cx.progress(1, Some(2), "half way");
            gate.0.notified().await;
            format!("done for {}", cx.session().user().unwrap_or("anyone"))
        }
    });
    let asks = with("asks", RiskClass::Read, TaskSupport::Optional);
    let asks = DynamicTool::new(asks, |_: Value, cx: Context| async move {
        let form = |field: &str| {
            let schema = json!({ "type": "object", "properties": { field: { "type": "string" } } });
            Inquiry::form(format!("Which {field}?"), schema)
        };
        let answers = cx.inquire([("shelf", form("shelf")), ("row", form("row"))]).await?;
        Ok::<_, ToolError>(json!(answers).to_string())
    });
    let write = with("write", RiskClass::Write, TaskSupport::Optional);
    let write = DynamicTool::new(write, |_: Value, _: Context| async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        "written"
    });
    let fail = with("fail", RiskClass::Read, TaskSupport::Optional);
    let fail = DynamicTool::new(fail, |_: Value, _: Context| async {
        Err::<Output, _>(ToolError::conflict("it changed"))
    });
    let quick =
        DynamicTool::new(definition("quick", RiskClass::Read), |_: Value, _: Context| async {
            "at once"
        });
    let registry = Registry::builder().add(job).add(asks).add(write).add(fail).add(quick);
    Server::new(Pipeline::new(registry.build().unwrap()), Session::default())
}

/// What a modern client declares that supports tasks and forms.
fn modern_can() -> Value {
    json!({ "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } })
}

/// Starts a task of a client of 2025-11-25 and returns its id.
async fn start(peer: &mut Peer, tool: &str) -> String {
    let params = json!({ "name": tool, "arguments": {}, "task": { "ttl": 1000 } });
    let created = peer.request("tools/call", params).await;
    let task = &created["result"]["task"];
    assert_eq!(task["status"], "working", "{created}");
    assert!(task["ttl"].as_u64().unwrap() >= 300_000 && task["pollInterval"].is_u64(), "{created}");
    task["taskId"].as_str().unwrap().to_owned()
}

/// Asks for a task until it has this status.
async fn reach(peer: &mut Peer, id: &str, status: &str) -> Value {
    let reached = async {
        loop {
            let task = peer.request("tasks/get", json!({ "taskId": id })).await["result"].take();
            if task["status"] == status {
                break task;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(60), reached).await.expect("the status is reached")
}

#[tokio::test]
async fn each_protocol_announces_tasks_in_its_way() {
    let server = task_server(&Arc::default());
    let mut legacy = Peer::uninitialized(&server);
    let hello = |version: &str| {
        json!({
            "protocolVersion": version, "capabilities": {},
            "clientInfo": { "name": "by-hand", "version": "1" },
        })
    };
    let hello_said = legacy.request("initialize", hello("2025-11-25")).await;
    let capabilities = &hello_said["result"]["capabilities"];
    assert!(capabilities["tasks"]["requests"]["tools"]["call"].is_object(), "{hello_said}");
    assert!(capabilities["extensions"].is_null(), "{hello_said}");
    let listed = legacy.request("tools/list", json!({})).await;
    let support = |listed: &Value, name: &str| {
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools.iter().find(|tool| tool["name"] == name).unwrap()["execution"].clone()
    };
    assert_eq!(support(&listed, "job")["taskSupport"], "required");
    assert_eq!(support(&listed, "asks")["taskSupport"], "optional");
    assert!(support(&listed, "quick").is_null());

    let mut older = Peer::uninitialized(&server);
    let hello_said = older.request("initialize", hello("2025-06-18")).await;
    assert!(hello_said["result"]["capabilities"]["tasks"].is_null(), "{hello_said}");
    let mut modern = Peer::modern(&server, modern_can());
    let found = modern.request("server/discover", json!({})).await;
    let capabilities = &found["result"]["capabilities"];
    assert!(capabilities["extensions"]["io.modelcontextprotocol/tasks"].is_object(), "{found}");
    assert!(capabilities["tasks"].is_null(), "{found}");
    let listed = modern.request("tools/list", json!({})).await;
    assert!(support(&listed, "job").is_null(), "{listed}");
    let mut without = Peer::modern(&super::server(), json!({}));
    let found = without.request("server/discover", json!({})).await;
    assert!(found["result"]["capabilities"]["extensions"].is_null(), "{found}");
}

#[tokio::test]
async fn a_client_of_2025_collects_the_result_later() {
    let gate = Arc::default();
    let mut peer = Peer::legacy(&task_server(&gate), json!({})).await;
    let params = json!({
        "name": "job", "arguments": {}, "task": {}, "_meta": { "progressToken": "p" },
    });
    let created = peer.request("tools/call", params).await;
    let id = created["result"]["task"]["taskId"].as_str().unwrap().to_owned();
    let step = peer.receive_method("notifications/progress").await;
    assert_eq!(step["params"]["progressToken"], "p");
    let related = "io.modelcontextprotocol/related-task";
    assert_eq!(step["params"]["_meta"][related]["taskId"], *id, "{step}");
    let listed = peer.request("tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"][0]["taskId"], *id, "{listed}");
    assert_eq!(listed["result"]["tasks"][0]["statusMessage"], "half way", "{listed}");
    let waiting = peer.send("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(reach(&mut peer, &id, "working").await["taskId"], *id);
    gate.0.notify_one();
    let result = peer.receive_response(waiting).await;
    assert_eq!(text(&result["result"]), "done for anyone");
    assert_eq!(result["result"]["_meta"][related]["taskId"], *id);
    assert!(result["result"]["resultType"].is_null(), "{result}");
    let changed = peer.receive_method("notifications/tasks/status").await;
    assert_eq!(changed["params"]["status"], "completed", "{changed}");
    let again = peer.request("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(text(&again["result"]), "done for anyone");
    let late = peer.request("tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(late["error"]["code"], -32602, "{late}");
}

#[tokio::test]
async fn a_tool_says_whether_its_call_may_or_must_be_a_task() {
    let server = task_server(&Arc::default());
    let mut peer = Peer::legacy(&server, json!({})).await;
    let task = json!({ "name": "quick", "arguments": {}, "task": {} });
    let refused = peer.request("tools/call", task).await;
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    let refused = peer.request("tools/call", json!({ "name": "job", "arguments": {} })).await;
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    assert_eq!(peer.call("fail", json!({})).await["isError"], true);
    for method in ["tasks/update", "tasks/other"] {
        let unknown = peer.request(method, json!({ "taskId": "x" })).await;
        assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    }
    let unknown = peer.request("tasks/get", json!({ "taskId": "x" })).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");

    let mut older = Peer::legacy_version("2025-06-18", &server, json!({})).await;
    let refused = older.request("tasks/get", json!({ "taskId": "x" })).await;
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    let ignored = json!({ "name": "quick", "arguments": {}, "task": {} });
    assert_eq!(text(&older.request("tools/call", ignored).await["result"]), "at once");
}

// Only later revisions tell a tool that failed from a call that could not be made.
#[tokio::test]
async fn a_failed_call_is_a_failed_task_of_2025() {
    let mut peer = Peer::legacy(&task_server(&Arc::default()), json!({})).await;
    let id = start(&mut peer, "fail").await;
    let task = reach(&mut peer, &id, "failed").await;
    assert!(task["statusMessage"].as_str().unwrap().contains("it changed"), "{task}");
    let result = peer.request("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(result["result"]["isError"], true, "{result}");
}

#[tokio::test]
async fn a_client_of_2025_is_asked_while_it_waits_for_the_result() {
    let mut peer = Peer::legacy(&task_server(&Arc::default()), json!({ "elicitation": {} })).await;
    let id = start(&mut peer, "asks").await;
    reach(&mut peer, &id, "input_required").await;
    assert_eq!(peer.count_received("elicitation/create"), 0, "it is asked by `tasks/result`");
    let waiting = peer.send("tasks/result", json!({ "taskId": id })).await;
    for value in ["A", "2"] {
        let question = peer.receive_method("elicitation/create").await;
        let related = &question["params"]["_meta"]["io.modelcontextprotocol/related-task"];
        assert_eq!(related["taskId"], *id, "{question}");
        let answer = json!({ "action": "accept", "content": { "value": value } });
        peer.reply(&question, answer).await;
    }
    let result = peer.receive_response(waiting).await;
    assert!(text(&result["result"]).contains(r#""value":"2""#), "{result}");

    let id = start(&mut peer, "write").await;
    let waiting = peer.send("tasks/result", json!({ "taskId": id })).await;
    let question = peer.receive_method("elicitation/create").await;
    peer.reply(&question, json!({ "action": "decline" })).await;
    let result = peer.receive_response(waiting).await;
    assert_eq!(result["result"]["isError"], true, "{result}");
}

/// A request by hand over HTTP.
fn request(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params })
}

/// The response in an answer over HTTP.
fn body(answer: String) -> Value {
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let data = body.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
    serde_json::from_str(data.unwrap_or(body)).unwrap()
}

// MS3: those that share a token cannot be told apart, so none of them sees the tasks of all.
#[tokio::test]
async fn a_client_without_a_principal_lists_no_tasks_over_http() {
    let served = Served::start(&task_server(&Arc::default())).await;
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "by-hand", "version": "1" },
    });
    let hello = request("initialize", hello);
    for (token, lists) in [(ADA, true), (&*served.shared_token, false)] {
        let opened = body(served.post(token, None, &hello).await);
        let capability = &opened["result"]["capabilities"]["tasks"];
        assert!(capability["cancel"].is_object(), "{opened}");
        assert_eq!(capability["list"].is_object(), lists, "{opened}");
        let session = served.open(token).await;
        let call = request("tools/call", json!({ "name": "job", "arguments": {}, "task": {} }));
        let created = body(served.post(token, Some(&session), &call).await);
        let own = json!({ "taskId": created["result"]["task"]["taskId"] });
        let listed = request("tasks/list", json!({}));
        let listed = body(served.post(token, Some(&session), &listed).await);
        assert_eq!(listed["result"]["tasks"].is_array(), lists, "{listed}");
        assert_eq!(listed["error"]["code"] == -32601, !lists, "{listed}");
        // Who knows the id of a task may have it.
        let found = body(served.post(token, Some(&session), &request("tasks/get", own)).await);
        assert_eq!(found["result"]["status"], "working", "{found}");
    }
}

// The result comes after the session that made the call has ended; MS3: and to its principal only.
#[tokio::test]
async fn a_task_belongs_to_its_principal_and_outlives_its_session() {
    let gate = Arc::default();
    let served = Served::start(&task_server(&gate)).await;
    let first = served.open(ADA).await;
    let call = request("tools/call", json!({ "name": "job", "arguments": {}, "task": {} }));
    let created = body(served.post(ADA, Some(&first), &call).await);
    let id = created["result"]["task"]["taskId"].as_str().unwrap();
    let ended = format!("Mcp-Session-Id: {first}\r\n");
    assert_eq!(status(&served.ask("DELETE", ADA, &ended, "").await), "204");

    let eve = served.open(BOB).await;
    let own = json!({ "taskId": id });
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let refused = body(served.post(BOB, Some(&eve), &request(method, own.clone())).await);
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let listed = body(served.post(BOB, Some(&eve), &request("tasks/list", json!({}))).await);
    assert_eq!(listed["result"]["tasks"], json!([]));

    let second = served.open(ADA).await;
    let listed = body(served.post(ADA, Some(&second), &request("tasks/list", json!({}))).await);
    assert_eq!(listed["result"]["tasks"][0]["status"], "working", "{listed}");
    let mut stream = served.begin(ADA, &second, &request("tasks/result", own)).await;
    gate.0.notify_one();
    let result = timeout(Duration::from_secs(60), next(&mut stream)).await.unwrap();
    assert_eq!(text(&result["result"]), "done for ada");
}

#[tokio::test]
async fn a_modern_client_gets_a_task_once_the_tool_runs() {
    let gate = Arc::default();
    let mut peer = Peer::modern(&task_server(&gate), modern_can());
    assert_eq!(peer.call("fail", json!({})).await["isError"], true, "it took no time");
    let created = peer.call("job", json!({})).await;
    assert_eq!(created["resultType"], "task", "{created}");
    let id = created["taskId"].as_str().unwrap();
    assert!(created["ttlMs"].is_u64() && created["task"].is_null(), "{created}");
    let task = reach(&mut peer, id, "working").await;
    assert_eq!(
        (&task["statusMessage"], &task["resultType"]),
        (&json!("half way"), &json!("complete"))
    );
    gate.0.notify_one();
    let task = reach(&mut peer, id, "completed").await;
    assert_eq!(text(&task["result"]), "done for anyone");

    let created = peer.call("job", json!({})).await;
    let id = created["taskId"].as_str().unwrap();
    for _ in 0..2 {
        let done = peer.request("tasks/cancel", json!({ "taskId": id })).await;
        assert_eq!(done["result"]["resultType"], "complete", "{done}");
    }
    reach(&mut peer, id, "cancelled").await;
}

// What is asked before the tool runs is asked by the call, and what the tool asks by its task.
#[tokio::test]
async fn a_modern_client_is_asked_before_and_while_the_task_runs() {
    let mut peer = Peer::modern(&task_server(&Arc::default()), modern_can());
    let wanted = peer.call("write", json!({})).await;
    assert_eq!(wanted["resultType"], "input_required", "{wanted}");
    let yes = json!({ "approval": { "action": "accept", "content": { "answer": "once" } } });
    let again = json!({
        "name": "write", "arguments": {}, "requestState": wanted["requestState"],
        "inputResponses": yes,
    });
    let created = peer.request("tools/call", again).await;
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    let id = created["result"]["taskId"].as_str().unwrap().to_owned();
    assert_eq!(text(&reach(&mut peer, &id, "completed").await["result"]), "written");

    let created = peer.call("asks", json!({})).await;
    let id = created["taskId"].as_str().unwrap().to_owned();
    let task = reach(&mut peer, &id, "input_required").await;
    let keys: Vec<String> = task["inputRequests"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["1.row", "1.shelf"]);
    let wrong = json!({ "1.row": { "action": "perhaps" }, "2.row": {}, "row": {} });
    for (answers, open) in [
        (wrong, &["1.row", "1.shelf"][..]),
        (json!({ "1.row": { "action": "accept", "content": { "row": "2" } } }), &["1.shelf"]),
        (json!({ "1.row": { "action": "decline" } }), &["1.shelf"]),
    ] {
        let update = json!({ "taskId": id, "inputResponses": answers });
        let done = peer.request("tasks/update", update).await;
        assert_eq!(done["result"]["resultType"], "complete", "{done}");
        let task = reach(&mut peer, &id, "input_required").await;
        assert!(task["inputRequests"].as_object().unwrap().keys().eq(open), "{task}");
    }
    let last = json!({ "1.shelf": { "action": "decline" } });
    peer.request("tasks/update", json!({ "taskId": id, "inputResponses": last })).await;
    let task = reach(&mut peer, &id, "completed").await;
    let answered = text(&task["result"]);
    assert!(answered.contains("decline") && answered.contains(r#""row":"2""#), "{task}");
}

#[tokio::test]
async fn a_modern_client_without_tasks_waits_for_results() {
    let server = task_server(&Arc::default());
    let mut peer = Peer::modern(&server, json!({ "elicitation": {} }));
    let required = peer.request("tools/call", json!({ "name": "job", "arguments": {} })).await;
    assert_eq!(required["error"]["code"], -32021, "{required}");
    let lacking = &required["error"]["data"]["requiredCapabilities"]["extensions"];
    assert!(lacking["io.modelcontextprotocol/tasks"].is_object(), "{required}");
    assert_eq!(peer.call("asks", json!({})).await["resultType"], "input_required");
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({ "taskId": "x", "inputResponses": {} });
        let refused = peer.request(method, params).await;
        assert_eq!(refused["error"]["code"], -32021, "{refused}");
    }
    for method in ["tasks/list", "tasks/result"] {
        let removed = peer.request(method, json!({ "taskId": "x" })).await;
        assert_eq!(removed["error"]["code"], -32601, "{removed}");
    }
}

#[tokio::test]
async fn a_modern_client_subscribes_to_its_tasks() {
    let gate = Arc::default();
    let server = task_server(&gate);
    let mut peer = Peer::modern(&server, modern_can());
    let created = peer.call("job", json!({})).await;
    let id = created["taskId"].as_str().unwrap();
    let wanted = json!({ "notifications": { "taskIds": [id, "other"] } });
    let subscription = peer.send("subscriptions/listen", wanted.clone()).await;
    let method = "notifications/subscriptions/acknowledged";
    let agreed = peer.receive_method(method).await;
    assert_eq!(agreed["params"]["notifications"]["taskIds"], json!([id]), "{agreed}");
    let told = peer.receive_method("notifications/tasks").await;
    assert_eq!(told["params"]["status"], "working", "{told}");
    gate.0.notify_one();
    let told = peer.receive_method("notifications/tasks").await;
    assert_eq!(text(&told["params"]["result"]), "done for anyone");
    let key = "io.modelcontextprotocol/subscriptionId";
    assert_eq!(told["params"]["_meta"][key], subscription, "{told}");

    let mut without = Peer::modern(&server, json!({}));
    let refused = without.request("subscriptions/listen", wanted).await;
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
}

// Over a socket, with the headers that route requests about tasks.
#[tokio::test]
async fn a_modern_task_over_http_is_collected_by_its_principal_only() {
    let gate = Arc::default();
    let served = Served::start(&task_server(&gate)).await;
    let ask = async |token: &str, method: &str, name: &str, mut params: Value| {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": modern_can(),
            "io.modelcontextprotocol/clientInfo": { "name": "by-hand", "version": "2" },
        });
        let head = format!(
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\nMcp-Name: {name}\r\n"
        );
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let answer = served.ask("POST", token, &head, &message.to_string()).await;
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let data = body.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
        serde_json::from_str::<Value>(data.unwrap_or(body)).unwrap()
    };
    let created = ask(ADA, "tools/call", "job", json!({ "name": "job", "arguments": {} })).await;
    let id = created["result"]["taskId"].as_str().unwrap();
    let own = json!({ "taskId": id, "inputResponses": {} });
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let refused = ask(BOB, method, id, own.clone()).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        let misrouted = ask(ADA, method, "other", own.clone()).await;
        assert_eq!(misrouted["error"]["code"], -32020, "{misrouted}");
    }
    gate.0.notify_one();
    let collected = async {
        loop {
            let task = ask(ADA, "tasks/get", id, own.clone()).await;
            if task["result"]["status"] == "completed" {
                break task;
            }
        }
    };
    let task = timeout(Duration::from_secs(60), collected).await.unwrap();
    assert_eq!(text(&task["result"]["result"]), "done for ada");
}

// Both sides of this crate, over a socket.
#[tokio::test]
async fn the_client_waits_for_a_task_of_the_server() {
    let gate = Arc::default();
    let served = Served::start(&task_server(&gate)).await;
    let rules = ["mcp", "mcp_definition"].map(|it| Rule::parse(Action::Allow, it).unwrap());
    let pipeline = Pipeline::new(Registry::default()).rules(rules);
    let servers = ServerManager::for_pipeline(&pipeline);
    let far = HttpEndpoint::new(&served.url()).unwrap().bearer_token(ADA);
    servers.add(ServerConfig::new("far", far).unwrap()).unwrap();
    servers.connect("far").await.unwrap();
    let mut events = pipeline.subscribe();
    let session = Session::default();
    let call = pipeline.call(&session, Call::new("mcp__far__job", "{}"));
    let (outcome, ()) = tokio::join!(call, async {
        while let Some(event) = events.recv().await {
            if matches!(event.kind, EventKind::Progress { message, .. } if message == "half way") {
                return gate.0.notify_one();
            }
        }
    });
    assert_eq!(outcome.text(), "done for ada");
}

// Nothing can collect what ran for a client at two streams that has hung up.
#[tokio::test]
async fn tasks_end_with_the_streams_of_their_client() {
    let seen = Arc::new(Seen::default());
    let told = Arc::clone(&seen);
    let wait = definition("wait", RiskClass::Read).task_support(TaskSupport::Optional);
    let wait = DynamicTool::new(wait, move |_: Value, _: Context| {
        let told = Arc::clone(&told);
        async move {
            told.started.notify_one();
            let _ending = Ending(told);
            std::future::pending::<()>().await;
            "never told"
        }
    });
    let registry = Registry::builder().add(wait).build().unwrap();
    let server = Server::new(Pipeline::new(registry), Session::default());
    let mut peer = Peer::legacy(&server, json!({})).await;
    let id = start(&mut peer, "wait").await;
    seen.started.notified().await;
    let mut other = Peer::legacy(&server, json!({})).await;
    let refused = other.request("tasks/get", json!({ "taskId": id })).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    peer.hang_up().await;
    timeout(Duration::from_secs(60), seen.ended.notified()).await.expect("the call is cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_client_with_too_many_tasks_waits_or_is_refused() {
    let mut peer = Peer::modern(&task_server(&Arc::default()), modern_can());
    for _ in 0..64 {
        assert_eq!(peer.call("job", json!({})).await["resultType"], "task");
    }
    let refused = peer.request("tools/call", json!({ "name": "job", "arguments": {} })).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("64 running tasks"), "{refused}");
    assert!(message.contains("the call was started and is cancelled"), "{refused}");
    assert_eq!(peer.call("asks", json!({})).await["resultType"], "input_required");
    // Those that were not collected expire.
    tokio::time::sleep(Duration::from_secs(2 * 60 * 60)).await;
    assert_eq!(peer.call("job", json!({})).await["resultType"], "task");
}

// An ended task makes room for the next one, first those whose results were collected.
#[tokio::test]
async fn ended_tasks_make_room_for_new_ones() {
    let gate = Arc::<TaskGate>::default();
    let mut peer = Peer::legacy(&task_server(&gate), json!({})).await;
    let mut ids = Vec::new();
    for _ in 0..64 {
        gate.0.notify_one();
        let id = start(&mut peer, "job").await;
        reach(&mut peer, &id, "completed").await;
        ids.push(id);
    }
    let collected = peer.request("tasks/result", json!({ "taskId": ids[1] })).await;
    assert_eq!(text(&collected["result"]), "done for anyone");
    for dropped in [1, 0] {
        start(&mut peer, "job").await;
        let gone = peer.request("tasks/get", json!({ "taskId": ids[dropped] })).await;
        assert_eq!(gone["error"]["code"], -32602, "{dropped}: {gone}");
    }
    assert_eq!(reach(&mut peer, &ids[2], "completed").await["taskId"], *ids[2]);
    let listed = peer.request("tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"].as_array().unwrap().len(), 64, "{listed}");
}
