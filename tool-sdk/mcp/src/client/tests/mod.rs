//! Tests of foreign tools through the pipeline, against scripted servers.

mod authorization;
mod bodies;
mod calls;
mod faults;
mod http;
mod offers;
#[cfg(unix)]
mod programs;
mod reports;
mod scripted_server;
mod server_requests;
mod tasks;
mod tool_changes;
mod trust;
mod unvalidated;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tool_sdk_core::{
    Action, ApprovalResponse, Call, Mode, Outcome, Pipeline, Registry, Rule, ScriptedApprover,
    Session,
};

use self::scripted_server::{ScriptedServer, ServerAct};
use super::{
    ClientFeatures, ServerCommand, ServerConfig, ServerManager, ServerStatus, ToolPins,
    TransportConfig,
};

/// A pipeline without native tools, in which the tools of one server may run.
struct TestHost {
    pipeline: Pipeline,
    servers: ServerManager,
    server: Arc<ScriptedServer>,
    session: Session,
}

impl TestHost {
    /// A server that answers with `act`; rules allow its tools.
    fn trusting(act: impl Fn(&Value) -> Vec<ServerAct> + Send + Sync + 'static) -> Self {
        let rules = ["mcp", "mcp_definition"].map(|it| Rule::parse(Action::Allow, it).unwrap());
        Self::with_server(Pipeline::new(Registry::default()).rules(rules), ScriptedServer::new(act))
    }

    fn with_server(pipeline: Pipeline, script: Arc<ScriptedServer>) -> Self {
        let upstreams = ServerManager::for_pipeline(&pipeline);
        let setting =
            Self { pipeline, servers: upstreams, server: script, session: Session::new("t") };
        setting.servers.add(setting.server_config("s")).unwrap();
        setting
    }

    /// Enables these client features for the server.
    fn answering(self, questions: ClientFeatures) -> Self {
        let script = Arc::clone(&self.server);
        let told = questions.clone();
        let reach = TransportConfig::custom(move || Arc::clone(&script).serve(told.clone()));
        self.servers.remove("s");
        self.servers
            .add(ServerConfig::new("s", reach).unwrap().client_features(questions))
            .unwrap();
        self
    }

    fn server_config(&self, name: &str) -> ServerConfig {
        let script = Arc::clone(&self.server);
        let reach =
            TransportConfig::custom(move || Arc::clone(&script).serve(ClientFeatures::none()));
        let upstream = ServerConfig::new(name, reach).unwrap();
        upstream.startup_timeout(Duration::from_secs(60)).call_timeout(Duration::from_secs(5))
    }

    async fn connect(&self) -> ServerStatus {
        self.servers.connect("s").await.unwrap()
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
fn approve_all() -> Arc<ScriptedApprover> {
    Arc::new(ScriptedApprover::always_respond(ApprovalResponse::Once))
}

/// A tool as a server describes it.
fn tool(name: &str, description: &str) -> Value {
    json!({
        "name": name, "description": description,
        "inputSchema": { "type": "object", "properties": { "text": { "type": "string" } } },
    })
}

/// A server with one tool that returns its text.
fn echo(message: &Value) -> Vec<ServerAct> {
    match message["method"].as_str() {
        Some("tools/list") => {
            vec![ServerAct::Answer(json!({ "tools": [tool("echo", "Says it.")] }))]
        }
        Some("tools/call") => {
            let text = message["params"]["arguments"]["text"].as_str().unwrap_or_default();
            vec![ServerAct::Answer(json!({ "content": [{ "type": "text", "text": text }] }))]
        }
        _ => Vec::new(),
    }
}

/// Like [`echo`], with `act` for its calls.
fn calls(
    act: impl Fn(&Value) -> Vec<ServerAct> + Send + Sync,
) -> impl Fn(&Value) -> Vec<ServerAct> {
    move |message| if message["method"] == "tools/call" { act(message) } else { echo(message) }
}
