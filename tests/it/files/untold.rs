//! Files that may be changed and not read: nothing is told of what they say.

use tool_std::fs::read_file;

use super::*;

const SECRET: &str = "key = hunter2\nkey = hunter2\nport = 1\n";

/// Rules under which everything may be edited, and `.env` may not be read.
const RULES: &[&[&str]] = &[
    &["deny read(*.env)", "allow edit"],
    &["allow edit", "deny read(*.env)"],
    &["allow edit", "ask read(*.env)"],
    &["allow edit", "deny read_file(*.env)"],
    &["allow edit", "deny read_file(path: *.env)"],
    &["allow edit", "deny read(path: .env)"],
    &["allow edit", "deny read", "allow read(*.txt)"],
];

/// A folder with a tool that reads beside those that write.
fn desk(files: &[(&str, &str)], rules: &[&str]) -> Desk {
    let tools = Registry::builder().add(tools![write_file, edit_file, apply_patch, read_file]);
    let parsed = rules.iter().map(|rule| rule.parse::<Rule>().unwrap());
    let pipeline = Pipeline::new(tools.build().unwrap()).rules(parsed);
    Desk { pipeline, ..Desk::with_rules(files, rules) }
}

fn edit(old: &str, all: bool) -> (&'static str, Value) {
    (
        "edit_file",
        json!({ "path": ".env", "old_string": old, "new_string": "x", "replace_all": all }),
    )
}

fn patched(body: &str) -> (&'static str, Value) {
    ("apply_patch", json!({ "input": patch(body) }))
}

// PA6, F140, F142, F143: the closest place, differences and numbers of lines and matches are of
// what the file says, in errors and results, for models and screens.
#[tokio::test]
async fn what_may_not_be_read_is_not_told_by_who_changes_it() {
    for rules in RULES {
        for (is_done, (tool, arguments)) in [
            (false, edit("key = hunter3\n", false)),
            (false, edit("key = ", false)),
            (true, edit("key = ", true)),
            (true, edit("port", false)),
            (false, edit("key =  hunter3\n", false)),
            (true, edit("port = 1 ", false)),
            (true, edit("port\u{a0}= 1", false)),
            (false, patched("*** Update File: .env\n@@\n-key = hunter3\n+x")),
            (false, patched("*** Update File: .env\n@@ key = hunter3\n-x\n+y")),
            (true, patched("*** Update File: .env\n@@\n-port = 1\n+x")),
            (true, patched("*** Update File: .env\n@@\n+x")),
            (true, patched("*** Add File: .env\n+x")),
            (true, patched("*** Delete File: .env")),
            (true, patched("*** Update File: a.txt\n*** Move to: .env\n@@\n-a\n+b")),
            (true, ("write_file", json!({ "path": ".env", "content": "x\n" }))),
        ] {
            let desk = desk(&[(".env", SECRET), ("a.txt", "a\n")], rules);
            let case = format!("{rules:?} {tool} {arguments}");
            let result = desk.call(tool, arguments).await.result;
            assert_eq!(result.is_ok(), is_done, "{case}: {result:?}");
            let told = format!("{result:?}");
            assert!(!told.contains("hunter2"), "{case}: {told}");
            for word in ["times", "places", "differed", "match_strategy", "closest"] {
                assert!(!told.contains(word), "{case}: {told}");
            }
            if let Err(error) = &result {
                assert!(error.to_string().contains("read access is denied"), "{error}");
                assert_eq!(desk.text(".env"), SECRET);
            }
        }
    }
}

// PA6: which of several edits does not fit, or which of several files, would tell that the
// others do; and so would a success that changes nothing.
#[tokio::test]
async fn what_fits_is_told_by_a_change_alone() {
    let edits = |edits: &[[&str; 2]]| {
        let edits: Vec<_> = edits
            .iter()
            .map(|[old, new]| json!({ "old_string": old, "new_string": new }))
            .collect();
        ("edit_file", json!({ "path": ".env", "edits": edits }))
    };
    // The last line of the file is quoted, or one that is not there.
    type Probe<'p> = &'p dyn Fn(&str) -> (&'static str, Value);
    let probes: [Probe<'_>; 9] = [
        &|quote| edits(&[[quote, "x"], ["never", "y"]]),
        &|quote| edits(&[[quote, "x"], ["", "y"]]),
        &|quote| edits(&[[quote, "x"], ["x", quote]]),
        &|quote| edits(&[[&quote.replace(' ', ""), "x"], [quote, "x"], ["key", "y"]]),
        &|quote| patched(&format!("*** Update File: .env\n@@\n-{quote}\n+x\n@@\n-never")),
        &|quote| patched(&format!("*** Update File: .env\n@@\n {quote}")),
        &|quote| {
            patched(&format!(
                "*** Update File: .env\n@@\n-{quote}\n*** Update File: a.txt\n@@\n-never"
            ))
        },
        &|quote| {
            patched(&format!(
                "*** Update File: .env\n@@\n-{quote}\n*** Update File: b.env\n@@\n-never"
            ))
        },
        &|quote| {
            patched(&format!("*** Update File: .env\n@@\n-{quote}\n*** Delete File: none.env"))
        },
    ];
    let files = [(".env", SECRET), ("a.txt", "a\n"), ("b.env", "b\n"), ("latin.env", "b\n")];
    for rules in RULES {
        for (at, probe) in probes.iter().enumerate() {
            let mut told = Vec::new();
            for quote in ["port = 1", "port = 2"] {
                let desk = desk(&files, rules);
                let (tool, arguments) = probe(quote);
                told.push(desk.error(tool, arguments).await.to_string().replace(quote, "QUOTE"));
                assert_eq!(desk.files(), named(&files));
            }
            assert_eq!(told[0], told[1], "{rules:?} {at}");
        }
    }
}

// PA6: under another name it could be read.
#[tokio::test]
async fn what_may_not_be_read_keeps_its_name() {
    for rules in RULES {
        let desk = desk(&[(".env", SECRET)], rules);
        let body = "*** Update File: .env\n*** Move to: plain.txt\n@@\n+x";
        let error = desk.patch(body).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{rules:?}: {error}");
        assert_eq!(desk.files(), named(&[(".env", SECRET)]));
    }
}

// PA6, F143: nor is it told that there is such a file, whatever else the tool may do with it.
#[tokio::test]
async fn what_may_not_be_read_is_not_offered() {
    for (rules, is_offered) in RULES
        .iter()
        .map(|rules| (*rules, false))
        .chain([(&["allow edit"][..], true), (&["allow edit", "deny read(other)"], true)])
    {
        let desk = desk(&[(".env", SECRET)], rules);
        let args = json!({ "path": ".enw", "old_string": "a", "new_string": "b" });
        let error = desk.error("edit_file", args).await.to_string();
        assert_eq!(error.contains("`.env`?"), is_offered, "{rules:?}: {error}");
    }
}

// PA6: both as it is named and where that leads.
#[cfg(unix)]
#[tokio::test]
async fn links_to_it_and_from_it_are_it() {
    for (at, to) in [("plain", ".env"), ("link.env", "target")] {
        let desk = desk(&[(to, SECRET)], RULES[1]);
        std::os::unix::fs::symlink(to, desk.path(at)).unwrap();
        let args = json!({ "path": at, "old_string": "key = hunter3", "new_string": "x" });
        let error = desk.error("edit_file", args).await.to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}

// F174, PA6: nor is it shown to who is asked; and who is asked about the edit alone sees it.
#[tokio::test]
async fn what_is_shown_before_a_change_is_of_files_that_may_be_read() {
    for (tool, arguments) in [
        edit("port", false),
        edit("nope", false),
        patched("*** Delete File: .env"),
        ("write_file", json!({ "path": ".env", "content": "x\n" })),
    ] {
        let ask = |rules| desk(&[(".env", SECRET)], rules).answering(true);
        let desk = ask(&["deny read(*.env)"]);
        let _ = desk.call(tool, arguments.clone()).await;
        let preview = desk.preview().to_string();
        assert!(!preview.contains("hunter2") && !preview.contains("removed"), "{preview}");

        let desk = ask(&["ask edit(.env)"]);
        // What does not fit a file that may be read is told without asking.
        let Ok(output) = desk.call(tool, arguments).await.result else {
            assert_eq!(desk.asked(), 0);
            continue;
        };
        let preview = desk.preview().to_string();
        assert!(preview.contains("hunter2"), "{preview}");
        assert!(format!("{output:?}").contains("hunter2"), "{output:?}");
    }
}
