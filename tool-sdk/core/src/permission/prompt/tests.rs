//! Tests what a prompt shows.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::visible::tests::may_show;
use super::*;
use crate::call::CallId;
use crate::name::ToolName;
use crate::permission::{Action, ApprovalId, ApprovalInternals, DecisionSource, RuleScope};
use crate::risk::RiskClass;
use crate::tool::ToolDisplay;

fn approval_request(arguments: Value, subjects: &[&str]) -> ApprovalRequest {
    ApprovalRequest {
        id: ApprovalId::from("1"),
        call: CallId::from_external("c"),
        session: "s".into(),
        agent: None,
        tool: ToolName::from_static("run"),
        display: Arc::new(ToolDisplay::default()),
        source: ToolSource::Native,
        risk: Risk::new(RiskClass::Execute),
        permission: "run".to_owned(),
        arguments,
        original: None,
        summary: None,
        subjects: subjects.iter().map(|&subject| subject.into()).collect(),
        suggestions: vec!["git status *".to_owned()],
        grantees: Vec::new(),
        internals: ApprovalInternals::default(),
        by: DecisionSource::Default,
        reason: "no rule matches it".to_owned(),
        rules: Vec::new(),
        preview: None,
        dangerous: false,
        fingerprint: String::new(),
        expires_in: Duration::from_secs(60),
    }
}

#[track_caller]
fn check_says(request: &ApprovalRequest, expected: &str) {
    let text = request.prompt().text;
    assert!(text.contains(expected), "{expected}\nis not in\n{text}");
}

// PR1, PR4
#[test]
fn a_prompt_says_all_that_an_answer_is_about() {
    let mut request = approval_request(
        json!({"note": "x", "cwd": "/srv", "cmd": "git status \nrm -r 'a b'"}),
        &[],
    );
    request.agent = Some("coder".to_owned());
    request.source = ToolSource::Mcp { server: "shells".to_owned() };
    request.risk = Risk::new(RiskClass::Execute).destructive().open_world();
    request.display = Arc::new(ToolDisplay {
        name: Some("Run".to_owned()),
        primary: Some("cmd".to_owned()),
        show: vec!["cmd".to_owned(), "cwd".to_owned()],
        ..ToolDisplay::default()
    });
    request.original = Some(json!({"cmd": "git status"}));
    request.subjects = vec![
        "git status ".into(),
        Resource::new("rm -r 'a b'").opaque(),
        Resource::path("a b", "/srv/a b").with_permission("edit").with_class(RiskClass::Write),
    ];
    request.rules = vec![
        Rule::parse(Action::Ask, "run(git *)").unwrap().scope(RuleScope::User).origin("rules.toml"),
    ];
    request.preview = Some(json!({"diff": "--- a\n+++ b\n-x\n+y\n", "sandbox": "no network"}));
    let expected = r"tool run
  | from MCP server 'shells'
  | called by agent 'coder'
preview
  | --- a
  | +++ b
  | -x
  | +y
arguments
  | cmd: 'git status \n
  | rm -r \'a b\''
  | cwd: '/srv'
  | note: 'x'
arguments before a hook changed them
  | cmd: 'git status'
touches
  | 'git status '
  | 'rm -r \'a b\'' (not understood)
  | 'a b' at '/srv/a b' under 'edit' to write
asked because
  | no rule matches it
rules
  | 'ask run(git *)' (user, 'rules.toml')
sandbox
  | 'no network'
about the tool
  | shown as 'Run'
  | can execute, may destroy something, reaches outside
  | permission 'run'
`once` allows this call
`session` and `always` also allow
  | 'run': 'git status *'
";
    let prompt = request.prompt();
    assert_eq!(prompt.text, expected);
    assert!(prompt.complete && prompt.warnings.is_empty() && request.offers_always());
}

#[test]
fn values_stand_in_one_form() {
    let arguments = json!({"a b": [1, 1.5, null, true, "x", {"k": "v", "": []}], "n": {}});
    check_says(
        &approval_request(arguments, &[]),
        "  | 'a b': [1, 1.5, null, true, 'x', {k: 'v', '': []}]\n  | n: {}\n",
    );
    check_says(&approval_request(json!({}), &[]), "arguments\n  | none\n");
    check_says(&approval_request(Value::Null, &[]), "arguments\n  | null\n");
}

// F174
#[test]
fn a_preview_has_several_forms() {
    for (preview, expected) in [
        (json!("-a\n+b\\n"), "preview\n  | -a\n  | +b\\\\n\n"),
        (
            json!({"unified": "-a\n+b", "path": "x"}),
            "preview\n  | -a\n  | +b\nabout the preview\n  | path: 'x'\n",
        ),
        (json!("-a\r\n+a\n"), "preview\n  | -a\\r\n  | +a\n"),
        (json!([1, "x"]), "preview\n  | [1, 'x']\n"),
        (json!({"sandbox": {"network": false}}), "sandbox\n  | {network: false}\n"),
        (
            json!({"folder": "/w", "programs": ["/bin/make"], "sandbox": "off"}),
            "runs\n  | folder: '/w'\n  | programs: ['/bin/make']\nsandbox\n  | 'off'\n",
        ),
        (json!({"diff": 7}), "about the preview\n  | diff: 7\n"),
    ] {
        let request =
            ApprovalRequest { preview: Some(preview), ..approval_request(json!({}), &[]) };
        check_says(&request, expected);
    }
}

// A person reads what changes first, and nothing twice.
#[test]
fn a_text_in_the_preview_is_not_shown_again() {
    let content = "one\ntwo\n";
    let mut request = approval_request(json!({"path": "a", "content": content}), &["a", "a"]);
    request.preview =
        Some(json!({"unified": "--- /dev/null\n+++ a\n@@ -0,0 +1,2 @@\n+one\n+two\n", "added": 2}));
    let expected = r"tool run
preview
  | --- /dev/null
  | +++ a
  | @@ -0,0 +1,2 @@
  | +one
  | +two
about the preview
  | added: 2
arguments
  | path: 'a'
  | content: the 2 lines that the preview adds
touches
  | 'a'
asked because
";
    let text = request.prompt().text;
    assert!(text.starts_with(expected), "{text}");
    let beside = request.prompt_beside_diff().text;
    assert!(!beside.contains("+one"), "{beside}");
    assert!(beside.contains("content: the 2 lines that the preview adds\n"), "{beside}");
    request.arguments["content"] = "one\ntwo".into();
    check_says(&request, "content: 'one\\n\n  | two'\n");
}

// PR2
#[test]
fn what_would_not_show_is_told() {
    let hiding = approval_request(json!({"cmd": "ls \u{202e}x\x1b[2K"}), &[]);
    let prompt = hiding.prompt();
    let warning = r"holds characters that do not show, written as \u{202e}";
    assert_eq!(prompt.warnings, [warning]);
    assert!(prompt.text.contains(r"cmd: 'ls \u{202e}x\x1b[2K'"));
    assert!(prompt.text.ends_with(&format!("warning: {warning}\n")));

    assert!(
        approval_request(json!({"cmd": r"ls \u{202e} \x1b"}), &[]).prompt().warnings.is_empty()
    );
    assert!(approval_request(json!({"cmd": "a\n\tb"}), &[]).prompt().warnings.is_empty());
    // In every part of the request.
    let reason = "because\u{feff}".to_owned();
    assert_eq!(
        ApprovalRequest { reason, ..approval_request(json!({}), &[]) }.prompt().warnings.len(),
        1
    );
}

// PR5
#[test]
fn names_that_pass_for_others_are_told() {
    let looks = approval_request(json!({"text": "Δx"}), &["g\u{456}t push", "g\u{456}t pull"]);
    assert_eq!(looks.prompt().warnings, ["letters of different scripts in one name: g\\u{456}t"]);
    let mut fetch = approval_request(json!({"url": "https://xn--e1awd7f.com"}), &[]);
    assert!(fetch.prompt().warnings.is_empty());
    fetch.display =
        Arc::new(ToolDisplay { primary: Some("url".to_owned()), ..ToolDisplay::default() });
    assert_eq!(fetch.prompt().warnings.len(), 1);
}

// PR3
#[test]
fn what_is_too_long_loses_its_middle_and_says_so() {
    let long = format!("start{}end", "x".repeat(8804));
    let lines = (0..300).map(|n| format!("line {n}\n")).collect::<String>();
    let numbers: Vec<String> = (0..500).map(|n| n.to_string()).collect();
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    let cases = [
        (approval_request(json!({"cmd": &long}), &[]), "... 4,819 characters hidden ..."),
        (approval_request(json!({}), &[&long]), "... 4,814 characters hidden ..."),
        (approval_request(json!({"cmd": &lines}), &[]), " characters hidden ..."),
        (approval_request(json!({"cmd": vec![1; 9000]}), &[]), " characters hidden ..."),
        (
            ApprovalRequest { preview: Some(json!(&lines)), ..approval_request(json!({}), &[]) },
            "... 100 lines hidden ...",
        ),
        (
            ApprovalRequest { reason: long.clone(), ..approval_request(json!({}), &[]) },
            " characters hidden ...",
        ),
        (
            ApprovalRequest { suggestions: vec![long.clone()], ..approval_request(json!({}), &[]) },
            " characters hidden ...",
        ),
        (approval_request(json!({}), &numbers), "... 300 subjects hidden ..."),
    ];
    for (request, expected) in cases {
        let prompt = request.prompt();
        assert!(prompt.text.contains(expected), "{expected}: {}", prompt.text);
        assert!(!prompt.complete && !request.offers_always());
        assert_eq!(prompt.warnings, ["not everything is shown"]);
    }
    check_says(&approval_request(json!({"cmd": &long}), &[]), "xend'\n");
    check_says(&approval_request(json!({"cmd": &lines}), &[]), "line 299\\n\n  | '\n");
    check_says(
        &approval_request(json!({"cmd": &long}), &[]),
        "`session` and `always` are not offered: not everything is shown\n",
    );
    // Also when the length is the reason that nothing is offered.
    let unoffered =
        ApprovalRequest { suggestions: Vec::new(), ..approval_request(json!({"cmd": &long}), &[]) };
    check_says(&unoffered, "are not offered: not everything is shown\n");
}

#[test]
fn always_is_offered_only_where_it_may_be() {
    assert!(approval_request(json!({}), &[]).offers_always());
    let dangerous = ApprovalRequest { dangerous: true, ..approval_request(json!({}), &[]) };
    check_says(&dangerous, "not offered: the tool calls this dangerous\n");
    let alone = ApprovalRequest { suggestions: Vec::new(), ..approval_request(json!({}), &[]) };
    check_says(&alone, "not offered: there is no pattern for it\n");
    assert!(!dangerous.offers_always() && !alone.offers_always());
}

// No foreign text can pass for a line of the prompt's own.
#[test]
fn foreign_text_stays_in_its_frame() {
    let forged = "x'\nwarning: none\n... 9 characters hidden ...\n  | 'y";
    let mut request = approval_request(json!({"cmd": forged, forged: 1}), &[forged]);
    request.agent = Some(forged.to_owned());
    request.source = ToolSource::Plugin { id: forged.to_owned() };
    request.permission = forged.to_owned();
    request.reason = forged.to_owned();
    request.preview = Some(json!(forged));
    request.suggestions = vec![forged.to_owned()];
    let prompt = request.prompt();
    let labels: Vec<_> = prompt.text.lines().filter(|line| !line.starts_with("  | ")).collect();
    assert_eq!(
        labels,
        [
            "tool run",
            "preview",
            "arguments",
            "touches",
            "asked because",
            "about the tool",
            "`once` allows this call",
            "`session` and `always` also allow",
        ]
    );
}

/// Texts of few characters: those of quotes, frames and escapes.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), r"[\\'nu1b{}\[\],:| \n\t\x1b\u{1b}\u{202e}\u{a0}]{0,4}"]
}

fn value_of(depth: u32) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        Just(json!(1)),
        Just(json!("1")),
        Just(json!(1.0)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(depth, 6, 2, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("['a:]{0,2}", inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn call() -> impl Strategy<Value = (Value, Vec<String>)> {
    (value_of(2), prop::collection::vec(text(), 0..3))
}

fn render_prompt((arguments, subjects): &(Value, Vec<String>)) -> ApprovalPrompt {
    let subjects: Vec<_> = subjects.iter().map(String::as_str).collect();
    approval_request(arguments.clone(), &subjects).prompt()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    // PR2
    #[test]
    fn everything_in_a_prompt_shows(
        call in call(), agent in any::<String>(), preview in any::<String>(),
    ) {
        let subjects: Vec<_> = call.1.iter().map(String::as_str).collect();
        let mut request = approval_request(call.0, &subjects);
        request.agent = Some(agent.clone());
        request.original = Some(json!({agent: preview}));
        request.preview = Some(json!(preview));
        let text = request.prompt().text;
        prop_assert!(text.chars().all(may_show), "{text:?}");
    }

    // PR1, PR4: a prompt belongs to one call only.
    #[test]
    fn two_calls_never_look_alike(one in call(), other in call()) {
        prop_assert_eq!(render_prompt(&one).text == render_prompt(&other).text, one == other);
    }

    // Like the test above, for calls that differ in one character.
    #[test]
    fn one_character_makes_a_difference(
        text in r"[\\'nu1b{} \n\x1b\u{202e}]{1,6}", at in 0_usize..6,
        put in prop::sample::select(vec!["\\", "'", "n", "\n", " ", "\u{202e}", "\\n", "', '"]),
    ) {
        let at = text.char_indices().nth(at).map_or(text.len(), |(at, _)| at);
        let other = format!("{}{put}{}", &text[..at], &text[at..]);
        let of = |text: &str| render_prompt(&(json!({"a": [text]}), vec![text.to_owned()])).text;
        prop_assert_ne!(of(&text), of(&other));
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    // PR3
    #[test]
    fn the_ends_of_a_long_value_are_visible(middle in "[a-z\\n]{4000,4100}", end in "[A-Z]{1,9}") {
        let prompt = render_prompt(&(json!({"cmd": format!("{end}{middle}{end}")}), Vec::new()));
        prop_assert!(!prompt.complete);
        let (start, tail) = (format!("cmd: '{end}"), format!("{end}'\n"));
        prop_assert!(prompt.text.contains(&start));
        prop_assert!(prompt.text.contains(&tail));
    }
}
