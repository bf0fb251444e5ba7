//! A call that is dropped at any of its awaits leaves nothing behind (fault 5).

use std::fs::File;
use std::future::{Future, poll_fn};
use std::io::Read as _;
use std::pin::pin;
use std::process::Command;
use std::task::Poll;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tool_sdk::Call;
use tool_sdk::process::{BackgroundCommand, BackgroundProcesses};

use crate::support::Host;

/// Long enough to be a failure.
const HANGS: Duration = Duration::from_secs(60);

/// Drops `future` after it was polled `count` times, and says whether it was ready before.
async fn polled<F: Future>(future: F, count: usize) -> bool {
    let mut future = pin!(future);
    let mut polls = 0;
    let next = poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(_) => Poll::Ready(true),
        Poll::Pending => {
            polls += 1;
            if polls == count { Poll::Ready(false) } else { Poll::Pending }
        }
    });
    next.await
}

/// A pipe that a tree of processes holds open as descriptor 3.
struct Held {
    pipe: std::path::PathBuf,
    both: File,
}

impl Held {
    fn new(host: &Host) -> Self {
        let pipe = host.folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let both = File::options().read(true).write(true).open(&pipe).unwrap();
        Self { pipe, both }
    }

    fn script(&self) -> String {
        format!("exec 3>'{}'; echo a; sleep 300 & sleep 300", self.pipe.display())
    }

    /// Waits until no process holds it open.
    async fn let_go(self) {
        let mut end = File::open(self.pipe).unwrap();
        drop(self.both);
        let ended = spawn_blocking(move || end.read_to_end(&mut Vec::new()));
        timeout(HANGS, ended).await.expect("nobody holds the pipe").unwrap().unwrap();
    }
}

async fn dropped(host: &Host, tool: &'static str, arguments: &Value, count: usize) -> bool {
    let call = host.pipeline.call(&host.session, Call::new(tool, arguments.to_string()));
    polled(call, count).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_dropped_anywhere_ends() {
    for count in 1.. {
        let host = Host::open();
        let held = Held::new(&host);
        let arguments = json!({ "cmd": held.script(), "yield_time_ms": 250 });
        let is_done = dropped(&host, "exec_command", &arguments, count).await;
        let processes = host.session.extension::<BackgroundProcesses>();
        // One that was told of goes on until its conversation ends.
        assert_eq!(processes.list().len(), usize::from(is_done));
        drop((processes, host.session, host.pipeline));
        held.let_go().await;
        if is_done {
            assert!(count > 1, "it has more awaits than that");
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn typing_and_ending_that_is_dropped_anywhere_leaves_the_process_in_order() {
    for tool in ["write_stdin", "kill_session"] {
        for count in 1.. {
            let host = Host::open();
            let held = Held::new(&host);
            let processes = host.session.extension::<BackgroundProcesses>();
            let spawn = BackgroundCommand::new("sh", ["-c", &held.script()]).terminal(true);
            let id = processes.spawn(&spawn).unwrap().id();
            // More than an unread terminal accepts.
            let chars = "x".repeat(20_000);
            let arguments = match tool {
                "write_stdin" => json!({ "session_id": id, "chars": chars }),
                _ => json!({ "session_id": id }),
            };
            let is_done = dropped(&host, tool, &arguments, count).await;
            if let Some(process) = processes.get(id) {
                assert_eq!(process.exit(), None);
                process.kill().await;
            }
            held.let_go().await;
            if is_done {
                break;
            }
        }
    }
}
