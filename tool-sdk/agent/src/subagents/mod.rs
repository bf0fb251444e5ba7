//! Agents that other agents start.
//!
//! ```text
//! limits    how many, how deep, and what each may spend
//! model     the model of an agent, by its name
//! plugin_agents    the agents of plugins that are loaded and unloaded
//! record    one agent that was started: its conversation, its state, what it reports
//! runner    the task in which it works
//! tools     what models call
//! ```
//!
//! **Invariant:** the session of an agent is limited by the session that started it, so each of its
//! calls is decided as strictly as if the starter made it. Cancelling the starter cancels it.

mod limits;
mod model;
mod plugin_agents;
mod record;
mod runner;
#[cfg(test)]
mod tests;
mod tools;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tool_sdk_core::{Context, ErrorKind, Output, Pipeline, Session, ToolError};

pub use self::limits::SubagentLimits;
pub use self::model::SubagentModel;
use self::record::SubagentRecord;
pub use self::record::{SubagentReport, SubagentStatus};
use crate::agents::{AgentCatalog, AgentDefinition};
use crate::spending::SpendingBudget;

/// What an agent is told at its deadline.
const TIME_IS_UP: &str = "The time is up. Make no more calls: answer now with what you have, and say \
                          what is missing.";

/// How long it may take for that answer.
const LAST_ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// Chooses the model of an agent; `None` is the model of the program.
type ModelChooser = dyn Fn(Option<&str>) -> Result<SubagentModel, ToolError> + Send + Sync;

/// Starts agents for other agents, and knows those that were started. A service of the session, for
/// the tools that delegate; clones share everything.
///
/// # Examples
///
/// ```
/// use tool_sdk::agent::{AgentCatalog, ScriptedModel, SubagentModel, SubagentService};
/// use tool_sdk::{Context, Pipeline, Registry, Session, ToolError, tool, tools};
///
/// /// Ask another agent.
/// #[tool(read)]
/// async fn ask(
///     /// The question.
///     question: String,
///     cx: &Context,
/// ) -> Result<String, ToolError> {
///     let subagents = cx.session().extension::<Option<SubagentService>>().expect("the host has agents");
///     Ok(subagents.delegate_task(cx, "explore", &question).await?.answer)
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let pipeline = Pipeline::new(Registry::builder().add(tools![ask]).build()?);
/// let subagents = SubagentService::new(pipeline.clone(), AgentCatalog::built_in(), |_| {
///     Ok(SubagentModel::new(ScriptedModel::new().says("In `src/main.rs`.")))
/// });
/// let session = Session::new("s").with_service(Some(subagents));
/// let outcome = pipeline
///     .call(&session, tool_sdk::Call::new("ask", r#"{"question": "Where is main?"}"#))
///     .await;
/// assert_eq!(outcome.text(), "In `src/main.rs`.");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SubagentService(Arc<SubagentsInner>);

struct SubagentsInner {
    pipeline: Pipeline,
    /// Changes with the plugins that are loaded.
    catalog: RwLock<Arc<AgentCatalog>>,
    choose_model: Box<ModelChooser>,
    system: String,
    limits: SubagentLimits,
    budget: SpendingBudget,
    records: Mutex<Vec<Arc<SubagentRecord>>>,
}

/// Where an agent stands below the first one; a service of its session.
#[derive(Clone)]
struct SubagentPosition {
    depth: usize,
    budget: SpendingBudget,
}

impl fmt::Debug for SubagentService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubagentService")
            .field("catalog", &self.0.catalog)
            .field("limits", &self.0.limits)
            .finish_non_exhaustive()
    }
}

impl SubagentService {
    /// Creates the service. `choose_model` returns the model for the name in an agent's definition.
    #[must_use]
    pub fn new(
        pipeline: Pipeline,
        catalog: AgentCatalog,
        choose_model: impl Fn(Option<&str>) -> Result<SubagentModel, ToolError> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(SubagentsInner {
            pipeline,
            catalog: RwLock::new(Arc::new(catalog)),
            choose_model: Box::new(choose_model),
            system: String::new(),
            limits: SubagentLimits::default(),
            budget: SpendingBudget::default(),
            records: Mutex::default(),
        }))
    }

    /// Sets the system prompt, before that of each agent.
    #[must_use]
    pub fn with_system(self, text: impl Into<String>) -> Self {
        let text = text.into();
        self.change_settings(|inner| inner.system = text)
    }

    /// Sets how many agents there are, and what each may spend.
    #[must_use]
    pub fn with_limits(self, limits: SubagentLimits) -> Self {
        self.change_settings(|inner| inner.limits = limits)
    }

    /// Sets the budget of the whole tree of agents, which the first agent shares.
    #[must_use]
    pub fn with_budget(self, budget: SpendingBudget) -> Self {
        self.change_settings(|inner| inner.budget = budget)
    }

    /// Changes the settings of a service that has no agents yet.
    fn change_settings(self, change: impl FnOnce(&mut SubagentsInner)) -> Self {
        let mut inner = self.0;
        match Arc::get_mut(&mut inner) {
            Some(inner) => change(inner),
            None => tracing::warn!("the settings of agents that already run do not change"),
        }
        Self(inner)
    }

    /// Returns the agents that can be started now.
    #[must_use]
    pub fn catalog(&self) -> Arc<AgentCatalog> {
        Arc::clone(&self.0.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns a section for system prompts that names the agents that can be started.
    #[must_use]
    pub fn describe_agents(&self) -> String {
        let line = |agent: &AgentDefinition| format!("* `{}`: {}", agent.name(), agent.description);
        self.catalog().subagents().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Starts an agent with a task, and waits for its answer. It ends with the call.
    ///
    /// # Errors
    ///
    /// Fails with `not_found` for an unknown agent, with `unavailable` when a limit is reached or the
    /// model fails, and with `failed` when the agent ends without an answer; what it had by then is in
    /// the message.
    pub async fn delegate_task(
        &self,
        cx: &Context,
        agent: &str,
        task: &str,
    ) -> Result<SubagentReport, ToolError> {
        let record =
            self.start_agent(cx, agent, task, &cx.session().cancel_token().child_token())?;
        self.finish_in_call(cx, &record).await
    }

    /// Starts an agent with a task, waits for its answer until the deadline, and forgets it. At the
    /// deadline the agent is told to answer with what it has, and a minute later it is ended. The report
    /// says how far it came.
    ///
    /// # Errors
    ///
    /// Fails when the agent cannot be started, as [`delegate_task`](Self::delegate_task).
    pub async fn delegate_until(
        &self,
        cx: &Context,
        agent: &str,
        task: &str,
        deadline: Instant,
    ) -> Result<SubagentReport, ToolError> {
        let record =
            self.start_agent(cx, agent, task, &cx.session().cancel_token().child_token())?;
        // A call that is dropped ends the agent.
        let guard = record.cancel_guard();
        tokio::select! {
            () = record.wait_until_ended() => {}
            () = cx.cancelled() => {}
            () = tokio::time::sleep_until(deadline) => {
                record.push_message(TIME_IS_UP);
                let _ = tokio::time::timeout(LAST_ANSWER_LIMIT, record.wait_until_ended()).await;
            }
        }
        drop(guard);
        record.wait_until_ended().await;
        self.forget_below(record.session_id());
        self.records().retain(|known| known.id() != record.id());
        Ok(record.report())
    }

    /// Gives an agent that has ended, and that the caller started, another task, and waits for its
    /// answer.
    ///
    /// # Errors
    ///
    /// As [`delegate_task`](Self::delegate_task); also `invalid_args` when `agent` is not the name of the agent
    /// with this id, and `conflict` while it still works.
    pub async fn resume_agent(
        &self,
        cx: &Context,
        agent: &str,
        id: &str,
        task: &str,
    ) -> Result<SubagentReport, ToolError> {
        let record = self.own_record(cx, id)?;
        // Rules about agents judge the name that the call has.
        let name = record.definition().name();
        if name != agent {
            let message = format!("must be `{name}`, the agent of `{id}`");
            return Err(ToolError::invalid("agent", message));
        }
        self.restart_agent(cx, &record, task, &cx.session().cancel_token().child_token())?;
        self.finish_in_call(cx, &record).await
    }

    /// Starts an agent that works on while the caller does, and returns its id.
    ///
    /// # Errors
    ///
    /// As [`delegate_task`](Self::delegate_task).
    pub fn start_in_background(
        &self,
        cx: &Context,
        agent: &str,
        task: &str,
    ) -> Result<SubagentReport, ToolError> {
        let record = self.start_agent(cx, agent, task, &self.background_token(cx))?;
        Ok(record.report())
    }

    /// Sends a message to an agent: one that works reads it before its next request, one that has
    /// ended goes on with it.
    ///
    /// # Errors
    ///
    /// Fails with `not_found` for an agent that the caller did not start.
    pub fn send_message(
        &self,
        cx: &Context,
        id: &str,
        message: &str,
    ) -> Result<SubagentReport, ToolError> {
        let record = self.own_record(cx, id)?;
        if !record.push_message(message) {
            self.restart_agent(cx, &record, message, &self.background_token(cx))?;
        }
        Ok(record.report())
    }

    /// Waits until all of these agents have ended, or until the time is over; without ids, for all
    /// that the caller started. Returns what each reports by then.
    ///
    /// # Errors
    ///
    /// Fails with `not_found` for an agent that the caller did not start, and when the call is
    /// cancelled.
    pub async fn wait_until_ended(
        &self,
        cx: &Context,
        ids: &[String],
        timeout: Duration,
    ) -> Result<Vec<SubagentReport>, ToolError> {
        let records = match ids {
            [] => self.own_records(cx),
            ids => ids.iter().map(|id| self.own_record(cx, id)).collect::<Result<_, _>>()?,
        };
        let all_ended = async {
            for record in &records {
                record.wait_until_ended().await;
            }
        };
        tokio::select! {
            _ = tokio::time::timeout(timeout, all_ended) => {}
            () = cx.cancelled() => return Err(ToolError::aborted("the call was cancelled")),
        }
        Ok(records.iter().map(|record| record.report()).collect())
    }

    /// Ends an agent, and those that it started, and forgets it. Returns what it reports.
    ///
    /// # Errors
    ///
    /// Fails with `not_found` for an agent that the caller did not start.
    pub async fn end_agent(&self, cx: &Context, id: &str) -> Result<SubagentReport, ToolError> {
        let record = self.own_record(cx, id)?;
        record.cancel_run();
        record.wait_until_ended().await;
        self.forget_below(record.session_id());
        self.records().retain(|known| known.id() != record.id());
        Ok(record.report())
    }

    /// Ends all agents, and forgets them, as when the conversation is over.
    pub fn forget_all(&self) {
        for record in self.records().drain(..) {
            record.cancel_run();
        }
    }

    /// Returns the agents that the caller started, the oldest first.
    #[must_use]
    pub fn started_agents(&self, cx: &Context) -> Vec<SubagentReport> {
        self.own_records(cx).iter().map(|record| record.report()).collect()
    }

    async fn finish_in_call(
        &self,
        cx: &Context,
        record: &Arc<SubagentRecord>,
    ) -> Result<SubagentReport, ToolError> {
        // A call that is dropped ends the agent.
        let guard = record.cancel_guard();
        tokio::select! {
            () = record.wait_until_ended() => {}
            () = cx.cancelled() => {
                record.cancel_run();
                record.wait_until_ended().await;
            }
        }
        drop(guard);
        require_answer(record.report())
    }

    /// Returns the token of an agent that outlives the call that starts it: the session's.
    fn background_token(&self, cx: &Context) -> CancellationToken {
        let token = cx.session().cancel_token().child_token();
        let (closed, ended) = (cx.shutdown_token(), token.clone());
        // Ends with the token, which every agent cancels at its end.
        tokio::spawn(async move {
            tokio::select! {
                () = closed.cancelled() => ended.cancel(),
                () = ended.cancelled() => {}
            }
        });
        token
    }

    fn start_agent(
        &self,
        cx: &Context,
        agent: &str,
        task: &str,
        token: &CancellationToken,
    ) -> Result<Arc<SubagentRecord>, ToolError> {
        let definition = self.find_agent(agent)?;
        let position = position_of(cx.session(), &self.0.budget);
        self.check_limits(position.depth)?;
        let model = (self.0.choose_model)(definition.model.as_deref())?;
        let record = {
            let mut records = self.records();
            self.check_count(&records)?;
            let number = records.iter().map(|known| known.number()).max().unwrap_or(0) + 1;
            let record = Arc::new(SubagentRecord::new(
                number,
                definition,
                cx.session(),
                task,
                token.clone(),
            ));
            records.push(Arc::clone(&record));
            record
        };
        self.run_in_task(cx.session(), &record, &position, model, token);
        Ok(record)
    }

    fn restart_agent(
        &self,
        cx: &Context,
        record: &Arc<SubagentRecord>,
        task: &str,
        token: &CancellationToken,
    ) -> Result<(), ToolError> {
        let position = position_of(cx.session(), &self.0.budget);
        let model = (self.0.choose_model)(record.definition().model.as_deref())?;
        {
            let records = self.records();
            self.check_running(&records)?;
            record.begin_again(task, token.clone())?;
        }
        self.run_in_task(cx.session(), record, &position, model, token);
        Ok(())
    }

    fn find_agent(&self, name: &str) -> Result<AgentDefinition, ToolError> {
        let catalog = self.catalog();
        let found = catalog.subagents().find(|agent| agent.name() == name);
        found.cloned().ok_or_else(|| {
            ToolError::not_found(format_args!("there is no agent `{}`", name.escape_debug()))
                .hint(format_args!("the agents are:\n{}", self.describe_agents()))
        })
    }

    fn check_limits(&self, depth: usize) -> Result<(), ToolError> {
        let max = self.0.limits.max_depth;
        if depth >= max {
            return Err(limit_error(format!("agents may start agents {max} deep, no deeper")));
        }
        self.0.budget.check().map_err(|limit| limit_error(limit.to_string()))
    }

    fn check_count(&self, records: &[Arc<SubagentRecord>]) -> Result<(), ToolError> {
        let max = self.0.limits.max_agents;
        if records.len() >= max {
            return Err(limit_error(format!("there are {max} agents, the limit; close some")));
        }
        self.check_running(records)
    }

    fn check_running(&self, records: &[Arc<SubagentRecord>]) -> Result<(), ToolError> {
        let max = self.0.limits.max_running;
        if records.iter().filter(|record| record.is_running()).count() >= max {
            return Err(limit_error(format!("{max} agents work, the limit; wait for one")));
        }
        Ok(())
    }

    fn own_records(&self, cx: &Context) -> Vec<Arc<SubagentRecord>> {
        let own = |record: &&Arc<SubagentRecord>| record.is_started_by(cx.session());
        self.records().iter().filter(own).cloned().collect()
    }

    fn own_record(&self, cx: &Context, id: &str) -> Result<Arc<SubagentRecord>, ToolError> {
        let own = self.own_records(cx);
        own.iter().find(|record| record.id() == id).cloned().ok_or_else(|| {
            let known: Vec<&str> = own.iter().map(|record| record.id()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            ToolError::not_found(format_args!("you started no agent `{}`", id.escape_debug()))
                .hint(format_args!("the agents that you started: {known}"))
        })
    }

    /// Ends the agents that the agent of this session started, and forgets them.
    fn forget_below(&self, session_id: &str) {
        let below: Vec<_> = {
            let mut records = self.records();
            let (below, others) =
                records.drain(..).partition(|known| known.parent_session() == session_id);
            *records = others;
            below
        };
        for record in below {
            record.cancel_run();
            self.forget_below(record.session_id());
        }
    }

    fn records(&self) -> MutexGuard<'_, Vec<Arc<SubagentRecord>>> {
        self.0.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn position_of(session: &Session, budget: &SpendingBudget) -> SubagentPosition {
    let own = session.extension::<Option<SubagentPosition>>();
    own.unwrap_or_else(|| SubagentPosition { depth: 0, budget: budget.clone() })
}

fn limit_error(message: String) -> ToolError {
    ToolError::unavailable(message)
        .hint("go on without another agent, or with those that there are")
}

/// Returns the report of an agent that has answered; else an error with what it had by then.
fn require_answer(report: SubagentReport) -> Result<SubagentReport, ToolError> {
    let (kind, why) = match &report.status {
        SubagentStatus::Finished if report.answer.trim().is_empty() => {
            (ErrorKind::Failed, "ended without an answer".to_owned())
        }
        SubagentStatus::Stopped(why) => (ErrorKind::Unavailable, format!("stopped: {why}")),
        SubagentStatus::Cancelled => (ErrorKind::Aborted, "was cancelled".to_owned()),
        _ => return Ok(report),
    };
    let (agent, id) = (&report.agent, &report.id);
    let partial = match report.answer.trim() {
        "" => String::new(),
        answer => format!("; what it had by then:\n{answer}"),
    };
    let output = Output::text(report.answer.clone());
    Err(ToolError::new(kind, format_args!("the agent `{agent}` ({id}) {why}{partial}"))
        .hint(format_args!("it made {}; go on with it by its id `{id}`", report.count_calls()))
        .with_output(output))
}
