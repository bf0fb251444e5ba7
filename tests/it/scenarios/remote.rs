//! Through a remote worker, over a NATS server. `NATS_SERVER` names the program of the server; without
//! it the test is skipped, and a line says so.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tool_sdk::remote::{
    NatsConfig, PermitSigner, PermitVerifier, Worker, WorkerConfig, Workers, WorkersConfig,
};
use tool_sdk::{
    ApprovalResponse, Call, CancellationToken, EventKind, Output, Pipeline, Registry,
    ScriptedApprover, Session, ToolError,
};

use super::{Told, check, pipeline, scenarios};

const KEY: &str = "a secret of the scenarios, 32 bytes or more";

/// A NATS server that ends with this value.
struct NatsServer(Child);

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start_server() -> Option<(NatsServer, NatsConfig)> {
    let Some(program) = std::env::var_os("NATS_SERVER") else {
        eprintln!("skipped: NATS_SERVER does not name a program of the NATS server");
        return None;
    };
    // It chooses a port, and tells it in this folder once it listens.
    let folder = tempfile::tempdir().expect("a folder");
    let server = Command::new(program)
        .args(["--addr", "127.0.0.1", "--port", "-1", "--ports_file_dir"])
        .arg(folder.path())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server starts");
    let server = NatsServer(server);
    let start = Instant::now();
    loop {
        let files = std::fs::read_dir(folder.path()).expect("the folder").flatten();
        let texts = files.flat_map(|file| std::fs::read_to_string(file.path()));
        let addresses = texts.filter_map(|text| {
            let ports: serde_json::Value = serde_json::from_str(&text).ok()?;
            ports["nats"][0].as_str().map(str::to_owned)
        });
        if let Some(address) = addresses.last() {
            return Some((server, NatsConfig::new(address).expect("an address")));
        }
        assert!(start.elapsed() < Duration::from_secs(60), "the server does not listen");
        // Nothing tells when a file is written.
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[tokio::test]
async fn through_a_remote_worker() {
    let Some((_server, nats)) = start_server() else { return };
    let verifier = PermitVerifier::from_key(KEY).expect("a key");
    let config = WorkerConfig::new("it".parse().expect("a namespace"), verifier);
    let worker = Worker::connect(&nats, config, pipeline(false), Session::default())
        .await
        .expect("a connection");
    tokio::spawn(worker.serve(CancellationToken::new()));

    let signer = PermitSigner::from_key(KEY).expect("a key");
    let config = WorkersConfig::new("it".parse().expect("a namespace"), signer);
    let workers = Workers::connect(&nats, config.trust_definitions()).await.expect("a connection");
    while workers.list().await.expect("an answer").is_empty() {}
    // A worker does not offer a tool that its rules deny as a whole.
    for scenario in scenarios().iter().filter(|it| it.tool != "forbidden") {
        let host = Pipeline::new(Registry::default());
        let host = match scenario.is_approved {
            true => host.approver(ScriptedApprover::always_respond(ApprovalResponse::Once)),
            false => host,
        };
        workers.attach_to(&host).expect("one namespace");
        let mut events = host.subscribe();
        // An unknown tool is one of the host.
        let name = match scenario.tool {
            "sya" => "sya".to_owned(),
            tool => format!("remote__it__{tool}"),
        };
        let call = Call::new(name, scenario.arguments);
        let outcome = host.call(&Session::default(), call).await;
        let output = outcome.result.as_ref().map_or_else(ToolError::output, Some);
        let goes_well = outcome.result.is_ok();
        let mut told = Told::new(goes_well, outcome.text(), output.and_then(Output::to_structured));
        let attachments = output.map(Output::attachments).unwrap_or_default();
        told.attachments = attachments.iter().map(|it| it.mime.clone()).collect();
        let mut parts = Vec::new();
        while let Some(event) = events.try_recv() {
            if let EventKind::Output { text } = event.kind {
                parts.push(text);
            }
        }
        told.parts = Some(parts);
        check("remote worker", scenario, &told);
    }
}
