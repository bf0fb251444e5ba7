//! The final answer of an agent as a value of a schema: a tool that the model calls at the end.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tool_sdk_core::{
    Context, Definition, DynamicTool, Pipeline, RegistryError, Risk, RiskClass, Schema, Session,
    ToolAudience, ToolName,
};

/// The name of the tool.
const NAME: &str = "final_answer";

/// What an agent ends with.
#[derive(Clone, Debug)]
pub(super) struct FinalAnswer {
    schema: Schema,
    value: Arc<Mutex<Option<Value>>>,
}

/// The tool of one run; it is removed at the end.
pub(super) struct AddedTool {
    pipeline: Pipeline,
    audience: ToolAudience,
}

impl Drop for AddedTool {
    fn drop(&mut self) {
        self.pipeline.toolset().remove_for(&self.audience, NAME);
    }
}

impl FinalAnswer {
    pub(super) fn new(schema: Schema) -> Self {
        Self { schema, value: Arc::default() }
    }

    /// Adds the tool for this session only.
    pub(super) fn add_to(
        &self,
        pipeline: &Pipeline,
        session: &Session,
    ) -> Result<AddedTool, RegistryError> {
        let mut definition = Definition::new(
            ToolName::from_static(NAME),
            "Gives the final answer. Call it once, when the work is done; the arguments are the answer.",
            self.schema.clone(),
        );
        definition.risk = Risk::new(RiskClass::Read);
        let value = Arc::clone(&self.value);
        let tool = DynamicTool::new(definition, move |arguments: Value, _: Context| {
            *value.lock().unwrap_or_else(PoisonError::into_inner) = Some(arguments);
            async { "The answer is taken." }
        });
        let audience = ToolAudience::session(session);
        pipeline.toolset().add_for(audience.clone(), tool)?;
        Ok(AddedTool { pipeline: pipeline.clone(), audience })
    }

    pub(super) fn take_value(&self) -> Option<Value> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn reminder(&self) -> String {
        format!("Call the tool `{NAME}` with the final answer.")
    }
}
