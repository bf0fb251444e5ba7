//! Calls that are dropped half-way.

use super::*;

// A call that is dropped half-way leaves the old file or the new one, and nothing else.
#[test]
fn whoever_leaves_early_leaves_no_litter() {
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
