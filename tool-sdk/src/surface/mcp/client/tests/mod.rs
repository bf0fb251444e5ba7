//! Tests of foreign tools through the pipeline, against scripted servers.

mod bodies;
mod calls;
mod faults;
mod http;
mod news;
#[cfg(unix)]
mod programs;
mod questions;
mod script;
mod told;
mod trust;
pub(in crate::surface) mod web;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use self::script::{Act, Script};
use super::{Launch, Pins, Questions, Reach, Status, Upstream, Upstreams};
use crate::call::{Call, Outcome};
use crate::context::Session;
use crate::permission::{Action, Mode, Reply, Rule, Scripted};
use crate::pipeline::Pipeline;
use crate::registry::Registry;

/// A pipeline without native tools, in which the tools of one server may run.
struct Setting {
    pipeline: Pipeline,
    upstreams: Upstreams,
    script: Arc<Script>,
    session: Session,
}

impl Setting {
    /// A server that answers with `act`; rules allow its tools.
    fn trusting(act: impl Fn(&Value) -> Vec<Act> + Send + Sync + 'static) -> Self {
        let rules = ["mcp", "mcp_definition"].map(|it| Rule::parse(Action::Allow, it).unwrap());
        Self::with(Pipeline::new(Registry::default()).rules(rules), Script::new(act))
    }

    fn with(pipeline: Pipeline, script: Arc<Script>) -> Self {
        let upstreams = Upstreams::of(&pipeline);
        let setting = Self { pipeline, upstreams, script, session: Session::new("t") };
        setting.upstreams.add(setting.upstream("s")).unwrap();
        setting
    }

    /// Enables these client features for the server.
    fn answering(self, questions: Questions) -> Self {
        let script = Arc::clone(&self.script);
        let told = questions.clone();
        let reach = Reach::custom(move || Arc::clone(&script).serve(told.clone()));
        self.upstreams.remove("s");
        self.upstreams.add(Upstream::new("s", reach).unwrap().questions(questions)).unwrap();
        self
    }

    fn upstream(&self, name: &str) -> Upstream {
        let script = Arc::clone(&self.script);
        let reach = Reach::custom(move || Arc::clone(&script).serve(Questions::none()));
        let upstream = Upstream::new(name, reach).unwrap();
        upstream.startup_timeout(Duration::from_secs(60)).call_timeout(Duration::from_secs(5))
    }

    async fn connect(&self) -> Status {
        self.upstreams.connect("s").await.unwrap()
    }

    async fn call(&self, tool: &str, arguments: &str) -> Outcome {
        let call = Call::new(format!("mcp__s__{tool}"), arguments);
        self.pipeline.call(&self.session, call).await
    }

    fn tools(&self) -> Vec<String> {
        let view = self.pipeline.toolset().view();
        view.definitions().map(|definition| definition.name.to_string()).collect()
    }
}

/// An approver that approves everything once.
fn yes() -> Arc<Scripted> {
    Arc::new(Scripted::always(Reply::Once))
}

/// A tool as a server describes it.
fn tool(name: &str, description: &str) -> Value {
    json!({
        "name": name, "description": description,
        "inputSchema": { "type": "object", "properties": { "text": { "type": "string" } } },
    })
}

/// A server with one tool that returns its text.
fn echo(message: &Value) -> Vec<Act> {
    match message["method"].as_str() {
        Some("tools/list") => vec![Act::Answer(json!({ "tools": [tool("echo", "Says it.")] }))],
        Some("tools/call") => {
            let text = message["params"]["arguments"]["text"].as_str().unwrap_or_default();
            vec![Act::Answer(json!({ "content": [{ "type": "text", "text": text }] }))]
        }
        _ => Vec::new(),
    }
}

/// Like [`echo`], with `act` for its calls.
fn calls(act: impl Fn(&Value) -> Vec<Act> + Send + Sync) -> impl Fn(&Value) -> Vec<Act> {
    move |message| if message["method"] == "tools/call" { act(message) } else { echo(message) }
}
