//! Tests agents that start agents, with scripted models.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tool_sdk_core::{
    AgentProfile, ApprovalResponse, Call, Outcome, Plugin, PluginRegistrar, Registry, Rule,
    ScriptedApprover, Toolset, tool, tools,
};

use super::*;
use crate::agent_loop::AgentLoop;
use crate::model::{ModelClient, ModelError, ModelEvent, ModelRequest, ScriptedModel};
use crate::spending::{SpendingLimit, SpendingLimits};
use crate::transcript::Transcript;

/// Write a note.
#[tool(write)]
fn note(
    /// The text.
    text: String,
) -> String {
    format!("noted {text}")
}

/// Wait until the call is cancelled.
#[tool(read)]
async fn hang(cx: &Context) -> String {
    cx.cancelled().await;
    String::new()
}

fn pipeline() -> Pipeline {
    let toolset = Toolset::new(Registry::builder().add(tools![note, hang]).build().unwrap());
    SubagentService::add_tools_to(&toolset).unwrap();
    Pipeline::new(AgentCatalog::built_in().add_to(toolset).unwrap())
}

fn subagents(
    pipeline: &Pipeline,
    model: impl Fn() -> ScriptedModel + Send + Sync + 'static,
) -> SubagentService {
    SubagentService::new(pipeline.clone(), AgentCatalog::built_in(), move |_| {
        Ok(SubagentModel::new(model()))
    })
}

async fn call(pipeline: &Pipeline, session: &Session, tool: &str, arguments: Value) -> Outcome {
    pipeline.call(session, Call::new(tool, arguments.to_string().as_str())).await
}

fn allow(rule: &str) -> [Rule; 1] {
    [rule.parse().unwrap()]
}

// F166: a task goes down, an answer comes up, and the conversation can be continued by its id, by
// the one that started it alone.
#[tokio::test]
async fn a_task_is_delegated_and_continued() {
    let pipeline = pipeline();
    let session = Session::new("s")
        .with_service(Some(subagents(&pipeline, || ScriptedModel::new().says("In src/main.rs."))));
    let task = json!({ "agent": "explore", "task": "Where is main?" });
    let outcome = call(&pipeline, &session, "delegate", task).await;
    assert_eq!(outcome.text(), "In src/main.rs.\n\n(explore-1 made 0 calls.)");
    let task = json!({ "agent": "explore", "task": "And why?", "resume_id": "explore-1" });
    let again = call(&pipeline, &session, "delegate", task.clone()).await;
    assert!(again.result.is_ok(), "{}", again.text());
    let other = session.clone().with_id("other");
    let foreign = call(&pipeline, &other, "delegate", task).await;
    assert!(foreign.text().contains("you started no agent `explore-1`"), "{}", foreign.text());
    let wrong = json!({ "agent": "build", "task": "And?", "resume_id": "explore-1" });
    let wrong = call(&pipeline, &session, "delegate", wrong).await;
    assert!(wrong.text().contains("must be `explore`"), "{}", wrong.text());
    let unknown = json!({ "agent": "unheard-of", "task": "x" });
    let unknown = call(&pipeline, &session, "delegate", unknown).await;
    assert!(unknown.text().contains("* `explore`: "), "{}", unknown.text());
    let without = call(&pipeline, &Session::new("t"), "list_agents", json!({})).await;
    assert!(without.text().contains("there are no agents here"), "{}", without.text());
}

// F166: what is denied to the one that starts an agent is denied to the agent.
#[tokio::test]
async fn a_child_is_denied_what_its_parent_is_denied() {
    let pipeline = pipeline();
    let model =
        || ScriptedModel::new().calls(&[("c1", "note", json!({ "text": "x" }))]).says("Tried it.");
    let session = Session::new("s").with_service(Some(subagents(&pipeline, model)));
    for (rule, expected) in [("allow note", "noted x"), ("deny note", "may not run")] {
        let session = session.clone().with_id(rule).with_rules(allow(rule));
        let task = json!({ "agent": "build", "task": "Note x." });
        call(&pipeline, &session, "delegate", task).await.result.unwrap();
        let subagents = session.extension::<Option<SubagentService>>().unwrap();
        let record = subagents.records().last().cloned().unwrap();
        let conversation = format!("{:?}", record.transcript_for_test().entries);
        assert!(conversation.contains(expected), "{rule}: {conversation}");
    }
}

// F166: an approval of a child reaches the user, with the path of agents.
#[tokio::test]
async fn approvals_bubble_up_with_the_path_of_agents() {
    let pipeline = pipeline();
    let model =
        || ScriptedModel::new().calls(&[("c1", "note", json!({ "text": "x" }))]).says("Noted.");
    let approver = Arc::new(ScriptedApprover::new([ApprovalResponse::Once]));
    let session = Session::new("s")
        .with_agent("build")
        .with_shared_approver(Arc::clone(&approver) as _)
        .with_service(Some(subagents(&pipeline, model)));
    let task = json!({ "agent": "build", "task": "Note x." });
    call(&pipeline, &session, "delegate", task).await.result.unwrap();
    assert_eq!(approver.requests()[0].agent.as_deref(), Some("build > build"));
}

// F165: twenty agents work side by side, within their limits, and one cancellation ends them all.
#[tokio::test]
async fn twenty_agents_run_at_once_and_end_together() {
    let pipeline = pipeline();
    let model = || ScriptedModel::new().calls(&[("c1", "hang", json!({}))]).says("Done.");
    let token = CancellationToken::new();
    let session = Session::new("s")
        .with_cancel(token.clone())
        .with_service(Some(subagents(&pipeline, model)));
    for _ in 0..20 {
        let task = json!({ "agent": "explore", "task": "Hang." });
        call(&pipeline, &session, "spawn_agent", task).await.result.unwrap();
    }
    let task = json!({ "agent": "explore", "task": "One more." });
    let refused = call(&pipeline, &session, "spawn_agent", task).await;
    assert!(refused.text().contains("20 agents work, the limit"), "{}", refused.text());
    let listed = call(&pipeline, &session, "list_agents", json!({})).await;
    assert_eq!(listed.text().matches(" works (").count(), 20, "{}", listed.text());
    token.cancel();
    let subagents = session.extension::<Option<SubagentService>>().unwrap();
    let records = subagents.records().clone();
    for record in records {
        record.wait_until_ended().await;
        assert_eq!(record.report().status, SubagentStatus::Cancelled);
    }
}

#[tokio::test]
async fn an_agent_works_on_while_its_starter_does() {
    let pipeline = pipeline();
    let model = || ScriptedModel::new().says("Half.").says("Whole.");
    let session = Session::new("s").with_service(Some(subagents(&pipeline, model)));
    let run = async |tool: &str, arguments: Value| call(&pipeline, &session, tool, arguments).await;
    let spawned = run("spawn_agent", json!({ "agent": "build", "task": "Do it." })).await;
    assert_eq!(spawned.text(), "The agent build-1 works.");
    let waited = run("wait_for_agents", json!({})).await;
    assert_eq!(waited.text(), "build-1 has answered (0 calls)\nHalf.");
    run("send_to_agent", json!({ "id": "build-1", "message": "All of it." })).await;
    let waited = run("wait_for_agents", json!({ "ids": ["build-1"] })).await;
    assert!(waited.result.is_ok(), "{}", waited.text());
    let closed = run("close_agent", json!({ "id": "build-1" })).await;
    assert!(closed.result.is_ok(), "{}", closed.text());
    let gone = run("close_agent", json!({ "id": "build-1" })).await;
    assert!(gone.text().contains("you started no agent"), "{}", gone.text());
}

// F166: an empty answer and a failure of the provider are errors, with what there was.
#[tokio::test]
async fn an_agent_without_an_answer_is_an_error() {
    let pipeline = pipeline();
    let task = json!({ "agent": "explore", "task": "Look." });
    let session = |model: fn() -> ScriptedModel| {
        Session::new("s").with_service(Some(subagents(&pipeline, model)))
    };
    let empty = session(|| ScriptedModel::new().says(" "));
    let outcome = call(&pipeline, &empty, "delegate", task.clone()).await;
    assert!(outcome.text().contains("explore-1) ended without an answer"), "{}", outcome.text());
    // The script has no answer to the second request.
    let failing = session(|| ScriptedModel::new().calls(&[("c1", "note", json!({ "text": "x" }))]));
    let outcome = call(&pipeline, &failing, "delegate", task).await;
    assert!(outcome.text().contains("explore-1) stopped: "), "{}", outcome.text());
}

/// A model whose every message starts another agent.
struct DelegatingModel;

impl ModelClient for DelegatingModel {
    fn name(&self) -> &str {
        "delegating"
    }

    async fn respond(
        &self,
        request: &ModelRequest<'_>,
        _: &mut (dyn FnMut(ModelEvent) + Send),
    ) -> Result<tool_sdk_core::provider::ModelMessage, ModelError> {
        let has_answer = !request
            .transcript
            .entries
            .iter()
            .all(|entry| !matches!(entry, crate::transcript::TranscriptEntry::Answers { .. }));
        let script = match has_answer {
            true => ScriptedModel::new().says("Told."),
            false => ScriptedModel::new().calls(&[(
                "c1",
                "delegate",
                json!({ "agent": "build", "task": "Go deeper." }),
            )]),
        };
        script.respond(request, &mut |_| {}).await
    }
}

// F165: agents that start agents end at the limit of depth, and all spend from one budget.
#[tokio::test]
async fn depth_and_budget_are_limited_for_the_whole_tree() {
    let pipeline = pipeline();
    let limits = SpendingLimits { max_calls: Some(3), ..SpendingLimits::default() };
    let budget = SpendingBudget::new(limits);
    let started = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&started);
    let service = SubagentService::new(pipeline.clone(), AgentCatalog::built_in(), move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(SubagentModel::new(DelegatingModel))
    });
    let session = Session::new("s").with_service(Some(service.with_budget(budget.clone())));
    let mut transcript = Transcript::from_user("Begin.");
    let agent = AgentLoop::new(pipeline, DelegatingModel).with_budget(budget.clone());
    let outcome = agent.run(&session, &mut transcript, &CancellationToken::new()).await;
    // The first agent and the one below delegate; the third may not.
    assert_eq!(started.load(Ordering::Relaxed), 2);
    assert_eq!(budget.check(), Err(SpendingLimit::Calls(3)));
    assert_eq!(outcome.stop, crate::agent_loop::AgentStop::Limit(SpendingLimit::Calls(3)));
}

// F104: a profile that leaves delegation out keeps it from the agent.
#[tokio::test]
async fn rules_name_the_agent() {
    let pipeline = pipeline();
    let session = Session::new("s")
        .with_rules(allow("deny delegate(build)"))
        .with_approver(ScriptedApprover::new([]))
        .with_service(Some(subagents(&pipeline, || ScriptedModel::new().says("Yes."))));
    let run = async |agent: &str| {
        let task = json!({ "agent": agent, "task": "x" });
        call(&pipeline, &session, "delegate", task).await.result.is_ok()
    };
    assert!(run("explore").await && !run("build").await);
    let profile = AgentProfile::new("quiet").without(["category:agents"]);
    let toolset = pipeline.toolset().clone().with_agent(profile);
    let quiet = Session::new("q").with_agent("quiet");
    assert!(toolset.view_for(&quiet).get("delegate").is_none());
}

/// A plugin that brings the agents in a folder.
struct AgentPlugin(std::path::PathBuf);

impl Plugin for AgentPlugin {
    fn id(&self) -> &str {
        "kit"
    }

    fn register(&self, registrar: &mut PluginRegistrar) -> Result<(), ToolError> {
        registrar.add_agent_folder(&self.0);
        Ok(())
    }
}

// F115, F166: the agents of a plugin can be started when it is loaded, and end with it.
#[tokio::test]
async fn agents_of_a_plugin_come_and_go_with_it() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["scout", "plan"] {
        let text = format!("---\nname: {name}\ndescription: Scouts\ntools: hang\n---\nLook.\n");
        std::fs::write(folder.path().join(format!("{name}.md")), text).unwrap();
    }
    let pipeline = pipeline();
    let model = || ScriptedModel::new().calls(&[("c1", "hang", json!({}))]).says("Done.");
    let subagents = subagents(&pipeline, model);
    let plugins = pipeline.plugins().with_host(subagents.clone());
    let session = Session::new("s").with_service(Some(subagents.clone()));
    let task = json!({ "agent": "scout", "task": "Look." });
    for _ in 0..2 {
        let scope = plugins.load(&AgentPlugin(folder.path().to_owned())).unwrap();
        let notes = plugins.attach_parts(&scope).await;
        assert_eq!(notes[0], "Its agents can be started now: `scout`");
        assert!(
            notes[1].contains("plan.md has the name of an agent that is built-in"),
            "{notes:?}"
        );
        drop(scope);
        call(&pipeline, &session, "spawn_agent", task.clone()).await.result.unwrap();
        let tools = pipeline.toolset().view_for(&Session::new("t").with_agent("scout"));
        let names: Vec<_> = tools.definitions().map(|it| it.name.to_string()).collect();
        assert_eq!(names, ["hang"]);

        assert_eq!(plugins.unload("kit").await.unwrap(), [""; 0]);
        assert!(subagents.records().is_empty(), "it has ended");
        let gone = call(&pipeline, &session, "spawn_agent", task.clone()).await;
        assert!(gone.text().contains("there is no agent `scout`"), "{}", gone.text());
        assert!(pipeline.toolset().has_agent("scout"), "without a profile it would have all tools");
    }
}
