//! Tests of the server through a client, over an in-memory pipe.

#![expect(clippy::unwrap_used, reason = "what these tests are made of unwraps as they do")]

mod approvals;
mod batches;
mod calls;
mod cancellation;
mod http;
mod http_responses;
mod inquiries;
mod loop_guard;
mod notifications;
mod passing_on;
mod peer;
mod protocol_edge_cases;
mod request_limits;
#[cfg(unix)]
mod socket;
mod stdio;
mod stream_resumption;
mod tasks;
mod ui_pages;

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tool_sdk_core::{
    Attachment, Context, Definition, DynamicTool, Output, Pipeline, Registry, Risk, RiskClass,
    Schema, Session, ToolError, ToolName,
};
use tool_sdk_mcp::Server;

use self::peer::Peer;

fn schema(schema: Value) -> Schema {
    serde_json::from_value(schema).unwrap()
}

fn definition(name: &'static str, risk: RiskClass) -> Definition {
    let none = schema(json!({ "type": "object", "properties": {}, "additionalProperties": false }));
    Definition::new(ToolName::from_static(name), "Does it.", none).risk(Risk::new(risk))
}

/// What the tool that waits tells its test.
#[derive(Default)]
struct Seen {
    started: Notify,
    ended: Notify,
}

/// Tells of the end however it comes: a call that is cancelled is dropped.
struct Ending(Arc<Seen>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.ended.notify_one();
    }
}

/// A tool for every way in which a call can go.
fn registry(seen: &Arc<Seen>) -> Registry {
    let mut add = definition("add", RiskClass::Read);
    add.parameters = schema(json!({
        "type": "object",
        "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } },
        "required": ["a", "b"],
        "additionalProperties": false,
    }));
    add.output = Some(schema(json!({
        "type": "object", "properties": { "sum": { "type": "integer" } }, "required": ["sum"],
    })));
    let mut list = definition("list", RiskClass::Read);
    list.output = Some(schema(json!({ "type": "array", "items": { "type": "integer" } })));
    let seen = Arc::clone(seen);
    Registry::builder()
        .add(DynamicTool::new(add, |args: Value, _: Context| async move {
            let sum = args["a"].as_i64().unwrap() + args["b"].as_i64().unwrap();
            Output::json(&json!({ "sum": sum })).map_err(ToolError::internal)
        }))
        .add(DynamicTool::new(list, |_: Value, _: Context| async {
            Output::json(&[1, 2]).map_err(ToolError::internal)
        }))
        .add(DynamicTool::new(
            definition("picture", RiskClass::Read),
            |_: Value, _: Context| async {
                Output::default().attach(Attachment::bytes("image/png", vec![1]))
            },
        ))
        .add(DynamicTool::new(definition("fail", RiskClass::Read), |_: Value, _: Context| async {
            Err::<Output, _>(ToolError::conflict("it changed").hint("look again"))
        }))
        .add(DynamicTool::new(definition("panic", RiskClass::Read), |_: Value, _: Context| async {
            if true {
                panic!("a secret");
            }
            Output::default()
        }))
        .add(DynamicTool::new(
            definition("steps", RiskClass::Read),
            |_: Value, cx: Context| async move {
                for step in [1, 2, 2, 3] {
                    cx.progress(step, Some(3), format!("step {step}"));
                }
                cx.emit("found", json!({ "n": 3 }));
                cx.emit_output("a part");
                "done"
            },
        ))
        .add(DynamicTool::new(definition("wait", RiskClass::Read), move |_: Value, _: Context| {
            let seen = Arc::clone(&seen);
            async move {
                seen.started.notify_one();
                let _ending = Ending(seen);
                std::future::pending::<()>().await;
                "never told"
            }
        }))
        .add(DynamicTool::new(
            definition("write", RiskClass::Write),
            |_: Value, cx: Context| async move {
                format!("written in {} by {}", cx.session().id(), cx.session().client())
            },
        ))
        .build()
        .unwrap()
}

fn pipeline() -> Pipeline {
    Pipeline::new(registry(&Arc::default()))
}

fn server() -> Server {
    Server::new(pipeline(), Session::default()).with_name("toys", "7")
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}
