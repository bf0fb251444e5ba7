//! Calls that only the server validates.

use super::*;

/// A server whose tool has these schemas.
fn with_schemas(input: Value, output: Value) -> impl Fn(&Value) -> Vec<ServerAct> {
    move |message| match message["method"].as_str() {
        Some("tools/list") => {
            let mut said = tool("echo", "Says it.");
            said["inputSchema"] = input.clone();
            said["outputSchema"] = output.clone();
            vec![ServerAct::Answer(json!({ "tools": [said] }))]
        }
        Some("tools/call") => {
            let arguments = message["params"]["arguments"].clone();
            vec![ServerAct::Answer(json!({ "content": [], "structuredContent": arguments }))]
        }
        _ => echo(message),
    }
}

// fault 10: the tool can be called, and a warning says what is not validated.
#[tokio::test]
async fn schema_that_breaks_a_rule_is_validated_by_the_server_only() {
    let two_ways = json!({
        "type": "object",
        "properties": { "a": { "$ref": "#" }, "n": { "type": "integer" } },
        "patternProperties": { "a": { "$ref": "#" } },
    });
    let setting = TestHost::trusting(with_schemas(two_ways.clone(), two_ways));
    let warnings = setting.connect().await.warnings;
    for told in [
        "echo: its arguments are validated by the server only: it recurses",
        "echo: its output schema is left out: it recurses",
    ] {
        assert!(warnings.iter().any(|it| it.starts_with(told)), "{warnings:?}");
    }
    let view = setting.pipeline.toolset().view();
    assert!(view.definition("mcp__s__echo").unwrap().parameters.property("n").is_some());
    let deep = (0..60).fold(r#"{"n":"x"}"#.to_owned(), |inner, _| format!(r#"{{"a":{inner}}}"#));
    setting.call("echo", &deep).await.result.unwrap();
    assert!(setting.call("echo", r#"{"n":1,"n":2}"#).await.result.is_err());
    assert_eq!(setting.server.heard("tools/call").len(), 1);
}

// fault 10: a late validation cannot be stopped, so there is no second one.
#[tokio::test]
async fn server_loses_validation_until_it_is_connected_again() {
    let typed = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    let output = json!({ "type": "object", "properties": { "text": { "maxLength": 3 } } });
    let act = with_schemas(typed, output);
    let setting =
        TestHost::trusting(move |message| match message["params"]["arguments"]["text"].as_str() {
            Some("leave") => vec![ServerAct::Leave],
            _ => act(message),
        });
    setting.connect().await;
    let is_validated = async || {
        let results = [r#"{"text":5}"#, r#"{"text":"long"}"#];
        let first = setting.call("echo", results[0]).await.result.is_err();
        assert_eq!(setting.call("echo", results[1]).await.result.is_err(), first);
        let told = |it: &String| it.starts_with("validating took too long");
        assert_eq!(setting.servers.status("s").unwrap().warnings.iter().any(told), !first);
        first
    };
    assert!(is_validated().await);
    setting.servers.find_connection("s").unwrap().lose_validation();
    assert!(!is_validated().await);
    assert!(setting.call("echo", r#"{"text":"leave"}"#).await.result.is_err());
    setting.connect().await;
    assert!(is_validated().await);
}
