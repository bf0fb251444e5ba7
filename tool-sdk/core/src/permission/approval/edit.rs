//! Edits the arguments of a call that waits for an approval.
//!
//! A person may approve a call with other arguments than the model sent. The edited call is decoded
//! before the request ends, so that a mistake leaves the request open.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::Value;

use crate::call::RawArgs;
use crate::tool::{InvalidArgs, Tool, check_strict};

/// The tool of an open request, and the arguments that would run.
pub(crate) struct EditableCall {
    tool: Arc<dyn Tool>,
    arguments: RawArgs<'static>,
    /// The arguments as the request shows them, sensitive values masked.
    shown: Value,
}

impl EditableCall {
    pub(crate) fn new(tool: &Arc<dyn Tool>, arguments: &RawArgs<'_>, shown: &Value) -> Self {
        Self { tool: Arc::clone(tool), arguments: arguments.to_static(), shown: shown.clone() }
    }

    /// Returns the arguments of the edited call. An argument that is as it was shown keeps its
    /// value, so that a masked one need not be known.
    ///
    /// # Errors
    ///
    /// Fails when the tool does not accept the arguments.
    pub(crate) fn edit(&self, edited: &Value) -> Result<RawArgs<'static>, InvalidArgs> {
        let name = self.tool.definition().name.as_str();
        let invalid = |message: &str| InvalidArgs::new(name.to_owned(), message);
        let Value::Object(members) = edited else {
            return Err(invalid("the edited arguments must be a JSON object"));
        };
        let own: Value = serde_json::from_str(self.arguments.text()).unwrap_or_default();
        let mut members = members.clone();
        for (argument, value) in &mut members {
            if self.shown.get(argument) == Some(value)
                && let Some(own) = own.get(argument)
            {
                *value = own.clone();
            }
        }
        let text = Value::Object(members).to_string();
        check_strict(&text).map_err(|message| invalid(&message))?;
        let arguments = RawArgs::from(text).lenient(self.arguments.lenient);
        let decoded = catch_unwind(AssertUnwindSafe(|| self.tool.prepare(&arguments).map(drop)));
        decoded.unwrap_or_else(|_| Err(invalid("the tool failed to read the arguments")))?;
        Ok(arguments)
    }
}
