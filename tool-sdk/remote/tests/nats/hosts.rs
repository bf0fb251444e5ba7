//! Hosts: names that are in use, namespaces with the same names.

use std::sync::Arc;

use tool_sdk_core::{
    Action, Call, Definition, DynamicTool, Pipeline, Registry, Rule, Schema, Tool, ToolError,
    ToolName, Toolset,
};
use tool_sdk_remote::{Namespace, PermitSigner, Workers, WorkersConfig};

use crate::fixtures::{KEY, LocalWorker, NatsServer, TestHost, worker_config, workers_config};

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
