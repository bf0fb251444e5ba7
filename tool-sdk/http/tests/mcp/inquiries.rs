//! Tools and prompts that ask the client, and the resources and prompts of a host.

use std::time::Duration;

use serde_json::Map;
use tokio::time::timeout;
use tool_sdk_core::{ConversationMessage, Icon, Inquiry};
use tool_sdk_mcp::{PromptDefinition, PromptProvider, ResourceDefinition, ResourceProvider};

use super::http::{ADA, Served, next};
use super::*;

fn name() -> Inquiry {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    Inquiry::form("your name?", schema)
}

fn curious() -> Server {
    let greet = DynamicTool::new(
        definition("greet", RiskClass::Read),
        |_: Value, cx: Context| async move {
            let name = cx.inquire([("name", name())]).await?;
            let city = cx.inquire([("city", Inquiry::sample("a city?", 5))]).await?;
            Ok::<_, ToolError>(format!(
                "{} of {}",
                name[0]["content"]["name"], city[0]["content"]["text"]
            ))
        },
    );
    let registry = Registry::builder().add(greet).build().unwrap();
    Server::new(Pipeline::new(registry), Session::default())
        .with_prompts(Greetings)
        .with_resources(Motto)
}

fn able() -> Value {
    json!({ "elicitation": {}, "sampling": {} })
}

fn ada() -> Value {
    json!({ "action": "accept", "content": { "name": "ada" } })
}

fn rome() -> Value {
    json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "Rome" } })
}

struct Greetings;

impl PromptProvider for Greetings {
    async fn list(&self) -> Vec<PromptDefinition> {
        vec![PromptDefinition::new("greet", "Say hello.").with_required_argument("how", "How.")]
    }

    async fn get(
        &self,
        _: &str,
        arguments: &Map<String, Value>,
        session: &Session,
    ) -> Result<Vec<ConversationMessage>, ToolError> {
        let answers = session.inquire([("name", name())]).await?;
        let name = &answers[0]["content"]["name"];
        Ok(vec![ConversationMessage::text("user", format!("Greet {name} {}.", arguments["how"]))])
    }

    fn complete_argument(&self, _: &str, _: &str, begun: &str) -> Vec<String> {
        vec![format!("{begun}ly")]
    }
}

struct Motto;

impl ResourceProvider for Motto {
    async fn list(&self) -> Vec<ResourceDefinition> {
        vec![ResourceDefinition::new("shelf://motto", "motto").with_mime_type("text/plain")]
    }

    async fn read(&self, uri: &str) -> Result<Option<Attachment>, ToolError> {
        let motto = (uri == "shelf://motto")
            .then(|| Attachment::bytes("text/plain", b"read more".to_vec()));
        Ok(motto)
    }
}

// What a tool asks comes where its answer will come, too.
#[tokio::test]
async fn over_http_a_tool_asks_on_the_stream_of_its_call() {
    let server = curious();
    let served = Served::start(&server).await;
    let id = served.open_with(ADA, able()).await;
    let params = json!({ "name": "greet", "arguments": {} });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let talk = async {
        let mut stream = served.begin(ADA, &id, &call).await;
        for (method, answer) in [("elicitation/create", ada()), ("sampling/createMessage", rome())]
        {
            let question = next(&mut stream).await;
            assert_eq!(question["method"], method, "{question}");
            let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer });
            served.post(ADA, Some(&id), &reply).await;
        }
        next(&mut stream).await
    };
    let told = timeout(Duration::from_secs(60), talk).await.expect("it is asked");
    assert_eq!(text(&told["result"]), "\"ada\" of \"Rome\"");
}

#[tokio::test]
async fn a_legacy_peer_is_asked_while_the_call_runs() {
    let server = curious();
    let mut peer = Peer::legacy(&server, able()).await;
    let call = peer.send("tools/call", json!({ "name": "greet", "arguments": {} })).await;
    let form = peer.receive_method("elicitation/create").await;
    assert_eq!(form["params"]["message"], "your name?");
    peer.reply(&form, ada()).await;
    let sample = peer.receive_method("sampling/createMessage").await;
    peer.reply(&sample, rome()).await;
    let answer = peer.receive_response(call).await;
    assert_eq!(text(&answer["result"]), r#""ada" of "Rome""#);
}

#[tokio::test]
async fn a_modern_peer_answers_with_its_next_request() {
    let mut peer = Peer::modern(&curious(), able());
    let first = peer.call("greet", json!({})).await;
    assert_eq!(first["inputRequests"]["name"]["method"], "elicitation/create");
    let go_on = |state: &Value, answers: Value| {
        json!({
            "name": "greet", "arguments": {}, "requestState": state, "inputResponses": answers,
        })
    };
    // What is not an answer is asked for once more.
    let nonsense = go_on(&first["requestState"], json!({ "name": 5 }));
    let again = peer.request("tools/call", nonsense).await["result"].take();
    assert_eq!(again["inputRequests"], first["inputRequests"]);
    let params = go_on(&again["requestState"], json!({ "name": ada() }));
    let second = peer.request("tools/call", params).await["result"].take();
    assert_eq!(second["inputRequests"]["city"]["method"], "sampling/createMessage");
    let params = go_on(&second["requestState"], json!({ "city": rome() }));
    let done = peer.request("tools/call", params).await;
    assert_eq!(text(&done["result"]), r#""ada" of "Rome""#);
}

// F54: the time that a person takes to fill in a form does not count towards the timeout of the tool;
// the time limit of approvals ends it.
#[tokio::test(start_paused = true)]
async fn a_form_does_not_count_towards_the_timeout() {
    let asks = definition("greet", RiskClass::Read).timeout(Duration::from_secs(1));
    let asks = DynamicTool::new(asks, |_: Value, cx: Context| async move {
        let answers = cx.inquire([("name", name())]).await?;
        Ok::<_, ToolError>(format!("{} {}", answers[0]["content"]["name"], cx.is_cancelled()))
    });
    let registry = Registry::builder().add(asks).build().unwrap();
    let pipeline = Pipeline::new(registry).approval_timeout(Duration::from_secs(60));
    let server = Server::new(pipeline, Session::default());
    let minutes = |part| tokio::time::sleep(Duration::from_secs(60) / part);

    let mut peer = Peer::legacy(&server, able()).await;
    for params in [json!({ "name": "greet" }), json!({ "name": "greet", "_meta": {} })] {
        let call = peer.send("tools/call", params.clone()).await;
        let form = peer.receive_method("elicitation/create").await;
        minutes(2).await;
        peer.reply(&form, ada()).await;
        assert_eq!(text(&peer.receive_response(call).await["result"]), r#""ada" false"#);
        let call = peer.send("tools/call", params).await;
        peer.receive_method("elicitation/create").await;
        let failed = peer.receive_response(call).await;
        assert!(text(&failed["result"]).contains("answered in time"), "{failed}");
    }

    let mut peer = Peer::modern(&server, able());
    let wanted = peer.call("greet", json!({})).await;
    minutes(2).await;
    let params = json!({
        "name": "greet", "arguments": {},
        "requestState": wanted["requestState"], "inputResponses": { "name": ada() },
    });
    let done = peer.request("tools/call", params).await;
    assert_eq!(text(&done["result"]), r#""ada" false"#);
}

#[tokio::test]
async fn a_peer_that_cannot_answer_is_told_what_it_lacks() {
    let mut legacy = Peer::legacy(&curious(), json!({})).await;
    let failed = legacy.call("greet", json!({})).await;
    assert!(text(&failed).contains("cannot show forms"), "{failed}");
    let mut modern = Peer::modern(&curious(), json!({ "elicitation": {} }));
    let first = modern.call("greet", json!({})).await;
    let params = json!({
        "name": "greet", "arguments": {},
        "requestState": first["requestState"], "inputResponses": { "name": ada() },
    });
    let lacking = modern.request("tools/call", params).await;
    assert_eq!(lacking["error"]["code"], -32021, "{lacking}");
    assert_eq!(lacking["error"]["data"]["requiredCapabilities"], json!({ "sampling": {} }));
}

#[tokio::test]
async fn a_tool_that_goes_on_without_an_answer_fails_for_its_own_reason() {
    let tool = DynamicTool::new(
        definition("guess", RiskClass::Read),
        |_: Value, cx: Context| async move {
            let asked = cx.inquire([("name", name())]).await;
            assert!(asked.is_err());
            Err::<String, _>(ToolError::conflict("the guess was wrong"))
        },
    );
    let registry = Registry::builder().add(tool).build().unwrap();
    let server = Server::new(Pipeline::new(registry), Session::default());
    let failed = Peer::modern(&server, json!({})).call("guess", json!({})).await;
    assert_eq!((&failed["isError"], text(&failed)), (&json!(true), "the guess was wrong"));
}

#[tokio::test]
async fn prompts_and_resources_are_there_where_the_host_has_them() {
    let mut peer = Peer::legacy(&curious(), able()).await;
    let listed = peer.request("prompts/list", json!({})).await;
    assert_eq!(listed["result"]["prompts"][0]["name"], "greet");
    let lacking = peer.request("prompts/get", json!({ "name": "greet" })).await;
    assert_eq!(lacking["error"]["code"], -32602);
    let params = json!({ "name": "greet", "arguments": { "how": "warmly" } });
    let get = peer.send("prompts/get", params.clone()).await;
    let form = peer.receive_method("elicitation/create").await;
    peer.reply(&form, ada()).await;
    let got = peer.receive_response(get).await;
    let said = &got["result"]["messages"][0]["content"]["text"];
    assert_eq!(said, r#"Greet "ada" "warmly"."#);

    let read = peer.request("resources/read", json!({ "uri": "shelf://motto" })).await;
    assert_eq!(read["result"]["contents"][0]["text"], "read more");
    let absent = peer.request("resources/read", json!({ "uri": "shelf://other" })).await;
    assert_eq!(absent["error"]["code"], -32002);
    // Nobody tells of changes, so there is nothing to subscribe to.
    let watch = peer.request("resources/subscribe", json!({ "uri": "shelf://motto" })).await;
    assert_eq!(watch["error"]["code"], -32601);
    let begun = json!({
        "ref": { "type": "ref/prompt", "name": "greet" },
        "argument": { "name": "how", "value": "warm" },
    });
    let broken = peer.request("completion/complete", json!({ "ref": 5 })).await;
    assert_eq!(broken["error"]["code"], -32602, "{broken}");
    let completed = peer.request("completion/complete", begun).await;
    assert_eq!(completed["result"]["completion"]["values"], json!(["warmly"]));

    let mut modern = Peer::modern(&curious(), able());
    let wanted = modern.request("prompts/get", params.clone()).await;
    assert_eq!(wanted["result"]["resultType"], "input_required", "{wanted}");
    let mut answered = params;
    answered["inputResponses"] = json!({ "name": ada() });
    let got = modern.request("prompts/get", answered).await;
    assert!(got["result"]["messages"].is_array(), "{got}");
}

// Who hears no greeting is told by each result who it is of.
#[tokio::test]
async fn a_modern_result_says_of_which_server_it_is() {
    let icon = Icon::new("data:image/png;base64,").mime("image/png").size("48x48");
    let server = curious().with_name("toys", "7").with_title("Toy box").with_icon(icon);
    let server = server.with_website("https://toys.example");
    let begun = json!({
        "ref": { "type": "ref/prompt", "name": "greet" },
        "argument": { "name": "how", "value": "warm" },
    });
    let greet = json!({ "name": "greet", "arguments": { "how": "warmly" } });
    let mut answered = greet.clone();
    answered["inputResponses"] = json!({ "name": ada() });
    let requests = [
        ("tools/list", json!({})),
        ("tools/call", json!({ "name": "greet", "arguments": {} })),
        ("tools/call", json!({ "name": "greet", "arguments": { "no": "such" } })),
        ("prompts/list", json!({})),
        ("prompts/get", greet),
        ("prompts/get", answered),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({ "uri": "shelf://motto" })),
        ("completion/complete", begun),
    ];
    let mut modern = Peer::modern(&server, able());
    for (method, params) in &requests {
        let answer = modern.request(method, params.clone()).await;
        let info = &answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
        let expected = json!({ "name": "toys", "title": "Toy box", "version": "7" });
        assert_eq!(info, &expected, "{method}: {answer}");
    }
    // What does not change is sent once.
    let discovered = modern.request("server/discover", json!({})).await;
    let info = &discovered["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    let icon =
        json!([{ "src": "data:image/png;base64,", "mimeType": "image/png", "sizes": ["48x48"] }]);
    let expected = json!({
        "name": "toys", "title": "Toy box", "version": "7", "websiteUrl": "https://toys.example",
        "icons": icon,
    });
    assert_eq!(info, &expected);
    let mut legacy = Peer::legacy(&server, json!({})).await;
    for (method, params) in requests.iter().filter(|(method, _)| method.ends_with("/list")) {
        let answer = legacy.request(method, params.clone()).await;
        assert!(answer["result"]["_meta"].is_null(), "{method}: {answer}");
    }
}

struct PanickingProvider;

impl PromptProvider for PanickingProvider {
    async fn list(&self) -> Vec<PromptDefinition> {
        panic!("no list")
    }

    async fn get(
        &self,
        _: &str,
        _: &Map<String, Value>,
        _: &Session,
    ) -> Result<Vec<ConversationMessage>, ToolError> {
        panic!("no prompt")
    }

    fn complete_argument(&self, _: &str, _: &str, _: &str) -> Vec<String> {
        panic!("no completions")
    }
}

#[tokio::test]
async fn a_provider_that_panics_fails_one_request() {
    let pipeline = Pipeline::new(Registry::default());
    let server = Server::new(pipeline, Session::default()).with_prompts(PanickingProvider);
    let served = Served::start(&server).await;
    let session = served.open(ADA).await;
    let mut peer = Peer::legacy(&server, json!({})).await;
    let complete = json!({
        "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "b" },
    });
    for (method, params) in [
        ("prompts/list", json!({})),
        ("prompts/get", json!({ "name": "p" })),
        ("completion/complete", complete),
    ] {
        let response = peer.request(method, params.clone()).await;
        assert_eq!(response["error"]["code"], -32603, "{method}: {response}");
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let response = served.post(ADA, Some(&session), &request).await;
        assert!(response.contains("-32603"), "{method}: {response}");
    }
    assert_eq!(peer.request("ping", json!({})).await["result"], json!({}));
}

/// A server with a tool that asks for a login at an address.
fn login_server() -> Server {
    let login = DynamicTool::new(
        definition("login", RiskClass::Read),
        |_: Value, cx: Context| async move {
            let outcome = cx.elicit_url("Log in.", "https://example.com/login").await?;
            Ok::<_, ToolError>(format!("{outcome:?}"))
        },
    );
    let registry = Registry::builder().add(login).build().unwrap();
    Server::new(Pipeline::new(registry), Session::default())
}

#[tokio::test]
async fn a_tool_asks_by_url_where_the_client_supports_it() {
    let server = login_server();
    let able = json!({ "elicitation": { "url": {} } });
    let agreed = json!({ "action": "accept" });

    let mut peer = Peer::legacy(&server, able.clone()).await;
    let call = peer.send("tools/call", json!({ "name": "login", "arguments": {} })).await;
    let asked = peer.receive_method("elicitation/create").await;
    assert_eq!(
        (&asked["params"]["mode"], &asked["params"]["url"]),
        (&json!("url"), &json!("https://example.com/login"),)
    );
    assert_eq!(asked["params"]["elicitationId"].as_str().unwrap().len(), 16, "{asked}");
    peer.reply(&asked, agreed.clone()).await;
    assert_eq!(text(&peer.receive_response(call).await["result"]), "Accepted({})");

    let mut peer = Peer::modern(&server, able);
    let first = peer.call("login", json!({})).await;
    assert_eq!(first["inputRequests"]["url"]["params"]["mode"], "url", "{first}");
    let answered = json!({
        "name": "login", "arguments": {}, "requestState": first["requestState"],
        "inputResponses": { "url": agreed },
    });
    let done = peer.request("tools/call", answered).await;
    assert_eq!(text(&done["result"]), "Accepted({})");

    // A client that only has forms gets a result that says what is missing.
    let mut peer = Peer::legacy(&server, json!({ "elicitation": { "form": {} } })).await;
    let result = peer.call("login", json!({})).await;
    assert!(text(&result).contains("cannot show addresses"), "{result}");
}
