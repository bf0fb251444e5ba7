//! Calls that are dropped half-way.

use std::time::{Duration, Instant};

use tool_sdk::CancellationToken;

use super::*;

// A call that is dropped half-way leaves the old file or the new one, and nothing else.
#[test]
fn a_dropped_call_leaves_no_temporary_files() {
    let calls = [
        ("write_file", json!({ "path": "f", "content": "new" })),
        ("write_file", json!({ "path": "deep/down/f", "content": "new" })),
        ("edit_file", json!({ "path": "f", "old_string": "old", "new_string": "new" })),
        ("apply_patch", json!({ "input": patch("*** Delete File: g\n*** Add File: f\n+new") })),
    ];
    for (tool, arguments) in calls {
        for polls in 0..12 {
            let desk = Desk::new(&[("f", "old"), ("g", "g")]);
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async {
                let mut call = pin!(desk.call(tool, arguments.clone()));
                let mut context = std::task::Context::from_waker(Waker::noop());
                for _ in 0..polls {
                    if call.as_mut().poll(&mut context).is_ready() {
                        break;
                    }
                    tokio::task::yield_now().await;
                    std::thread::yield_now();
                }
            });
            // Waits for the threads that still work.
            drop(runtime);
            for (path, text) in desk.files() {
                let known = match &*path {
                    "f" => ["old", "new", "new\n"].contains(&&*text),
                    "g" => text == "g",
                    "deep/down/f" => text == "new",
                    _ => false,
                };
                assert!(known, "{tool} after {polls}: `{path}` is {text:?}");
            }
            let is_whole = desk.path("deep/down/f").exists() || !desk.path("deep").exists();
            assert!(is_whole, "{tool} after {polls}: empty folders");
        }
    }
}

// Whatever a cancelled call did to files is told: it succeeds with all of it, or did nothing.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_cancelled_call_changed_is_told() {
    const FILES: usize = 200;
    let body: String =
        (0..FILES).map(|at| format!("*** Add File: d{}/f{at}\n+new\n", at % 9)).collect();
    let arguments = json!({ "input": patch(body.trim_end()) }).to_string();
    for round in 0..20 {
        let desk = Desk::new(&[]);
        let cancel = CancellationToken::new();
        let (first, token) = (desk.path("d0/f0"), cancel.clone());
        // When the first file shows, all of them are about to.
        let watcher = std::thread::spawn(move || {
            let late = Instant::now() + Duration::from_secs(10);
            while !first.exists() && Instant::now() < late {
                std::hint::spin_loop();
            }
            token.cancel();
        });
        let call = Call::new("apply_patch", arguments.as_str()).cancelled_by(cancel);
        let outcome = desk.pipeline.call(&desk.session, call).await;
        let expected = match &outcome.result {
            Ok(_) => FILES,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Aborted, "{error}");
                0
            }
        };
        assert_eq!(desk.files().len(), expected, "{round}: {}", outcome.text());
        watcher.join().unwrap();
    }
}
