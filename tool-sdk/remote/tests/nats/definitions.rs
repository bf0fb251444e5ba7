//! Definitions: what a host asks about a tool that is new or has changed.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tool_sdk_core::{
    ApprovalRequest, ApprovalResponse, Approver, Call, Context, Definition, DynamicTool, ErrorKind,
    Pipeline, Registry, Risk, RiskClass, Schema, ToolError, ToolName,
};

use crate::fixtures::{KEY, LocalWorker, NatsServer, TestHost, rounds, runs_in, worker_config};
use tool_sdk_remote::{PermitSigner, WorkersConfig};

/// A worker's pipeline with one tool that writes a line, and describes itself so.
fn pipeline_described(description: String) -> Pipeline {
    let schema = json!({
        "type": "object",
        "properties": { "path": { "type": "string" } },
        "required": ["path"],
    });
    let definition = Definition::new(
        ToolName::from_static("mark"),
        description,
        Schema::from_value(schema).unwrap(),
    )
    .risk(Risk::new(RiskClass::Read));
    let tool = DynamicTool::new(definition, |args: Value, _: Context| async move {
        let path = args["path"].as_str().unwrap_or_default().to_owned();
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(path, before + "line\n").map_err(ToolError::failed)?;
        Ok::<_, ToolError>("marked")
    });
    Pipeline::new(Registry::builder().add(tool).build().unwrap())
}

/// What happens while the user is asked.
type Meanwhile = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

/// Approves each call once, after something else happened, and remembers what it was shown.
#[derive(Clone, Default)]
struct SlowApprover {
    meanwhile: Arc<Mutex<Option<Meanwhile>>>,
    shown: Arc<Mutex<Vec<Value>>>,
}

impl SlowApprover {
    fn shown(&self) -> Vec<Value> {
        self.shown.lock().unwrap().clone()
    }
}

impl Approver for SlowApprover {
    fn request_approval(
        &self,
        request: Arc<ApprovalRequest>,
    ) -> BoxFuture<'static, Option<ApprovalResponse>> {
        self.shown.lock().unwrap().push(request.preview.clone().unwrap_or_default());
        let meanwhile = self.meanwhile.lock().unwrap().take();
        Box::pin(async move {
            if let Some(meanwhile) = meanwhile {
                meanwhile().await;
            }
            Some(ApprovalResponse::Once)
        })
    }
}

async fn asking_host(server: &NatsServer, approver: SlowApprover) -> TestHost {
    let signer = PermitSigner::from_key(KEY).unwrap();
    let config = WorkersConfig::new("demo".parse().unwrap(), signer);
    let mut host = TestHost::start_with(server, config, []).await;
    host.session = host.session.with_approver(approver);
    host
}

// RW9
#[tokio::test(flavor = "multi_thread")]
async fn a_new_definition_is_shown_once() {
    let Some(server) = NatsServer::start().await else { return };
    let describe = |text: &str| pipeline_described(text.to_owned());
    let one = LocalWorker::start_with(&server, worker_config(), describe("Marks.")).await;
    let approver = SlowApprover::default();
    let host = asking_host(&server, approver.clone()).await;
    host.wait_for_workers(1).await;
    let folder = tempfile::tempdir().unwrap();
    let call = || {
        let arguments = json!({ "path": folder.path().join("lines") }).to_string();
        host.pipeline.call(&host.session, Call::new("remote__demo__mark", arguments))
    };
    for _ in 0..2 {
        assert_eq!(call().await.result.unwrap().as_text(), "marked");
        assert_eq!(approver.shown().len(), 1, "the definition is pinned from the first call on");
    }
    assert!(approver.shown()[0]["about"].as_str().unwrap().contains("never run before"));
    one.stop().await;
    let _two = LocalWorker::start_with(&server, worker_config(), describe("Marks all.")).await;
    host.wait_for_workers(1).await;
    assert_eq!(call().await.result.unwrap().as_text(), "marked");
    let shown = approver.shown();
    assert_eq!(shown.len(), 2);
    let difference = shown[1]["unified"].as_str().unwrap();
    assert!(difference.contains("-  \"description\": \"Marks.\""), "{difference}");
    assert!(difference.contains("+  \"description\": \"Marks all.\""), "{difference}");
}

// RW4
#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_changes_after_the_approval_does_not_run() {
    let Some(server) = NatsServer::start().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let approver = SlowApprover::default();
    let host = asking_host(&server, approver.clone()).await;
    let mut worker = LocalWorker::start_with(
        &server,
        worker_config(),
        pipeline_described("Marks 0.".to_owned()),
    )
    .await;
    host.wait_for_workers(1).await;
    for round in 0..rounds() {
        let file = folder.path().join(format!("lines-{round}"));
        let renewed = LocalWorker::start_with(
            &server,
            worker_config(),
            pipeline_described(format!("Marks {}.", round + 1)),
        )
        .await;
        let old = worker;
        *approver.meanwhile.lock().unwrap() = Some(Box::new(|| Box::pin(old.stop())));
        let call = Call::new("remote__demo__mark", json!({ "path": file }).to_string());
        let error = host.pipeline.call(&host.session, call).await.result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("did not run"), "{error}");
        assert_eq!(runs_in(&file), 0);
        assert_eq!(approver.shown().len(), round + 1, "each definition is shown");
        worker = renewed;
        host.wait_for_workers(1).await;
    }
    worker.stop().await;
}
