//! Test cases of other projects, and where our answers differ.

use serde_json::Value;
use tool_sdk::{Action, Decision, DecisionSource, Rule};
use tool_std::shell::{
    ScriptAnalysis, SimpleCommand, analyze_argv, analyze_script, suggest_patterns,
};

use crate::fixture;
use crate::support::Rules;

fn strings(value: &Value) -> Vec<String> {
    serde_json::from_value(value.clone()).expect("a list of texts")
}

fn array(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn argv(commands: &[SimpleCommand]) -> Vec<&[String]> {
    commands.iter().map(|command| &*command.argv).collect()
}

#[test]
fn plain_scripts_are_split_as_codex_splits_them() {
    let cases: Value = fixture!("codex-shell-parse/cases.json");
    for case in array(&cases["cases"]) {
        let words = strings(&case["argv"]);
        let script = analyze_script(&words[2]);
        let expected = &case["expected"];
        match text(&case["kind"]) {
            "plain_commands" => {
                assert_eq!(script.is_plain, !expected.is_null(), "{words:?}");
                if script.is_plain {
                    let expected: Vec<_> = array(expected).iter().map(strings).collect();
                    assert_eq!(argv(&script.commands), expected, "{words:?}");
                    // The shell and its commands are judged, not the script as one text.
                    assert_eq!(argv(&analyze_argv(&words).commands)[1..], expected);
                }
            }
            _ => {
                // A heredoc leaves the command before it, but is not plain.
                assert!(!script.is_plain, "{words:?}");
                // What may be a command in its text is for rules that forbid only.
                let own = script.commands.iter().filter(|command| !command.is_embedded);
                let is_one = script.opaque.is_none()
                    && script.writes.is_empty()
                    && own.count() == 1
                    && script.commands[0].approval_reason.is_none();
                assert_eq!(is_one, !expected.is_null(), "{words:?}");
                if is_one {
                    assert_eq!(script.commands[0].argv, strings(expected), "{words:?}");
                }
            }
        }
    }
}

/// Commands that we list although gemini gives up on the script: it asks there, and so do
/// we, but rules that forbid still see what might be in it.
const GIVEN_UP: &[&str] = &[r#"echo "${var1=aa\140 env| ls -l\140}${var1@P}""#, "echo ${foo@P}"];

#[test]
fn programs_are_found_where_gemini_finds_them() {
    let cases: Value = fixture!("gemini-shell-parse/cases.json");
    for case in array(&cases["command_roots"]) {
        let command = text(&case["command"]);
        let script = analyze_script(command);
        let roots = strings(&case["roots"]);
        if roots.is_empty() {
            assert!(script.opaque.is_some(), "{command}");
            assert!(command.is_empty() || GIVEN_UP.contains(&command));
            continue;
        }
        let heads: Vec<_> = script.commands.iter().map(|command| &command.argv[0]).collect();
        let missing: Vec<_> = roots.iter().filter(|root| !heads.contains(root)).collect();
        assert!(missing.is_empty(), "{command}: {heads:?}");
        if script.opaque.is_none() {
            assert_eq!(heads, roots.iter().collect::<Vec<_>>(), "{command}");
        }
    }
}

#[test]
fn redirections_are_noticed_where_gemini_notices_them() {
    let cases: Value = fixture!("gemini-shell-parse/cases.json");
    for case in array(&cases["has_redirection"]) {
        let command = text(&case["command"]);
        let expected = case["expected"].as_bool().expect("a flag");
        assert_eq!(!analyze_script(command).is_plain, expected, "{command}");
    }
    for case in array(&cases["split"]) {
        let command = text(&case["command"]);
        let parts: Vec<_> = strings(&case["parts"]);
        let script = analyze_script(command);
        let expected: Vec<_> =
            parts.iter().flat_map(|part| analyze_script(part).commands).collect();
        assert_eq!(script.commands, expected, "{command}");
    }
}

/// Where what a wrapper runs is another text for us.
const OTHER_INNER: &[(&str, &str, &str)] = &[
    // Without quotes, the script is its first word only; that is what zsh runs.
    ("zsh -c ls -l", "ls -l", "ls"),
];

#[test]
fn wrappers_are_taken_off_as_gemini_takes_them_off() {
    let cases: Value = fixture!("gemini-shell-parse/cases.json");
    for case in array(&cases["strip_wrapper"]) {
        let (command, inner) = (text(&case["command"]), text(&case["inner"]));
        let other = OTHER_INNER.iter().find(|other| (other.0, other.1) == (command, inner));
        let inner = other.map_or(inner, |other| other.2);
        let expected = analyze_script(inner).commands.remove(0).text;
        let script = analyze_script(command);
        assert!(script.commands.iter().any(|command| command.text == expected), "{command}");
    }
    for case in array(&cases["normalize_command"]) {
        let (command, name) = (text(&case["command"]), text(&case["name"]));
        let script = analyze_argv(&[command.to_owned()]);
        assert_eq!(script.commands[0].bare_text().as_deref(), Some(name), "{command}");
    }
}

// F87
#[test]
fn wrappers_are_taken_off_as_opencode_takes_them_off() {
    let cases: Value = fixture!("opencode-arity/cases.json");
    for case in array(&cases["wrapper_extract"]) {
        let script = analyze_argv(&strings(&case["tokens"]));
        let found = argv(&script.commands);
        for inner in array(&case["inner"]) {
            assert!(found.contains(&&*strings(inner)), "{case}: {found:?}");
        }
        if array(&case["inner"]).is_empty() {
            assert!(script.commands.len() < 2, "{case}: {found:?}");
        }
    }
}

/// Daily commands, as codex shows them to people. How they are shown is not our matter, but
/// they must be understood.
#[test]
fn analyzes_what_codex_summarises() {
    let cases: Value = fixture!("codex-parse-command/cases.json");
    for case in array(&cases["cases"]) {
        let words = strings(&case["argv"]);
        let script = analyze_argv(&words);
        // What is read by a shell other than bash always asks.
        let is_foreign = ["zsh", "powershell", "pwsh"].iter().any(|name| words[0].ends_with(name));
        assert_eq!(script.opaque.is_some(), is_foreign, "{words:?}: {:?}", script.opaque);
        assert!(!script.is_dangerous(), "{words:?}");
    }
}

// F85
#[test]
fn banned_prefixes_are_never_offered() {
    let banned: Vec<Vec<String>> = fixture!("codex-execpolicy/banned_prefixes.json");
    let cases: Value = fixture!("codex-execpolicy/cases.json");
    let more = array(&cases["banned_prefix_suggestions"]).iter().map(strings);
    for mut prefix in banned.into_iter().chain(more) {
        let pattern = format!("{} *", prefix.join(" "));
        for tail in [None, Some("x".to_owned()), Some("print(1)".to_owned())] {
            prefix.extend(tail);
            let offered = suggest_patterns(&analyze_argv(&prefix), &|_| false);
            assert!(!offered.contains(&pattern), "{prefix:?}: {offered:?}");
        }
    }
}

/// Where we offer less than codex, and why.
const OFFERED_LESS: &[(&str, &str)] = &[
    ("empty_script", "there is nothing to allow"),
    ("whitespace_script", "there is nothing to allow"),
    ("requested_prefix_insufficient", "a forced removal is never offered"),
    ("omitted_when_policy_prompts", "`rm` may remove anything"),
    ("heuristics_allow", "what is safe needs no rule"),
    ("policy_allow", "an interpreter may run anything"),
    ("one_allowed_segment_is_not_enough", "an argument writes a file"),
    ("all_segments_allowed", "an argument writes a file"),
];

#[test]
fn offers_what_codex_proposes() {
    let cases: Value = fixture!("codex-execpolicy/cases.json");
    for case in array(&cases["approval"]) {
        let script = analyze_argv(&strings(&case["command"]));
        let allow: Vec<String> = array(&case["rules"])
            .iter()
            .filter(|rule| rule["decision"] == "allow")
            .map(|rule| format!("{} *", strings(&rule["pattern"]).join(" ")))
            .collect();
        let allow: Vec<&str> = allow.iter().map(String::as_str).collect();
        let is_allowed =
            |text: &str| allow.iter().any(|rule| tool_sdk::Pattern::from(*rule).matches(text));
        let offered = suggest_patterns(&script, &is_allowed);
        let name = text(&case["name"]);
        if OFFERED_LESS.iter().any(|(less, _)| *less == name) {
            assert!(offered.is_empty(), "{name}: {offered:?}");
            continue;
        }
        let proposed = strings(&case["proposed_prefix"]).join(" ");
        assert!(offered.iter().any(|one| one.starts_with(&proposed)), "{name}: {offered:?}");
    }
}

/// Cases of codex that need what our rules do not have, and why they are left out.
const OTHER_RULES: &[(&str, &str)] = &[
    ("first_token_alternatives_bash", "rules here have no alternatives within a word"),
    ("first_token_alternatives_sh", "rules here have no alternatives within a word"),
    ("tail_alternatives_i", "rules here have no alternatives within a word"),
    ("tail_alternatives_install", "rules here have no alternatives within a word"),
    ("host_exec_explicit_empty", "a rule that forbids means every program of that name"),
    ("host_exec_other_path", "a rule that forbids means every program of that name"),
    ("host_exec_exact_beats_basename", "what forbids beats what allows"),
];

/// The rules of a case as ours: of those that match, the last decides, so the strictest are last.
fn rules_of(case: &Value) -> Rules {
    let mut rules: Vec<Rule> = Vec::new();
    for (decision, action) in DECISIONS {
        let of_kind = array(&case["rules"]).iter().filter(|rule| rule["decision"] == *decision);
        let pattern = |rule: &Value| format!("{} *", strings(&rule["pattern"]).join(" "));
        rules.extend(of_kind.map(|rule| Rule::new(*action, "exec_command", &*pattern(rule))));
    }
    Rules::of(rules)
}

/// What codex calls what is decided, the strictest last.
const DECISIONS: &[(&str, Action)] =
    &[("allow", Action::Allow), ("prompt", Action::Ask), ("forbidden", Action::Deny)];

#[test]
fn rules_of_prefixes_mean_what_they_mean_to_codex() {
    let cases: Value = fixture!("codex-execpolicy/cases.json");
    for case in array(&cases["evaluate"]) {
        let name = text(&case["name"]);
        if OTHER_RULES.iter().any(|(other, _)| *other == name) {
            continue;
        }
        let rules = rules_of(case);
        let commands = array(&case["commands"]).iter().map(strings);
        let decided: Vec<Decision> = commands.map(|argv| rules.decide(&argv)).collect();
        let strictest = decided.iter().max_by_key(|it| it.action).expect("there is a command");
        let expected = DECISIONS.iter().find(|(decision, _)| case["decision"] == *decision);
        let (_, expected) = expected.expect("it is a decision");
        match array(&case["matched"]).is_empty() {
            // What holds without a rule is the matter of modes.
            true => assert!(
                decided.iter().all(|it| it.by != DecisionSource::Rule),
                "{name}: {decided:?}"
            ),
            false => {
                assert_eq!(
                    (strictest.action, strictest.by),
                    (*expected, DecisionSource::Rule),
                    "{name}"
                );
            }
        }
    }
}

/// Where we ask although codex lets a command run in its sandbox, and why.
const ASKED_MORE: &[(&str, &str)] = &[
    ("one_allowed_segment_is_not_enough", "two of its commands have no rule"),
    ("all_segments_allowed", "an argument writes a file"),
];

#[test]
fn asks_where_codex_needs_approval() {
    let cases: Value = fixture!("codex-execpolicy/cases.json");
    for case in array(&cases["approval"]) {
        let (name, argv) = (text(&case["name"]), strings(&case["command"]));
        let is_more = ASKED_MORE.iter().any(|(more, _)| *more == name);
        let expected = match text(&case["result"]) {
            "skip" if !is_more => Action::Allow,
            "skip" | "needs_approval" => Action::Ask,
            other => panic!("{name}: {other}"),
        };
        assert_eq!(rules_of(case).argv(&argv), expected, "{name}");
    }
}

/// Sections of codex' cases that say nothing about us, and why.
const NOT_READ: &[(&str, &str)] = &[
    ("note", "it says where the cases come from"),
    ("load_errors", "they are faults of its own file: a list for a prefix, paths of programs"),
    ("network", "no tool here takes an address"),
    ("append_format", "it is a line of its own file"),
];

#[test]
fn every_section_of_the_cases_is_read_or_has_a_reason() {
    let cases: Value = fixture!("codex-execpolicy/cases.json");
    let read = ["evaluate", "approval", "banned_prefix_suggestions", "allowed_prefix_suggestions"];
    for section in cases.as_object().expect("it has sections").keys() {
        let is_named = NOT_READ.iter().any(|(other, _)| other == section);
        assert_ne!(read.contains(&&**section), is_named, "{section}");
    }
    // What it offers of an interpreter, with its code, is offered here of none.
    for argv in array(&cases["allowed_prefix_suggestions"]).iter().map(strings) {
        assert!(suggest_patterns(&analyze_argv(&argv), &|_| false).is_empty(), "{argv:?}");
    }
}

/// The one promise over all of them: nothing hostile is plain and harmless.
#[test]
fn no_hostile_case_is_answered_with_allow() {
    let cases: Value = fixture!("gemini-shell-parse/cases.json");
    let hostile = array(&cases["command_roots"]).iter().map(|case| text(&case["command"]));
    let is_hostile = |command: &&str| command.contains(['$', '`', '<', '>', '&']);
    let allowed: Vec<&str> = hostile
        .filter(|command| is_hostile(command) && !command.starts_with("echo \"hello"))
        .filter(|command| {
            let script: ScriptAnalysis = analyze_script(command);
            script.is_plain && script.is_safe()
        })
        .collect();
    assert!(allowed.is_empty(), "{allowed:?}");
}
