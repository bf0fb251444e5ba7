//! The agents that the model of a conversation may start.

use std::sync::{Arc, Mutex, PoisonError};

use tool_sdk_agent::{AgentCatalog, CompactionPolicy, SpendingBudget, SubagentModel, Subagents};
use tool_sdk_core::{Pipeline, ToolError};

use super::config::ChatConfig;
use super::model_choice::{self, ModelChoice};
use crate::exit::{CommandError, Result};

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

/// Adds the tools that start agents, and returns the service that they need.
pub(super) fn add_subagents(
    pipeline: &Pipeline,
    catalog: AgentCatalog,
    model: SharedModelChoice,
    config: &ChatConfig,
    system: &str,
    budget: SpendingBudget,
) -> Result<Subagents> {
    Subagents::add_tools_to(pipeline.toolset()).map_err(CommandError::config)?;
    let config = config.clone();
    let choose = move |named: Option<&str>| match named {
        Some(name) => ModelChoice::resolve_for_agent(name, &config)
            .map(|choice| describe_model(&choice, None, None))
            .map_err(|error| match error.into_tool_error() {
                Ok((_, error)) => error,
                Err(_) => ToolError::config("the model of the agent cannot be used"),
            }),
        None => Ok(describe_model(&model.get(), config.context_tokens, config.price)),
    };
    let subagents = Subagents::new(pipeline.clone(), catalog, choose);
    Ok(subagents.with_system(system).with_budget(budget))
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
