//! Faults: workers and servers that are lost while a call runs.
//!
//! Each fault is a round that tells how often the tool ran and what the caller read. A few rounds run
//! here; `REMOTE_FAULT_ROUNDS` sets how many, and `.ci/proofs remote` runs 50.
//!
//! **Invariant:** no call runs twice unless it may, none hangs, and each fault is told.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use tool_sdk_core::{Call, CallUpdate, ErrorKind, EventKind, Outcome};

use crate::fixtures::{
    HANGS, LOST_AFTER, LocalWorker, NatsServer, TestHost, WorkerProcess, rounds, runs_in,
    worker_config, worker_pipeline,
};

/// How long a call whose worker is lost may take at most. The call itself takes longer.
const TOLD_WITHIN: Duration = Duration::from_secs(30);

/// How long a call takes that is not ended by a fault, in milliseconds.
const LONG_MS: u64 = 60_000;

/// Runs a call, and `fault` once the tool has written its line. Returns the outcome, and how long it
/// took after the fault.
async fn call_with_fault(
    host: &TestHost,
    tool: &str,
    file: &Path,
    fault: impl AsyncFnOnce(String),
) -> (Outcome, Duration) {
    let arguments = json!({ "path": file, "ms": LONG_MS }).to_string();
    let call = Call::new(format!("remote__demo__{tool}"), arguments);
    let mut updates = host.pipeline.call_with_events(host.session.clone(), call);
    let mut fault = Some(fault);
    let mut since = Instant::now();
    while let Some(update) = updates.next().await {
        match update {
            CallUpdate::Event(event) => {
                if let EventKind::Progress { done: 1, message, .. } = event.kind
                    && let Some(fault) = fault.take()
                {
                    since = Instant::now();
                    fault(message).await;
                }
            }
            CallUpdate::Finished(outcome) => return (outcome, since.elapsed()),
        }
    }
    panic!("the call has no outcome");
}

fn find_worker(workers: Vec<WorkerProcess>, writer: &str) -> (WorkerProcess, Vec<WorkerProcess>) {
    let (mut found, others): (Vec<_>, Vec<_>) =
        workers.into_iter().partition(|worker| writer == format!("written by {}", worker.pid()));
    (found.pop().unwrap(), others)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_ends_without_its_server() {
    let Some(mut server) = NatsServer::start().await else { return };
    let worker = LocalWorker::start(&server).await;
    server.kill().await;
    let ended = tokio::time::timeout(HANGS, worker.stop()).await;
    assert!(ended.is_ok(), "it waits for the server");
}

// RW7: cancellations need no permit.
#[tokio::test(flavor = "multi_thread")]
async fn cancellations_of_unknown_calls_keep_no_call_from_running() {
    let Some(server) = NatsServer::start().await else { return };
    let _worker = LocalWorker::start(&server).await;
    let host = TestHost::start(&server).await;
    host.wait_for_workers(1).await;
    let client = server.client().await;
    let mut heard = client.subscribe("tools.demo.v1.worker.*.run").await.unwrap();
    client.flush().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let append = || {
        let arguments = json!({ "path": folder.path().join("lines") }).to_string();
        host.pipeline.call(&host.session, Call::new("remote__demo__append", arguments))
    };
    append().await.result.unwrap();
    let run = futures_util::StreamExt::next(&mut heard).await.unwrap().subject.to_string();
    for number in 0..10_000 {
        let subject = run.replace(".run", &format!(".cancel.{number:032x}"));
        client.publish(subject, bytes::Bytes::new()).await.unwrap();
    }
    client.flush().await.unwrap();
    append().await.result.unwrap();
    assert_eq!(runs_in(&folder.path().join("lines")), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_worker_is_told_and_only_reading_is_repeated() {
    let Some(server) = NatsServer::start().await else { return };
    let host = TestHost::start(&server).await;
    let folder = tempfile::tempdir().unwrap();
    for round in 0..rounds() {
        for (tool, is_repeated) in [("append", false), ("look", true)] {
            let workers = vec![server.spawn_worker().await, server.spawn_worker().await];
            host.wait_for_workers(2).await;
            let file = folder.path().join(format!("{tool}-{round}"));
            let mut left = Vec::new();
            let (outcome, took) = call_with_fault(&host, tool, &file, async |writer| {
                let (mut killed, others) = find_worker(workers, &writer);
                killed.kill().await;
                left = others;
            })
            .await;
            assert!(took < TOLD_WITHIN, "{took:?}");
            match is_repeated {
                true => {
                    assert_eq!(outcome.result.unwrap().as_text(), "looked");
                    assert_eq!(runs_in(&file), 2, "once more elsewhere");
                }
                false => {
                    let error = outcome.result.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
                    assert!(error.message().contains("may have run"), "{error}");
                    assert_eq!(runs_in(&file), 1, "never repeated");
                }
            }
            for worker in &mut left {
                worker.kill().await;
            }
            host.wait_for_workers(0).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_worker_is_lost_and_runs_nothing_when_it_comes_back() {
    let Some(server) = NatsServer::start().await else { return };
    let host = TestHost::start(&server).await;
    let folder = tempfile::tempdir().unwrap();
    let mut worker = server.spawn_worker().await;
    for round in 0..rounds() {
        host.wait_for_workers(1).await;
        let file = folder.path().join(format!("append-{round}"));
        let (outcome, took) =
            call_with_fault(&host, "append", &file, async |_| worker.pause().await).await;
        let error = outcome.result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.message().contains("may have run"), "{error}");
        // The host heard the worker before this test saw the progress.
        assert!((LOST_AFTER / 2..TOLD_WITHIN).contains(&took), "{took:?}");
        // A call that is made meanwhile is not prepared, and so does not run later either.
        let late = folder.path().join(format!("late-{round}"));
        let call = Call::new("remote__demo__append", json!({ "path": late }).to_string());
        let started = Instant::now();
        let error = host.pipeline.call(&host.session, call).await.result.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::NotFound), "{error}");
        assert!(started.elapsed() < TOLD_WITHIN);
        worker.resume().await;
        host.wait_for_workers(1).await;
        assert_eq!((runs_in(&file), runs_in(&late)), (1, 0));
    }
    worker.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_tool_is_not_lost() {
    let Some(server) = NatsServer::start().await else { return };
    let _worker = LocalWorker::start(&server).await;
    let host = TestHost::start(&server).await;
    host.wait_for_workers(1).await;
    let ms = 3 * LOST_AFTER.as_millis();
    let call = Call::new("remote__demo__wait", json!({ "ms": ms }).to_string());
    let outcome = host.pipeline.call(&host.session, call).await;
    assert_eq!(outcome.result.unwrap().as_text(), format!("waited {ms} ms"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_loses_no_call_silently() {
    let Some(mut server) = NatsServer::start().await else { return };
    let _worker = LocalWorker::start(&server).await;
    let host = TestHost::start(&server).await;
    let folder = tempfile::tempdir().unwrap();
    for round in 0..rounds() {
        host.wait_for_workers(1).await;
        let file = folder.path().join(format!("append-{round}"));
        let arguments = json!({ "path": file, "ms": 400 }).to_string();
        let call = Call::new("remote__demo__append", arguments);
        let mut updates = host.pipeline.call_with_events(host.session.clone(), call);
        let outcome = loop {
            match updates.next().await.unwrap() {
                CallUpdate::Event(event) => {
                    if matches!(event.kind, EventKind::Progress { done: 1, .. }) {
                        server.kill().await;
                        server.restart().await;
                    }
                }
                CallUpdate::Finished(outcome) => break outcome,
            }
        };
        match outcome.result {
            Ok(output) => assert_eq!(output.as_text(), "appended"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
                assert!(error.message().contains("may have run"), "{error}");
            }
        }
        assert_eq!(runs_in(&file), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_deadline_expires_ends_at_both_ends() {
    let Some(server) = NatsServer::start().await else { return };
    // The worker waits for its running calls, so it ends early only if these have ended.
    let config = worker_config().drain_timeout(10 * HANGS);
    let worker = LocalWorker::start_with(&server, config, worker_pipeline([])).await;
    let host = TestHost::start(&server).await;
    host.wait_for_workers(1).await;
    let folder = tempfile::tempdir().unwrap();
    for round in 0..rounds() {
        let mut limit = Duration::from_millis(150);
        loop {
            let file = folder.path().join(format!("append-{round}-{}", limit.as_millis()));
            let arguments = json!({ "path": file, "ms": 10 * LONG_MS }).to_string();
            let call = Call::new("remote__demo__append", arguments).timeout(limit);
            let call = host.pipeline.call(&host.session, call);
            let outcome = tokio::time::timeout(limit + HANGS, call).await.expect("it expires");
            let error = outcome.result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
            if runs_in(&file) == 1 {
                break;
            }
            // It expired before it reached the worker.
            limit *= 2;
            assert!(limit < HANGS, "no call reaches the worker");
        }
    }
    tokio::time::timeout(HANGS, worker.stop()).await.expect("the calls have ended");
}
