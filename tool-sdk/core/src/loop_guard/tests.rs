//! Tests sequences of calls, and what the guard finds at each.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::LoopFinding::{NoLoop, Stopped};
use super::*;

/// How a call in a sequence ends.
#[derive(Clone, Copy)]
enum CallResult {
    /// It runs and returns this text.
    Gives(&'static str),
    /// It runs and fails with this text.
    Fails(&'static str),
    /// The user approves it; it runs and returns this text.
    AllowedGives(&'static str),
    /// It does not run.
    Refused,
    /// It still runs when the next call comes.
    Pending,
}

use CallResult::{AllowedGives, Fails, Gives, Pending, Refused};

/// A call of the tool `look`: its argument, how it ends, and the expected finding.
type Step<'s> = (&'s str, CallResult, LoopFinding);

const fn repeated(times: u32, cycle: usize) -> LoopFinding {
    LoopFinding::Repeated { times, cycle }
}

fn run_step(
    guard: &LoopGuard,
    history: &CallHistory,
    tool: &str,
    arguments: &str,
    then: CallResult,
) -> LoopFinding {
    let (ticket, finding) = guard.record_call(history, tool, arguments, Instant::now());
    match then {
        Gives(text) => history.record_result(&ticket, Ok(text), "", Instant::now()),
        Fails(text) => history.record_result(&ticket, Err(text), "", Instant::now()),
        AllowedGives(text) => {
            history.mark_allowed(&ticket);
            history.record_result(&ticket, Ok(text), "", Instant::now());
        }
        Refused => history.record_not_run(&ticket, Instant::now()),
        Pending => {}
    }
    finding
}

#[track_caller]
fn check(guard: &LoopGuard, steps: &[Step<'_>]) {
    let history = CallHistory::default();
    for (at, &(what, then, expected)) in steps.iter().enumerate() {
        let arguments = format!(r#"{{"at": "{what}"}}"#);
        let found = run_step(guard, &history, "look", &arguments, then);
        assert_eq!(found, expected, "call {at}, {what}");
    }
}

// F34: concurrent calls are recorded when they have ended, each once.
#[test]
fn calls_at_the_same_time_count_once_they_are_over() {
    let (guard, history) = (LoopGuard::default(), CallHistory::default());
    let begin = || guard.record_call(&history, "look", "{}", Instant::now());
    let both = [begin(), begin()];
    assert!(both.iter().all(|(_, finding)| *finding == NoLoop));
    for (ticket, _) in both {
        history.record_result(&ticket, Ok("same"), "", Instant::now());
    }
    assert_eq!(begin().1, repeated(3, 1));
}

/// Runs one call for each letter, all with the same result, and checks the findings.
#[track_caller]
fn check_row(guard: &LoopGuard, calls: &str, expected: &[(usize, LoopFinding)]) {
    let history = CallHistory::default();
    let found: Vec<_> = calls
        .chars()
        .map(|call| run_step(guard, &history, "look", &format!(r#"["{call}"]"#), Gives("same")))
        .enumerate()
        .filter(|(_, finding)| *finding != NoLoop)
        .collect();
    assert_eq!(found, expected, "{calls}");
}

// F34: the third identical call with identical results.
#[test]
fn the_third_identical_call_is_found_before_it_runs() {
    let guard = LoopGuard::default();
    check_row(&guard, "aa", &[]);
    check_row(&guard, "aaa", &[(2, repeated(3, 1))]);
    check_row(&guard, "xaaaa", &[(3, repeated(3, 1)), (4, repeated(4, 1))]);
    check_row(&guard, "aabaa", &[]);
    check_row(&guard, "aabbaabb", &[]);
}

#[test]
fn rounds_of_up_to_four_calls_are_found() {
    let guard = LoopGuard::default();
    check_row(&guard, "ababa", &[]);
    check_row(&guard, "ababab", &[(5, repeated(3, 2))]);
    check_row(&guard, "xyabababa", &[(7, repeated(3, 2)), (8, repeated(3, 2))]);
    check_row(&guard, "abcabcabc", &[(8, repeated(3, 3))]);
    check_row(&guard, "aabaabaab", &[(8, repeated(3, 3))]);
    check_row(&guard, "abcdabcdabcd", &[(11, repeated(3, 4))]);
    check_row(&guard, "abcdeabcdeabcdeabcde", &[]);
    check_row(&guard.clone().max_cycle(5), "abcdeabcdeabcde", &[(14, repeated(3, 5))]);
    check_row(&guard.max_cycle(1), "ababababab", &[]);
}

#[test]
fn a_poll_whose_answer_changes_is_no_loop() {
    let guard = LoopGuard::default();
    let history = CallHistory::default();
    for round in 0..40 {
        let (ticket, finding) = guard.record_call(&history, "poll", "{}", Instant::now());
        assert_eq!(finding, NoLoop, "poll {round}");
        history.record_result(&ticket, Ok(&round.to_string()), "", Instant::now());
    }
    check(
        &guard,
        &[
            ("a", Gives("1"), NoLoop),
            ("a", Gives("2"), NoLoop),
            ("a", Gives("2"), NoLoop),
            ("a", Gives("3"), repeated(3, 1)),
            ("a", Gives("3"), NoLoop),
            ("a", Fails("3"), repeated(3, 1)),
            ("a", Fails("3"), NoLoop),
        ],
    );
    check(
        &guard,
        &[
            ("a", Gives("1"), NoLoop),
            ("b", Gives("same"), NoLoop),
            ("a", Gives("2"), NoLoop),
            ("b", Gives("same"), NoLoop),
            ("a", Gives("3"), NoLoop),
            ("b", Gives("same"), NoLoop),
            ("a", Gives("4"), NoLoop),
        ],
    );
}

// F34: a call that still runs or waits for an approval has no result that is repeated, and only
// counts towards the hard stop.
#[test]
fn running_calls_count_only_towards_the_hard_stop() {
    let mut steps = vec![("a", Pending, NoLoop); 9];
    steps.extend((10..80).map(|times: u32| ("a", Refused, Stopped { times: times.min(64) })));
    check(&LoopGuard::default(), &steps);
    let mut steps =
        ["a", "b"].repeat(10).into_iter().map(|it| (it, Pending, NoLoop)).collect::<Vec<_>>();
    steps[19].2 = Stopped { times: 10 };
    check(&LoopGuard::default(), &steps);
    // Other calls in between break the row, unless they repeat as well.
    let apart: Vec<String> = (0..20).map(|at| format!("x{at}")).collect();
    let apart = apart.iter().flat_map(|other| ["a", other]).map(|it| (it, Pending, NoLoop));
    check(&LoopGuard::default(), &apart.collect::<Vec<_>>());
    let (calm, waits) = (("a", Gives("1"), NoLoop), ("a", Pending, NoLoop));
    let found = repeated(3, 1);
    let steps = [waits, calm, waits, calm, ("a", Pending, found), ("a", Gives("1"), found)];
    check(&LoopGuard::default(), &steps);
}

// F34: calls that were made together and run one after the other are checked again in their turn.
#[test]
fn a_call_whose_turn_has_come_repeats_what_came_before_it() {
    let (guard, history) = (LoopGuard::default(), CallHistory::default());
    let begun = |what: &str| {
        let (ticket, finding) = guard.record_call(&history, "look", what, Instant::now());
        assert_eq!(finding, NoLoop);
        ticket
    };
    let tickets = [begun("[1]"), begun("[1]"), begun("[1]"), begun("[1]"), begun("[2]")];
    let expected = [NoLoop, NoLoop, repeated(3, 1), NoLoop, NoLoop];
    // The second call has no result yet when the third one is checked.
    assert_eq!(guard.recheck_call(&history, "look", &tickets[2], Instant::now()), NoLoop);
    for (ticket, expected) in tickets.into_iter().zip(expected) {
        assert_eq!(guard.recheck_call(&history, "look", &ticket, Instant::now()), expected);
        if expected != NoLoop {
            history.mark_allowed(&ticket);
            assert_eq!(guard.recheck_call(&history, "look", &ticket, Instant::now()), NoLoop);
        }
        history.record_result(&ticket, Ok("same"), "", Instant::now());
    }
    // A later approval does not allow earlier calls.
    let tickets = ["[3]"; 4].map(begun);
    let [.., last] = &tickets;
    history.mark_allowed(last);
    let expected = [NoLoop, NoLoop, repeated(3, 1), NoLoop];
    for (ticket, expected) in tickets.into_iter().zip(expected) {
        assert_eq!(guard.recheck_call(&history, "look", &ticket, Instant::now()), expected);
        history.record_result(&ticket, Ok("same"), "", Instant::now());
    }
}

#[test]
fn a_refused_call_keeps_its_place() {
    let guard = LoopGuard::default();
    check(
        &guard,
        &[
            ("a", Refused, NoLoop),
            ("a", Refused, NoLoop),
            ("a", Gives("1"), repeated(3, 1)),
            ("a", Refused, repeated(4, 1)),
            ("a", Gives("2"), repeated(5, 1)),
            ("a", Gives("2"), NoLoop),
        ],
    );
    let refused = |times| ("a", Refused, repeated(times, 1));
    let mut steps = vec![("a", Gives("1"), NoLoop), ("a", Gives("1"), NoLoop)];
    steps.extend((3..10).map(refused));
    steps.push(("a", Refused, Stopped { times: 10 }));
    check(&guard, &steps);
}

#[test]
fn an_allow_starts_counting_anew_but_the_hard_stop_holds() {
    let (calm, found) = (("a", Gives("1"), NoLoop), ("a", AllowedGives("1"), repeated(3, 1)));
    check(
        &LoopGuard::default(),
        &[
            calm,
            calm,
            found,
            calm,
            calm,
            found,
            calm,
            calm,
            found,
            ("a", AllowedGives("1"), Stopped { times: 10 }),
            ("a", Refused, Stopped { times: 11 }),
        ],
    );
}

#[test]
fn other_calls_in_between_do_not_hide_a_repeat_from_the_hard_stop() {
    let guard = LoopGuard::default();
    let others = "abcadeafgahiajkalmanoapqarsa";
    check_row(&guard, others, &[(27, Stopped { times: 10 })]);
    check_row(&guard.clone().hard_stop(3), "abaca", &[(4, Stopped { times: 3 })]);
}

// F34: on a long-lived connection the tenth identical call is not refused although the session
// made progress.
#[test]
fn progress_restarts_the_hard_stop_and_a_known_result_is_no_progress() {
    let guard = LoopGuard::default();
    let history = CallHistory::default();
    for round in 0..40 {
        assert_eq!(run_step(&guard, &history, "look", "[0]", Gives("same")), NoLoop, "{round}");
        // A file that the session had not read before.
        let (ticket, finding) =
            guard.record_call(&history, "look", &format!("[{}]", round + 1), Instant::now());
        assert_eq!(finding, NoLoop);
        history.record_result(&ticket, Ok(&format!("file {round}")), "", Instant::now());
    }
    // Other calls that fail, or say what the session has heard already, are no progress.
    let history = CallHistory::default();
    let mut found = NoLoop;
    for round in 0..10 {
        assert_eq!(found, NoLoop, "{round}");
        found = run_step(&guard, &history, "look", "[0]", Gives("same"));
        let other = format!("[{}]", round + 1);
        let end = if round % 2 == 0 { Gives("nothing found") } else { Fails("not found") };
        assert_eq!(run_step(&guard, &history, "look", &other, end), NoLoop);
        // The first "nothing found" is one.
        if round == 0 {
            assert_eq!(run_step(&guard, &history, "look", "[0]", Gives("same")), NoLoop);
        }
    }
    assert_eq!(found, Stopped { times: 10 });
}

// F34: calls that ended before the window do not count.
#[test]
fn calls_before_the_window_are_forgotten() {
    let guard = LoopGuard::default().window(Duration::from_mins(1));
    let history = CallHistory::default();
    let start = Instant::now();
    let call_at = |seconds| {
        let now = start + Duration::from_secs(seconds);
        let (ticket, finding) = guard.record_call(&history, "look", "{}", now);
        history.record_result(&ticket, Ok("same"), "", now);
        finding
    };
    assert_eq!([0, 30, 61, 92, 123].map(call_at), [NoLoop; 5]);
    assert_eq!([124, 125].map(call_at), [repeated(3, 1), repeated(4, 1)]);
    assert_eq!(call_at(300), NoLoop);
    // A call that still runs does not leave the window.
    let (_open, _) = guard.record_call(&history, "wait", "{}", start);
    let guard = guard.hard_stop(2);
    let late = start + Duration::from_hours(1);
    assert_eq!(guard.record_call(&history, "wait", "{}", late).1, Stopped { times: 2 });
}

// F34: requests without a conversation are not a loop up to 60 a minute.
#[test]
fn stateless_calls_are_only_limited_by_the_minute() {
    let guard = LoopGuard::default();
    let history = CallHistory::default();
    let start = Instant::now();
    let call_at = |seconds, text: &str| {
        let now = start + Duration::from_secs(seconds);
        let (ticket, finding) = guard.record_stateless_call(&history, "look", "{}", now);
        history.record_result(&ticket, Ok(text), "", now);
        finding
    };
    for _ in 0..60 {
        assert_eq!(call_at(0, "same"), NoLoop);
    }
    assert_eq!(call_at(59, "same"), LoopFinding::TooFrequent { times: 61 });
    assert_eq!(call_at(60, "same"), NoLoop);
    // A poll whose result changes goes on.
    for round in 0..200 {
        assert_eq!(call_at(61, &round.to_string()), NoLoop);
    }
    for other in 0..5000 {
        let arguments = format!("[{other}]");
        let (_, finding) = guard.record_stateless_call(&history, "look", &arguments, start);
        assert_eq!(finding, NoLoop);
    }
}

// F34: the guard can be switched off by its settings.
#[test]
fn disabled_settings_find_nothing() {
    let guard = LoopGuard::new(LoopGuardSettings::disabled());
    check_row(&guard, &"a".repeat(80), &[]);
    let mut settings = LoopGuardSettings::default();
    (settings.threshold, settings.hard_stop, settings.max_cycle) = (0, 1000, 0);
    let guard = LoopGuard::new(settings);
    let enforced = guard.settings();
    assert_eq!((enforced.threshold, enforced.hard_stop, enforced.max_cycle), (2, 64, 1));
}

#[test]
fn what_left_the_window_is_forgotten() {
    let guard = LoopGuard::default().hard_stop(2);
    let history = CallHistory::default();
    let (first, _) = guard.record_call(&history, "look", r#"["old"]"#, Instant::now());
    for other in 0..MAX_CALLS - 1 {
        let (ticket, finding) =
            guard.record_call(&history, "look", &format!("[{other}]"), Instant::now());
        assert_eq!(finding, NoLoop);
        history.record_result(&ticket, Ok(""), "", Instant::now());
    }
    let again = |expected| {
        let (ticket, finding) = guard.record_call(&history, "look", r#"["old"]"#, Instant::now());
        assert_eq!(finding, expected);
        history.record_not_run(&ticket, Instant::now());
    };
    // It has just replaced the first call, whose ticket now refers to no call.
    again(NoLoop);
    history.record_result(&first, Ok("late"), "", Instant::now());
    again(Stopped { times: 2 });
}

#[test]
fn the_spelling_of_arguments_does_not_matter_and_the_tool_does() {
    let guard = LoopGuard::default();
    let history = CallHistory::default();
    let texts = [
        r#"{"a":1,"b":{"c":[1,2],"d":"x y"}}"#,
        "{ \"b\" : {\"d\":\"x y\",\n\"c\":[1, 2]}, \"a\":1}",
    ];
    for (text, expected) in [(texts[0], NoLoop), (texts[1], NoLoop), (texts[0], repeated(3, 1))] {
        assert_eq!(run_step(&guard, &history, "look", text, Gives("same")), expected);
    }
    assert_eq!(run_step(&guard, &history, "find", texts[0], Gives("same")), NoLoop);
}

#[test]
fn exempt_calls_are_not_recorded() {
    let guard = LoopGuard::default().exempt("clock_*").exempt_calls("output", |text| text == "{}");
    let history = CallHistory::default();
    for (tool, arguments) in [("clock_now", "{}"), ("output", "{}")] {
        for _ in 0..20 {
            assert_eq!(run_step(&guard, &history, tool, arguments, Gives("same")), NoLoop);
        }
    }
    assert_eq!(history.lock_calls().next, 0);
    let input = |expected| {
        assert_eq!(
            run_step(&guard, &history, "output", r#"{"text":"y"}"#, Gives("same")),
            expected
        );
        assert_eq!(run_step(&guard, &history, "output", "{}", Gives("same")), NoLoop);
    };
    for expected in [NoLoop, NoLoop, repeated(3, 1)] {
        input(expected);
    }
}

#[test]
fn a_tool_may_have_its_own_threshold() {
    let guard = LoopGuard::default().threshold(2).threshold_of("f*", 5).threshold_of("fetch", 4);
    for (tool, at) in [("look", 2), ("find", 5), ("fetch", 4)] {
        let history = CallHistory::default();
        for time in 1..=at {
            let expected = if time == at { repeated(at, 1) } else { NoLoop };
            assert_eq!(run_step(&guard, &history, tool, "{}", Gives("same")), expected, "{tool}");
        }
    }
}

#[test]
fn settings_stay_within_what_can_be_counted() {
    check_row(&LoopGuard::default().threshold(0), "aa", &[(1, repeated(2, 1))]);
    check_row(&LoopGuard::default().max_cycle(0), "aaa", &[(2, repeated(3, 1))]);
    let guard = LoopGuard::default().threshold(1000).hard_stop(1000).max_cycle(1000);
    check_row(&guard, &"a".repeat(64), &[(63, Stopped { times: 64 })]);
}

#[test]
fn messages_say_what_repeats_and_what_to_do_instead() {
    assert_eq!(NoLoop.message("look"), None);
    for (finding, part) in [
        (repeated(3, 1), "`look` was called 3 times in a row"),
        (repeated(4, 2), "the last 2 calls, up to this one of `look`, were made 4 times"),
        (Stopped { times: 10 }, "`look` was called 10 times with the same arguments"),
        (LoopFinding::TooFrequent { times: 61 }, "`look` was called 61 times within a minute"),
    ] {
        let message = finding.message("look").expect("it has something to say");
        assert!(message.starts_with(part), "{message}");
        assert!(message.ends_with("try something else"), "{message}");
    }
}

#[test]
fn many_calls_share_one_history() {
    let guard = LoopGuard::default();
    let history = CallHistory::default();
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let (guard, history) = (&guard, &history);
            scope.spawn(move || {
                for call in 0..2_000 {
                    let text = format!("[{worker},{call}]");
                    assert_eq!(run_step(guard, history, "look", &text, Gives("same")), NoLoop);
                }
            });
        }
    });
    assert_eq!(history.lock_calls().next, 16_000);
}

// The tool-call cases of another guard, with its thresholds. That guard also looks for repeated
// prose and can be switched off for a session, which this one cannot.
#[test]
fn cases_of_another_guard() {
    let text = include_str!("../../tests/fixtures/gemini-loop-detection/cases.json");
    let fixture: Value = serde_json::from_str(text).expect("it is JSON");
    let number = |key: &str| fixture[key].as_u64().expect("it is a number");
    let guard = LoopGuard::default()
        .threshold(number("threshold") as u32)
        .max_cycle(number("max_cycle") as usize)
        .hard_stop(64);
    let cases = fixture["cases"].as_array().expect("it has cases");
    assert_eq!(cases.len(), 7);
    for case in cases {
        let history = CallHistory::default();
        let mut calls = case["calls"].as_array().expect("it has calls").iter();
        let found = calls.position(|call| {
            let tool = call[0].as_str().expect("it has a name");
            run_step(&guard, &history, tool, &call[1].to_string(), Gives("same")) != NoLoop
        });
        let found = found.map(|at| at as u64 + 1);
        // Either this call, or one of the given number of calls.
        match case.get("loop").and_then(Value::as_str) {
            None => assert_eq!(found, case["loop_at"].as_u64(), "{}", case["name"]),
            Some(words) => {
                let most = words.split(' ').find_map(|word| word.parse().ok()).expect("a number");
                assert!(found.is_some_and(|at| at <= most), "{}: {found:?}", case["name"]);
            }
        }
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::num::f32::NORMAL.prop_map(|number| json!(number)),
        any::<String>().prop_map(Value::from),
        r#"["\\{}\[\], :]{0,4}"#.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec(("[a-c\"\\\\]{0,3}", inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The same value with other blanks, and with the members of its objects rotated by `turn`.
fn respelled(value: &Value, blank: &str, turn: usize) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| respelled(item, blank, turn)).collect();
            format!("[{blank}{}{blank}]", items.join(&format!("{blank},{blank}")))
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members
                .iter()
                .map(|(name, item)| {
                    let item = respelled(item, blank, turn);
                    format!("{}{blank}:{blank}{item}", Value::from(name.as_str()))
                })
                .collect();
            let by = turn % members.len().max(1);
            members.rotate_left(by);
            format!("{{{blank}{}{blank}}}", members.join(&format!("{blank},{blank}")))
        }
        other => other.to_string(),
    }
}

fn arguments_key(text: &str) -> u64 {
    key::call_key("look", text)
}

proptest! {
    #[test]
    fn order_and_blanks_leave_the_key(value in value(), blank in "[ \n\t\r]{0,3}", turn in 0_usize..5) {
        prop_assert_eq!(arguments_key(&value.to_string()), arguments_key(&respelled(&value, &blank, turn)));
    }

    #[test]
    fn different_values_have_different_keys(a in value(), b in value()) {
        prop_assert_eq!(a == b, arguments_key(&a.to_string()) == arguments_key(&b.to_string()), "{} {}", a, b);
    }

    #[test]
    fn any_text_has_a_key(text in any::<String>(), like in r#"[\[\]{}",:\\ a1]{0,60}"#) {
        let _ = (arguments_key(&text), arguments_key(&like));
    }
}

// Similar values, each of which must have its own key.
#[test]
fn near_values_have_different_keys() {
    let mut texts: Vec<String> = [
        "",
        "{}",
        "[]",
        r#""""#,
        "null",
        "[[]]",
        "[{}]",
        "[null]",
        "[[],[]]",
        "[[[]]]",
        r#"{"a":"b"}"#,
        r#"{"b":"a"}"#,
        r#"["a","b"]"#,
        r#"["b","a"]"#,
        r#"["a,b"]"#,
        r#"["ab"]"#,
        r#"{"a":1,"b":2}"#,
        r#"{"a":2,"b":1}"#,
        r#"{"a":1}"#,
        r#"{"a":"1"}"#,
        r#"{"a":[1]}"#,
        r#"{"a":{"b":1}}"#,
        r#"{"a":{"c":1},"b":1}"#,
        r#"{"a":{"b":1},"b":1}"#,
        r#"{"a b":1}"#,
        r#"{"a":{"b":1},"c":{"d":1}}"#,
        r#"{"a":{"d":1},"c":{"b":1}}"#,
        r#"["\"","x"]"#,
        r#"["\",\"x"]"#,
        "[1,2,3]",
        "[1,[2,3]]",
        "[[1,2],3]",
        "[12,3]",
        "true",
        "false",
    ]
    .map(str::to_owned)
    .to_vec();
    texts.extend((0..20_000).map(|number| format!(r#"{{"a":{number},"b":{}}}"#, 20_000 - number)));
    texts.extend((0..200).map(|len| format!("\"{}\"", "a".repeat(len + 1))));
    let mut keys: Vec<u64> = texts.iter().map(|text| arguments_key(text)).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), texts.len());
}

#[test]
fn a_tree_that_is_too_deep_has_a_key() {
    assert_ne!(arguments_key(&"[".repeat(100_000)), arguments_key(&"{\"a\":".repeat(100_000)));
}
