//! Very many calls at once: afterwards everything is as it was before.
//!
//! The calls are made in a process of their own, because other tests open files meanwhile.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::Handle;

use super::*;

static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Wait a moment.
#[tool(read, register = false)]
async fn linger() -> String {
    RUNNING.fetch_add(1, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(20)).await;
    RUNNING.fetch_sub(1, Ordering::Relaxed);
    "done".to_owned()
}

/// What must be the same before and after: tasks, asks, running tools, open descriptors.
#[derive(Debug, PartialEq)]
struct Held {
    tasks: usize,
    asks: usize,
    running: usize,
    descriptors: usize,
}

impl Held {
    fn by(pipeline: &Pipeline) -> Self {
        let descriptors = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        Self {
            tasks: Handle::current().metrics().num_alive_tasks(),
            asks: pipeline.pending_approvals().len(),
            running: RUNNING.load(Ordering::Relaxed),
            descriptors,
        }
    }
}

/// The most memory that the process ever held, in KiB; nothing where the system does not say.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

async fn call_at_once(pipeline: &Pipeline, calls: usize) {
    let session = Session::new("s");
    let calls: Vec<_> = (0..calls)
        .map(|_| {
            let (pipeline, session) = (pipeline.clone(), session.clone());
            tokio::spawn(async move { pipeline.call(&session, Call::new("linger", "{}")).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().text(), "done");
    }
}

// fault 8: thousands of calls at once leave nothing behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "the next test starts it as a process of its own"]
async fn ten_thousand_calls_at_once() {
    let pipeline = Pipeline::new(Registry::builder().add(tools![linger]).build().unwrap());
    let mut events = pipeline.subscribe();
    call_at_once(&pipeline, 1).await;
    // The one that was awaited is gone once its thread has put it away.
    settle(&pipeline, 0).await;
    let before = Held::by(&pipeline);

    call_at_once(&pipeline, 10_000).await;
    settle(&pipeline, before.tasks).await;
    assert_eq!(Held::by(&pipeline), before);
    let ends = kinds(&mut events).into_iter().filter(|kind| kind == "completed").count();
    assert_eq!(ends, 10_001);
    if let Some(peak) = peak_memory() {
        assert!(peak <= 200 << 10, "{peak} KiB were held");
    }
}

/// Lets the runtime put away the tasks that have ended.
async fn settle(pipeline: &Pipeline, tasks: usize) {
    for _ in 0..1000 {
        if Held::by(pipeline).tasks <= tasks {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn ten_thousand_calls_at_once_leave_nothing_behind() {
    let test = "guards::load::ten_thousand_calls_at_once";
    let ended = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && told.contains("1 passed"), "{told}");
}
