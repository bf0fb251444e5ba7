//! The model of an agent.

use std::fmt;
use std::sync::Arc;

use tool_sdk_core::provider::ModelMessage;

use crate::agent_loop::CompactionPolicy;
use crate::model::{DynModelClient, ModelClient, ModelError, ModelEvent, ModelRequest};
use crate::spending::ModelPrice;

/// A model for an agent, with what is known about it.
///
/// # Examples
///
/// ```
/// use tool_sdk::agent::{CompactionPolicy, ScriptedModel, SubagentModel};
///
/// let model = SubagentModel::new(ScriptedModel::new().says("Done."))
///     .with_compaction(CompactionPolicy::for_context(200_000));
/// assert_eq!(model.name(), "scripted");
/// ```
#[derive(Clone)]
pub struct SubagentModel {
    client: Arc<dyn DynModelClient>,
    pub(crate) price: Option<ModelPrice>,
    pub(super) compaction: Option<CompactionPolicy>,
}

impl fmt::Debug for SubagentModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SubagentModel").field(&self.name()).finish()
    }
}

impl SubagentModel {
    /// Creates a model.
    #[must_use]
    pub fn new(client: impl ModelClient) -> Self {
        Self { client: Arc::new(client), price: None, compaction: None }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.client.name()
    }

    /// Sets what the model costs.
    #[must_use]
    pub fn with_price(mut self, price: ModelPrice) -> Self {
        self.price = Some(price);
        self
    }

    /// Sets how the conversation is kept within the model's context.
    #[must_use]
    pub fn with_compaction(mut self, policy: CompactionPolicy) -> Self {
        self.compaction = Some(policy);
        self
    }
}

impl ModelClient for SubagentModel {
    fn name(&self) -> &str {
        self.client.name()
    }

    async fn respond(
        &self,
        request: &ModelRequest<'_>,
        events: &mut (dyn FnMut(ModelEvent) + Send),
    ) -> Result<ModelMessage, ModelError> {
        self.client.respond(request, events).await
    }
}
