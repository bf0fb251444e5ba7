//! Very many calls at once: afterwards everything is as it was before.
//!
//! The calls are made in a process of their own, because other tests open files meanwhile.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

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

/// What must not grow: tasks, asks, running tools, open descriptors.
#[derive(Clone, Copy, Debug)]
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

    fn is_within(self, most: Self) -> bool {
        let pairs = [
            (self.tasks, most.tasks),
            (self.asks, most.asks),
            (self.running, most.running),
            (self.descriptors, most.descriptors),
        ];
        pairs.into_iter().all(|(held, most)| held <= most)
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
    let none = Held { tasks: 0, asks: 0, running: 0, descriptors: usize::MAX };
    let before = settle(&pipeline, none).await;

    call_at_once(&pipeline, 10_000).await;
    settle(&pipeline, before).await;
    let ends = kinds(&mut events).into_iter().filter(|kind| kind == "completed").count();
    assert_eq!(ends, 10_001);
    if let Some(peak) = peak_memory() {
        assert!(peak <= 200 << 10, "{peak} KiB were held");
    }
}

/// Waits until no more than `most` is held: a task that was awaited is gone once its thread has put it away.
async fn settle(pipeline: &Pipeline, most: Held) -> Held {
    let start = Instant::now();
    loop {
        let held = Held::by(pipeline);
        if held.is_within(most) {
            return held;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{held:?} of {most:?} are held");
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
