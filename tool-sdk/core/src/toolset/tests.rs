//! Tool selection: which tools an audience sees, and in which order.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::name::ToolName;
use crate::permission::{Action, RuleScope};
use crate::risk::{Risk, RiskClass};
use crate::schema::Schema;
use crate::tool::{Definition, DynamicTool};

/// A tool with one required and two optional parameters.
fn definition(name: &'static str) -> Definition {
    let schema = json!({
        "type": "object",
        "properties": {
            "what": {"type": "string"},
            "depth": {"type": "integer"},
            "tone": {"type": "string"},
        },
        "required": ["what"],
        "additionalProperties": false,
    });
    let schema = Schema::from_value(schema).expect("it is a schema");
    Definition::new(ToolName::from_static(name), "Does something.", schema)
        .risk(Risk::new(RiskClass::Write))
}

fn sample_tool(definition: Definition) -> DynamicTool {
    DynamicTool::new(definition, |_: serde_json::Value, _: crate::Context| async { "done" })
}

/// A toolset of tools with these names and the same permission.
fn sample_toolset(names: &[&'static str]) -> Toolset {
    let tools = names.iter().map(|name| {
        let mut definition = definition(name);
        definition.permission = Some("write".into());
        Arc::new(sample_tool(definition)) as Arc<dyn Tool>
    });
    Toolset::new(Registry::builder().add(tools.collect::<Vec<_>>()).build().expect("no conflict"))
}

fn visible_names(toolset: &Toolset) -> Vec<String> {
    toolset.view().definitions().map(|definition| definition.name.to_string()).collect()
}

fn deny(text: &str) -> Rule {
    Rule::parse(Action::Deny, text).expect("it is a rule")
}

fn allow(text: &str) -> Rule {
    Rule::parse(Action::Allow, text).expect("it is a rule")
}

fn model(name: &str) -> Session {
    Session::new("test").with_model(name)
}

fn agent(name: &str) -> Session {
    Session::new("test").with_agent(name)
}

fn mason() -> ModelProfile {
    ModelProfile::new(["mason-*"]).prefer("chisel", ["pen", "pencil"])
}

// F101, F102: a family of models has one tool instead of others.
#[test]
fn a_model_profile_replaces_tools() {
    let desk =
        sample_toolset(&["chisel", "paper", "pen", "pencil"]).with_profile(mason()).with_profile(
            ModelProfile::new(["*"])
                .prefer("permission:write", ["chisel"])
                .prefer("pen", ["chisel"]),
        );
    for (name, expected) in [
        ("mason-3", &["chisel", "paper"][..]),
        ("maker/Mason-3", &["chisel", "paper"]),
        ("painter", &["paper", "pen", "pencil"]),
    ] {
        let desk = desk.clone().for_session(&model(name));
        assert_eq!(visible_names(&desk), expected, "{name}");
        // A tool that is hidden because of the model cannot be called either.
        assert_eq!(desk.get("pen").is_some(), expected.contains(&"pen"), "{name}");
    }
    assert_eq!(visible_names(&desk).len(), 4, "nobody said which model it is");
}

// F101, F102: one tool for the work is always left.
#[test]
fn a_hidden_preferred_tool_replaces_nothing() {
    let desk = || {
        sample_toolset(&["chisel", "pen", "pencil"])
            .with_profile(mason())
            .for_session(&model("mason-3"))
    };
    let others = ["pen", "pencil"];
    let scoped = AgentProfile::new("scribe").without(["chisel"]);
    let scribe = model("mason-3").with_agent("scribe");
    assert_eq!(visible_names(&desk()), ["chisel"]);
    assert_eq!(visible_names(&desk().without(["chisel"])), others);
    assert_eq!(visible_names(&desk().with_agent(scoped).for_session(&scribe)), others);
    assert_eq!(visible_names(&desk().with_rules([deny("chisel")])), others);
    assert_eq!(
        visible_names(&desk().with_definition_hook("chisel", Arc::new(RemovingHook))),
        others
    );
    let desk = desk();
    assert!(desk.remove("chisel"));
    assert_eq!(visible_names(&desk), others);

    // Two tools that are preferred to each other do not both disappear.
    let both = ModelProfile::new(["*"]).prefer("pen", ["pencil"]).prefer("pencil", ["pen"]);
    let names = visible_names(
        &sample_toolset(&["pen", "pencil"]).with_profile(both).for_session(&model("x")),
    );
    assert_eq!(names, ["pen"]);
}

proptest! {
    // F101: with any preferences and denials, a tool for the work stays visible if one was before,
    // and only tools with a visible replacement disappear.
    #[test]
    fn preferences_leave_at_least_one_tool(
        pairs in prop::collection::vec((0..4_usize, 0..4_usize), 0..6),
        denied in prop::collection::vec(0..4_usize, 0..3),
    ) {
        const NAMES: [&str; 4] = ["chisel", "crayon", "pen", "pencil"];
        let profile = pairs.iter().fold(ModelProfile::new(["*"]), |profile, &(one, other)| {
            profile.prefer(NAMES[one], [NAMES[other]])
        });
        let desk = sample_toolset(&NAMES).with_rules(denied.iter().map(|&at| deny(NAMES[at])));
        let before = visible_names(&desk);
        let after = visible_names(&desk.with_profile(profile).for_session(&model("any")));
        prop_assert!(!after.is_empty());
        for gone in before.iter().filter(|name| !after.contains(name)) {
            let stands_in = |&(one, other): &(usize, usize)| {
                NAMES[other] == gone && before.iter().any(|name| name == NAMES[one])
            };
            prop_assert!(pairs.iter().any(stands_in), "{gone}");
        }
    }
}

// F101: first the agent's tools, then the model's, last the disabled ones.
#[test]
fn selection_goes_by_agent_then_model_then_rules() {
    let desk = sample_toolset(&["chisel", "paper", "pen", "pencil"])
        .with_profile(mason())
        .with_agent(AgentProfile::new("scribe").only(["pe*", "paper"]))
        .with_rules([deny("pencil")]);
    let names = |session: &Session| visible_names(&desk.clone().for_session(session));
    assert_eq!(names(&model("mason-3")), ["chisel", "paper"]);
    // The agent has no chisel, so the model's preference for it has no effect.
    assert_eq!(names(&model("mason-3").with_agent("scribe")), ["paper", "pen"]);
    // A rule for all of them hides the tool and those that it replaces.
    let denied = desk.clone().with_rules([deny("write")]).for_session(&model("mason-3"));
    assert!(visible_names(&denied).is_empty());
    // A hidden tool is not unknown: the pipeline answers with the rule.
    assert!(denied.get("chisel").is_some());
}

// F103: a model may see fewer parameters than it may send.
#[test]
fn a_model_profile_hides_optional_parameters() {
    let mut chisel = definition("chisel");
    chisel.examples = vec![r#"{"what": "a"}"#.into(), r#"{"what": "a", "depth": 1}"#.into()];
    let registry = Registry::builder().add(sample_tool(chisel)).add(sample_tool(definition("pen")));
    let toolset = Toolset::new(registry.build().expect("no conflict"))
        .with_profile(ModelProfile::new(["small"]).without_optional("*"))
        .with_profile(
            ModelProfile::new(["middle"])
                .without_parameter("chisel", "depth")
                .without_parameter("chisel", "what"),
        );
    let parameters = |session: &str, tool: &str| -> Vec<String> {
        let view = toolset.clone().for_session(&model(session)).view();
        let definition = view.definition(tool).expect("it is there");
        assert!(definition.examples.iter().all(|text| {
            let example: serde_json::Value = serde_json::from_str(text).expect("it is JSON");
            example
                .as_object()
                .expect("it is an object")
                .keys()
                .all(|name| definition.parameters.property(name).is_some())
        }));
        definition.parameters.properties().map(|(name, _)| name.to_owned()).collect()
    };
    assert_eq!(parameters("small", "chisel"), ["what"]);
    assert_eq!(parameters("small", "pen"), ["what"]);
    // Required parameters are always visible.
    assert_eq!(parameters("middle", "chisel"), ["what", "tone"]);
    assert_eq!(parameters("middle", "pen"), ["what", "depth", "tone"]);
    assert_eq!(parameters("large", "chisel"), ["what", "depth", "tone"]);

    let small = toolset.clone().for_session(&model("small"));
    let tool = small.get("chisel").expect("it is there");
    let arguments = crate::RawArgs::new(r#"{"what": "a", "depth": 2}"#);
    assert!(tool.prepare(&arguments).is_ok(), "what is not told may still be sent");
}

// F104: an allow list and a deny list; the denial beats the permission.
#[test]
fn an_agent_profile_limits_the_tools() {
    let desk = sample_toolset(&["chisel", "paper", "pen", "pencil"])
        .without(["paper"])
        .with_agent(
            AgentProfile::new("reader").only(["pen", "paper", "pencil"]).without(["PENCIL"]),
        )
        .with_agent(AgentProfile::new("idle").only(Vec::<String>::new()))
        .with_agent(AgentProfile::new("free"));
    let names = |session: &Session| visible_names(&desk.clone().for_session(session));
    // The toolset's own list applies as well: an agent never has more.
    assert_eq!(names(&agent("reader")), ["pen"]);
    assert!(names(&agent("idle")).is_empty());
    assert_eq!(names(&agent("free")), ["chisel", "pen", "pencil"]);
    assert_eq!(names(&agent("unheard_of")), ["chisel", "pen", "pencil"]);
    assert_eq!(names(&Session::new("nobody")), ["chisel", "pen", "pencil"]);

    let reader = desk.clone().for_session(&agent("reader"));
    assert!(reader.get("pencil").is_none() && reader.get("chisel").is_none());

    let closed = desk.only_known_agents();
    for session in [agent("unheard_of"), agent("Reader"), Session::new("nobody")] {
        let closed = closed.clone().for_session(&session);
        assert!(closed.view().tools().next().is_none(), "{session:?}");
    }
    assert_eq!(visible_names(&closed.for_session(&agent("reader"))), ["pen"]);
}

// F104
#[test]
fn the_last_agent_profile_wins() {
    let desk = sample_toolset(&["chisel", "pen"])
        .with_agent(AgentProfile::new("scribe").only(["chisel"]))
        .with_agent(AgentProfile::new("scribe").only(["pen"]));
    assert_eq!(visible_names(&desk.for_session(&agent("scribe"))), ["pen"]);
}

// F75, F104: the agent's rules come after the user's and before the session's.
#[test]
fn combines_agent_rules_and_mode_with_the_toolset() {
    let careful = AgentProfile::new("careful")
        .rules([deny("pen").scope(RuleScope::Session), allow("chisel(soft *)")])
        .mode(Mode::Plan);
    let base = sample_toolset(&["chisel", "pen", "pencil"])
        .with_agent(careful)
        .with_agent(AgentProfile::new("bold").mode(Mode::Bypass))
        .with_rules([allow("pen"), allow("pencil").scope(RuleScope::Session)]);
    let rules = |toolset: &Toolset| -> Vec<String> {
        toolset.view().rules().rules().iter().map(ToString::to_string).collect()
    };

    let toolset = base.clone().for_session(&agent("careful"));
    assert_eq!(rules(&toolset), ["allow pen", "deny pen", "allow chisel(soft *)", "allow pencil"]);
    assert_eq!(toolset.view().mode(), Mode::Plan);
    // An agent cannot have a milder mode than its host, not even later.
    assert_eq!(base.clone().for_session(&agent("bold")).view().mode(), Mode::Auto);
    toolset.set_mode(Mode::Bypass);
    assert_eq!(toolset.view().mode(), Mode::Plan);
    toolset.set_mode(Mode::Strict);
    assert_eq!(toolset.view().mode(), Mode::Plan);
    assert_eq!(rules(&toolset)[0], "ask *");
    toolset.set_rules(Ruleset::default());
    assert_eq!(rules(&toolset), ["ask *", "deny pen", "allow chisel(soft *)"]);

    // Another agent of the same toolset is not affected.
    assert_eq!(rules(&base), ["allow pen", "allow pencil"]);
}

// F79: a tool that is denied as a whole is hidden; a later rule for some calls brings it back.
#[test]
fn hides_tools_that_are_denied_as_a_whole() {
    for (rules, expected) in [
        (vec![deny("chisel")], &["pen"][..]),
        (vec![deny("write")], &[]),
        (vec![deny("*")], &[]),
        (vec![deny("chisel(granite *)")], &["chisel", "pen"]),
        (vec![deny("chisel"), allow("chisel(soft *)")], &["chisel", "pen"]),
        (vec![allow("chisel"), deny("*"), allow("pen")], &["pen"]),
    ] {
        let desk = sample_toolset(&["chisel", "pen"]).with_rules(rules);
        assert_eq!(visible_names(&desk), expected, "{:?}", desk.view().rules());
        assert!(desk.get("chisel").is_some());
    }
}

// F14, F104: scopes of the audience and of the agent.
#[test]
fn an_agent_profile_adds_scopes_and_experiments() {
    let mut vault = definition("vault");
    vault.scopes = vec!["keeper".into()];
    let mut laser = definition("laser");
    laser.flags.experimental = true;
    let registry = Registry::builder()
        .add(sample_tool(vault))
        .add(sample_tool(laser))
        .build()
        .expect("no conflict");
    let toolset = Toolset::new(registry)
        .with_agent(AgentProfile::new("keeper").scope("keeper"))
        .with_agent(AgentProfile::new("smith").experimental(["las*"]));
    let names = |toolset: Toolset, session: &Session| visible_names(&toolset.for_session(session));
    assert_eq!(names(toolset.clone(), &agent("keeper")), ["vault"]);
    assert_eq!(names(toolset.clone(), &agent("smith")), ["laser"]);
    assert!(names(toolset.clone(), &Session::new("nobody")).is_empty());
    assert_eq!(names(toolset.with_scope("keeper"), &agent("smith")), ["laser", "vault"]);
}

// F109: experimental tools are visible when they are enabled, all of them or some.
#[test]
fn shows_enabled_experimental_tools() {
    let tools = ["collab_send", "collab_wait", "memory"].map(|name| {
        let mut definition = definition(name);
        definition.flags.experimental = true;
        Arc::new(sample_tool(definition)) as Arc<dyn Tool>
    });
    let base = Toolset::new(Registry::builder().add(tools.to_vec()).build().expect("no conflict"));
    assert!(visible_names(&base).is_empty() && base.get("memory").is_none());
    let some = base.clone().with_experimental_named("collab_*, unknown".split(','));
    assert_eq!(visible_names(&some), ["collab_send", "collab_wait"]);
    assert!(some.get("memory").is_none());
    assert_eq!(visible_names(&some.with_experimental_named(["memory"])).len(), 3);
    assert_eq!(visible_names(&base.with_experimental()).len(), 3);
}

// F101: a conversation that changes its model sees the tools of the new one.
#[test]
fn the_model_of_a_session_selects_its_view() {
    let profile = ModelProfile::new(["small"]).prefer("pen", ["pencil"]);
    let desk = sample_toolset(&["pen", "pencil"]).with_profile(profile);
    let names = |session: &Session| {
        let view = desk.view_for(session);
        view.tools().map(|tool| tool.definition().name.to_string()).collect::<Vec<_>>()
    };
    let session = Session::new("s");
    assert_eq!(names(&session.clone().with_model("large")), ["pen", "pencil"]);
    assert_eq!(names(&session.clone().with_model("small")), ["pen"]);
    assert_eq!(names(&session.clone().with_model("large")), ["pen", "pencil"]);
    assert_eq!(names(&session), ["pen", "pencil"]);
}

// F156: a program may hide tools until the user enables them.
#[test]
fn tools_marked_experimental_are_hidden_until_they_are_enabled() {
    let tools = ["desktop", "memory"].map(|name| sample_tool(definition(name)));
    let tools = tools.map(|tool| Arc::new(tool) as Arc<dyn Tool>).to_vec();
    let base = Toolset::new(Registry::builder().add(tools).build().expect("no conflict"));
    let marked = base.mark_experimental(["desk*"]);
    assert_eq!(visible_names(&marked), ["memory"]);
    assert_eq!(visible_names(&marked.with_experimental_named(["desktop"])).len(), 2);
}

// F108: exactly the tools of the chosen variant are visible and can be called.
#[test]
fn exactly_one_variant_of_a_group_is_active() {
    let writing = VariantGroup::new("writing")
        .variant("ink", ["pen"])
        .variant("lead", ["pencil", "sharpener"])
        .variant("none", Vec::<String>::new());
    let base = sample_toolset(&["paper", "pen", "pencil", "sharpener"]).with_variants(writing);
    for (chosen, expected) in [
        ("ink", &["paper", "pen"][..]),
        ("lead", &["paper", "pencil", "sharpener"]),
        ("none", &["paper"]),
    ] {
        let desk = base.clone().choose_variant("writing", chosen).expect("there is such a variant");
        assert_eq!(visible_names(&desk), expected, "{chosen}");
        for name in ["pen", "pencil"] {
            assert_eq!(desk.get(name).is_some(), expected.contains(&name), "{chosen}: {name}");
        }
    }
    assert_eq!(visible_names(&base), ["paper", "pen"], "the first one, when none is chosen");

    for (group, variant, message) in [
        (
            "writing",
            "blood",
            "there is no variant `blood` of `writing`: choose `ink` or `lead` or `none`",
        ),
        ("reading", "ink", "there is no variant `ink` of `reading`: the group has none"),
    ] {
        let error = base.clone().choose_variant(group, variant).expect_err("there is none");
        assert_eq!(error.to_string(), message);
    }
    // A group replaces another one of the same name.
    let again = base.with_variants(VariantGroup::new("writing").variant("lead", ["pencil"]));
    assert_eq!(visible_names(&again), ["paper", "pen", "pencil", "sharpener"]);
}

/// A hook that removes the tool.
struct RemovingHook;

impl Hook for RemovingHook {
    fn edit_definition(&self, _: &mut Definition, _: &Session) -> bool {
        false
    }
}

/// A hook that changes the description, and tries to change what hooks must not change.
struct DescribingHook(&'static str);

impl Hook for DescribingHook {
    fn edit_definition(&self, definition: &mut Definition, session: &Session) -> bool {
        let user = session.user().unwrap_or("nobody");
        definition.description = format!("{} {}, {user}.", definition.description, self.0).into();
        definition.name = ToolName::from_static("renamed");
        definition.risk = Risk::new(RiskClass::Read);
        definition.permission = None;
        definition.flags.experimental = true;
        true
    }
}

// F69: hooks change definitions, or remove a tool.
#[test]
fn hooks_change_definitions() {
    let session = model("plain").with_user("Ada");
    let desk = sample_toolset(&["chisel", "pen", "pencil"])
        .with_definition_hook("pen*", Arc::new(DescribingHook("Last")))
        .with_definition_hook("pencil", Arc::new(RemovingHook))
        .with_definition_hook_at(HookPriority::SECURITY, "pen", Arc::new(DescribingHook("First")))
        .with_profile(ModelProfile::new(["*"]).without_optional("pen"))
        .for_session(&session);
    assert_eq!(visible_names(&desk), ["chisel", "pen"]);
    assert!(desk.get("pencil").is_none(), "what is taken out cannot be called");

    let view = desk.view();
    let pen = view.definition("pen").expect("it is there");
    assert_eq!(pen.description, "Does something. First, Ada. Last, Ada.");
    // The profile came before the hooks, and its changes are kept.
    assert!(pen.parameters.property("depth").is_none());
    let own = desk.get("pen").expect("it is there");
    let own = own.definition();
    assert_eq!((&pen.name, &pen.risk, &pen.flags), (&own.name, &own.risk, &own.flags));
    assert_eq!(pen.permission(), own.permission());
    assert_eq!(own.description, "Does something.");
}

// F106: tools that are added at run time belong to one toolset.
#[test]
fn additions_belong_to_one_toolset() {
    let base = sample_toolset(&["pen"]).with_agent(AgentProfile::new("scribe").without(["chisel"]));
    let (mine, yours) = (base.clone().for_session(&agent("mason")), base.clone());
    mine.add(sample_tool(definition("chisel"))).expect("the name is free");
    assert_eq!(visible_names(&mine), ["chisel", "pen"]);
    assert_eq!(
        (visible_names(&yours), visible_names(&base)),
        (vec!["pen".to_owned()], vec!["pen".to_owned()])
    );
    // Profiles and variants apply to added tools as well.
    assert_eq!(visible_names(&mine.clone().for_session(&agent("scribe"))), ["pen"]);
    assert!(mine.remove("chisel") && !mine.remove("chisel"));
    assert_eq!(visible_names(&mine), ["pen"]);
    assert!(mine.add(sample_tool(definition("pen"))).is_err());
}

// F107: hidden tools are not found.
// F106, F177: tools for one agent or one session are invisible to others, and removable.
#[test]
fn additions_for_an_agent_or_a_session_are_theirs_alone() {
    let toolset = sample_toolset(&["a"]);
    let (one, other) = (Session::new("one"), Session::new("other"));
    let writer = agent("writer");
    let for_one = ToolAudience::session(&one);
    toolset.add_for(for_one.clone(), sample_tool(definition("b"))).unwrap();
    // Each session may have a tool of this name, and an agent another one.
    toolset.add_for(ToolAudience::session(&other), sample_tool(definition("b"))).unwrap();
    let toolset = toolset.with_agent_tools("writer", sample_tool(definition("c"))).unwrap();
    let names = |session: &Session| {
        let view = toolset.view_for(session);
        view.tools().map(|tool| tool.definition().name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(&one), ["a", "b"]);
    assert_eq!(names(&one.clone().with_model("m")), ["a", "b"]);
    assert_eq!(names(&writer), ["a", "c"]);
    assert_eq!(names(&Session::new("one")), ["a"], "another session of the same id");
    assert_eq!(names(&one.clone().with_agent("writer")), ["a", "c"], "another session");
    let of = |session| {
        let view = toolset.view_for(session);
        Arc::as_ptr(view.get("b").unwrap()).cast::<()>()
    };
    assert_ne!(of(&one), of(&other));
    // A name that a session of the audience could already have is in use.
    let taken = [
        (for_one.clone(), "b"),
        (for_one.clone(), "a"),
        (for_one.clone(), "c"),
        (ToolAudience::agent("writer"), "b"),
        (ToolAudience::everyone(), "c"),
    ];
    for (audience, name) in taken {
        assert!(
            toolset.add_for(audience.clone(), sample_tool(definition(name))).is_err(),
            "{name}"
        );
    }
    toolset.add_for(ToolAudience::agent("reader"), sample_tool(definition("c"))).unwrap();
    assert!(toolset.remove_for(&for_one, "b"));
    assert!(!toolset.remove_for(&for_one, "b"));
    assert_eq!((names(&one).len(), names(&other).len()), (1, 2));
    // The tools of an ended session are dropped with the next change.
    drop(other);
    toolset.add(sample_tool(definition("d"))).unwrap();
    let all = toolset.all_tools();
    assert!(all.iter().all(|tool| tool.definition().name.as_str() != "b"));
    // The lists of the toolset apply to added tools as well.
    let toolset = toolset.without(["c"]);
    assert!(toolset.view_for(&writer).get("c").is_none());
}

#[test]
fn search_finds_only_visible_tools() {
    let desk = sample_toolset(&["pen", "pencil", "pencil_case", "sharpener"])
        .with_rules([deny("pencil_case")])
        .without(["sharpener"])
        .with_definition_hook("pen", Arc::new(DescribingHook("Ink")));
    let view = desk.view();
    let names = |query, limit| -> Vec<&str> {
        view.search(query, limit).into_iter().map(|found| found.name.as_str()).collect()
    };
    assert_eq!(names("pencil", 5), ["pencil"]);
    assert_eq!(names("pen", 5), ["pen", "pencil"]);
    assert_eq!(names("pen", 1), ["pen"]);
    assert_eq!(names("sharpener", 5), Vec::<&str>::new());
    assert_eq!(names("", 5), ["pen", "pencil"]);
    // Schemas and descriptions are those of this audience.
    assert_eq!(view.search("ink", 1)[0].description, "Does something. Ink, nobody.");
}

// F101: the same tools and audience make the same bytes, in any order of registration.
#[test]
fn listings_are_deterministic() {
    let text = |names: &[&'static str], late: Option<&'static str>| {
        let desk = sample_toolset(names).with_profile(mason()).for_session(&model("mason-3"));
        if let Some(name) = late {
            let mut definition = definition(name);
            definition.permission = Some("write".into());
            desk.add(sample_tool(definition)).expect("the name is free");
        }
        let view = desk.view();
        serde_json::to_string(&view.definitions().collect::<Vec<_>>()).expect("it is JSON")
    };
    let first = text(&["chisel", "paper", "pen", "stone"], None);
    assert_eq!(text(&["stone", "pen", "paper", "chisel"], None), first);
    assert_eq!(text(&["stone", "pen", "paper"], Some("chisel")), first);
    assert_eq!(text(&["stone", "chisel", "pen"], Some("paper")), first);
}

// F106: a view is consistent while its toolset changes.
#[test]
fn a_view_is_a_consistent_snapshot() {
    const ROUNDS: usize = 200;
    let desk =
        sample_toolset(&["paper", "pen"]).with_profile(mason()).for_session(&model("mason-3"));
    let chisel = sample_tool(definition("chisel"));
    let chisel: Arc<dyn Tool> = Arc::new(chisel);
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                for _ in 0..ROUNDS {
                    let view = desk.view();
                    let names: Vec<&str> =
                        view.definitions().map(|definition| definition.name.as_str()).collect();
                    // Either the chisel is there, or the tools that it replaces.
                    assert!(names == ["chisel", "paper"] || names == ["paper", "pen"], "{names:?}");
                    for name in &names {
                        let at = view.find(name).expect("it has a place");
                        let (tool, _) = view.entry_at(at).expect("it stands there");
                        assert_eq!(tool.definition().name.as_str(), *name);
                    }
                }
            });
        }
        for _ in 0..ROUNDS {
            desk.add(vec![Arc::clone(&chisel)]).expect("the name is free");
            desk.set_mode(Mode::Strict);
            assert!(desk.remove("chisel"));
        }
    });
    assert_eq!(visible_names(&desk), ["paper", "pen"]);
}

// A rule about an existing tool of another audience is not a mistake; a misspelt name most likely is.
#[test]
fn reports_rules_that_match_no_tool() {
    let toolset = sample_toolset(&["pen", "ink"]).only(["pen"]);
    let rules = [
        allow("pen(a)"),
        allow("*"),
        deny("INK"),
        deny("write"),
        deny("external_directory"),
        // A rule that allows must match exactly.
        allow("INK"),
        deny("pne"),
        deny("mcp__*"),
    ];
    let view = toolset.with_rules(rules).view();
    let unmatched: Vec<_> = view.unmatched_rules().iter().map(ToString::to_string).collect();
    assert_eq!(unmatched, ["allow INK", "deny pne", "deny mcp__*"]);
    assert!(Toolset::new(Registry::builder().build().unwrap()).view().unmatched_rules().is_empty());

    let takes = |schema| {
        let schema = Schema::from_value(schema).unwrap();
        Definition { parameters: schema, ..definition("put") }
    };
    let open = json!({ "type": "object", "properties": { "what": { "type": "string" } } });
    let mut closed = open.clone();
    closed["additionalProperties"] = json!(false);
    for (schema, expected) in [(closed, &["deny put(wat: x)"][..]), (open, &[])] {
        let registry = Registry::builder().add(sample_tool(takes(schema))).build().unwrap();
        let rules = [deny("put(what: x)"), deny("put(wat: x)"), deny("external_directory(at: x)")];
        // No resource has such a name, so the rule would deny nothing.
        let near = [deny("put(what:x)"), deny("p*(what:x)"), deny("put(https://x)")];
        let view = Toolset::new(registry).with_rules(rules.into_iter().chain(near)).view();
        let unmatched: Vec<_> = view.unmatched_rules().iter().map(ToString::to_string).collect();
        assert_eq!(unmatched, [expected, &["deny put(what:x)", "deny p*(what:x)"]].concat());
    }
}

// F88: reports a rule on an argument that some of its tools do not have.
#[test]
fn reports_rules_on_arguments_that_some_tools_lack() {
    let one = |name, argument: &str| {
        let schema = Schema::from_value(json!({
            "type": "object",
            "properties": { argument: { "type": "string" } },
            "additionalProperties": false,
        }));
        let permission = Some("edit".into());
        Definition { parameters: schema.unwrap(), permission, ..definition(name) }
    };
    // The permission as an alias of one of them makes no difference.
    let aliases = ["edit", "change"].map(ToolName::from_static).to_vec();
    let put = sample_tool(Definition { aliases, ..one("put", "what") });
    let registry = Registry::builder().add(put).add(sample_tool(one("patch", "lines")));
    let rules = [
        "deny edit(what: x)",
        "ask edit(what: x)",
        "allow edit(what: x)",
        "deny put(what: x)",
        "deny p*(what: x)",
        "deny change(what: x)",
    ];
    let rules = rules.map(|rule| rule.parse::<Rule>().unwrap());
    let view = Toolset::new(registry.build().unwrap()).with_rules(rules).view();
    let told: Vec<_> = view.unmatched_rules().iter().map(ToString::to_string).collect();
    assert_eq!(told, ["deny edit(what: x)", "ask edit(what: x)"]);
}

// F39: each tool is suggested once, by its closest name.
#[test]
fn suggests_each_tool_once() {
    let mut turn = definition("turn_page");
    turn.aliases = vec![ToolName::from_static("turn"), ToolName::from_static("turnpage")];
    let tools = [turn, definition("burn_page"), definition("grab_pages"), definition("ls")];
    let registry = Registry::builder()
        .add(tools.map(|it| Arc::new(sample_tool(it)) as Arc<dyn Tool>).to_vec());
    let view = Toolset::new(registry.build().expect("no conflict")).view();
    for (name, expected) in [
        ("Turn-Page", &["turn_page", "burn_page"][..]),
        ("turning", &["turn"]),
        ("lss", &["ls"]),
        ("e", &[]),
        ("", &[]),
        ("page", &["burn_page", "grab_pages", "turn_page"]),
    ] {
        assert_eq!(view.close_names(name), expected, "{name}");
    }
}

/// Gives a bike back.
#[cfg(feature = "macros")]
#[crate::tool(write, register = false)]
fn restock(
    /// Whose bike.
    customer: &str,
) {
    let _ = customer;
}

/// Gives several bikes back.
#[cfg(feature = "macros")]
#[crate::tool(write, register = false)]
fn restock_all(
    /// Whose bikes.
    customers: Vec<String>,
) {
    let _ = customers;
}

/// Gives a named bike back.
#[cfg(feature = "macros")]
#[crate::tool(
    write,
    register = false,
    approval(resources = |args, _| vec![crate::tool::Resource::new(args.bike.as_str())]),
)]
fn restock_bike(
    /// Which bike.
    bike: String,
) {
    let _ = bike;
}

// A pattern for what a call touches matches nothing where the tool names nothing.
#[cfg(feature = "macros")]
#[test]
fn a_pattern_for_a_tool_without_resources_is_unmatched() {
    let tools = crate::tools![restock, restock_all, restock_bike];
    let registry = Registry::builder().add(tools).build().unwrap();
    let rules =
        ["restock(Emma)", "restock(customer: Emma)", "restock", "restock(*)", "restock_bike(7)"];
    let rules = rules.into_iter().chain(["restock_all(Emma)"]).map(allow);
    let view = Toolset::new(registry).with_rules(rules).view();
    let unmatched: Vec<String> = view.unmatched_rules().iter().map(ToString::to_string).collect();
    assert_eq!(unmatched, ["allow restock(Emma)"]);
}
