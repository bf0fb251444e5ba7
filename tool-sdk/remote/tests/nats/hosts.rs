//! Hosts: servers that come late and go, names that are in use, definitions that a person reviews.

use std::sync::Arc;

use tokio::sync::mpsc;
use tool_sdk_core::{
    Action, Call, Definition, DynamicTool, ErrorKind, Pipeline, Registry, Rule, Schema, Session,
    Tool, ToolError, ToolName, ToolPins, Toolset,
};
use tool_sdk_remote::{
    ConnectionStatus, Namespace, PermitSigner, RemoteError, Worker, Workers, WorkersConfig,
};

use crate::fixtures::{
    KEY, LocalWorker, NatsServer, TestHost, worker_config, worker_pipeline, workers_config,
};

/// A tool of this name, which says that it runs on the host.
fn own_tool(name: &'static str, description: &'static str) -> impl Tool {
    let schema = Schema::from_value(serde_json::json!({ "type": "object" })).unwrap();
    let definition = Definition::new(ToolName::from_static(name), description, schema);
    DynamicTool::new(definition, |_: serde_json::Value, _| async { Ok::<_, ToolError>("own") })
}

fn pipeline_with(tools: Vec<Arc<dyn Tool>>) -> Pipeline {
    Pipeline::new(Toolset::new(Registry::builder().add(tools).build().unwrap()))
        .rules([Rule::parse(Action::Allow, "remote__*").unwrap()])
}

async fn wait_for_status(workers: &Workers, wanted: impl Fn(&ConnectionStatus) -> bool) {
    workers.connection().wait_for(wanted).await.unwrap();
}

fn is_disconnected(status: &ConnectionStatus) -> bool {
    matches!(status, ConnectionStatus::Disconnected(_))
}

fn is_connected(status: &ConnectionStatus) -> bool {
    *status == ConnectionStatus::Connected
}

#[tokio::test(flavor = "multi_thread")]
async fn host_and_worker_may_start_before_the_server() {
    let Some(mut server) = NatsServer::start().await else { return };
    server.kill().await;
    let nats = server.config();

    let workers = Workers::connect_in_background(&nats, workers_config());
    let host = TestHost::attach(workers, pipeline_with(vec![Arc::new(own_tool("own", "Own."))]));
    wait_for_status(&host.workers, is_disconnected).await;
    let ConnectionStatus::Disconnected(reason) = host.workers.connection().borrow().clone() else {
        panic!("there is no server");
    };
    assert!(reason.starts_with("cannot connect to the NATS server nats://127.0.0.1:"), "{reason}");
    let error = host.workers.list().await.unwrap_err();
    assert_eq!(error.to_string(), reason);
    assert_eq!(host.tool_names(), ["own"]);

    let (failed, mut failures) = mpsc::unbounded_channel();
    let connecting = tokio::spawn(async move {
        let on_failure = |error: &RemoteError| failed.send(error.to_string()).unwrap();
        let (config, pipeline) = (worker_config(), worker_pipeline([]));
        Worker::connect_with_retry(&nats, config, pipeline, Session::default(), on_failure).await
    });
    assert!(failures.recv().await.unwrap().starts_with("cannot connect to the NATS server"));

    server.restart().await;
    let _worker = LocalWorker::serve(connecting.await.unwrap().unwrap());
    host.wait_for_workers(1).await;
    assert!(host.tool_names().contains(&"remote__demo__add".to_owned()), "{:?}", host.tool_names());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_is_not_waited_for() {
    let access = ["--user", "ada", "--pass", "a password of the tests"];
    let Some(server) = NatsServer::start_with(Box::leak(Box::new(access))).await else { return };
    let nats = server.config();
    let on_failure = |error: &RemoteError| panic!("it is tried again after: {error}");
    let (config, pipeline) = (worker_config(), worker_pipeline([]));
    let refused =
        Worker::connect_with_retry(&nats, config, pipeline, Session::default(), on_failure).await;
    let refused = refused.unwrap_err();
    assert!(matches!(refused, RemoteError::Refused(_)), "{refused:?}");
    assert!(refused.to_string().ends_with("authorization violation"), "{refused}");
    assert!(matches!(
        Workers::connect(&nats, workers_config()).await.unwrap_err(),
        RemoteError::Refused(_)
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_is_told_and_keeps_the_tools() {
    let Some(mut server) = NatsServer::start().await else { return };
    let _worker = LocalWorker::start(&server).await;
    let host = TestHost::start(&server).await;
    host.wait_for_workers(1).await;
    assert_eq!(*host.workers.connection().borrow(), ConnectionStatus::Connected);

    server.kill().await;
    wait_for_status(&host.workers, is_disconnected).await;
    let error = host.workers.list().await.unwrap_err();
    assert_eq!(error.to_string(), "the connection to the NATS server was lost");
    assert!(host.workers.stats().await.is_err());
    assert!(host.tool_names().contains(&"remote__demo__add".to_owned()));
    let call = || {
        let call = Call::new("remote__demo__add", r#"{"a": 1, "b": 2}"#);
        host.pipeline.call(&host.session, call)
    };
    let error = call().await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("did not run"), "{error}");

    server.restart().await;
    wait_for_status(&host.workers, is_connected).await;
    host.wait_for_workers(1).await;
    assert_eq!(call().await.result.unwrap().as_text(), "3");

    host.workers.close();
    assert_eq!(*host.workers.connection().borrow(), ConnectionStatus::Closed);
    assert_eq!(host.tool_names(), ["hello"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_in_use_keeps_no_other_tool_out() {
    let Some(server) = NatsServer::start().await else { return };
    let _one = LocalWorker::start(&server).await;
    let workers = Workers::connect(&server.config(), workers_config()).await.unwrap();
    let own = Arc::new(own_tool("remote__demo__add", "Add, here."));
    let host = TestHost::attach(workers, pipeline_with(vec![own]));
    host.wait_for_workers(1).await;
    let names = host.tool_names();
    assert!(names.contains(&"remote__demo__wait".to_owned()), "{names:?}");
    let call = Call::new("remote__demo__add", "{}");
    assert_eq!(host.pipeline.call(&host.session, call).await.result.unwrap().as_text(), "own");

    // Later changes come through.
    let two = pipeline_with(vec![Arc::new(own_tool("later", "Later."))]);
    let two = LocalWorker::start_with(&server, worker_config(), two).await;
    host.wait_for_workers(2).await;
    assert!(host.tool_names().contains(&"remote__demo__later".to_owned()));
    let left_out = host.workers.left_out_tools();
    assert_eq!(left_out.keys().collect::<Vec<_>>(), ["remote__demo__add"]);
    assert!(left_out["remote__demo__add"].contains("is taken 2 times"), "{left_out:?}");

    // A list that did not change publishes nothing, although a tool is left out.
    let changes = host.pipeline.toolset().subscribe_changes();
    host.workers.list().await.unwrap();
    assert!(!changes.has_changed().unwrap());

    two.stop().await;
    host.wait_for_workers(1).await;
    assert!(!host.tool_names().contains(&"remote__demo__later".to_owned()));

    // The tool comes once its name is free.
    host.workers.attach_to(&pipeline_with(vec![])).unwrap();
    assert_eq!(host.workers.left_out_tools().len(), 0);
    assert_eq!(host.tool_names(), ["remote__demo__add"], "the first toolset has none of them");

    // A toolset may be dropped before another one is attached.
    let other = pipeline_with(vec![]);
    host.workers.attach_to(&other).unwrap();
    assert!(other.toolset().get("remote__demo__add").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_with_the_same_tool_names_are_refused() {
    let Some(server) = NatsServer::start().await else { return };
    let connect = async |namespace: &str| {
        let namespace: Namespace = namespace.parse().unwrap();
        let signer = PermitSigner::from_key(KEY).unwrap();
        Workers::connect(&server.config(), WorkersConfig::new(namespace, signer)).await.unwrap()
    };
    let pipeline = pipeline_with(vec![]);
    let (one, two) = (connect("gpu-pool").await, connect("gpu_pool").await);
    one.attach_to(&pipeline).unwrap();
    one.attach_to(&pipeline).unwrap();
    let refused = two.attach_to(&pipeline).unwrap_err().to_string();
    assert!(refused.contains("`gpu-pool` and `gpu_pool` cannot be used together"), "{refused}");
    let again = connect("gpu-pool").await.attach_to(&pipeline).unwrap_err().to_string();
    assert!(again.contains("`gpu-pool` are attached already"), "{again}");
    one.close();
    two.attach_to(&pipeline).unwrap();
}

// RW9
#[tokio::test(flavor = "multi_thread")]
async fn a_person_reviews_new_and_changed_definitions() {
    let Some(server) = NatsServer::start().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let start = async |description: &'static str| {
        let pipeline = pipeline_with(vec![Arc::new(own_tool("mark", description))]);
        LocalWorker::start_with(&server, worker_config(), pipeline).await
    };
    let one = start("Marks.").await;
    let signer = PermitSigner::from_key(KEY).unwrap();
    let config = WorkersConfig::new("demo".parse().unwrap(), signer)
        .pins(ToolPins::in_folder(folder.path().join("remote")));
    let host = TestHost::start_with(&server, config, ["remote__*"]).await;
    host.wait_for_workers(1).await;

    let first = host.workers.review_definitions().unwrap();
    assert_eq!(first.len(), 1);
    assert_eq!(first[0].tool, "remote__demo__mark");
    assert!(first[0].is_first && !first[0].is_pinned);
    assert!(first[0].text.contains("\"description\": \"Marks.\""), "{}", first[0].text);
    let call = || host.pipeline.call(&host.session, Call::new("remote__demo__mark", "{}"));
    assert!(call().await.result.is_err(), "no user is there to be asked");

    assert!(host.workers.trust_reviewed(&first).unwrap());
    assert!(host.workers.review_definitions().unwrap()[0].is_pinned);
    assert_eq!(call().await.result.unwrap().as_text(), "own");

    one.stop().await;
    let _two = start("Marks all.").await;
    host.wait_for_workers(1).await;
    let changed = host.workers.review_definitions().unwrap();
    assert!(!changed[0].is_first && !changed[0].is_pinned);
    let difference = &changed[0].difference;
    assert!(difference.contains("-  \"description\": \"Marks.\""), "{difference}");
    assert!(difference.contains("+  \"description\": \"Marks all.\""), "{difference}");
    assert!(!host.workers.trust_reviewed(&first).unwrap(), "it is another definition by now");
    assert!(call().await.result.is_err());
    assert!(host.workers.trust_reviewed(&changed).unwrap());
    assert_eq!(call().await.result.unwrap().as_text(), "own");
}
