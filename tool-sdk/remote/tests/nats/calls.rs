//! The main job: tools of workers beside those of the host, called, watched and cancelled.

use std::time::{Duration, Instant};

use serde_json::json;
use tool_sdk_core::{Call, CallUpdate, ErrorKind, EventKind};

use crate::fixtures::{HANGS, LocalWorker, NatsServer, TestHost, worker_config, worker_pipeline};

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_calls_tools_of_two_workers_beside_its_own() {
    let Some(server) = NatsServer::start().await else { return };
    let host = TestHost::start(&server).await;
    assert_eq!(host.tool_names(), ["hello"]);
    let (one, two) = (LocalWorker::start(&server).await, LocalWorker::start(&server).await);
    host.wait_for_workers(2).await;
    let names = host.tool_names();
    assert!(names.contains(&"hello".to_owned()), "{names:?}");
    assert!(names.contains(&"remote__demo__add".to_owned()), "{names:?}");

    let mut workers = std::collections::BTreeSet::new();
    for n in 0..20 {
        let call = Call::new("remote__demo__add", json!({ "a": n, "b": 1 }).to_string());
        let outcome = host.pipeline.call(&host.session, call).await;
        let output = outcome.result.unwrap();
        assert_eq!(output.as_text(), (n + 1).to_string());
        workers.insert(output.metadata_map().unwrap()["worker"].as_str().unwrap().to_owned());
    }
    assert_eq!(workers, [one.id.clone(), two.id.clone()].into(), "both get calls");

    let stats = host.workers.stats().await.unwrap();
    assert_eq!(stats.iter().map(|it| it.calls).sum::<u64>(), 20);
    one.stop().await;
    host.wait_for_workers(1).await;
    host.workers.drain(&two.id).await.unwrap();
    two.ended().await;
    host.wait_for_workers(0).await;
    assert_eq!(host.tool_names(), ["hello"]);
}

// RW9
#[tokio::test(flavor = "multi_thread")]
async fn faults_of_arguments_are_found_before_anything_is_sent() {
    let Some(server) = NatsServer::start().await else { return };
    let _worker = LocalWorker::start(&server).await;
    let host = TestHost::start(&server).await;
    host.wait_for_workers(1).await;
    let call = Call::new("remote__demo__add", r#"{"a": "x", "c": 1}"#);
    let error = host.pipeline.call(&host.session, call).await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgs);
    assert_eq!(host.workers.stats().await.unwrap()[0].calls, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_and_output_arrive_in_order() {
    let Some(server) = NatsServer::start().await else { return };
    let _worker = LocalWorker::start(&server).await;
    let host = TestHost::start(&server).await;
    host.wait_for_workers(1).await;
    let call = Call::new("remote__demo__count_slowly", r#"{"to": 5}"#);
    let mut updates = host.pipeline.call_with_events(host.session.clone(), call);
    let (mut steps, mut text) = (Vec::new(), String::new());
    while let Some(update) = updates.next().await {
        match update {
            CallUpdate::Event(event) => match event.kind {
                EventKind::Progress { done, .. } => steps.push(done),
                EventKind::Output { text: part } => text.push_str(&part),
                _ => {}
            },
            CallUpdate::Finished(outcome) => assert_eq!(outcome.text(), "counted to 5"),
        }
    }
    assert_eq!(steps, [1, 2, 3, 4, 5]);
    assert_eq!(text, "1\n2\n3\n4\n5\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_come_too_fast_are_counted() {
    let Some(server) = NatsServer::start().await else { return };
    let _worker = LocalWorker::start(&server).await;
    let host = TestHost::start(&server).await;
    host.wait_for_workers(1).await;
    let call = Call::new("remote__demo__shout", r#"{"times": 3000}"#);
    let mut updates = host.pipeline.call_with_events(host.session.clone(), call);
    let (mut last, mut lost) = (0, 0);
    while let Some(update) = updates.next().await {
        match update {
            CallUpdate::Event(event) => match event.kind {
                EventKind::Progress { done, .. } => {
                    assert_eq!(done, last + lost + 1, "lost ones are told in their place");
                    (last, lost) = (done, 0);
                }
                EventKind::Lost { count } => lost += count,
                _ => {}
            },
            CallUpdate::Finished(outcome) => assert_eq!(outcome.text(), "hoarse"),
        }
    }
    assert_eq!(last + lost, 3000);
    assert!(lost > 0, "a call has 1,024 messages at a time");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_keep_their_kind_and_hint() {
    let Some(server) = NatsServer::start().await else { return };
    let _worker = LocalWorker::start(&server).await;
    let host = TestHost::start(&server).await;
    host.wait_for_workers(1).await;
    let call = Call::new("remote__demo__fail", r#"{"message": "there is no shed"}"#);
    let error = host.pipeline.call(&host.session, call).await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!((error.message(), error.suggestion()), ("there is no shed", Some("look elsewhere")));
}

#[tokio::test(flavor = "multi_thread")]
async fn large_arguments_and_results_go_through_the_object_store() {
    let Some(server) = NatsServer::start().await else { return };
    let _worker = LocalWorker::start(&server).await;
    // No heartbeat comes while the worker digests and decodes a megabyte, which is slow without optimization.
    let config = crate::fixtures::workers_config().lost_after(HANGS).prepare_timeout(HANGS);
    let host = TestHost::start_with(&server, config, ["remote__*"]).await;
    host.wait_for_workers(1).await;
    let text = "0123456789abcdef".repeat(65_000);
    let call = Call::new("remote__demo__repeat", json!({ "text": text, "times": 2 }).to_string());
    let outcome = host.pipeline.call(&host.session, call.max_output(64 << 20)).await;
    assert_eq!(outcome.result.unwrap().as_text().len(), 2 * text.len());
}

// RW8
#[tokio::test(flavor = "multi_thread")]
async fn rules_of_the_worker_that_deny_win() {
    let Some(server) = NatsServer::start().await else { return };
    let pipeline = worker_pipeline(["append(/tmp/secret*)"]);
    let _worker = LocalWorker::start_with(&server, worker_config(), pipeline).await;
    let host = TestHost::start(&server).await;
    host.wait_for_workers(1).await;
    let call = Call::new("remote__demo__append", r#"{"path": "/tmp/secret-of-the-worker"}"#);
    let error = host.pipeline.call(&host.session, call).await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(!std::path::Path::new("/tmp/secret-of-the-worker").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_ends_in_the_worker() {
    let Some(server) = NatsServer::start().await else { return };
    // The worker waits for its running calls, so it ends early only if the call does.
    let config = worker_config().drain_timeout(10 * HANGS);
    let worker = LocalWorker::start_with(&server, config, worker_pipeline([])).await;
    let host = TestHost::start(&server).await;
    host.wait_for_workers(1).await;
    let call =
        Call::new("remote__demo__wait", r#"{"ms": 600000}"#).timeout(Duration::from_millis(200));
    let error = host.pipeline.call(&host.session, call).await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    tokio::time::timeout(HANGS, worker.stop()).await.expect("the call has ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_a_busy_worker_go_elsewhere() {
    let Some(server) = NatsServer::start().await else { return };
    let one =
        || LocalWorker::start_with(&server, worker_config().max_calls(1), worker_pipeline([]));
    let (_one, _two) = (one().await, one().await);
    let host = TestHost::start(&server).await;
    host.wait_for_workers(2).await;
    let call = || {
        let call = Call::new("remote__demo__wait", r#"{"ms": 150}"#);
        host.pipeline.call(&host.session, call)
    };
    let started = Instant::now();
    let outcomes = futures_util::future::join_all((0..6).map(|_| call())).await;
    for outcome in outcomes {
        assert_eq!(outcome.result.unwrap().as_text(), "waited 150 ms");
    }
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(450), "each runs one call at a time: {took:?}");
}

// RW9
#[tokio::test(flavor = "multi_thread")]
async fn the_host_decides_by_what_the_worker_says_the_call_touches() {
    let Some(server) = NatsServer::start().await else { return };
    let _worker = LocalWorker::start(&server).await;
    let folder = tempfile::tempdir().unwrap();
    let rule = format!("remote__demo__append({}/ok-*)", folder.path().display());
    let host = TestHost::start_with(&server, crate::fixtures::workers_config(), [&rule]).await;
    host.wait_for_workers(1).await;
    for (name, is_allowed) in [("ok-1", true), ("other", false)] {
        let path = folder.path().join(name);
        let call = Call::new("remote__demo__append", json!({ "path": path }).to_string());
        let result = host.pipeline.call(&host.session, call).await.result;
        assert_eq!(result.is_ok(), is_allowed, "{name}: {result:?}");
        assert_eq!(path.exists(), is_allowed, "{name}");
    }
}
