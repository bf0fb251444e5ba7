//! Laws and cases of the deciding rule.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::name::ToolName;
use crate::permission::RuleScope;
use crate::schema::Schema;
use crate::tool::{Definition, PathAlias};

const NAMES: &[&str] = &["run", "shell"];

/// Returns the strictest action of the rules about any of the resources; `None` when no rule
/// matches.
fn strictest_action(rules: &Ruleset, subjects: &[Resource]) -> Option<Action> {
    let own = rules.for_names(NAMES);
    let any = [Resource::ANY];
    let subjects = if subjects.is_empty() { &any } else { subjects };
    let each = subjects.iter().map(|it| {
        own.deciding_rule(it, &|_: &str| None, subjects.len() < 2).map(|rule| rule.action)
    });
    each.fold(Some(Action::Allow), stricter)
}

/// No match is stricter than an allow, and weaker than the rest.
fn stricter(a: Option<Action>, b: Option<Action>) -> Option<Action> {
    let rank = |action: Option<Action>| match action {
        Some(Action::Allow) => 0,
        None => 1,
        Some(Action::Ask) => 2,
        Some(Action::Deny) => 3,
    };
    if rank(a) >= rank(b) { a } else { b }
}

fn decide_action(rules: &[&str], subjects: &[&str]) -> Option<Action> {
    let rules: Ruleset = rules.iter().map(|rule| rule.parse::<Rule>().unwrap()).collect();
    let subjects: Vec<Resource> = subjects.iter().map(|&resource| resource.into()).collect();
    strictest_action(&rules, &subjects)
}

// F72, F73, F75, F78: cases of rules and resources.
#[test]
fn the_last_rule_that_matches_decides() {
    use Action::{Allow, Ask, Deny};
    for (rules, subjects, expected) in [
        (&[][..], &["git status"][..], None),
        (&["allow run"], &["git status"], Some(Allow)),
        (&["allow run(git *)"], &["git status"], Some(Allow)),
        (&["allow run(git *)"], &["git"], Some(Allow)),
        (&["allow run(git *)"], &["gitk"], None),
        (&["allow run(git *)"], &["rm x"], None),
        (&["allow run(git *)"], &["git status", "rm x"], None),
        (&["allow run(git *)", "ask run"], &["git status"], Some(Ask)),
        (&["ask run", "allow run(git *)"], &["git status"], Some(Allow)),
        (&["ask run", "allow run(git *)"], &["git status", "ls"], Some(Ask)),
        (&["deny run", "allow run(git *)"], &["git status"], Some(Allow)),
        (&["deny run", "allow run(git *)"], &["ls"], Some(Deny)),
        (&["deny run", "allow run(git *)"], &["git log", "ls"], Some(Deny)),
        (&["allow run", "deny run(rm *)"], &["rm -rf x"], Some(Deny)),
        (&["allow run", "deny run(rm *)"], &["ls", "rm x"], Some(Deny)),
        (&["allow run", "deny run(rm *)"], &["ls"], Some(Allow)),
        (&["deny run(rm *)", "allow run"], &["rm x"], Some(Allow)),
        (&["allow shell(ls)"], &["ls"], Some(Allow)),
        (&["allow other(ls)"], &["ls"], None),
        (&["allow *"], &["anything"], Some(Allow)),
        (&["deny r*"], &["anything"], Some(Deny)),
        (&["deny run(.env)"], &["a/b/.env"], Some(Deny)),
        (&["ask run(.env)"], &["a/b/.env"], Some(Ask)),
        (&["allow run(.env)"], &["a/b/.env"], None),
        (&["deny run(*.env)"], &["src/.env"], Some(Deny)),
        (&["deny run(src/*)"], &["a/src/x"], None),
        (&["allow run(/a/*)"], &["/a/b/c"], Some(Allow)),
        (&["allow run(/a/*)"], &["/b/a/c"], None),
        (&["allow run(a?c)"], &["abc"], Some(Allow)),
        (&["allow run(a?c)"], &["ac"], None),
        (&["allow run(*)"], &[], Some(Allow)),
        (&["allow run(git *)"], &[], None),
        (&["deny run(git *)"], &[], None),
        (&["deny run"], &[], Some(Deny)),
        (&["ask *", "allow run(ls *)", "deny run(ls /)"], &["ls /"], Some(Deny)),
        (&["ask *", "allow run(ls *)", "deny run(ls /)"], &["ls -la"], Some(Allow)),
        (&["ask *", "allow run(ls *)", "deny run(ls /)"], &["cat x"], Some(Ask)),
        (&["deny run(a\\b)"], &["a/b"], Some(Deny)),
        (&["allow run(a\\b)"], &["a/b"], None),
        (&["deny RUN"], &["x"], Some(Deny)),
        (&["allow RUN"], &["x"], None),
    ] {
        assert_eq!(decide_action(rules, subjects), expected, "{rules:?} {subjects:?}");
    }
}

// F74, F75: scopes are ordered, regardless of the order in which the rules are given.
#[test]
fn later_scopes_stand_behind_earlier_ones() {
    let rule = |text: &str, scope| text.parse::<Rule>().unwrap().scope(scope);
    let rules = Ruleset::new([
        rule("allow run", RuleScope::Session),
        rule("deny run", RuleScope::User),
        rule("ask run", RuleScope::Default),
    ]);
    let decisive = rules.deciding_rule(&Resource::ANY, &|_: &str| None, true).unwrap();
    assert_eq!((decisive.action, decisive.scope), (Action::Allow, RuleScope::Session));
}

#[test]
fn a_locked_rule_is_not_overridden() {
    let locked = "deny run(rm *)".parse::<Rule>().unwrap().scope(RuleScope::Default).locked();
    let rules = Ruleset::new(["allow run".parse().unwrap(), locked]);
    let judge = |resource: &str| {
        rules.deciding_rule(&resource.into(), &|_: &str| None, true).map(|rule| rule.action)
    };
    assert_eq!(judge("rm x"), Some(Action::Deny));
    assert_eq!(judge("ls"), Some(Action::Allow));
}

// F75: of the locked rules, one that denies decides, at any position.
#[test]
fn a_locked_denial_is_absolute() {
    let locked = |text: &str| text.parse::<Rule>().unwrap().locked();
    let rules =
        |deny: &str| Ruleset::new([locked("allow run"), locked("ask run(rm *)"), locked(deny)]);
    let judge = |resource: &str| {
        let rules = rules("deny run(rm x)");
        rules.deciding_rule(&resource.into(), &|_: &str| None, true).map(|rule| rule.action)
    };
    assert_eq!(judge("rm x"), Some(Action::Deny));
    // Otherwise the first locked rule decides.
    assert_eq!(judge("rm y"), Some(Action::Allow));
    assert!(
        rules("deny run").hides_tool(&["run"]) && !rules("deny run(rm *)").hides_tool(&["run"])
    );
}

#[test]
fn what_was_not_understood_is_only_allowed_with_everything() {
    let judge = |rule: &str| {
        let rules = Ruleset::new([rule.parse().unwrap()]);
        let resource = Resource::new("echo $(date)").opaque();
        rules.deciding_rule(&resource, &|_: &str| None, true).map(|rule| rule.action)
    };
    assert_eq!(judge("allow run(echo *)"), None);
    assert_eq!(judge("allow run"), Some(Action::Allow));
    assert_eq!(judge("deny run(echo *)"), Some(Action::Deny));
}

#[test]
fn either_spelling_of_a_path_matches() {
    let judge = |rule: &str| {
        let rules = Ruleset::new([rule.parse().unwrap()]);
        let resource = Resource::path("src/.env", "/work/src/.env");
        rules.deciding_rule(&resource, &|_: &str| None, true).map(|rule| rule.action)
    };
    assert_eq!(judge("allow run(src/*)"), Some(Action::Allow));
    assert_eq!(judge("allow run(/work/*)"), Some(Action::Allow));
    assert_eq!(judge("deny run(.env)"), Some(Action::Deny));
    assert_eq!(judge("allow run(/src/*)"), None);
}

// F72: a path has many spellings, and a rule may use any of them.
#[test]
fn however_a_pattern_spells_a_path_it_is_that_path() {
    let judge = |rule: &str, resource: &Resource| {
        let rules = Ruleset::new([rule.parse().unwrap()]);
        rules.deciding_rule(resource, &|_: &str| None, true).is_some()
    };
    let inside = Resource::path("secrets/x", "/work/secrets/x");
    for pattern in [
        "./secrets/*",
        "secrets/",
        "secrets//*",
        "secrets/.",
        "./secrets//./x",
        "a/../secrets/x",
        "//work/secrets/*",
        "/work/./secrets/",
        "/work/a/b/../../secrets/*",
        "/../work/secrets/*",
        ".\\secrets\\*",
        "./",
        "./*",
        "/",
    ] {
        for action in ["allow", "ask", "deny"] {
            assert!(judge(&format!("{action} run({pattern})"), &inside), "{action} {pattern}");
        }
    }
    for pattern in ["./secret/*", "secret/", "/secrets/", "secrets/../x", "./x", "*/../secrets/x"] {
        for action in ["allow", "ask", "deny"] {
            assert!(!judge(&format!("{action} run({pattern})"), &inside), "{action} {pattern}");
        }
    }
    // Everything below the working folder is not everything.
    let outside = Resource::path("/etc/secrets", "/etc/secrets");
    let above = Resource::path("../x", "/x");
    for pattern in ["./*", "./", "./../work/*", "./a/../*"] {
        assert!(!judge(&format!("allow run({pattern})"), &outside), "{pattern}");
        assert!(!judge(&format!("allow run({pattern})"), &above), "{pattern}");
    }
    assert!(judge("deny run(secrets/)", &Resource::path("a/secrets/x", "/work/a/secrets/x")));
    assert!(!judge("allow run(secrets/)", &Resource::path("a/secrets/x", "/work/a/secrets/x")));
    // A blank belongs to a file name, and separates words only in a command.
    let blank = Resource::path("src/my file", "/work/src/my file");
    for (rule, expected) in
        [("deny run(my file)", true), ("ask run(my *)", true), ("allow run(my file)", false)]
    {
        assert_eq!(judge(rule, &blank), expected, "{rule}");
    }
    assert!(!judge("deny run(my file)", &Resource::new("cat src/my file")));
    // A command is not a path.
    let command = Resource::new("cat secrets/x");
    assert!(!judge("deny run(cat ./secrets/*)", &command));
}

// F72: a relative path means a file in any of the roots, and so does a rule that denies it.
#[test]
fn what_is_forbidden_is_forbidden_below_every_root() {
    let judge = |rule: &str| {
        let rules = Ruleset::new([rule.parse().unwrap()]);
        let mut resource = Resource::path("/b/secrets/x", "/b/secrets/x");
        let root = |place: &str| PathAlias { target: place.into(), alias: "".into() };
        resource.set_path_aliases(&["/a", "/b"].map(root));
        rules.deciding_rule(&resource, &|_: &str| None, true).is_some()
    };
    for pattern in ["secrets/*", "./secrets/*", "secrets/x", "secrets/", "/b/secrets/*"] {
        assert!(judge(&format!("deny run({pattern})")), "{pattern}");
        assert!(judge(&format!("ask run({pattern})")), "{pattern}");
    }
    assert!(!judge("deny run(b/secrets/*)") && !judge("deny run(/a/secrets/*)"));
    assert!(!judge("allow run(secrets/*)") && judge("allow run(/b/secrets/*)"));
}

#[test]
fn a_rule_may_look_at_one_argument() {
    let judge = |rule: &str, arguments: Value| {
        let rules = Ruleset::new([rule.parse().unwrap()]);
        let argument = |name: &str| arguments.get(name).cloned();
        rules.deciding_rule(&Resource::ANY, &argument, true).map(|rule| rule.action)
    };
    assert_eq!(judge("allow run(cmd: git *)", json!({"cmd": "git status"})), Some(Action::Allow));
    assert_eq!(judge("allow run(cmd: git *)", json!({"cmd": "rm x"})), None);
    assert_eq!(judge("allow run(cmd: git *)", json!({})), None);
    assert_eq!(judge("allow run(files: *.rs)", json!({"files": ["a.rs", "b.c"]})), None);
    assert_eq!(
        judge("deny run(files: *.c)", json!({"files": ["a.rs", "b.c"]})),
        Some(Action::Deny)
    );
    assert_eq!(judge("deny run(depth: 9)", json!({"depth": 9})), Some(Action::Deny));
    // P1: the tool gets the number, not its spelling.
    for action in ["allow", "ask", "deny"] {
        for (pattern, sent) in [("9", "9.0"), ("9", "9e0"), ("9.0", "9"), ("90", "9e1")] {
            let arguments = serde_json::from_str(&format!(r#"{{"depth": {sent}}}"#)).unwrap();
            let decided = judge(&format!("{action} run(depth: {pattern})"), arguments);
            assert!(decided.is_some_and(|it| it.as_str() == action), "{action} {pattern} {sent}");
        }
    }
    assert_eq!(judge("deny run(depth: 1??)", json!({"depth": 1e2})), Some(Action::Deny));
    assert_eq!(judge("deny run(depth: 9)", json!({"depth": "9.0"})), None);
}

// F79: a tool that is denied as a whole is hidden; a specific allow keeps it visible.
#[test]
fn only_a_whole_denial_hides() {
    let hides = |rules: &[&str]| {
        Ruleset::new(rules.iter().map(|rule| rule.parse::<Rule>().unwrap())).hides_tool(&["run"])
    };
    assert!(hides(&["deny run"]) && hides(&["allow run(x)", "deny *"]));
    assert!(!hides(&["deny run", "allow run(git *)"]));
    assert!(!hides(&["deny run(rm *)"]) && !hides(&[]));
    assert!(!hides(&["deny run(cmd: *)"]));
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let rule =
        ("(allow|ask|deny)", "(run|r\\*|\\*|other)", "(\\*|a|a \\*|\\*b|a/b|\\?)", any::<bool>());
    let rule = rule.prop_map(|(action, permission, pattern, locked)| {
        let rule: Rule = format!("{action} {permission}({pattern})").parse().unwrap();
        if locked { rule.locked() } else { rule }
    });
    proptest::collection::vec(rule, 0..8)
}

fn subjects() -> impl Strategy<Value = Vec<Resource>> {
    proptest::collection::vec("[ab/ ]{0,4}".prop_map(Resource::new), 1..4)
}

fn action(rules: &[Rule], subjects: &[Resource]) -> Option<Action> {
    strictest_action(&Ruleset(rules.to_vec()), subjects)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn another_deny_never_permits_more(
        rules in rules(), at in any::<prop::sample::Index>(), pattern in "[ab*?/ ]{0,4}", subjects in subjects(),
    ) {
        let mut more = rules.clone();
        more.insert(at.index(rules.len() + 1), Rule::new(Action::Deny, "run", pattern.as_str()));
        let (before, after) = (action(&rules, &subjects), action(&more, &subjects));
        // A deny in front of other rules may be overridden, but it never allows more.
        prop_assert_eq!(stricter(before, after), after);
    }

    // F75
    #[test]
    fn a_locked_denial_that_matches_decides(rules in rules(), subjects in subjects()) {
        let alone = subjects.len() < 2;
        let forbids = |rule: &Rule| {
            rule.locked && rule.action == Action::Deny && rule.applies_to_names(&NAMES.into())
                && subjects.iter().any(|resource| rule.matches_resource(resource, &|_: &str| None, alone, false))
        };
        if rules.iter().any(forbids) {
            prop_assert_eq!(action(&rules, &subjects), Some(Action::Deny));
        }
    }

    #[test]
    fn the_strictest_subject_decides(rules in rules(), subjects in subjects()) {
        let parts = subjects.iter().map(|it| action(&rules, std::slice::from_ref(it)));
        prop_assert_eq!(action(&rules, &subjects), parts.fold(Some(Action::Allow), stricter));
    }

    #[test]
    fn an_unknown_is_never_allowed(rules in rules(), subjects in subjects()) {
        let silent: Vec<Rule> =
            rules.into_iter().filter(|rule| rule.action != Action::Allow).collect();
        prop_assert_ne!(action(&silent, &subjects), Some(Action::Allow));
    }
}

// SH4, SH10: a program with a path is the same program to rules that deny or ask, and another one
// to rules that allow.
#[test]
fn a_spelling_for_rules_that_forbid_allows_nothing() {
    let hidden = Resource::new("/tmp/rm x").with_forbidden_spelling("rm x");
    for (rule, expected) in [
        ("deny run(rm *)", Some(Action::Deny)),
        ("ask run(rm *)", Some(Action::Ask)),
        ("allow run(rm *)", None),
        ("allow run(/tmp/rm *)", Some(Action::Allow)),
    ] {
        let rules: Ruleset = [rule.parse::<Rule>().unwrap()].into_iter().collect();
        assert_eq!(strictest_action(&rules, std::slice::from_ref(&hidden)), expected, "{rule}");
    }
}

// SH10: a part of a command is matched by rules that name it, and by no others.
#[test]
fn a_part_is_only_forbidden_by_name() {
    let part = Resource::new("rm x").deny_rules_only();
    for (rule, expected) in [
        ("deny run(rm *)", Some(Action::Deny)),
        ("ask run(rm *)", Some(Action::Ask)),
        ("allow run(rm *)", None),
        ("deny run", None),
        ("ask *", None),
    ] {
        let rules: Ruleset = [rule.parse::<Rule>().unwrap()].into_iter().collect();
        assert_eq!(strictest_action(&rules, std::slice::from_ref(&part)), expected, "{rule}");
    }
}

// MC1: a tool that a server adds next to another does not free that one of its denials, and is not
// allowed by its rules.
#[test]
fn a_name_that_is_shared_is_still_forbidden() {
    let named = |name: &'static str, also: &'static str| {
        let mut tool = Definition::new(ToolName::from_static(name), "T.", Schema::default());
        tool.also = vec![ToolName::from_static(also)];
        tool
    };
    let (plain, hashed) = ("mcp__s__delete", "mcp__s__delete_bee4270b087b");
    let [now, then] = [named(hashed, plain), named(plain, hashed)];
    for (rule, tool, expected) in [
        ("deny mcp__s__delete", &now, true),
        ("ask mcp__s__delete", &now, true),
        ("deny mcp__s__Delete", &now, true),
        ("deny mcp__s__del*", &now, true),
        ("deny mcp__s__delete_bee4270b087b", &then, true),
        ("deny *_bee4270b087b", &then, true),
        ("allow mcp__s__delete", &now, false),
        ("allow mcp__s__delete_bee4270b087b", &then, false),
        ("deny mcp__s__delete_all", &now, false),
        ("deny mcp__t__delete", &now, false),
    ] {
        let rules = Ruleset::from_iter([rule.parse::<Rule>().unwrap()]);
        assert_eq!(!rules.for_names(tool).is_empty(), expected, "{rule} and {}", tool.name);
    }
}

// PA6: where names that differ in case are the same file, a rule that restricts matches it under
// any case.
#[test]
fn rules_that_restrict_mean_files_in_any_case_where_that_is_the_same_file() {
    use Action::{Allow, Ask, Deny};
    let decided = |folds: bool, rules: &[&str], path: &str| {
        let rules: Ruleset = rules.iter().map(|rule| rule.parse::<Rule>().unwrap()).collect();
        let resource = Resource::path(path, format!("/Work/{path}"));
        let path = path.to_owned();
        let arguments = move |name: &str| (name == "path").then(|| json!(path));
        let rule = rules.deciding_rule_with_case(folds, &resource, &arguments, true);
        rule.map(|rule| rule.action)
    };
    for (rules, path, told_apart, folded) in [
        (&["deny run(.env)"][..], "src/.ENV", None, Some(Deny)),
        (&["deny run(.ENV)"], ".env", None, Some(Deny)),
        (&["ask run(secrets/)"], "Secrets/key", None, Some(Ask)),
        (&["deny run(/work/**/KEY)"], "a/b/key", None, Some(Deny)),
        (&["deny run(./Secrets/*)"], "secrets/Key", None, Some(Deny)),
        (&["deny run(path: secrets/*)"], "SECRETS/key", None, Some(Deny)),
        (&["deny run(\u{3a9}\u{3a3})"], "\u{3c9}\u{3c2}", None, Some(Deny)),
        (&["deny run(stra\u{df}e)"], "STRASSE", None, Some(Deny)),
        // A rule that allows matches only the exact case.
        (&["allow run(.env)"], ".ENV", None, None),
        (&["allow run", "deny run(.env)"], ".ENV", Some(Allow), Some(Deny)),
        // On a case-sensitive volume no denial is lifted.
        (&["deny run(a/*)", "ask run(A/*)"], "a/x", Some(Deny), Some(Deny)),
        (&["deny run(a/*)", "ask run(A/*)"], "A/x", Some(Ask), Some(Ask)),
        (&["deny run(a/*)", "allow run(A/x)"], "A/x", Some(Allow), Some(Allow)),
    ] {
        assert_eq!(decided(false, rules, path), told_apart, "{rules:?} {path}");
        assert_eq!(decided(true, rules, path), folded, "{rules:?} {path} folded");
    }
    // A command is not folded like a file name.
    let rules: Ruleset = ["deny run(rm *)".parse::<Rule>().unwrap()].into_iter().collect();
    let command = Resource::new("RM -r x");
    assert!(rules.deciding_rule_with_case(true, &command, &|_: &str| None, true).is_none());
}

// F147, WF7: rules of every action match the names of a resource, in any case, and whole labels only.
#[test]
fn rules_match_the_names_of_a_resource() {
    let page = Resource::new("https://docs.example/a").with_name("domain:docs.example");
    let decided = |rule: &str| {
        let rules: Ruleset = [rule.parse::<Rule>().unwrap()].into_iter().collect();
        rules.deciding_rule(&page, &|_: &str| None, true).map(|rule| rule.action)
    };
    for (rule, action) in [
        ("allow fetch(domain:docs.example)", Some(Action::Allow)),
        ("allow fetch(domain:Docs.Example)", Some(Action::Allow)),
        ("deny fetch(domain:DOCS.example)", Some(Action::Deny)),
        ("ask fetch(domain:*.example)", Some(Action::Ask)),
        ("allow fetch(domain:*.docs.example)", None),
        ("allow fetch(domain:docs)", None),
        ("allow fetch(docs.example)", None),
        ("allow fetch(https://docs.example/*)", Some(Action::Allow)),
    ] {
        assert_eq!(decided(rule), action, "{rule}");
    }
}
