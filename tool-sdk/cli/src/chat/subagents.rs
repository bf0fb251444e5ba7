//! The agents that the model of a conversation may start.

use std::sync::{Arc, Mutex, PoisonError};

#[cfg(feature = "mcp")]
use tool_sdk_agent::SpendingLimits;
use tool_sdk_agent::{
    AgentCatalog, CompactionPolicy, SamplingHandler, SpendingBudget, SubagentModel, SubagentService,
};
use tool_sdk_core::{Pipeline, Session, Tool, ToolError};

use super::config::ChatConfig;
use super::model_choice::{self, ModelChoice};
#[cfg(feature = "mcp")]
use super::{ChatPlace, prompt_text};
use crate::exit::{CommandError, Result};
use crate::plugins::with_plugin_host;
#[cfg(feature = "mcp")]
use crate::{App, Io, settings::Settings};

/// The model of the conversation, which `/model` changes.
#[derive(Clone)]
pub(super) struct SharedModelChoice(Arc<Mutex<ModelChoice>>);

impl SharedModelChoice {
    pub(super) fn new(model: ModelChoice) -> Self {
        Self(Arc::new(Mutex::new(model)))
    }

    pub(super) fn replace(&self, model: ModelChoice) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = model;
    }

    fn get(&self) -> ModelChoice {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Adds the tools that start agents, also those of the program, and returns the service that they need.
pub(super) fn add_subagents(
    pipeline: &Pipeline,
    tools: &[Arc<dyn Tool>],
    catalog: AgentCatalog,
    model: SharedModelChoice,
    config: &ChatConfig,
    system: &str,
    budget: SpendingBudget,
) -> Result<SubagentService> {
    SubagentService::add_tools_to(pipeline.toolset()).map_err(CommandError::config)?;
    pipeline.toolset().add(tools.to_vec()).map_err(CommandError::config)?;
    let config = config.clone();
    let choose = move |named: Option<&str>| match named {
        Some(name) => choose_named(name, &config),
        None => Ok(describe_model(&model.get(), config.context_tokens, config.price)),
    };
    let subagents = SubagentService::new(pipeline.clone(), catalog, choose);
    Ok(subagents.with_system(system).with_budget(budget))
}

/// Lends the agents to the calls of a session, and lets the plugins that it loads bring more of them.
pub(super) fn lend_subagents(session: Session, subagents: SubagentService) -> Session {
    with_plugin_host(session, subagents.clone()).with_service(Some(subagents))
}

/// Returns the model that an agent names. A limit on money cannot be kept for one without a price.
fn choose_named(name: &str, config: &ChatConfig) -> std::result::Result<SubagentModel, ToolError> {
    let choice = ModelChoice::resolve(name, config).map_err(CommandError::into_cause)?;
    let price = config.for_provider_of(name).price;
    if price.is_none() && config.max_cost.is_some() {
        let message = format!(
            "the price of the model `{name}` is unknown, so the limit on cost cannot be kept"
        );
        return Err(ToolError::config(message).hint("use an agent without a model of its own"));
    }
    Ok(describe_model(&choice, None, price))
}

/// Returns the handler that answers sampling requests of foreign servers by the model of the moment.
pub(super) fn sampling_handler(
    model: SharedModelChoice,
    config: &ChatConfig,
    budget: SpendingBudget,
) -> SamplingHandler {
    let (context_tokens, price) = (config.context_tokens, config.price);
    SamplingHandler::new(move || describe_model(&model.get(), context_tokens, price), budget)
}

fn describe_model(
    choice: &ModelChoice,
    context_tokens: Option<u64>,
    price: Option<tool_sdk_agent::ModelPrice>,
) -> SubagentModel {
    let tokens = context_tokens.unwrap_or_else(|| model_choice::context_tokens(&choice.name));
    let model = SubagentModel::new(choice.client.clone())
        .with_compaction(CompactionPolicy::for_context(tokens));
    match price {
        Some(price) => model.with_price(price),
        None => model,
    }
}

/// Adds the tools that start agents to a server, if the settings want them, with the model of the
/// table `[chat]`. Returns the session for calls of clients.
#[cfg(feature = "mcp")]
pub(crate) fn add_agents(
    app: &App,
    settings: &Settings,
    pipeline: &Pipeline,
    session: Session,
    io: &Io<'_>,
) -> Result<Session> {
    if !settings.serves_agents {
        return Ok(session);
    }
    let mut config = settings.chat.resolve(None, io)?;
    config.settle_owner(settings.model.as_deref());
    let model = settings.model.as_deref().or(config.model.as_deref());
    let model = ModelChoice::resolve(model.ok_or_else(model_choice::missing_model)?, &config)?;
    let limits = SpendingLimits { max_cost: config.max_cost, ..SpendingLimits::default() };
    let subagents = add_subagents(
        pipeline,
        &app.subagent_tools,
        app.agent_catalog(settings),
        SharedModelChoice::new(model),
        &config,
        &prompt_text::system_prompt(settings, ChatPlace::Server),
        SpendingBudget::new(limits),
    )?;
    Ok(lend_subagents(session, subagents))
}
