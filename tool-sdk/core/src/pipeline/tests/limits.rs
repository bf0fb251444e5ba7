//! Sessions that limit others: sub-agents, and agents whose rules only tighten.

use std::path::Path;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::*;
use crate::permission::{Action, Mode, Rule};
use crate::toolset::{AgentProfile, ToolAudience, Toolset};
use crate::{tool, tools};

const RULES: &[&str] = &[
    "allow *",
    "ask *",
    "deny *",
    "allow note",
    "ask note",
    "deny note",
    "allow note(a*)",
    "ask note(ab)",
    "deny note(*b)",
    "allow note(text: ab)",
    "deny note(text: a*)",
    "ask note(text: *)",
];

/// Returns a toolset with a tool with the argument `text`.
fn note_toolset(rules: &[&str]) -> Toolset {
    /// Write a note.
    #[tool(write)]
    fn note(
        /// The text.
        text: String,
    ) -> String {
        text
    }

    Toolset::new(Registry::builder().add(tools![note]).build().unwrap())
        .with_rules(parse_rules(rules))
}

fn parse_rules(rules: &[&str]) -> Vec<Rule> {
    rules.iter().map(|rule| rule.parse().unwrap()).collect()
}

fn decide(pipeline: &Pipeline, session: &Session, text: &str) -> Action {
    let arguments = json!({ "text": text }).to_string();
    let checking = pipeline.check(session, Call::new("note", arguments.as_str()));
    checking.now_or_never().unwrap().unwrap().decision.action
}

fn some_rules() -> impl Strategy<Value = Vec<&'static str>> {
    subsequence(RULES, 0..4).prop_shuffle()
}

proptest! {
    // F166: a child is never allowed more than the session that started it, and never more than by
    // its own rules.
    #[test]
    fn a_child_decides_as_strictly_as_its_parent_and_its_own_rules(
        toolset_rules in some_rules(),
        parent_rules in some_rules(),
        child_rules in some_rules(),
        grandchild_rules in some_rules(),
        mode in select(&Mode::ALL[..]),
        child_mode in select(&Mode::ALL[..]),
        text in select(&["a", "ab", "b", "c"][..]),
    ) {
        let pipeline = Pipeline::new(
            note_toolset(&toolset_rules)
                .with_mode(mode)
                .with_agent(AgentProfile::new("child").rules(parse_rules(&child_rules)).mode(child_mode)),
        );
        let parent = Session::new("p").with_rules(parse_rules(&parent_rules));
        let own = Session::new("c").with_agent("child");
        let child = own.clone().limited_by(&parent);
        let grandchild =
            Session::new("g").with_rules(parse_rules(&grandchild_rules)).limited_by(&child);

        let decision = decide(&pipeline, &child, text);
        let strictest = decide(&pipeline, &parent, text).max(decide(&pipeline, &own, text));
        prop_assert_eq!(decision, strictest);
        prop_assert!(decide(&pipeline, &grandchild, text) >= decision);
    }

    // The rules of an agent that a project brings.
    #[test]
    fn rules_that_only_tighten_never_loosen(
        toolset_rules in some_rules(),
        agent_rules in some_rules(),
        replaced_rules in some_rules(),
        mode in select(&Mode::ALL[..]),
        text in select(&["a", "ab", "b", "c"][..]),
    ) {
        let agent = AgentProfile::new("project").rules(parse_rules(&agent_rules)).only_tightens();
        let replaced = AgentProfile::new("user").rules(parse_rules(&replaced_rules));
        let replacing = AgentProfile { name: "new".to_owned(), ..agent.clone() };
        let toolset = note_toolset(&toolset_rules).with_mode(mode);
        let pipeline = Pipeline::new(
            toolset
                .with_agent(agent)
                .with_agent(replaced)
                .with_agent(replacing.only_tightens_agent("user")),
        );
        let session = Session::new("s");
        let without = decide(&pipeline, &session, text);
        prop_assert!(decide(&pipeline, &session.clone().with_agent("project"), text) >= without);
        let replaced = decide(&pipeline, &session.clone().with_agent("user"), text);
        prop_assert!(decide(&pipeline, &session.with_agent("new"), text) >= replaced);
    }
}

#[test]
fn files_that_the_parent_may_not_see_are_hidden_from_the_child() {
    let pipeline = pipeline(tool("look", |_, cx| async move {
        let visible = cx.visible_files("read");
        let denied = cx.denied_files("read");
        let shows = |name: &str| visible.shows(name, Path::new(name));
        let denies = |name: &str| denied.denies(name, Path::new(name));
        let names = ["a.txt", "b.txt", "c.txt"];
        json!({ "shown": names.map(shows), "denied": names.map(denies) }).to_string()
    }));
    let parent = Session::new("p").with_rules(parse_rules(&["deny read(a.txt)"]));
    let child = Session::new("c").with_rules(parse_rules(&["deny read(b.txt)"]));
    let child = child.limited_by(&parent);
    let outcome = pipeline.call(&child, Call::new("look", "{}"));
    let outcome = outcome.now_or_never().unwrap();
    assert_eq!(outcome.text(), r#"{"shown":[false,false,true],"denied":[true,true,false]}"#);
}

// F177: the tools that a host gives to a sub-agent alone are not permissions of its parent.
#[test]
fn a_tool_of_the_child_alone_runs_under_the_rules_of_the_parent() {
    let toolset = note_toolset(&[]).with_agent(AgentProfile::new("parent").without(["note"]));
    toolset.add_for(ToolAudience::agent("child"), tool("own", |_, _| async { "own" })).unwrap();
    let pipeline = Pipeline::new(toolset);
    let parent = Session::new("p").with_agent("parent");
    let child = Session::new("c").with_agent("child").limited_by(&parent);
    let run = |session: &Session, name: &str| {
        let outcome = pipeline.call(session, Call::new(name, r#"{"text":"a"}"#));
        outcome.now_or_never().unwrap().result.is_ok()
    };
    assert!(run(&child, "own"));
    assert!(!run(&child, "note"), "the parent has no such tool");
    let parent = parent.with_rules(parse_rules(&["deny own"]));
    assert!(!run(&Session::new("c").with_agent("child").limited_by(&parent), "own"));
}

#[test]
fn an_approval_names_the_path_of_agents() {
    let root = Session::new("r").with_agent("build");
    let child = Session::new("c").with_agent("explore").limited_by(&root);
    let inner = Session::new("i").limited_by(&child);
    assert_eq!(inner.agent_path(), ["build", "explore"]);
    assert_eq!(child.agent_path_text().as_deref(), Some("build > explore"));
}
