//! One table of scenarios, with the same meaning in every form of asking.

use serde_json::{Value, json};

use crate::server::TestServer;

/// What a scenario means: its status, and the kind of the problem.
struct OutcomeScenario {
    tool: &'static str,
    arguments: Value,
    status: u16,
    category: Option<&'static str>,
}

fn scenarios() -> Vec<OutcomeScenario> {
    let failure =
        |tool, arguments, status, category| OutcomeScenario { tool, arguments, status, category };
    let success = |tool, arguments| failure(tool, arguments, 200, None);
    vec![
        success("join_words", json!({ "words": ["ok"] })),
        success("add", json!({ "a": 1 })),
        success("draw_dot", json!({})),
        success("talk", json!({})),
        failure("add", json!({ "b": 1 }), 400, Some("invalid_args")),
        failure("write_word", json!({ "word": "w" }), 403, Some("denied")),
        failure("take_too_long", json!({}), 504, Some("timeout")),
        failure("fail_as", json!({ "kind": "aborted" }), 499, Some("aborted")),
        failure("panic_now", json!({}), 500, Some("internal")),
    ]
}

/// Removes what differs between two calls.
fn without_ids(mut body: Value) -> Value {
    if let Some(fields) = body.as_object_mut() {
        fields.remove("call");
    }
    body
}

#[tokio::test]
async fn every_form_has_the_same_meaning() {
    let server = TestServer::start().await;
    for OutcomeScenario { tool, arguments, status, category } in scenarios() {
        let plain = server.call(tool, &arguments).send().await.expect(status);
        assert!(!plain.body.contains("a secret"), "{}", plain.body);
        let expected = without_ids(plain.json());
        assert_eq!(expected["category"].as_str(), category, "{tool}");
        let name = if category.is_none() { "result" } else { "problem" };

        let mut events = server.call(tool, &arguments).events().await;
        assert_eq!(without_ids(events.next_named(name).await.data), expected, "{tool}");

        let batch = json!({ "calls": [{ "tool": tool, "arguments": arguments }] });
        let batch = server.post("/v1/batch", &batch).send().await.expect(200).json();
        let item = &batch["results"][0];
        assert_eq!(
            (&item["status"], without_ids(item[name].clone())),
            (&json!(status), expected.clone())
        );
    }
    let cut = server.call("talk", &json!({})).send().await.json();
    assert!(cut["truncation"]["omitted_lines"].as_u64().unwrap() > 900, "{cut}");
}
