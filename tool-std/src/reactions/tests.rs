//! Rules, files and the engine, with real pipelines.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tool_sdk::agent::{PromptSections, SteeringQueue};
use tool_sdk::testing::Harness;
use tool_sdk::{
    Call, CancellationToken, Context, ErrorKind, Pipeline, ProgramFolders, Registry, Rule, Session,
    ToolError, TrustedFolders, Workspace, tool, tools,
};

use super::*;

/// Work, which may fail.
#[tool(read, register = false)]
fn work(
    /// Its number.
    number: u64,
    /// Whether the work fails.
    #[arg(default = false)]
    fails: bool,
    cx: &Context,
) -> Result<String, ToolError> {
    cx.emit("worked", json!({ "number": number }));
    match fails {
        true => Err(ToolError::failed(format_args!("{number} failed"))),
        false => Ok(number.to_string()),
    }
}

fn registry() -> Registry {
    let actions = tools![notify_self, log, set_state, emit_event, modify_prompt, inject_context];
    Registry::builder().add(tools![work]).add(actions).build().unwrap()
}

/// A session with an agent, whose rules react.
struct ReactingSession {
    pipeline: Pipeline,
    session: Session,
    steering: SteeringQueue,
    sections: PromptSections,
    progress: ReactionProgress,
    ending: CancellationToken,
    running: tokio::task::JoinHandle<Vec<String>>,
}

impl ReactingSession {
    fn start(rules: &str) -> Self {
        Self::start_with(rules, Pipeline::new(registry()))
    }

    fn start_with(rules: &str, pipeline: Pipeline) -> Self {
        let rules = ReactionRules::parse(rules, "rules.toml").unwrap();
        let (steering, sections) = (SteeringQueue::default(), PromptSections::default());
        let session =
            Session::new("s").with_service(steering.clone()).with_service(sections.clone());
        let engine = ReactionEngine::start(&pipeline, &session, &rules);
        let (progress, ending) = (engine.progress(), CancellationToken::new());
        let running = tokio::spawn(engine.run(ending.clone()));
        Self { pipeline, session, steering, sections, progress, ending, running }
    }

    async fn work(&self, number: u64, fails: bool) {
        let arguments = json!({ "number": number, "fails": fails }).to_string();
        self.pipeline.call(&self.session, Call::new("work", arguments)).await;
    }

    fn state(&self, key: &str) -> Option<Value> {
        self.session.extension::<ReactionState>().get(key)
    }

    fn counters(&self, rule: &str) -> RuleCounters {
        self.session.extension::<ReactionCounters>().of_rule(rule)
    }

    /// Waits until everything of the past was reacted to, and returns the notes.
    async fn finish(self) -> Vec<String> {
        self.ending.cancel();
        self.running.await.unwrap()
    }
}

const FAILURES: &str = r#"
    [[reaction]]
    name = "count"
    on = "failed"
    when = 'event.tool == "work"'
    actions = [{ tool = "set_state", key = "failures", value = "${(has(state.failures) ? state.failures : 0) + 1}" }]

    [[reaction]]
    name = "tell"
    on = ["failed", "timed_out"]
    when = "state.failures >= 2"
    actions = [
        { tool = "notify_self", message = "${event.tool} failed ${state.failures} times: ${event.message}" },
        { tool = "inject_context", text = "Look at the log." },
        { tool = "modify_prompt", section = "caution", text = "Work in small steps." },
        { tool = "log", message = "told" },
    ]
"#;

// F163: event, condition, actions through the pipeline; a rule sees what the rules before it keep.
#[tokio::test]
async fn rules_react_to_the_events_of_calls() {
    let reacting = ReactingSession::start(FAILURES);
    reacting.work(1, true).await;
    reacting.work(2, false).await;
    reacting.progress.wait_until_processed().await;
    assert_eq!(reacting.state("failures"), Some(json!(1)));
    assert!(reacting.steering.is_empty());

    reacting.work(3, true).await;
    reacting.progress.wait_until_processed().await;
    assert_eq!(
        reacting.steering.take_all(),
        [
            "<notification>\nwork failed 2 times: 3 failed\n</notification>",
            "<context>\nLook at the log.\n</context>"
        ]
    );
    assert_eq!(reacting.sections.to_text(), "\n\n## caution\n\nWork in small steps.");
    let told = reacting.counters("tell");
    assert_eq!((told.events, told.matches, told.actions, told.failed_actions), (2, 1, 4, 0));
    assert_eq!(reacting.finish().await, Vec::<String>::new());
}

// F163: actions are calls like any other: a permission rule denies them.
#[tokio::test]
async fn permission_rules_and_the_audit_hold_for_actions() {
    let deny: Rule = "deny log".parse().unwrap();
    let reacting = ReactingSession::start_with(FAILURES, Pipeline::new(registry()).rules([deny]));
    let mut events = reacting.pipeline.subscribe();
    reacting.work(1, true).await;
    reacting.work(2, true).await;
    reacting.progress.wait_until_processed().await;
    let told = reacting.counters("tell");
    assert_eq!((told.actions, told.failed_actions), (3, 1));
    let mut sessions = Vec::new();
    while let Some(event) = events.try_recv() {
        if event.tool.name == "log" && event.kind.is_terminal() {
            sessions.push(event.session.to_string());
        }
    }
    assert_eq!(sessions, ["s/reactions"]);
    let notes = reacting.finish().await;
    assert!(notes[0].starts_with("rule `tell`: 1 action failed, such as: `log`:"), "{notes:?}");
}

#[tokio::test]
async fn events_of_rules_make_bounded_chains() {
    let reacting = ReactingSession::start(
        r#"
        [[reaction]]
        name = "first"
        on = "completed"
        actions = [{ tool = "emit_event", kind = "step", data = { depth = 1 } }]

        [[reaction]]
        name = "again"
        on = "emitted:step"
        max_per_minute = 1000
        actions = [
            { tool = "emit_event", kind = "step", data = { depth = "${event.data.depth + 1}" } },
            { tool = "emit_event", kind = "step", data = { depth = "${event.data.depth + 1}" } },
            { tool = "emit_event", kind = "unheard" },
        ]
        "#,
    );
    reacting.work(1, false).await;
    reacting.progress.wait_until_processed().await;
    // The first event, and 100 that follow from it.
    let again = reacting.counters("again");
    assert_eq!((again.events, again.actions), (100, 300));
    let notes = reacting.finish().await;
    assert_eq!(notes, ["101 events of rules had no reaction: their chain was too long"]);

    let deep = ReactingSession::start(
        r#"
        [[reaction]]
        name = "first"
        on = "completed"
        actions = [{ tool = "emit_event", kind = "step" }]

        [[reaction]]
        name = "again"
        on = "emitted"
        actions = [{ tool = "emit_event", kind = "step" }]
        "#,
    );
    // `work` emits an event of its own, which is not an event of a rule.
    deep.work(1, false).await;
    deep.progress.wait_until_processed().await;
    assert_eq!(deep.counters("again").events, 9 + 8);
    assert_eq!(deep.session.extension::<ReactionCounters>().broken_chains(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_rule_reacts_at_most_so_often_in_a_minute() {
    let reacting = ReactingSession::start(
        r#"
        [[reaction]]
        name = "few"
        on = "completed"
        max_per_minute = 2
        actions = [{ tool = "notify_self", message = "m" }]
        "#,
    );
    for number in 0..5 {
        reacting.work(number, false).await;
    }
    reacting.progress.wait_until_processed().await;
    let few = reacting.counters("few");
    assert_eq!((few.events, few.matches, few.actions, few.suppressed), (5, 5, 2, 3));
    tokio::time::advance(std::time::Duration::from_mins(1)).await;
    reacting.work(5, false).await;
    reacting.progress.wait_until_processed().await;
    assert_eq!(reacting.counters("few").actions, 3);
    let notes = reacting.finish().await;
    assert_eq!(notes, ["rule `few`: 3 events had no reaction by its `max_per_minute`"]);
}

// F163: many events at once: none that a rule waits for is lost, and others cost nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_event_is_lost_that_a_rule_waits_for() {
    const CALLERS: u64 = 8;
    const CALLS: u64 = 500;
    let reacting = Arc::new(ReactingSession::start(
        r#"
        [[reaction]]
        name = "sum"
        on = "emitted:worked"
        max_per_minute = 1000000
        actions = [{ tool = "set_state", key = "sum", value = "${(has(state.sum) ? state.sum : 0) + event.data.number}" }]
        "#,
    ));
    let callers = (0..CALLERS).map(|caller| {
        let reacting = Arc::clone(&reacting);
        tokio::spawn(async move {
            for number in 0..CALLS {
                reacting.work(caller * CALLS + number, false).await;
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    reacting.progress.wait_until_processed().await;
    let count = CALLERS * CALLS;
    assert_eq!(reacting.state("sum"), Some(json!(count * (count - 1) / 2)));
    assert_eq!(reacting.counters("sum").actions, count);
}

// F163: errors of a file are told with file and line, all of them, and no rule of the file counts.
#[test]
fn errors_of_a_file_have_its_name_and_their_lines() {
    let text = r#"
[[reaction]]
name = "a b"
on = "fialed"
when = "event.tool = 'x'"
max_per_minute = 0
actions = []

[[reaction]]
name = "two"
on = []
when = "evnt.x"
actions = [
    { tool = "shell", command = "ls" },
    { tool = "log", massage = "m" },
    { tool = "log", message = "${event." },
    { tool = "modify_prompt", section = "s", text = "${event.message}" },
    { message = "m" },
]

[[reaction]]
nam = "three"
name = 3
on = "completed"
actions = []

[[reaction]]
name = "four"
on = "completed"
wehn = "true"
actions = [{ tool = "log" }]

[other]
"#;
    let errors = ReactionRules::parse(text, "rules.toml").unwrap_err();
    let lines: Vec<&str> = errors.lines().collect();
    for (line, words) in [
        (3, "`name` must be 1 to 64"),
        (3, "`actions` has 0 actions"),
        (4, "there is no kind of events `fialed`; the kinds are pending,"),
        (5, "`when`: the expression is wrong at 1:"),
        (6, "`max_per_minute` is 0"),
        (11, "`on` names no kind"),
        (12, "there is no variable `evnt`"),
        (14, "`shell` is not a tool that rules can call"),
        (15, "massage"),
        (16, "`log`: `message`: `${` has no `}`"),
        (17, "the arguments must be fixed"),
        (18, "the action has no `tool`"),
        (22, "unknown key `nam`; the keys of a rule are name, on, when, max_per_minute, actions"),
        (23, "invalid type: integer `3`, expected a string"),
        (30, "unknown key `wehn`"),
        (31, "`log`: `message` is required (string"),
        (33, "unknown key `other`"),
    ] {
        let start = format!("rules.toml:{line}: ");
        let found = lines.iter().any(|it| it.starts_with(&start) && it.contains(words));
        assert!(found, "{line}: {words}\n{errors}");
    }
    assert_eq!(lines.len(), 17, "{errors}");
    assert!(!errors.contains("expecting") && !errors.contains(", - "), "{errors}");
    let syntax = ReactionRules::parse("[[reaction]]\nname = \n", "rules.toml").unwrap_err();
    assert!(syntax.starts_with("rules.toml:2: "), "{syntax}");
    let unknown = "[[reaction]]\nname = \"a\"\non = \"failed\"\nif = \"x\"\nactions = []\n";
    let unknown = ReactionRules::parse(unknown, "rules.toml").unwrap_err();
    assert!(unknown.contains("rules.toml:4: unknown key `if`"), "{unknown}");
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn rule(name: &str) -> String {
    format!(
        "[[reaction]]\nname = \"{name}\"\non = \"failed\"\nwhen = \"event.tool == 'shell'\"\n\
         actions = [{{ tool = \"log\", message = \"${{event.tool}}\" }}]\n"
    )
}

// F163: the rules of a project count only when its folder is trusted.
#[tokio::test]
async fn rules_are_found_in_the_configuration_and_in_trusted_projects() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().canonicalize().unwrap();
    let [root, config, state] = ["root", "config", "state"].map(|name| path.join(name));
    write(&config.join("reactions.toml"), &rule("mine"));
    write(&root.join(".agents/reactions.toml"), &rule("theirs"));
    let mut folders = ProgramFolders::default();
    (folders.config, folders.state) = (Some(config.clone()), Some(state.clone()));
    let workspace = Workspace::open([&root]).unwrap();
    let session = Session::new("s").with_service(folders).with_service(workspace);
    let harness = Harness::new(tools![reaction_list, reaction_check]).with_session(session.clone());

    let listed = harness.ok("reaction_list", "{}").await;
    let text = listed.as_text();
    assert!(text.contains("mine (") && !text.contains("theirs"), "{text}");
    assert!(text.contains("count when the folder is trusted"), "{text}");

    TrustedFolders::open(&state).trust(&root).unwrap();
    let found = ReactionRules::find(&session);
    assert_eq!((found.len(), found.warnings().len()), (2, 0));

    let event = json!({ "event": { "type": "failed", "tool": "shell" } });
    let checked = harness.ok("reaction_check", event).await;
    let text = checked.as_text();
    assert!(text.contains("theirs: reacts\n   log {\"message\":\"shell\"}"), "{text}");
    let event = json!({ "event": { "type": "failed" } });
    let text = harness.ok("reaction_check", event).await.as_text().to_owned();
    assert!(text.contains("mine: does not react, because of an error"), "{text}");

    write(&config.join("reactions.toml"), "[[reaction]]\n");
    let error = harness.error("reaction_check", "{}").await;
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert!(error.message().contains("reactions.toml:1: missing field"), "{error}");
    assert_eq!(ReactionRules::find(&session).len(), 1, "other files still count");
}

#[cfg(unix)]
#[test]
fn a_file_of_a_project_that_leads_outside_of_it_does_not_count() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().canonicalize().unwrap();
    let (root, state) = (path.join("root"), path.join("state"));
    write(&path.join("rules.toml"), &rule("outside"));
    fs::create_dir_all(root.join(".agents")).unwrap();
    std::os::unix::fs::symlink(path.join("rules.toml"), root.join(".agents/reactions.toml"))
        .unwrap();
    TrustedFolders::open(&state).trust(&root).unwrap();
    let mut folders = ProgramFolders::default();
    folders.state = Some(state);
    let session =
        Session::new("s").with_service(folders).with_service(Workspace::open([&root]).unwrap());
    let found = ReactionRules::find(&session);
    assert!(found.is_empty() && found.warnings()[0].contains("outside of its project"));
}
