//! The tools with which an agent starts others and hears from them.

use std::time::Duration;

use serde_json::json;
use tool_sdk_core::{
    Context, IntoTools, Output, RegistryError, Resource, Tool, ToolError, Toolset, tool, tools,
};

use super::{SubagentReport, SubagentService, SubagentStatus};

impl SubagentService {
    /// Returns the tools `delegate`, `spawn_agent`, `send_to_agent`, `wait_for_agents`, `close_agent`
    /// and `list_agents`.
    ///
    /// They need the service in the session: [`Session::with_service`] of `Some(subagents)`.
    ///
    /// [`Session::with_service`]: tool_sdk_core::Session::with_service
    #[must_use]
    pub fn tools() -> Vec<std::sync::Arc<dyn Tool>> {
        tools![delegate, spawn_agent, send_to_agent, wait_for_agents, close_agent, list_agents]
            .into_tools()
    }

    /// Adds the tools to a toolset, for sessions with this service.
    ///
    /// # Errors
    ///
    /// Fails when a tool of one of the names is there.
    pub fn add_tools_to(toolset: &Toolset) -> Result<(), RegistryError> {
        toolset.add(Self::tools())
    }

    fn from_context(cx: &Context) -> Result<Self, ToolError> {
        cx.session().extension::<Option<Self>>().ok_or_else(|| {
            ToolError::config("there are no agents here").hint("do the work yourself")
        })
    }
}

/// Give a task to another agent, and wait for its answer.
///
/// Use it for work whose details you do not need: searching a large project, trying something out, a
/// review. The agent sees nothing of this conversation, so the task says all that it needs: the goal,
/// what is known, and what the answer has to contain. Several calls in one message work side by side.
/// `list_agents` shows the agents.
#[tool(
    read,
    open_world,
    register = false,
    category = "agents",
    approval(required = |_, _| false, resources = |call, _| vec![Resource::new(call.agent.to_owned())]),
    timeout = "2h",
    task = optional,
    display(name = "Delegate", primary = task, show(agent, task), summary = "{agent}: {task}"),
    example = r#"{"agent": "explore", "task": "Where is the session cookie checked? Name the functions as path:line."}"#
)]
async fn delegate(
    /// The name of the agent; with `resume_id` that of the one to go on with.
    #[arg(length = 1..=64)]
    agent: &str,
    /// The task, complete.
    #[arg(length = 1..=20000)]
    task: &str,
    /// The id of an agent that you started and that has ended, to go on with its conversation.
    #[arg(length = 1..=80)]
    resume_id: Option<&str>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let subagents = SubagentService::from_context(cx)?;
    let report = match resume_id {
        Some(id) => subagents.resume_agent(cx, agent, id, task).await?,
        None => subagents.delegate_task(cx, agent, task).await?,
    };
    let text = format!("{}\n\n({} made {}.)", report.answer, report.id, report.count_calls());
    Ok(Output::text(text).structured(json!(report)))
}

/// Start an agent that works while you go on.
///
/// Returns its id. `wait_for_agents` returns its answer; it is not told to you by itself.
#[tool(
    read,
    open_world,
    register = false,
    category = "agents",
    approval(required = |_, _| false, resources = |call, _| vec![Resource::new(call.agent.to_owned())]),
    display(name = "Start agent", primary = task, show(agent, task), summary = "Starting {agent}: {task}"),
    example = r#"{"agent": "build", "task": "Run the tests of the crate parser and report each failure with its cause."}"#
)]
async fn spawn_agent(
    /// The name of the agent.
    #[arg(length = 1..=64)]
    agent: &str,
    /// The task, complete.
    #[arg(length = 1..=20000)]
    task: &str,
    cx: &Context,
) -> Result<Output, ToolError> {
    let report = SubagentService::from_context(cx)?.start_in_background(cx, agent, task)?;
    Ok(Output::text(format!("The agent {} works.", report.id)).structured(json!(report)))
}

/// Send a message to an agent that you started.
///
/// One that works reads it before its next step; one that has ended goes on with it.
#[tool(
    read,
    open_world,
    register = false,
    category = "agents",
    approval(required = |_, _| false, resources = |call, _| vec![Resource::new(agent_of(&call.id))]),
    display(name = "Message to agent", primary = message, show(id, message), summary = "To {id}: {message}"),
    example = r#"{"id": "build-2", "message": "Leave the integration tests out."}"#
)]
async fn send_to_agent(
    /// The id of the agent.
    #[arg(length = 1..=80)]
    id: &str,
    /// The message.
    #[arg(length = 1..=20000)]
    message: &str,
    cx: &Context,
) -> Result<Output, ToolError> {
    let report = SubagentService::from_context(cx)?.send_message(cx, id, message)?;
    Ok(Output::text(format!("The agent {} has the message.", report.id)).structured(json!(report)))
}

/// Wait until agents that you started have ended, and read their answers.
#[tool(
    read,
    register = false,
    category = "agents",
    approval(required = |_, _| false),
    timeout = "2h",
    task = optional,
    display(name = "Wait for agents", primary = ids, summary = "Waiting for agents"),
    example = r#"{"ids": ["build-2", "explore-3"], "timeout_seconds": 300}"#
)]
async fn wait_for_agents(
    /// The ids; all that you started without them.
    #[arg(default = Vec::new(), length = ..=200)]
    ids: Vec<String>,
    /// How long to wait at most; agents that still work are reported as such.
    #[arg(default = 600, range = 0..=3600)]
    timeout_seconds: u64,
    cx: &Context,
) -> Result<Output, ToolError> {
    let timeout = Duration::from_secs(timeout_seconds);
    let reports = SubagentService::from_context(cx)?.wait_until_ended(cx, &ids, timeout).await?;
    Ok(format_reports(&reports))
}

/// End an agent that you started, and forget it.
///
/// What it did stays done. Agents that it started end, too.
#[tool(
    read,
    register = false,
    category = "agents",
    approval(required = |_, _| false),
    display(name = "End agent", primary = id, summary = "Ending {id}"),
    example = r#"{"id": "build-2"}"#
)]
async fn close_agent(
    /// The id of the agent.
    #[arg(length = 1..=80)]
    id: &str,
    cx: &Context,
) -> Result<Output, ToolError> {
    let report = SubagentService::from_context(cx)?.end_agent(cx, id).await?;
    Ok(format_reports(&[report]))
}

/// List the agents that can be started, and those that you started.
#[tool(
    read,
    register = false,
    category = "agents",
    approval(required = |_, _| false),
    display(name = "Agents", summary = "Listing agents"),
    example = "{}"
)]
async fn list_agents(cx: &Context) -> Result<Output, ToolError> {
    let subagents = SubagentService::from_context(cx)?;
    let started = subagents.started_agents(cx);
    let mut text = format!("Agents that can be started:\n{}", subagents.describe_agents());
    if !started.is_empty() {
        text.push_str("\n\nAgents that you started:\n");
        let lines: Vec<String> = started.iter().map(describe_state).collect();
        text.push_str(&lines.join("\n"));
    }
    let agents: Vec<_> = subagents
        .catalog()
        .subagents()
        .map(|agent| json!({ "name": agent.name(), "description": agent.description }))
        .collect();
    Ok(Output::text(text).structured(json!({ "agents": agents, "started": started })))
}

/// Returns the name of the agent with this id, such as `build` for `build-2`.
fn agent_of(id: &str) -> String {
    id.rsplit_once('-').map_or(id, |(agent, _)| agent).to_owned()
}

fn format_reports(reports: &[SubagentReport]) -> Output {
    let section = |report: &SubagentReport| match report.answer.trim() {
        "" => describe_state(report),
        answer => format!("{}\n{answer}", describe_state(report)),
    };
    let text = match reports {
        [] => "(You started no agents.)".to_owned(),
        _ => reports.iter().map(section).collect::<Vec<_>>().join("\n\n"),
    };
    Output::text(text).structured(json!({ "agents": reports }))
}

/// Describes an agent in one line.
fn describe_state(report: &SubagentReport) -> String {
    let state = match &report.status {
        SubagentStatus::Running => "works".to_owned(),
        SubagentStatus::Finished => "has answered".to_owned(),
        SubagentStatus::Stopped(why) => format!("stopped: {why}"),
        SubagentStatus::Cancelled => "was cancelled".to_owned(),
    };
    format!("{} {state} ({})", report.id, report.count_calls())
}
