//! What a person types, and what becomes of the call.

use std::io;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::super::toy::{self, Ran, Setting};
use super::{AtTerminal, Console, Floor};
use crate::call::Call;
use crate::context::Session;
use crate::error::ErrorKind;
use crate::pipeline::Pipeline;

fn answer(lines: &[&str], args: &[&str]) -> (Ran, String) {
    let mut setting = Setting::default();
    setting.types(lines);
    let ran = setting.run(args);
    (ran, setting.shown())
}

#[track_caller]
fn check(lines: &[&str], code: u8) {
    let (ran, _) = answer(lines, &["call", "kinds", "{}"]);
    assert_eq!(ran.code, code, "{lines:?} {}", ran.err);
}

// F76, PR6: only the exact word is a yes.
#[test]
fn only_the_exact_word_is_a_yes() {
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
fn a_person_sees_the_call_and_the_choices() {
    let (_, shown) = answer(&["n"], &["call", "kinds", "--text", "a\u{202e}b\nc"]);
    assert!(shown.contains("kinds"), "{shown}");
    assert!(shown.contains("[y] once") && shown.ends_with("\n> "), "{shown}");
    assert!(shown.contains("\\u{202e}") && !shown.contains('\u{202e}'), "{shown}");
}

#[test]
fn feedback_reaches_the_caller() {
    let (ran, shown) = answer(&["f", "try another"], &["call", "kinds"]);
    assert_eq!(ran.code, 3);
    assert!(ran.err.contains("try another"), "{}", ran.err);
    assert!(shown.ends_with("what to do instead\n> "), "{shown}");
    // Without a word it is a plain no.
    check(&["f", ""], 3);
    check(&["f"], 3);
}

#[test]
fn patterns_can_be_edited() {
    check(&["e", "*", "", "s"], 0);
    check(&["e", "*", "", "a"], 0);
    for no in [&["e"][..], &["e", ""], &["e", "*"], &["e", "*", ""], &["e", "*", "", "y"]] {
        check(no, 3);
    }
}

#[test]
fn whoever_is_not_to_be_asked_is_not() {
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

// F76: once is for one call, a session's yes for what follows.
#[test]
fn a_yes_for_the_session_answers_the_rest() {
    for (yes, code) in [("y", 3), ("s", 0), ("a", 0)] {
        let mut setting = Setting { stdin: calls(40), ..Setting::default() };
        // Not enough for everything; so many because an answer takes a moment to spread.
        setting.types(&[yes; 39]);
        let ran = setting.run(&["batch"]);
        assert_eq!(ran.code, code, "{yes} {}", ran.out);
    }
}

// A plain no stops what is asked beside it; one with words only its own call.
#[test]
fn a_no_stops_the_batch_and_feedback_does_not() {
    for (lines, went_on) in [(&["n"][..], 0), (&["f", "not this", "y", "y"], 2)] {
        let mut setting = Setting { stdin: calls(3), ..Setting::default() };
        setting.types(lines);
        let ran = setting.run(&["batch"]);
        let ran_in_spite = ran.out.matches(r#""ok":true"#).count();
        assert_eq!((ran.code, ran_in_spite), (3, went_on), "{lines:?} {}", ran.out);
    }
}

// F76: always outlives the program, and only in its workspace.
#[test]
fn a_yes_for_always_is_kept() {
    let state = tempfile::tempdir().unwrap();
    let call = ["call", "kinds", "--state-dir", state.path().to_str().unwrap()];
    let mut setting = Setting::default();
    assert_eq!(setting.run(&call).code, 3);
    setting.types(&["s"]);
    assert_eq!(setting.run(&call).code, 0);
    setting.types(&[]);
    assert_eq!(setting.run(&call).code, 3);
    setting.types(&["a"]);
    assert_eq!(setting.run(&call).code, 0);
    setting.types(&[]);
    assert_eq!((setting.run(&call).code, setting.shown().as_str()), (0, ""));
    // AP3: who it was, as far as that is known.
    let list = ["approvals", "list", "--json", "--state-dir", state.path().to_str().unwrap()];
    let list = setting.run(&list).out;
    assert!(list.contains(r#""who": "terminal""#), "{list}");
    // AP1: where tools may write, nothing is believed.
    let writable = state.path().parent().unwrap().display().to_string();
    setting.env.push(("TOOL_SDK_WRITABLE", writable));
    let told = setting.run(&["check", "kinds", call[2], call[3]]).err;
    assert!(told.contains("tools may write to it"), "{told}");
    setting.env.pop();
    // Elsewhere, and against a rule, it says nothing.
    assert_eq!(Setting::default().run(&call).code, 3);
    assert_eq!(setting.run(&[&call[..], &["--deny", "kinds"]].concat()).code, 3);
}

/// A terminal where somebody gives up instead of answering.
struct Leaving {
    stop: CancellationToken,
}

impl Console for Leaving {
    fn prompt(&self, _: &str, wanted: &dyn Fn() -> bool) -> io::Result<Option<String>> {
        self.stop.cancel();
        while wanted() {
            std::thread::yield_now();
        }
        Ok(Some("y".to_owned()))
    }
}

#[test]
fn an_aborted_call_takes_its_question_with_it() {
    let stop = CancellationToken::new();
    let floor = Floor::default();
    let console = Arc::new(Leaving { stop: stop.clone() });
    let pipeline = Pipeline::new(toy::registry()).approver(AtTerminal::new(console, floor.clone()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let session = Session::new("s").with_cancel(stop);
        let outcome = pipeline.call(&session, Call::new("kinds", "{}")).await;
        assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Aborted);
        // The line is not waited for any more, and the next question can be asked.
        let _free = floor.turn().await;
    });
}
