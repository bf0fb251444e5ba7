//! What a patch does to files, and what it refuses.

use tool_sdk::Batch;

use super::*;

// F140
#[tokio::test]
async fn a_patch_changes_many_files_at_once() {
    let desk = Desk::new(&[("a", "1\n2\n3\n"), ("old/name", "x\n"), ("gone", "bye\n")]);
    let output = desk
        .patch(concat!(
            "*** Delete File: gone\n",
            "*** Update File: a\n@@\n 1\n-2\n+two\n",
            "*** Update File: old/name\n*** Move to: new/name\n@@\n-x\n+y\n",
            "*** Add File: deep/er\n+new"
        ))
        .await
        .unwrap();
    assert_eq!(
        output.as_text(),
        "Success. Updated the following files:\nA deep/er\nM a\nM new/name\nD gone"
    );
    let expected = [("a", "1\ntwo\n3\n"), ("deep/er", "new\n"), ("new/name", "y\n")];
    assert_eq!(desk.files(), named(&expected));
    let shown = output.display_data().unwrap();
    assert_eq!((&shown["type"], &shown["added"]), (&json!("diff"), &json!(3)));
    let operations: Vec<_> =
        shown["files"].as_array().unwrap().iter().map(|file| file["operation"].clone()).collect();
    assert_eq!(operations, ["delete", "edit", "move", "create"]);
}

// F140: nobody takes what was replaced for something new.
#[tokio::test]
async fn a_file_that_is_added_over_another_was_changed() {
    let desk = Desk::new(&[("a", "old\n")]);
    let output = desk.patch("*** Add File: a\n+new").await.unwrap();
    assert_eq!(output.as_text(), "Success. Updated the following files:\nM a");
    let shown = output.display_data().unwrap();
    assert_eq!(shown["files"][0]["operation"], "edit");
    assert!(shown["unified"].as_str().unwrap().contains("\n-old\n+new\n"), "{shown}");
    assert_eq!(desk.files(), named(&[("a", "new\n")]));
}

// F140: what is beside many files until all of them fit goes when one does not.
#[tokio::test]
async fn of_many_files_all_are_changed_or_none() {
    let names: Vec<String> = (0..40).map(|at| format!("dir/{at:02}")).collect();
    let desk = Desk::new(&names.iter().map(|name| (&**name, "a\nold\n")).collect::<Vec<_>>());
    let body = |last: &str| -> String {
        let update = |name: &String| format!("*** Update File: {name}\n@@\n a\n-old\n+new\n");
        let updates: String = names.iter().map(update).collect();
        format!("{updates}*** Add File: more/new\n+x\n{last}").trim_end().to_owned()
    };
    let all = |text| names.iter().map(move |name| (&**name, text)).collect::<Vec<_>>();

    let error = desk.patch(&body("*** Delete File: dir/no")).await.unwrap_err();
    assert!(error.message().contains("there is no `dir/no`"), "{error}");
    assert_eq!(desk.files(), named(&all("a\nold\n")));

    let output = desk.patch(&body("")).await.unwrap();
    assert_eq!(output.display_data().unwrap()["added"], 41);
    assert_eq!(desk.files(), named(&[&all("a\nnew\n")[..], &[("more/new", "x\n")]].concat()));
}

// F140: everything is verified first, and nobody is asked about what cannot be read.
#[tokio::test]
async fn a_patch_that_does_not_fit_changes_nothing() {
    let files = [("a", "1\n2\n"), ("dir/b", "b\n")];
    let add = "*** Add File: new\n+x\n";
    for (body, kind, says) in [
        ("*** Update File: a\n@@\n-3\n+4", ErrorKind::Failed, "Failed to find expected lines"),
        (
            "*** Update File: a\n@@\n-2\n+4\n@@\n-1",
            ErrorKind::Failed,
            "line 1 says that, and is not",
        ),
        ("*** Update File: a\n@@\n-1\n*** End of File", ErrorKind::Failed, "are at the end"),
        ("*** Update File: a\n@@ -1,2 +1 @@ 1\n-2", ErrorKind::Failed, "has no line numbers"),
        ("*** Update File: a\n@@ - 2 @@\n-2", ErrorKind::Failed, "Failed to find context"),
        ("*** Update File: no\n@@\n-3\n+4", ErrorKind::Failed, "there is no `no`"),
        ("*** Delete File: no", ErrorKind::Failed, "there is no `no`"),
        ("*** Update File: no\n@@\n-3\n+4", ErrorKind::Failed, "Failed to read file to update"),
        ("*** Delete File: dir", ErrorKind::Failed, "a folder"),
        ("*** Update File: dir\n@@\n-1\n+2", ErrorKind::Failed, "a folder"),
        ("*** Add File: a/b\n+x", ErrorKind::NotFound, "not a folder"),
        ("*** Add File: q/y\n+y\n*** Add File: q\n+q", ErrorKind::InvalidArgs, "`q/y` cannot be"),
        ("*** Delete File: a\n*** Add File: a/b\n+x", ErrorKind::InvalidArgs, "below `a`"),
        ("*** Add File: new\n+y", ErrorKind::InvalidArgs, "two operations"),
        ("*** Frobnicate File: a", ErrorKind::InvalidArgs, "Invalid patch"),
        ("*** Update File: a\n*** Move to: /etc/x\n@@\n-1\n+2", ErrorKind::Denied, "external"),
    ] {
        let desk = Desk::new(&files);
        let error = desk.patch(&format!("{add}{body}")).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{body}: {error}");
        let is_verified = error.message().starts_with("apply_patch verification failed: ");
        assert_eq!(is_verified, kind != ErrorKind::Denied, "{body}: {error}");
        assert!(error.to_string().contains(says), "{body}: {error}");
        assert_eq!(desk.files(), named(&files), "{body}");
    }
    let desk = Desk::with_rules(&files, &[]).answering(true);
    assert_eq!(desk.patch("nothing").await.unwrap_err().kind(), ErrorKind::InvalidArgs);
    let empty = json!({ "input": "*** Begin Patch\n*** End Patch" });
    assert_eq!(
        desk.error("apply_patch", empty).await.message(),
        "apply_patch verification failed: patch rejected: empty patch. No files were modified."
    );
    assert!(desk.asked.asks.lock().unwrap().is_empty());
}

// F140: the cases of another system; `tool-std/tests/fixtures` says whose they are.
#[tokio::test]
async fn patches_do_to_files_what_the_cases_say() {
    let text = include_str!("../../../tool-std/tests/fixtures/opencode-apply-patch/cases.json");
    let fixture: Value = serde_json::from_str(text).unwrap();
    let cases = fixture["cases"].as_array().unwrap();
    let mut compared = 0;
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let before: Vec<_> = case["files"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(k, v)| (&**k, v.as_str().unwrap()))
            .collect();
        let desk = Desk::new(&before);
        for folder in case["dirs"].as_array().into_iter().flatten() {
            fs::create_dir(desk.path(folder.as_str().unwrap())).unwrap();
        }
        let before = desk.files();
        let found = desk.call("apply_patch", json!({ "input": case["patch"] })).await.result;
        if let Some(words) = case["error_contains"].as_str() {
            // Their words, all of them: models were trained on these.
            let error = found.expect_err(name);
            assert!(error.message().contains(words), "{name}: {error}");
            assert_eq!(desk.files(), before, "{name}");
        } else if case["conflict"].is_null() {
            assert!(found.is_ok(), "{name}: {found:?}");
            for (path, text) in case["expected_files"].as_object().unwrap() {
                assert_eq!(&desk.text(path), text.as_str().unwrap(), "{name}");
            }
        } else {
            // How the last line ends is decided otherwise here; the engine's tests say how.
            assert!(found.is_ok(), "{name}: {found:?}");
            continue;
        }
        compared += 1;
    }
    assert!(compared > 15, "{compared}");
}

// F140: two names of one file are one file.
#[cfg(unix)]
#[tokio::test]
async fn a_patch_may_not_reach_a_file_twice_through_a_link() {
    let desk = Desk::new(&[("a", "1\n")]);
    std::os::unix::fs::symlink("a", desk.path("b")).unwrap();
    let body = "*** Update File: a\n@@\n-1\n+2\n*** Update File: b\n@@\n-1\n+3";
    let error = desk.patch(body).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgs);
    assert!(error.message().contains("another name"), "{error}");
    assert_eq!(desk.text("a"), "1\n");
}

// F140, F142, F143: the memory for a file grows with its lines, and so there is a limit to them.
#[tokio::test]
async fn a_file_of_too_many_lines_is_not_changed() {
    let text = "\n".repeat(2_000_001);
    let desk = Desk::new(&[("f", &text)]);
    for (tool, arguments) in [
        ("edit_file", json!({ "path": "f", "old_string": "a", "new_string": "b" })),
        ("write_file", json!({ "path": "f", "content": "b" })),
        ("apply_patch", json!({ "input": patch("*** Update File: f\n@@\n-a\n+b") })),
        ("apply_patch", json!({ "input": patch("*** Delete File: f") })),
    ] {
        let error = desk.error(tool, arguments).await.to_string();
        assert!(error.contains("more than two million lines"), "{tool}: {error}");
    }
    assert!(desk.text("f") == text);
}

// F142: a text in another encoding does not change it in silence; ends of lines that stay do not
// change.
#[tokio::test]
async fn what_is_replaced_says_what_it_was() {
    let desk = Desk::new(&[("mixed", "a\r\nb\nc\n")]);
    let write = |path, content| ("write_file", json!({ "path": path, "content": content }));
    let told = async |(tool, args)| desk.ok(tool, args).await.as_text().to_owned();
    fs::write(desk.path("wide"), [0xff, 0xfe, b'x', 0, b'\n', 0]).unwrap();
    fs::write(desk.path("latin"), [b'x', 0xe9, b'\n']).unwrap();
    assert!(told(write("wide", "x\n")).await.contains("was UTF-16 text"));
    assert!(told(write("latin", "x\n")).await.contains("was not UTF-8 text"));
    assert!(!told(write("latin", "y\n")).await.contains("Note"));
    let _ = told(write("mixed", "a\nb\nc\nd\n")).await;
    assert_eq!(desk.text("mixed"), "a\r\nb\nc\nd\r\n");

    // What a patch adds over a file replaces it in the same way.
    fs::write(desk.path("latin"), [b'x', 0xe9, b'\r', b'\n']).unwrap();
    fs::write(desk.path("marked"), "\u{feff}a\r\nb\r\n").unwrap();
    let add = "*** Add File: latin\n+x\n*** Add File: marked\n+a\n+c";
    let output = desk.patch(add).await.unwrap();
    assert!(output.as_text().ends_with("\nNote: latin was not UTF-8 text, and is now."));
    assert_eq!(desk.text("latin"), "x\r\n");
    assert_eq!(desk.text("marked"), "\u{feff}a\r\nc\r\n");
}

// F140: what no tool would change any more is not made.
#[tokio::test]
async fn a_file_does_not_get_too_many_lines() {
    let text = "\n".repeat(2_000_000);
    let desk = Desk::new(&[("f", &text)]);
    let error = desk.patch("*** Update File: f\n@@\n+one more").await.unwrap_err();
    assert!(error.message().contains("would have more than"), "{error}");
    assert!(desk.text("f") == text);
}

// F174: what was made since somebody was asked is not said to be missing.
#[tokio::test]
async fn a_file_that_was_made_meanwhile_stays() {
    let desk = Desk::with_rules(&[], &[]).answering(true);
    let batch = Batch::new(&desk.pipeline);
    let calls = vec![
        Call::new("write_file", json!({ "path": "n", "content": "x\n" }).to_string()),
        Call::new("apply_patch", json!({ "input": patch("*** Delete File: n") }).to_string()),
    ];
    let outcomes = batch.run(&desk.session, calls).await;
    assert!(outcomes[0].result.is_ok());
    // Nobody was asked whether it may go, since it was not there when they would have been.
    assert_eq!(outcomes[1].result.as_ref().unwrap_err().kind(), ErrorKind::Failed);
    assert_eq!((desk.asked(), desk.text("n").as_str()), (1, "x\n"));
}

// F140, F142: also what has no lines is shown to whoever is asked.
#[tokio::test]
async fn an_empty_file_that_comes_or_goes_is_shown() {
    let write = ("write_file", json!({ "path": "n", "content": "" }));
    let patched = |body| ("apply_patch", json!({ "input": patch(body) }));
    for ((tool, arguments), shown) in [
        (write, "--- /dev/null\n+++ n\n"),
        (patched("*** Add File: n"), "--- /dev/null\n+++ n\n"),
        (patched("*** Delete File: e"), "--- e\n+++ /dev/null\n"),
        (patched("*** Update File: a\n*** Move to: b\n@@\n 1"), "--- a\n+++ b\n"),
    ] {
        let desk = Desk::with_rules(&[("e", ""), ("a", "1\n")], &[]).answering(true);
        let output = desk.ok(tool, arguments).await;
        assert_eq!(desk.preview()["unified"], shown);
        assert_eq!(output.display_data().unwrap()["unified"], shown);
    }
}

// F140: what models see at the start of a file, and what editors put there.
#[tokio::test]
async fn a_quoted_byte_order_mark_is_no_part_of_a_line() {
    for (old, body, new) in [
        ("\u{feff}1\n2\n", "@@\n-\u{feff}1\n+\u{feff}x", "\u{feff}x\n2\n"),
        ("\u{feff}1\n2\n", "@@\n-\u{feff}1\n+x", "\u{feff}x\n2\n"),
        ("\u{feff}1\n2\n", "@@\n-1\n+\u{feff}x", "\u{feff}x\n2\n"),
        ("\u{feff}1\n2\n", "@@\n \u{feff}1\n-2\n+x", "\u{feff}1\nx\n"),
        ("\u{feff}1\r\n2\r\n", "@@ \u{feff}1\n-2\n+x", "\u{feff}1\r\nx\r\n"),
        ("1\n", "@@\n-\u{feff}1\n+\u{feff}x", "x\n"),
        ("1\n", "@@\n-1\n+\u{feff}x", "\u{feff}x\n"),
        ("1\n\u{feff}2\n", "@@\n-\u{feff}2\n+\u{feff}x", "1\n\u{feff}x\n"),
    ] {
        let desk = Desk::new(&[("f", old)]);
        desk.patch(&format!("*** Update File: f\n{body}")).await.unwrap();
        assert_eq!(desk.text("f"), new, "{body:?}");
    }
    let desk = Desk::new(&[("f", "\u{feff}let total = sum(a, b);\n2\n")]);
    let body = "*** Update File: f\n@@\n-\u{feff}let total = sum(a, c);\n+x";
    let hint = desk.patch(body).await.unwrap_err();
    let hint = hint.suggestion().unwrap();
    assert!(hint.ends_with("\n-let total = sum(a, c);\n+let total = sum(a, b);"), "{hint}");
}

// F140: a patch for this machine is one for here, and no other is.
#[tokio::test]
async fn a_patch_may_name_the_machine_that_it_is_for() {
    let desk = Desk::new(&[]);
    let patch_for = |name| {
        format!("*** Begin Patch\n*** Environment ID: {name}\n*** Add File: a\n+x\n*** End Patch")
    };
    let error = desk.error("apply_patch", json!({ "input": patch_for("remote") })).await;
    assert!(error.message().ends_with("there is no environment `remote` here"), "{error}");
    desk.ok("apply_patch", json!({ "input": patch_for("local") })).await;
    assert_eq!(desk.files(), named(&[("a", "x\n")]));
}
