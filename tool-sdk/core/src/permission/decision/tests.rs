//! Laws and cases of the decision about a whole call.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::tool::Resource;

const NAMES: &[&str] = &["run"];

#[derive(Clone, Debug, Default)]
struct Setup {
    rules: Vec<Rule>,
    subjects: Vec<Resource>,
    mode: Mode,
    session_mode: Option<Mode>,
    distrusts_safe_commands: bool,
    approval_required: Option<bool>,
    granted: Vec<String>,
    overrides: Vec<PolicyOverride>,
    writable_roots: Option<Vec<PathBuf>>,
}

impl Setup {
    fn new(rules: &[&str], subjects: &[&str]) -> Self {
        Self {
            rules: rules.iter().map(|rule| rule.parse().unwrap()).collect(),
            subjects: subjects.iter().map(|&resource| resource.into()).collect(),
            ..Self::default()
        }
    }

    fn decide_as(&self, class: RiskClass) -> Decision {
        let all = Ruleset::new(self.rules.clone());
        let own = all.for_names(NAMES);
        let elsewhere = |permission: &str| all.for_names(&[permission]);
        let approved = |resource: &Resource| self.granted.iter().any(|it| it == resource.text());
        let case = self.policy_input(&own);
        PolicyInput {
            risk_class: class,
            is_granted: &approved,
            rules_for_permission: &elsewhere,
            ..case
        }
        .decide()
    }

    fn policy_input<'a>(&'a self, own: &'a Ruleset) -> PolicyInput<'a> {
        PolicyInput {
            tool_rules: own,
            rules_for_permission: &|_| Ruleset::default(),
            file_rules_for_permission: &|_| Vec::new(),
            modes: ModeSet::new(self.mode, self.session_mode),
            trusts_safe_commands: !self.distrusts_safe_commands,
            risk_class: RiskClass::Execute,
            resources: Some(&self.subjects),
            arguments: &|_: &str| None::<Value>,
            approval_required: self.approval_required,
            is_granted: &|_| false,
            writable_roots: self.writable_roots.as_deref(),
            holds_pipeline_state: &|path| path.starts_with("/state"),
            overrides: &self.overrides,
        }
    }

    fn decide(&self) -> Decision {
        self.decide_as(RiskClass::Execute)
    }
}

fn hook_override(action: Action) -> PolicyOverride {
    PolicyOverride { action, source: DecisionSource::Hook, reason: "the hook says so".to_owned() }
}

// F89, F90, F80: the decision when no rule matches.
#[test]
fn modes_say_what_holds_without_rules() {
    use Action::{Allow, Ask, Deny};
    use RiskClass::{Execute, Read, Write};
    for (mode, expected) in [
        (Mode::Auto, [Allow, Ask, Ask]),
        (Mode::Strict, [Ask, Ask, Ask]),
        (Mode::Plan, [Allow, Deny, Deny]),
        (Mode::Explore, [Allow, Deny, Deny]),
        (Mode::Bypass, [Allow, Allow, Allow]),
    ] {
        let setup = Setup { mode, ..Setup::default() };
        let actions = [Read, Write, Execute].map(|class| setup.decide_as(class).action);
        assert_eq!(actions, expected, "{mode}");
    }
}

// F80
#[test]
fn modes_that_hold_at_once_are_as_strict_as_each() {
    for one in Mode::ALL {
        for other in Mode::ALL {
            for class in [RiskClass::Read, RiskClass::Write, RiskClass::Execute] {
                for required in [None, Some(true), Some(false)] {
                    let alone =
                        |mode| Setup { mode, approval_required: required, ..Setup::default() };
                    let both =
                        Setup { session_mode: Some(other), ..alone(one) }.decide_as(class).action;
                    let each = [one, other].map(|mode| alone(mode).decide_as(class).action);
                    assert_eq!(both, each[0].max(each[1]), "{one} {other} {class:?} {required:?}");
                }
            }
        }
    }
}

// F193: a sandbox that confines a call replaces the question of the mode, and nothing else.
#[test]
fn confined_call_needs_no_approval_in_auto_mode() {
    use Action::{Allow, Ask, Deny};
    let test = Resource::new("cargo test").confined_by_sandbox();
    for (mode, rules, resource, expected) in [
        (Mode::Auto, &[][..], test.clone(), Allow),
        (Mode::Auto, &[], test.clone().opaque(), Allow),
        (Mode::Auto, &[], test.clone().dangerous(), Ask),
        (Mode::Auto, &[], test.clone().asks_by_default(), Ask),
        (Mode::Auto, &[], test.clone().requires_approval(), Ask),
        (Mode::Auto, &["ask run(cargo *)"], test.clone(), Ask),
        (Mode::Auto, &["deny run(cargo *)"], test.clone(), Deny),
        (Mode::Auto, &["deny run(rm *)"], test.clone().with_unknown_effect(), Ask),
        (Mode::Strict, &[], test.clone(), Ask),
        (Mode::Plan, &[], test.clone(), Deny),
        (Mode::Explore, &[], test.clone(), Deny),
    ] {
        let setup = Setup { mode, subjects: vec![resource.clone()], ..Setup::new(rules, &[]) };
        let decision = setup.decide();
        assert_eq!(decision.action, expected, "{mode} {rules:?} {resource:?}");
        assert_eq!(decision.by == DecisionSource::Sandbox, expected == Allow);
    }
    let beside = vec![test, Resource::new("/etc/hosts").asks_by_default()];
    assert_eq!(Setup { subjects: beside, ..Setup::default() }.decide().action, Ask);
}

#[test]
fn no_rule_lifts_the_ban_of_a_mode() {
    let setup = Setup { mode: Mode::Explore, ..Setup::new(&["allow *"], &["x"]) };
    assert_eq!(setup.decide().by, DecisionSource::Mode);
    assert!(setup.decide().reason.contains("`explore`"));
    let reading = Resource::new("ls").with_class(RiskClass::Read);
    assert_eq!(Setup { subjects: vec![reading], ..setup }.decide().action, Action::Allow);
}

// F89: the user can switch lists of safe commands off.
#[test]
fn what_is_known_to_be_safe_counts_as_reading_until_that_is_switched_off() {
    use Action::{Allow, Ask, Deny};
    for (mode, trusting, distrusting) in [
        (Mode::Auto, Allow, Ask),
        (Mode::Strict, Ask, Ask),
        (Mode::Plan, Allow, Deny),
        (Mode::Bypass, Allow, Allow),
    ] {
        let subjects = vec![Resource::new("ls").known_safe()];
        let setup = Setup { mode, subjects, ..Setup::default() };
        assert_eq!(setup.decide().action, trusting, "{mode}");
        assert_eq!(
            Setup { distrusts_safe_commands: true, ..setup }.decide().action,
            distrusting,
            "{mode}"
        );
    }
}

// F83: the tool may require an approval, or need none.
#[test]
fn the_tool_may_want_an_ask_or_none() {
    let wants = |required, rules: &[&str], mode| {
        Setup { approval_required: Some(required), mode, ..Setup::new(rules, &[]) }.decide().action
    };
    assert_eq!(wants(false, &[], Mode::Auto), Action::Allow);
    assert_eq!(wants(false, &["ask run"], Mode::Auto), Action::Ask);
    assert_eq!(wants(false, &["deny run"], Mode::Auto), Action::Deny);
    assert_eq!(wants(false, &[], Mode::Strict), Action::Ask);
    assert_eq!(wants(false, &[], Mode::Plan), Action::Deny);
    assert_eq!(wants(true, &["allow run"], Mode::Auto), Action::Allow);
    let read = Setup { approval_required: Some(true), ..Setup::default() };
    assert_eq!(read.decide_as(RiskClass::Read).action, Action::Ask);
}

// F65: a hook's `ask` holds in any mode; its `allow` lifts an `ask` and never a denial.
#[test]
fn hooks_tighten_and_only_lift_asks() {
    let with =
        |action, setup: Setup| Setup { overrides: vec![hook_override(action)], ..setup }.decide();
    let bypass = Setup { mode: Mode::Bypass, ..Setup::default() };
    assert_eq!(with(Action::Ask, bypass).by, DecisionSource::Hook);
    assert_eq!(with(Action::Ask, Setup::new(&["allow run"], &[])).action, Action::Ask);
    assert_eq!(with(Action::Allow, Setup::new(&["ask run"], &[])).action, Action::Allow);
    assert_eq!(with(Action::Allow, Setup::new(&["deny run"], &[])).action, Action::Deny);
    assert_eq!(with(Action::Deny, Setup::new(&["allow run"], &[])).by, DecisionSource::Hook);
    assert_eq!(with(Action::Allow, Setup::default()).by, DecisionSource::Hook);
    let both = vec![hook_override(Action::Ask), hook_override(Action::Allow)];
    assert_eq!(Setup { overrides: both, ..Setup::default() }.decide().action, Action::Ask);
}

// SH10, P5: no hook lifts an `ask` that stands for a possible denial, or about what cannot be
// undone.
#[test]
fn a_hook_lifts_no_more_than_the_mode_bypass() {
    let asked = [
        Resource::new("$X foo").with_unknown_effect(),
        Resource::new("rm -rf x").dangerous(),
        Resource::new("make"),
    ];
    for (at, resource) in asked.into_iter().enumerate() {
        let setup = Setup {
            subjects: vec![resource],
            writable_roots: (at == 2).then(|| vec!["/work/out".into()]),
            ..Setup::new(&["deny run(curl *)"], &[])
        };
        let bypass = Setup { mode: Mode::Bypass, ..setup.clone() }.decide();
        let hooked = Setup { overrides: vec![hook_override(Action::Allow)], ..setup }.decide();
        assert_eq!((hooked.action, bypass.action), (Action::Ask, Action::Ask), "{at}");
        assert_eq!(hooked.by, bypass.by, "{at}");
    }
    // The tool does not name its resources, so it is unknown whether the rule matches.
    let silent = Setup { overrides: vec![hook_override(Action::Allow)], ..Setup::default() };
    let all = Ruleset::new(["deny run(curl *)".parse().unwrap()]);
    let decision =
        PolicyInput { resources: None, ..silent.policy_input(&all.for_names(NAMES)) }.decide();
    assert_eq!((decision.action, decision.by), (Action::Ask, DecisionSource::Unjudged));
}

// F92
#[test]
fn nothing_is_written_outside_the_writable_roots() {
    let file = |path: &str| Setup {
        subjects: vec![Resource::path("x", path)],
        writable_roots: Some(vec!["/work/out".into()]),
        ..Setup::new(&["allow *"], &[])
    };
    assert_eq!(file("/work/out/a").decide().action, Action::Allow);
    assert_eq!(file("/work/outer/a").decide().by, DecisionSource::Roots);
    assert_eq!(file("/work/src").decide_as(RiskClass::Read).action, Action::Allow);
}

// AP1, PA7: no tool writes to the files in which the pipeline keeps grants and decisions.
#[test]
fn nothing_is_written_where_the_guards_keep_what_they_know() {
    for mode in [Mode::Auto, Mode::Strict, Mode::Bypass] {
        let file = |path: &str| Setup {
            mode,
            subjects: vec!["y".into(), Resource::path("x", path)],
            granted: vec!["x".to_owned()],
            overrides: vec![hook_override(Action::Allow)],
            ..Setup::new(&["allow *"], &[])
        };
        let refused = file("/state/approvals.json").decide();
        assert_eq!((refused.action, refused.by), (Action::Deny, DecisionSource::Roots), "{mode}");
        assert!(refused.reason.contains("no tool writes"), "{}", refused.reason);
        assert_eq!(file("/work/a").decide().action, Action::Allow, "{mode}");
        let read = file("/state/approvals.json").decide_as(RiskClass::Read);
        assert_eq!(read.action, Action::Allow, "{mode}");
    }
}

// F92: where a command writes is unknown, unless a sandbox limits it.
#[test]
fn what_may_write_anywhere_is_asked_about_where_writing_is_limited() {
    use RiskClass::{Execute, Read, Write};
    let root = || Some(vec!["/work/out".into()]);
    let held = |folder: &str| Resource::new("make").with_writable_folders([folder]);
    let file = Resource::path("x", "/work/out/x");
    for (subjects, class, expected) in [
        (vec![], Read, Action::Allow),
        (vec![], Write, Action::Ask),
        (vec![], Execute, Action::Ask),
        (vec!["make".into()], Write, Action::Ask),
        (vec!["make".into()], Execute, Action::Ask),
        (vec!["make".into(), file.clone()], Write, Action::Allow),
        (vec!["make".into(), file.clone()], Execute, Action::Ask),
        (vec![file.clone(), Resource::new("rm y").deny_rules_only()], Execute, Action::Allow),
        (vec![Resource::new("ls").known_safe()], Execute, Action::Allow),
        (vec![held("/work/out")], Execute, Action::Allow),
        (vec![held("/work/out/deep"), file], Execute, Action::Allow),
        (vec![held("/work")], Execute, Action::Ask),
        (vec![held("/work/out/..")], Execute, Action::Ask),
    ] {
        for mode in [Mode::Auto, Mode::Bypass] {
            let setup = Setup {
                mode,
                subjects: subjects.clone(),
                granted: vec!["make".to_owned()],
                writable_roots: root(),
                ..Setup::new(&["allow *"], &[])
            };
            let decision = setup.decide_as(class);
            assert_eq!(decision.action, expected, "{mode} {class:?} {subjects:?}");
            assert_eq!(decision.by == DecisionSource::Roots, expected == Action::Ask);
            let open = Setup { writable_roots: None, ..setup };
            assert_eq!(open.decide_as(class).action, Action::Allow);
        }
    }
    // A tool of the host that needs no approval still needs none.
    let quiet =
        Setup { approval_required: Some(false), writable_roots: root(), ..Setup::default() };
    assert_eq!(quiet.decide_as(Write).action, Action::Allow);
}

#[test]
fn a_subject_may_stand_under_another_permission() {
    let outside = Resource::new("/etc").with_permission("external_directory");
    let decide = |rules: &[&str]| {
        Setup { subjects: vec!["x".into(), outside.clone()], ..Setup::new(rules, &[]) }.decide()
    };
    assert_eq!(decide(&["allow run"]).action, Action::Ask);
    assert_eq!(decide(&["allow run"]).subjects, std::slice::from_ref(&outside));
    assert_eq!(decide(&["allow run", "deny external_directory"]).action, Action::Deny);
    assert_eq!(decide(&["allow run", "allow external_directory(/etc)"]).action, Action::Allow);
}

// Listing a folder outside of the workspace is reading: it needs an approval, and a mode that only
// reads does not forbid it.
#[test]
fn a_subject_may_be_asked_about_although_it_is_only_read() {
    let outside = Resource::new("/etc")
        .with_permission("external_directory")
        .with_class(RiskClass::Read)
        .asks_by_default();
    let decide = |mode, rules: &[&str]| {
        Setup { mode, subjects: vec![outside.clone()], ..Setup::new(rules, &[]) }
            .decide_as(RiskClass::Read)
            .action
    };
    for mode in Mode::ALL {
        let expected = if mode == Mode::Bypass { Action::Allow } else { Action::Ask };
        assert_eq!(decide(mode, &[]), expected, "{mode}");
        assert_eq!(decide(mode, &["allow external_directory"]), Action::Allow, "{mode}");
        assert_eq!(decide(mode, &["deny external_directory"]), Action::Deny, "{mode}");
    }
}

// The user is not asked about a call that would fail anyway.
#[test]
fn a_refusal_of_the_tool_is_denied_in_every_mode() {
    let gone = crate::error::ToolError::not_found("there is no `x`");
    let refused = Resource::new("x").with_refusal(&gone);
    for mode in Mode::ALL {
        let subjects = vec!["y".into(), refused.clone()];
        let approved = vec!["x".to_owned()];
        let setup = Setup { mode, subjects, granted: approved, ..Setup::new(&["allow run"], &[]) };
        let decision = setup.decide_as(RiskClass::Read);
        assert_eq!((decision.action, decision.by), (Action::Deny, DecisionSource::Tool), "{mode}");
        assert_eq!(decision.reason, "there is no `x`");
    }
}

#[test]
fn what_is_special_about_a_place_is_told_before_the_reason() {
    let outside = Resource::new("/etc").with_permission("external_directory").asks_by_default();
    let outside = outside.with_reason("`/etc` is far");
    let decide = |rules: &[&str]| {
        Setup { subjects: vec![outside.clone()], ..Setup::new(rules, &[]) }.decide().reason
    };
    assert!(decide(&[]).starts_with("`/etc` is far; this needs an approval"));
    assert!(decide(&["deny external_directory"]).starts_with("`/etc` is far; the rule `deny"));
    assert!(!decide(&["allow external_directory"]).contains("is far"));
}

// F74: a denial names the rule and its origin.
#[test]
fn a_denial_names_its_rule_its_subject_and_where_it_stands() {
    let rule = "deny run(rm *)".parse::<Rule>().unwrap().origin("tools.toml:3");
    let decision = Setup { rules: vec![rule], ..Setup::new(&[], &["rm x", "ls"]) }.decide();
    assert_eq!(decision.reason, "`rm x`: the rule `deny run(rm *)` (user, tools.toml:3) decides");
    assert_eq!(decision.subjects, ["rm x".into()]);
}

// An allow names which rule allowed which resource.
#[test]
fn an_allow_names_the_rules_and_what_each_is_about() {
    let setup = Setup::new(&["allow run(git *)", "allow run(ls)"], &["git a", "ls", "git b"]);
    let decision = setup.decide();
    assert_eq!(decision.action, Action::Allow);
    assert_eq!(
        decision.reason,
        "`git a`, `git b`: the rule `allow run(git *)` (user) decides; \
         `ls`: the rule `allow run(ls)` (user) decides"
    );
}

// PR2: control characters are escaped, and two different names stay different.
#[test]
fn a_reason_hides_nothing_of_a_name() {
    let setup = Setup::new(&["deny run(a*)"], &["a\u{1b}[31mb", "a\nb", "a b"]);
    let reason = setup.decide().reason;
    assert!(reason.starts_with(r"`a\u{1b}[31mb`, `a\nb`, `a b`: the rule"), "{reason}");
}

// b.4: each reason appears once, with all resources that it is about.
#[test]
fn a_reason_says_of_what_it_is_one() {
    let unknown = |text: &'static str| Resource::new(text).opaque();
    let setup = |subjects: Vec<Resource>| Setup { subjects, ..Setup::default() };
    let braces = unknown("a {b,c}").with_reason("braces may expand");
    for (subjects, expected) in [
        (vec![braces.clone()], "braces may expand"),
        (vec![braces.clone(), Resource::new("x").known_safe()], "`a {b,c}`: braces may expand"),
        (
            vec![braces, unknown("d\n").with_reason("braces may expand"), unknown("e")],
            "`a {b,c}`, `d\\n`: braces may expand; `e`: it is not understood well enough to allow it",
        ),
    ] {
        assert_eq!(setup(subjects).decide().reason, expected);
    }
    let many = (0..10_000).map(|at| Resource::new(format!("run {at}"))).collect();
    let reason = setup(many).decide().reason;
    assert!(reason.len() < 500 && reason.contains("` and more: "), "{reason}");
}

// SH10: a rule about files does not apply to a resource that cannot be named.
#[test]
fn what_has_no_name_is_asked_about_under_its_own_permission() {
    let rules = ["allow run", "allow read", "deny read(.env)"];
    let unknown = Resource::new("$X").with_permission("read").with_unknown_effect();
    let decide = |rules: &[&str], resource: &Resource| {
        Setup { subjects: vec![resource.clone()], ..Setup::new(rules, &[]) }.decide().action
    };
    assert_eq!(decide(&rules, &unknown), Action::Ask);
    assert_eq!(decide(&rules[..2], &unknown), Action::Allow);
    assert_eq!(decide(&rules, &Resource::new("x")), Action::Allow);
}

// b.3: what cannot be undone needs a rule of its own.
#[test]
fn what_cannot_be_undone_asks_unless_a_rule_says_exactly_that() {
    for (rules, text, expected) in [
        (&["allow run"][..], "rm -rf x", Action::Ask),
        (&["allow run(rm *)"], "rm -rf x", Action::Ask),
        (&["allow run(rm -rf x)"], "rm -rf x", Action::Allow),
        (&["allow run(rm -rf *)"], "rm -rf *", Action::Ask),
        (&["deny run(rm *)"], "rm -rf x", Action::Deny),
        (&[], "rm -rf x", Action::Ask),
    ] {
        for mode in [Mode::Auto, Mode::Bypass] {
            let subjects = vec![Resource::new(text).dangerous()];
            let setup = Setup { mode, subjects, ..Setup::new(rules, &[]) };
            assert_eq!(setup.decide().action, expected, "{rules:?} {mode} {text}");
        }
    }
}

// PA7: no mode, hook or tool replaces the approval of a person.
#[test]
fn what_is_mandatory_is_asked_about_unless_a_rule_or_a_person_allows_it() {
    let hook =
        || Resource::new(".git/hooks/x").with_permission("protected_path").requires_approval();
    let cases = [
        (&[][..], Action::Ask),
        (&["allow run"], Action::Ask),
        (&["allow *", "allow protected_*"], Action::Ask),
        (&["allow protected_path(.git/hooks/*)"], Action::Allow),
        (&["allow protected_path", "allow *"], Action::Allow),
        (&["deny protected_path"], Action::Deny),
    ];
    for (rules, expected) in cases {
        for mode in [Mode::Auto, Mode::Bypass] {
            let setup = Setup {
                mode,
                subjects: vec![hook()],
                approval_required: Some(false),
                overrides: vec![hook_override(Action::Allow)],
                ..Setup::new(rules, &[])
            };
            assert_eq!(setup.decide().action, expected, "{rules:?} {mode}");
        }
    }
    let approved = Setup {
        subjects: vec![hook()],
        granted: vec![".git/hooks/x".to_owned()],
        ..Setup::default()
    };
    assert_eq!(approved.decide().action, Action::Allow);
}

#[test]
fn only_what_asks_is_asked_about() {
    let decision = Setup::new(&["allow run(git *)"], &["git status", "rm x", "ls"]).decide();
    assert_eq!(decision.subjects, ["rm x".into(), "ls".into()]);
}

fn setups() -> impl Strategy<Value = Setup> {
    let rule =
        ("(allow|ask|deny)", "(run|r\\*|\\*|other)", "(\\*|a|a \\*|\\*b|a/b|\\?)", any::<bool>());
    let rule = rule.prop_map(|(action, permission, pattern, locked)| {
        let rule: Rule = format!("{action} {permission}({pattern})").parse().unwrap();
        if locked { rule.locked() } else { rule }
    });
    let resource = ("[ab/ ]{0,4}", any::<bool>()).prop_map(|(text, opaque)| {
        let resource = Resource::new(text);
        if opaque { resource.opaque() } else { resource }
    });
    let action = proptest::sample::select(vec![Action::Allow, Action::Ask, Action::Deny]);
    (
        proptest::collection::vec(rule, 0..8),
        proptest::collection::vec(resource, 1..4),
        proptest::sample::select(Mode::ALL.to_vec()),
        any::<Option<bool>>(),
        proptest::collection::vec("[ab/ ]{0,4}", 0..3),
        proptest::collection::vec(action.prop_map(hook_override), 0..2),
    )
        .prop_map(|(rules, subjects, mode, required, approved, opinions)| Setup {
            rules,
            subjects,
            mode,
            approval_required: required,
            granted: approved,
            overrides: opinions,
            ..Setup::default()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn another_deny_never_permits_more(
        setup in setups(), at in any::<prop::sample::Index>(), pattern in "[ab*?/ ]{0,4}",
    ) {
        let mut more = setup.clone();
        let at = at.index(more.rules.len() + 1);
        more.rules.insert(at, Rule::new(Action::Deny, "run", pattern.as_str()));
        // A deny in front of other rules may be overridden, but it never allows more.
        prop_assert!(more.decide().action >= setup.decide().action);
    }

    #[test]
    fn approvals_never_change_a_deny(setup in setups(), granted in proptest::collection::vec("[ab/ ]{0,4}", 0..4)) {
        if setup.decide().action == Action::Deny {
            prop_assert_eq!(Setup { granted, ..setup }.decide().action, Action::Deny);
        }
    }

    #[test]
    fn the_strictest_subject_decides(setup in setups()) {
        let parts = setup.subjects.iter().map(|it| {
            Setup { subjects: vec![it.clone()], ..setup.clone() }.decide().action
        });
        prop_assert_eq!(setup.decide().action, parts.max().unwrap());
    }

    #[test]
    fn an_unknown_is_never_allowed(setup in setups()) {
        let mut silent = Setup { overrides: Vec::new(), granted: Vec::new(), ..setup };
        silent.rules.retain(|rule| rule.action != Action::Allow);
        silent.approval_required = silent.approval_required.filter(|&required| required);
        if silent.mode == Mode::Bypass {
            silent.mode = Mode::Auto;
        }
        prop_assert_ne!(silent.decide().action, Action::Allow);
    }

    #[test]
    fn no_approval_nor_mode_lifts_a_hooks_ask(setup in setups()) {
        let asked = Setup { overrides: vec![hook_override(Action::Ask)], ..setup };
        prop_assert_ne!(asked.decide().action, Action::Allow);
    }

    #[test]
    fn the_named_rules_led_to_the_answer(setup in setups()) {
        let decision = setup.decide();
        if decision.by == DecisionSource::Rule {
            prop_assert!(decision.rules.iter().any(|rule| rule.action == decision.action));
        }
        prop_assert!(!decision.subjects.is_empty() && !decision.reason.is_empty());
    }
}
