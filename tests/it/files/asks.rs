//! What is shown before a file is written, and that nothing else is written.

use tool_sdk::Batch;

use super::*;

// F174
#[tokio::test]
async fn every_ask_carries_the_difference() {
    let diff = "--- f\n+++ f\n@@ -1 +1 @@\n-old\n+new\n";
    for (tool, arguments) in [
        ("write_file", json!({ "path": "f", "content": "new\n" })),
        ("edit_file", json!({ "path": "f", "old_string": "old", "new_string": "new" })),
        ("apply_patch", json!({ "input": patch("*** Update File: f\n@@\n-old\n+new") })),
    ] {
        let desk = Desk::with_rules(&[("f", "old\n")], &[]).answering(false);
        assert_eq!(desk.error(tool, arguments).await.kind(), ErrorKind::Denied);
        let preview = desk.preview();
        assert_eq!(preview["unified"], diff, "{tool}");
        assert_eq!((&preview["added"], &preview["removed"]), (&json!(1), &json!(1)));
        assert_eq!(desk.text("f"), "old\n");
    }
}

// F140: a person is not asked about a call that cannot run; where the file is hidden by an `ask` rule,
// the person reads why the call would fail.
#[tokio::test]
async fn a_call_that_cannot_run_is_not_asked_about() {
    let edit = |path: &str| json!({ "path": path, "old_string": "nope", "new_string": "new" });
    let patch = |body: &str| json!({ "input": patch(body) });
    for (tool, arguments, part) in [
        ("edit_file", edit("f"), "not in the file"),
        ("edit_file", edit("g"), "there is no `g`"),
        ("apply_patch", patch("*** Update File: f\n@@\n-nope\n+new"), "find"),
        ("apply_patch", patch("*** Add File: n\n+n\n*** Delete File: g"), "there is no `g`"),
        ("write_file", json!({ "path": "f/x", "content": "new" }), "is not a folder"),
    ] {
        let ask = ["ask read(secret)"];
        let desk = Desk::with_rules(&[("f", "old\n"), ("secret", "s\n")], &ask).answering(true);
        let error = desk.error(tool, arguments).await;
        assert!(error.to_string().contains(part), "{tool}: {error}");
        assert_eq!(desk.asked(), 0, "{tool}");
        assert_eq!(desk.files(), named(&[("f", "old\n"), ("secret", "s\n")]));
        desk.error("edit_file", edit("secret")).await;
        assert_eq!(desk.asked(), 1, "what the file says has to be asked for");
        assert!(desk.preview()["error"].as_str().unwrap().contains("may not be read"));
    }
    let desk = Desk::with_rules(&[("f", "old\n")], &[]).answering(false);
    desk.pipeline.set_mode(Mode::Strict);
    assert_eq!(desk.error("edit_file", edit("f")).await.kind(), ErrorKind::Denied);
    assert!(desk.preview()["error"].as_str().unwrap().contains("not in the file"));
}

/// Says yes, after it changed the file that it was asked about.
struct Meddling(PathBuf, &'static str);

impl Approver for Meddling {
    fn request_approval(
        &self,
        _: Arc<ApprovalRequest>,
    ) -> Pin<Box<dyn Future<Output = Option<ApprovalResponse>> + Send>> {
        fs::write(&self.0, self.1).unwrap();
        Box::pin(std::future::ready(Some(ApprovalResponse::Once)))
    }
}

// F174, F142: the text that the preview showed is the one that is replaced, and no other.
#[tokio::test]
async fn what_was_shown_is_what_is_replaced() {
    for (files, meanwhile) in [(&[("f", "old\n")][..], "theirs\n"), (&[], "theirs\n")] {
        let mut desk = Desk::with_rules(files, &[]);
        let meddling = Meddling(desk.path("f"), meanwhile);
        desk.pipeline = desk.pipeline.approver(meddling);
        let write = json!({ "path": "f", "content": "new\n" });
        let error = desk.error("write_file", write.clone()).await;
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert_eq!(desk.files(), named(&[("f", meanwhile)]));
        // Asked again, they see what is there now.
        desk.ok("write_file", write).await;
        assert_eq!(desk.text("f"), "new\n");
    }
    // A patch does the same with all that goes as a whole.
    let move_to = "*** Update File: f\n*** Move to: g\n@@\n-old\n+new";
    for (body, files, changed) in [
        ("*** Delete File: f", &[("f", "old\n")][..], "f"),
        ("*** Add File: f\n+new", &[("f", "old\n")], "f"),
        ("*** Add File: f\n+new", &[], "f"),
        (move_to, &[("f", "old\n")], "g"),
        (move_to, &[("f", "old\n"), ("g", "lost\n")], "g"),
    ] {
        let mut desk = Desk::with_rules(files, &[]);
        let meddling = Meddling(desk.path(changed), "theirs\n");
        desk.pipeline = desk.pipeline.approver(meddling);
        let error = desk.patch(body).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{body}: {error}");
        let mut expected = named(files);
        expected.retain(|(name, _)| name != changed);
        expected.push((changed.to_owned(), "theirs\n".to_owned()));
        expected.sort();
        assert_eq!(desk.files(), expected, "{body}");
    }
}

// F174, F140, F143: an edit quotes what it replaces, and so it may go on in a file that was
// changed elsewhere; but the lines that go and come are those that were shown.
#[tokio::test]
async fn an_edit_changes_the_lines_that_were_shown() {
    let edit = |old: &str, all: bool| json!({ "path": "f", "old_string": old, "new_string": "new\n", "replace_all": all });
    let hunk = |lines: &str| json!({ "input": patch(&format!("*** Update File: f\n{lines}")) });
    for (tool, arguments, old, meanwhile, expected) in [
        ("edit_file", edit("old\n", false), "old\n", "more\nold\n", Some("more\nnew\n")),
        ("edit_file", edit("old\n", true), "old\nb\n", "b\nold\n", Some("b\nnew\n")),
        // More places, another line around the place, or a looser match.
        ("edit_file", edit("old\n", true), "old\n", "old\nb\nold\n", None),
        ("edit_file", edit("old\n", true), "old\nb\nold\n", "old\nb\n", None),
        ("edit_file", edit("ld\n", false), "old\n", "told\n", None),
        ("edit_file", edit("old\n", false), "old\n", "b\nold  \n", None),
        ("apply_patch", hunk("@@\n-old\n+new"), "old\n", "more\nold\n", Some("more\nnew\n")),
        ("apply_patch", hunk("@@\n-old\n+new"), "old\n", "more\n  old\n", None),
        ("apply_patch", hunk("@@\n old\n+new"), "old\n", "c\nold \n", Some("c\nold \nnew\n")),
    ] {
        let mut desk = Desk::with_rules(&[("f", old)], &[]);
        let meddling = Meddling(desk.path("f"), meanwhile);
        desk.pipeline = desk.pipeline.approver(meddling);
        let case = format!("{tool} {arguments} {meanwhile:?}");
        match (desk.call(tool, arguments).await.result, expected) {
            (Ok(_), Some(expected)) => assert_eq!(desk.text("f"), expected, "{case}"),
            (Err(error), None) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{case}: {error}");
                assert_eq!(desk.text("f"), meanwhile, "{case}");
            }
            (result, _) => panic!("{case}: {result:?}"),
        }
    }
}

// F174: who was shown a file before an earlier call of the same batch changed it is told that,
// and not that others did.
#[tokio::test]
async fn who_changed_a_file_is_not_made_up() {
    let desk = Desk::with_rules(&[("f", "old\n")], &[]).answering(true);
    let write = |text: &str| {
        let arguments = json!({ "path": "f", "content": text });
        Call::new("write_file", arguments.to_string())
    };
    let batch = Batch::new(&desk.pipeline);
    let outcomes = batch.run(&desk.session, vec![write("one\n"), write("two\n")]).await;
    let results: Vec<_> = outcomes.into_iter().map(|outcome| outcome.result).collect();
    assert!(results[0].is_ok());
    let error = results[1].as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let told = "`f` was changed since it was looked at for this call, and was not written";
    assert_eq!(error.message(), told);
    assert_eq!(desk.text("f"), "one\n");
}

// F174, F140: a file that gets another name may take the place of one that is lost then.
#[tokio::test]
async fn what_is_lost_where_a_file_goes_is_shown() {
    let moved = "--- f\n+++ sub/g\n";
    let hunk = "@@ -1 +1 @@\n-old\n+new\n";
    let lost = "--- sub/g\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-lost\n-too\n";
    for (there, lines, expected, counted) in [
        (None, "-old\n+new", format!("{moved}{hunk}"), (1, 1)),
        (Some("lost\ntoo\n"), "-old\n+new", format!("{moved}{hunk}{lost}"), (1, 3)),
        (Some("lost\ntoo\n"), " old", format!("{moved}{lost}"), (0, 2)),
    ] {
        let files: Vec<_> =
            there.map(|text| ("sub/g", text)).into_iter().chain([("f", "old\n")]).collect();
        let desk = Desk::with_rules(&files, &[]).answering(false);
        let body = format!("*** Update File: f\n*** Move to: sub/g\n@@\n{lines}");
        desk.patch(&body).await.unwrap_err();
        let preview = desk.preview();
        assert_eq!(preview["unified"], expected);
        assert_eq!(
            (&preview["added"], &preview["removed"]),
            (&counted.0.into(), &counted.1.into())
        );
    }
}

// F140: one ask for all files of a patch.
#[tokio::test]
async fn a_patch_asks_once() {
    let desk = Desk::with_rules(&[("a", "1\n"), ("b", "1\n")], &[]).answering(true);
    let body =
        "*** Update File: a\n@@\n-1\n+2\n*** Update File: b\n@@\n-1\n+2\n*** Add File: c\n+3";
    desk.patch(body).await.unwrap();
    let asks = desk.asked.asks.lock().unwrap();
    let subjects: Vec<_> = asks[0].subjects.iter().map(|subject| subject.text()).collect();
    assert_eq!((asks.len(), subjects), (1, vec!["a", "b", "c"]));
}

// PA7: a rule that allows edits does not allow changes of files that run later.
#[tokio::test]
async fn files_that_run_later_need_approval_despite_allow_rules() {
    let calls = [
        ("write_file", json!({ "path": ".git/hooks/pre-commit", "content": "x" })),
        ("edit_file", json!({ "path": ".envrc", "old_string": "a", "new_string": "b" })),
        (
            "apply_patch",
            json!({ "input": patch("*** Add File: x\n+x\n*** Add File: .git/config\n+x") }),
        ),
    ];
    for (tool, arguments) in calls {
        let desk = Desk::new(&[(".envrc", "a")]);
        let before = desk.files();
        assert_eq!(desk.error(tool, arguments.clone()).await.kind(), ErrorKind::Denied, "{tool}");
        assert_eq!(desk.files(), before);
        let decision = serde_json::to_value(desk.check(tool, arguments.clone()).await).unwrap();
        assert_eq!(decision["decision"], "ask", "{tool}");

        let desk = desk.answering(true);
        desk.ok(tool, arguments).await;
        let asks = desk.asked.asks.lock().unwrap();
        assert_eq!(asks[0].subjects[0].permission(), Some("protected_path"), "{tool}");
    }
    let desk = Desk::with_rules(&[], &["allow edit", "allow protected_path(.vscode/*)"]);
    desk.ok("write_file", json!({ "path": ".vscode/tasks.json", "content": "{}" })).await;
}
