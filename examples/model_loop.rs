//! The loop of an agent: the model gets the tools, requests calls and reads their results, until it
//! has an answer.
//!
//! The model here is a script in the format of OpenAI's chat completions. A real one is a
//! request to a provider in its place; nothing else changes.

use serde_json::{Value, json};
use tool_sdk::provider::{self, Dialect};
use tool_sdk::{Batch, Call, LoopGuard, Pipeline, Registry, Session, ToolError, tool};

/// Look up what something costs.
#[tool(read)]
fn price(
    /// The item.
    item: &str,
) -> Result<String, ToolError> {
    match item {
        "tea" => Ok("3 EUR".to_owned()),
        "cake" => Ok("4 EUR".to_owned()),
        _ => Err(ToolError::not_found(format_args!("there is no `{item}`"))
            .hint("there are tea and cake")),
    }
}

/// Stands in for the provider: returns the next message of the model, from the tools and the messages so
/// far.
fn model(tools: &Value, messages: &[Value]) -> Value {
    let wants = |id: &str, arguments: &str| {
        let name = &tools[0]["function"]["name"];
        json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
    };
    let read = messages.last().and_then(|last| last["content"].as_str()).unwrap_or_default();
    match messages.len() {
        1 => json!({
            "role": "assistant",
            "tool_calls": [wants("a", r#"{"item": "tea"}"#), wants("b", r#"{"item": "pie"}"#)],
        }),
        // The model has read the hint of the failed call.
        4 if read.contains("tea and cake") => {
            json!({ "role": "assistant", "tool_calls": [wants("c", r#"{"item": "cake"}"#)] })
        }
        _ => json!({ "role": "assistant", "content": format!("Tea is 3 EUR, cake is {read}.") }),
    }
}

/// Returns the calls in a message of the model. Arguments stay the text that was received.
fn calls(message: &Value) -> impl Iterator<Item = Call<'_>> {
    message["tool_calls"].as_array().into_iter().flatten().map(|call| {
        let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
        let function = &call["function"];
        Call::new(text(&function["name"]), text(&function["arguments"])).id(&text(&call["id"]))
    })
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A model may repeat a call without progress, so the loop guard is on.
    let pipeline = Pipeline::new(Registry::linked()?).loop_guard(LoopGuard::default());
    let session = Session::new("example");
    let view = pipeline.toolset().view();
    let tools = provider::encode_tools(view.definitions(), Dialect::OpenAi);

    let mut messages = vec![json!({ "role": "user", "content": "What are tea and pie?" })];
    for _ in 0..8 {
        let message = model(&tools, &messages);
        messages.push(message.clone());
        // The calls of one message are one batch; each has one outcome.
        let outcomes = Batch::new(&pipeline).run(&session, calls(&message)).await;
        if outcomes.is_empty() {
            break;
        }
        messages.extend(outcomes.iter().map(|outcome| {
            json!({ "role": "tool", "tool_call_id": outcome.call, "content": outcome.text() })
        }));
    }

    println!("{:#}", Value::from(messages.clone()));
    assert_eq!(messages[2]["content"], "3 EUR");
    assert_eq!(messages[3]["content"], "there is no `pie`\nhint: there are tea and cake");
    assert_eq!(messages.last().expect("there are some")["content"], "Tea is 3 EUR, cake is 4 EUR.");
    Ok(())
}

#[cfg(test)]
#[test]
fn the_model_gets_its_answer() {
    main().expect("what it shows holds");
}
