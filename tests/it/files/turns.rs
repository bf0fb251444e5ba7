//! Calls of one batch that touch one file: they come one after the other, in their order.

use tool_sdk::Batch;

use super::*;

// F44: by whatever name each of them calls it.
#[tokio::test]
async fn edits_of_one_file_take_turns_however_it_is_spelled() {
    for round in 0..8 {
        let desk = Desk::new(&[("a", "step 0\n"), ("dir/x", "")]);
        std::os::unix::fs::symlink("a", desk.path("link")).unwrap();
        std::os::unix::fs::symlink(".", desk.path("here")).unwrap();
        let absolute = desk.path("a").display().to_string();
        let names = ["a", "./a", &absolute, "link", "here//a", "dir/../a", "a"];
        let calls = names.iter().enumerate().map(|(step, path)| {
            let (old, new) = (format!("step {step}"), format!("step {}", step + 1));
            let edit = json!({ "path": path, "old_string": old, "new_string": new });
            Call::new("edit_file", edit.to_string())
        });
        for (outcome, name) in
            Batch::new(&desk.pipeline).run(&desk.session, calls).await.iter().zip(names)
        {
            assert!(outcome.result.is_ok(), "{round} {name}: {}", outcome.text());
        }
        assert_eq!(desk.text("a"), format!("step {}\n", names.len()));
    }
}
