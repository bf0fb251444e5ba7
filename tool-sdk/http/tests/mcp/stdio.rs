//! Messages over two streams.

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use super::*;

// The tool refuses duplicate keys in its arguments, in both eras.
#[tokio::test]
async fn refuses_duplicate_keys_in_arguments() {
    let twice = |meta: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{{"name":"add","arguments":{{"a":1,"a":2,"b":3}}{meta}}}}}"#
        )
    };
    let modern = r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"by-hand","version":"2"}}"#;
    let server = server();
    for meta in ["", r#","_meta":{}"#, r#","_meta":{"progressToken":1}"#] {
        let mut peer = Peer::legacy(&server, json!({})).await;
        peer.request("ping", json!({})).await;
        check_refused(&mut peer, &twice(meta)).await;
    }
    check_refused(&mut Peer::modern(&server, json!({})), &twice(modern)).await;
}

async fn check_refused(peer: &mut Peer, line: &str) {
    peer.send_line(line).await;
    let answer = peer.receive_response_to("x").await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(text(&answer["result"]).contains("twice"), "{answer}");
}

// An invalid line gets an error, and the server reads on.
#[tokio::test]
async fn answers_an_invalid_line_with_an_error_and_reads_on() {
    let long = "x".repeat(5 * 1024 * 1024);
    let server = server();
    let mut peer = Peer::legacy(&server, json!({})).await;
    for (line, code, id) in [
        ("nonsense", -32700, Value::Null),
        ("{\"jsonrpc\":", -32700, Value::Null),
        ("[]", -32600, Value::Null),
        ("5", -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, Value::Null),
        (r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, -32600, json!("a")),
        (r#"{"jsonrpc":"2.0","id":"a"}"#, -32600, json!("a")),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":5}}"#,
            -32602,
            json!("a"),
        ),
        (&long, -32600, Value::Null),
    ] {
        peer.send_line(line).await;
        let answer = peer.receive_error().await;
        let shown = &line[..line.len().min(80)];
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{shown}");
    }
    // An invalid notification gets no response.
    peer.send_line(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":5}"#).await;
    assert_eq!(peer.request("ping", json!({})).await["result"], json!({}));
    assert_eq!(peer.hang_up().await, Vec::<Value>::new());
}

// Invalid parameters are an error of their own, not an unknown method.
#[tokio::test]
async fn distinguishes_invalid_parameters_from_an_unknown_method() {
    let server = server();
    let mut peer = Peer::legacy(&server, json!({})).await;
    for (method, params) in [
        ("initialize", json!({})),
        ("logging/setLevel", json!({ "level": "loud" })),
        ("tools/list", json!({ "cursor": 5 })),
        ("tools/call", json!({ "name": "add", "_meta": 5 })),
        ("ping", json!({ "_meta": 5 })),
        ("ping", json!([])),
    ] {
        let answer = peer.request(method, params).await;
        assert_eq!(answer["error"]["code"], -32602, "{method}: {answer}");
        let words = answer["error"]["message"].as_str().unwrap();
        assert!(words.contains("`params`"), "{method}: {words}");
    }
    // A method whose capability the server does not announce is unknown.
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let answer = peer.request(method, json!({ "uri": "a:b" })).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
    for arguments in [json!("x"), json!([1]), json!(5)] {
        let params = |meta: Value| json!({ "name": "add", "arguments": arguments, "_meta": meta });
        let answer = peer.request("tools/call", params(json!({}))).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let plain = json!({ "name": "add", "arguments": arguments });
        let plain = peer.request("tools/call", plain).await;
        assert_eq!(answer["result"], plain["result"]);
    }
}

// A server that is shut down reads no further requests, and answers those that run.
#[tokio::test]
async fn shutdown_lets_running_calls_end() {
    let (server, gate, _) = request_limits::gate();
    let shutdown = tokio_util::sync::CancellationToken::new();
    let server = server.with_shutdown(shutdown.clone());
    let mut peer = Peer::legacy(&server, json!({})).await;
    let running = peer.send("tools/call", json!({ "name": "wait", "arguments": {} })).await;
    peer.request("ping", json!({})).await;
    shutdown.cancel();
    gate.add_permits(1);
    let answer = peer.receive_response(running).await;
    assert_eq!(text(&answer["result"]), "it went on");
    assert_eq!(peer.hang_up().await, Vec::<Value>::new());
}

// A client could not tell two responses with one id apart.
#[tokio::test]
async fn refuses_the_id_of_a_request_in_flight() {
    let (server, gate, _) = request_limits::gate();
    for params in [json!({ "name": "wait" }), json!({ "name": "wait", "_meta": {} })] {
        let server = server.clone();
        let mut peer = Peer::legacy(&server, json!({})).await;
        let call = json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params });
        for _ in 0..2 {
            peer.send_line(&call.to_string()).await;
            peer.send_line(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#).await;
            assert_eq!(peer.receive_response_to("a").await["error"]["code"], -32600);
            gate.add_permits(1);
            assert_eq!(text(&peer.receive_response_to("a").await["result"]), "it went on");
        }
    }
}

// On a runtime with several threads, a tool that blocks its thread delays no other request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_other_requests_while_a_tool_blocks_its_thread() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = Arc::new(std::sync::Mutex::new(wait));
    let block =
        DynamicTool::new(definition("block", RiskClass::Read), move |_: Value, _: Context| {
            let wait = Arc::clone(&wait);
            async move {
                let _ = wait.lock().unwrap().recv();
                "it went on"
            }
        });
    let registry = Registry::builder().add(block).build().unwrap();
    let server = Server::new(Pipeline::new(registry), Session::default());
    let mut peer = Peer::legacy(&server, json!({})).await;
    peer.request("ping", json!({})).await;
    let blocked = peer.send("tools/call", json!({ "name": "block", "arguments": {} })).await;
    for _ in 0..3 {
        assert_eq!(peer.request("ping", json!({})).await["result"], json!({}));
    }
    go.send(()).unwrap();
    assert_eq!(text(&peer.receive_response(blocked).await["result"]), "it went on");
}

// A host that starts the server with the wrong client reads this error.
#[tokio::test]
async fn serving_fails_if_the_client_begins_with_a_response() {
    let line = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
    let (ours, theirs) = tokio::io::duplex(1024);
    let (read, write) = tokio::io::split(theirs);
    let serving = tokio::spawn(server().serve(read, write));
    let (_read, mut write) = tokio::io::split(ours);
    write.write_all(line.as_bytes()).await.unwrap();
    let error = serving.await.unwrap().unwrap_err().to_string();
    assert!(error.starts_with("the client must begin with `initialize`"), "{error}");
    assert!(!error.contains(['{', '(']), "{error}");
}

// JSON-RPC 4.1: notifications get no response, also before the handshake.
#[tokio::test]
async fn ignores_notifications_before_the_handshake() {
    let (ours, theirs) = tokio::io::duplex(4096);
    let (read, write) = tokio::io::split(theirs);
    let _serving = tokio::spawn(server().serve(read, write));
    let (read, mut write) = tokio::io::split(ours);
    for told in [
        r#"{"jsonrpc":"2.0","method":"foo/bar"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
    ] {
        write.write_all(format!("{told}\n").as_bytes()).await.unwrap();
    }
    let answer = BufReader::new(read).lines().next_line().await.unwrap().unwrap();
    assert!(answer.contains(r#""id":1,"result""#), "{answer}");
}

// The server answers every line of one read, also between invalid lines.
#[tokio::test]
async fn answers_every_line_of_one_read() {
    let server = server();
    let mut peer = Peer::legacy(&server, json!({})).await;
    let mut lines = String::new();
    for n in 0..200 {
        let params = json!({ "name": "add", "arguments": { "a": n, "b": 1 } });
        let line = json!({
            "jsonrpc": "2.0", "id": format!("c{n}"), "method": "tools/call", "params": params,
        });
        lines += &format!("{line}\r\n");
        if n % 50 == 0 {
            lines += "nonsense\n\n{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"no/such\"}\n";
        }
    }
    peer.send_line(lines.trim_end()).await;
    for n in 0..200 {
        let answer = peer.receive_response_to(&format!("c{n}")).await;
        assert_eq!(answer["result"]["structuredContent"]["sum"], n + 1, "{answer}");
    }
}

// A client may send many long requests before it reads a response.
#[tokio::test]
async fn keeps_responses_for_a_client_that_writes_first() {
    let long = "x".repeat(400_000);
    let server = server();
    let mut peer = Peer::legacy(&server, json!({})).await;
    for n in 0..20 {
        // The response quotes the unknown key, so it is long as well.
        let params = json!({ "name": "add", "arguments": { (long.as_str()): n } });
        peer.send("tools/call", params).await;
    }
    for id in 2..22 {
        assert_eq!(peer.receive_response(id).await["result"]["isError"], true);
    }
}

// The pages of a long list hold every tool once, in the order of their names.
#[tokio::test]
async fn lists_many_tools_in_pages() {
    let mut registry = Registry::builder();
    for nth in 0..1001 {
        let name = ToolName::new(format!("tool_{nth:04}")).unwrap();
        let words = "Does it. ".repeat(300);
        let definition = Definition::new(name, words, Schema::default());
        registry = registry.add(DynamicTool::new(definition, |_: Value, _: Context| async {}));
    }
    let pipeline = Pipeline::new(registry.build().unwrap());
    let server = Server::new(pipeline, Session::default());
    let mut peer = Peer::legacy(&server, json!({})).await;
    for _ in 0..2 {
        let (mut params, mut pages, mut names) = (json!({}), 0, Vec::new());
        loop {
            let page = peer.request("tools/list", params).await["result"].take();
            let tools = page["tools"].as_array().unwrap().iter();
            names.extend(tools.map(|tool| tool["name"].as_str().unwrap().to_owned()));
            pages += 1;
            if page["nextCursor"].is_null() {
                break;
            }
            params = json!({ "cursor": page["nextCursor"] });
        }
        assert_eq!(pages, 3);
        let all: Vec<_> = (0..1001).map(|nth| format!("tool_{nth:04}")).collect();
        assert_eq!(names, all);
    }
}
