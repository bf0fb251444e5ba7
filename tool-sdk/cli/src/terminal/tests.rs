//! Tests of approval prompts: what the user types, and how the call ends.

use std::io;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tool_sdk_core::{Call, ErrorKind, Pipeline, Session};

use super::{Console, TerminalApprover, TerminalLock};
use crate::style::TextStyle;
use crate::test_support;
use crate::test_support::{CliOutput, ScriptedConsole, TestCli};

fn answer(lines: &[&str], args: &[&str]) -> (CliOutput, String) {
    let mut setting = TestCli::default();
    setting.type_lines(lines);
    let ran = setting.run(args);
    (ran, setting.shown_text())
}

#[track_caller]
fn check(lines: &[&str], code: u8) {
    let (ran, _) = answer(lines, &["call", "kinds", "{}"]);
    assert_eq!(ran.code, code, "{lines:?} {}", ran.err);
}

// F76, PR6
#[test]
fn only_the_exact_word_approves() {
    for yes in ["y", "yes", "once", " y ", "s", "session", "a", "always"] {
        check(&[yes], 0);
    }
    for no in ["n", "no", "", "Y", "YES", "yy", "ye", "ok", "sure", "y y", "\u{200b}y", "1", "true"]
    {
        check(&[no], 3);
    }
    check(&[], 3);
}

#[test]
fn the_prompt_shows_the_call_and_the_choices() {
    let (_, shown) = answer(&["n"], &["call", "kinds", "--text", "a\u{202e}b\nc"]);
    assert!(shown.contains("kinds"), "{shown}");
    assert!(shown.contains("[y] once") && shown.ends_with("\n> "), "{shown}");
    assert!(shown.contains("\\u{202e}") && !shown.contains('\u{202e}'), "{shown}");
}

// PR3: an argument cannot draw the rows of a prompt at the left edge of a narrow terminal.
#[test]
fn every_row_of_an_argument_has_the_frame_on_a_narrow_terminal() {
    let columns = 40;
    // Blanks that fill the row, and then near-copies of rows of the prompt.
    let text = format!("x{}tool echo{}\u{2502} [y] once", " ".repeat(28), " ".repeat(31));
    let console = ScriptedConsole::with_columns(&["n"], columns);
    let setting = TestCli { console: Some(Arc::clone(&console)), ..TestCli::default() };
    setting.run(&["call", "kinds", "--text", &text]);
    let shown = console.shown();
    let offered = shown.find("[y] once  [c]").unwrap();
    for row in shown[..offered].lines() {
        assert!(row.chars().count() < usize::from(columns), "{row}");
        for imitated in ["tool echo", "[y] once", "\u{2502}"] {
            assert!(!row.starts_with(imitated), "{shown}");
        }
    }
    assert!(shown.contains(r"\u{2502}") && !shown.contains('\u{2502}'), "{shown}");
    let joined = shown.replace("\n  | ", "");
    assert!(joined.contains("look like those of this question"), "{shown}");
}

#[test]
fn feedback_reaches_the_caller() {
    let (ran, shown) = answer(&["f", "try another"], &["call", "kinds"]);
    assert_eq!(ran.code, 3);
    assert!(ran.err.contains("try another"), "{}", ran.err);
    assert!(shown.ends_with("what to do instead\n> "), "{shown}");
    // Empty feedback is a plain denial.
    check(&["f", ""], 3);
    check(&["f"], 3);
}

#[test]
fn a_question_mark_shows_help_and_asks_again() {
    let (ran, shown) = answer(&["?", "?", "y"], &["call", "kinds"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(shown.matches("y  run this call, once").count(), 2, "{shown}");
    assert_eq!(shown.matches("tool kinds").count(), 1, "{shown}");
    assert!(shown.contains("\na  the same from now on"), "{shown}");
    check(&["?", "n"], 3);
    check(&["?"], 3);
}

#[test]
fn patterns_can_be_edited() {
    check(&["e", "*", "", "s"], 0);
    check(&["e", "*", "", "a"], 0);
    for no in [&["e"][..], &["e", ""], &["e", "*"], &["e", "*", ""], &["e", "*", "", "y"]] {
        check(no, 3);
    }
}

// The tool's own words say what is wrong with edited arguments; an empty line is a denial.
#[test]
fn arguments_can_be_changed_until_they_are_valid() {
    let lines = ["c", "{", r#"{"text": 5}"#, r#"{"text": "mine"}"#];
    let (ran, shown) = answer(&lines, &["call", "kinds", "--text", "theirs"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("mine") && !ran.out.contains("theirs"), "{}", ran.out);
    assert!(shown.contains("this is not JSON") && shown.contains("must be a string"), "{shown}");
    for no in [&["c"][..], &["c", ""], &["c", "{", ""]] {
        check(no, 3);
    }
}

#[test]
fn options_and_rules_prevent_the_prompt() {
    for (option, code) in
        [("--yes", 0), ("--no-input", 3), ("--allow=kinds", 0), ("--deny=kinds", 3)]
    {
        let (ran, shown) = answer(&["y"], &["call", "kinds", option]);
        assert_eq!((ran.code, shown.as_str()), (code, ""), "{option}");
    }
}

fn calls(count: usize) -> Vec<u8> {
    (0..count)
        .flat_map(|n| {
            format!("{{\"name\":\"kinds\",\"arguments\":{{\"count\":{n}}}}}\n").into_bytes()
        })
        .collect()
}

// F76
#[test]
fn approving_for_the_session_answers_later_prompts() {
    for (yes, code) in [("y", 3), ("s", 0), ("a", 0)] {
        let mut setting = TestCli { stdin: calls(40), ..TestCli::default() };
        // One answer short; this many because a grant takes a moment to reach pending prompts.
        setting.type_lines(&[yes; 39]);
        let ran = setting.run(&["batch"]);
        assert_eq!(ran.code, code, "{yes} {}", ran.out);
    }
}

// A plain denial rejects the other pending prompts; one with feedback only its own call.
#[test]
fn a_plain_denial_stops_the_batch() {
    for (lines, went_on) in [(&["n"][..], 0), (&["f", "not this", "y", "y"], 2)] {
        let mut setting = TestCli { stdin: calls(3), ..TestCli::default() };
        setting.type_lines(lines);
        let ran = setting.run(&["batch"]);
        let ran_in_spite = ran.out.matches(r#""ok":true"#).count();
        assert_eq!((ran.code, ran_in_spite), (3, went_on), "{lines:?} {}", ran.out);
    }
}

// F76: an `always` grant outlives the program, and only holds in its workspace.
#[test]
fn an_always_grant_is_stored() {
    let state = tempfile::tempdir().unwrap();
    let call = ["call", "kinds", "--state-dir", state.path().to_str().unwrap()];
    let mut setting = TestCli::default();
    assert_eq!(setting.run(&call).code, 3);
    setting.type_lines(&["s"]);
    assert_eq!(setting.run(&call).code, 0);
    setting.type_lines(&[]);
    assert_eq!(setting.run(&call).code, 3);
    setting.type_lines(&["a"]);
    assert_eq!(setting.run(&call).code, 0);
    setting.type_lines(&[]);
    assert_eq!((setting.run(&call).code, setting.shown_text().as_str()), (0, ""));
    // AP3: the source of the approval is stored.
    let list = ["approvals", "list", "--json", "--state-dir", state.path().to_str().unwrap()];
    let list = setting.run(&list).out;
    assert!(list.contains(r#""who": "terminal""#), "{list}");
    // AP1: a store that tools can write is not trusted.
    let writable = state.path().parent().unwrap().display().to_string();
    setting.env.push(("TOOL_SDK_WRITABLE", writable));
    let told = setting.run(&["check", "kinds", call[2], call[3]]).err;
    assert!(told.contains("tools may write to it"), "{told}");
    setting.env.pop();
    // It does not hold in another workspace, nor against a rule.
    assert_eq!(TestCli::default().run(&call).code, 3);
    assert_eq!(setting.run(&[&call[..], &["--deny", "kinds"]].concat()).code, 3);
}

/// A console whose user cancels the call instead of answering.
struct AbortingConsole {
    stop: CancellationToken,
}

impl Console for AbortingConsole {
    fn prompt(&self, _: &str, wanted: &dyn Fn() -> bool) -> io::Result<Option<String>> {
        self.stop.cancel();
        while wanted() {
            std::thread::yield_now();
        }
        Ok(Some("y".to_owned()))
    }
}

#[test]
fn aborting_a_call_cancels_its_prompt() {
    let stop = CancellationToken::new();
    let lock = TerminalLock::default();
    let console = Arc::new(AbortingConsole { stop: stop.clone() });
    let pipeline = Pipeline::new(test_support::test_registry()).approver(TerminalApprover::new(
        console,
        lock.clone(),
        TextStyle::plain(),
    ));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let session = Session::new("s").with_cancel(stop);
        let outcome = pipeline.call(&session, Call::new("kinds", "{}")).await;
        assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Aborted);
        // The prompt ended, so the terminal is free for the next one.
        let _free = lock.acquire().await;
    });
}
