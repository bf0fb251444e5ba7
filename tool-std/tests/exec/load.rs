//! A load test with many calls at once, many of which run a program: afterwards no resource is
//! left.
//!
//! It runs in a process of its own, because other tests open files at the same time.

use std::fs;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::runtime::Handle;
use tool_sdk::process::BackgroundProcesses;

use super::support::*;

const CALLS: usize = 10_000;
/// Each tenth call runs a program.
const PROGRAMS: usize = CALLS / 10;

/// What must not grow.
#[derive(Clone, Copy, Debug)]
struct Held {
    tasks: usize,
    descriptors: usize,
    children: usize,
}

impl Held {
    fn now() -> Self {
        let tasks = Handle::current().metrics().num_alive_tasks();
        let count = |folder: &str| fs::read_dir(folder).map_or(0, Iterator::count);
        let of_task = |task: fs::DirEntry| fs::read_to_string(task.path().join("children"));
        let children = fs::read_dir("/proc/self/task").map_or(0, |tasks| {
            let texts = tasks.flatten().filter_map(|task| of_task(task).ok());
            texts.map(|text| text.split_whitespace().count()).sum()
        });
        Self { tasks, descriptors: count("/proc/self/fd"), children }
    }

    fn is_within(self, most: Self) -> bool {
        self.tasks <= most.tasks
            && self.descriptors <= most.descriptors
            && self.children <= most.children
    }

    /// Waits until no more than `most` is held: the runtime puts away what has ended a moment later.
    async fn settle(most: Self) -> Self {
        let start = Instant::now();
        loop {
            let held = Self::now();
            if held.is_within(most) {
                return held;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{held:?} of {most:?} are held");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// The most memory that this process ever held, in KiB.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}

async fn call(host: Arc<Host>, number: usize, ended: Arc<Mutex<Vec<usize>>>) {
    if !number.is_multiple_of(10) {
        host.call("list_sessions", json!({})).await;
        return;
    }
    let report = host.call("shell", json!({ "command": ["echo", number.to_string()] })).await;
    assert_eq!(output(&report), format!("{number}\n"));
    ended.lock().unwrap().push(number / 10);
}

async fn call_at_once(host: &Arc<Host>, calls: usize) -> Vec<usize> {
    let ended = Arc::<Mutex<Vec<usize>>>::default();
    let all: Vec<_> = (0..calls)
        .map(|number| tokio::spawn(call(Arc::clone(host), number, Arc::clone(&ended))))
        .collect();
    for one in all {
        one.await.unwrap();
    }
    std::mem::take(&mut *ended.lock().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "the next test starts it as a process of its own"]
async fn a_thousand_programs_among_ten_thousand_calls() {
    let host = Arc::new(Host::open());
    call_at_once(&host, 1).await;
    let before = Held { tasks: 0, descriptors: usize::MAX, children: usize::MAX };
    let before = Held::settle(before).await;

    let ended = call_at_once(&host, CALLS).await;
    Held::settle(before).await;
    assert!(host.session.extension::<BackgroundProcesses>().list().is_empty());
    assert_eq!(ended.len(), PROGRAMS);
    // They had their turns in the order in which they came, and some took longer than others.
    let last = &ended[PROGRAMS - 100..];
    assert!(last.iter().all(|&number| number >= PROGRAMS / 2), "{last:?}");
    let peak = peak_memory();
    assert!(peak <= 200 << 10, "{peak} KiB were held");
}

// fault 8: no descriptor, task or program is left, and no call is overtaken
#[test]
fn a_thousand_programs_among_ten_thousand_calls_leave_nothing_behind() {
    let test = "load::a_thousand_programs_among_ten_thousand_calls";
    let ended = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ended.stdout);
    let cause = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && told.contains("1 passed"), "{told}{cause}");
}
