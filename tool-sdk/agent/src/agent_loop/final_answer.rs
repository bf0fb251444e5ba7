//! The final answer of an agent as a value of a schema: a tool that the model calls at the end.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tool_sdk_core::{
    Context, Definition, DynamicTool, Pipeline, RegistryError, Risk, RiskClass, Schema, Session,
    ToolAudience, ToolName,
};

/// The name of the tool.
const NAME: &str = "final_answer";

/// What a run of an agent ends with: the tool of this run, which is removed at its end, and the value
/// that the model gave it.
pub(super) struct FinalAnswer {
    pipeline: Pipeline,
    audience: ToolAudience,
    value: Arc<Mutex<Option<Value>>>,
}

impl Drop for FinalAnswer {
    fn drop(&mut self) {
        self.pipeline.toolset().remove_for(&self.audience, NAME);
    }
}

impl FinalAnswer {
    /// Adds the tool for this session only.
    pub(super) fn add_tool(
        schema: &Schema,
        pipeline: &Pipeline,
        session: &Session,
    ) -> Result<Self, RegistryError> {
        let mut definition = Definition::new(
            ToolName::from_static(NAME),
            "Gives the final answer. Call it once, when the work is done; the arguments are the answer.",
            schema.clone(),
        );
        definition.risk = Risk::new(RiskClass::Read);
        let value: Arc<Mutex<Option<Value>>> = Arc::default();
        let given = Arc::clone(&value);
        let tool = DynamicTool::new(definition, move |arguments: Value, _: Context| {
            *given.lock().unwrap_or_else(PoisonError::into_inner) = Some(arguments);
            async { "The answer is taken." }
        });
        let audience = ToolAudience::session(session);
        pipeline.toolset().add_for(audience.clone(), tool)?;
        Ok(Self { pipeline: pipeline.clone(), audience, value })
    }

    pub(super) fn take_value(&self) -> Option<Value> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What a model is told that ends its turn without the tool.
    pub(super) const REMINDER: &str = "Call the tool `final_answer` with the final answer.";
}
