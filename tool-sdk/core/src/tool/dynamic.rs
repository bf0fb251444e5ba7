//! Tools whose schema is known only at run time.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures_util::FutureExt as _;
use serde_json::Value;

use super::args::{ArgChecks, parse_value};
use super::{
    Definition, ExecutionPermit, IntoOutput, InvalidArgs, OutputFuture, PreparedCall, Tool,
};
use crate::call::{ArgumentNote, RawArgs};
use crate::context::Context;

/// The handler of a dynamic tool.
type DynamicHandler = Arc<dyn Fn(Value, Context) -> OutputFuture + Send + Sync>;

/// A tool that consists of a definition and a closure.
///
/// The arguments are checked against the definition's schema before the closure gets them, with
/// the same messages as for other tools. All keywords of JSON Schema 2020-12 are checked. A
/// schema with anything else, such as a pattern with lookahead, is an error when the registry is
/// built.
///
/// # Examples
///
/// ```
/// use serde_json::Value;
/// use tool_sdk::{Context, Definition, DynamicTool, Schema, ToolName};
///
/// let schema = Schema::from_json(
///     r#"{"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]}"#,
/// )?;
/// let definition = Definition::new(ToolName::new("greet")?, "Greets a person.", schema);
/// let greet = DynamicTool::new(definition, |args: Value, _cx: Context| async move {
///     format!("hello {}", args["who"].as_str().unwrap_or_default())
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct DynamicTool {
    definition: Arc<Definition>,
    checks: Arc<ArgChecks>,
    handler: DynamicHandler,
}

impl DynamicTool {
    /// Creates a tool that `handler` runs.
    #[must_use]
    pub fn new<H, F>(mut definition: Definition, handler: H) -> Self
    where
        H: Fn(Value, Context) -> F + Send + Sync + 'static,
        F: Future + Send + 'static,
        F::Output: IntoOutput + 'static,
    {
        let secrets = definition.parameters.secret_parameters();
        if !secrets.is_empty() {
            Arc::make_mut(&mut definition.display).sensitive.extend(secrets);
        }
        let checks = ArgChecks::from_definition(&definition);
        Self {
            definition: Arc::new(definition),
            checks: Arc::new(checks),
            handler: Arc::new(move |args, cx| {
                Box::pin(handler(args, cx).map(IntoOutput::into_output))
            }),
        }
    }
}

impl fmt::Debug for DynamicTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DynamicTool").field(&self.definition.name).finish()
    }
}

impl Tool for DynamicTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn unusable_reason(&self) -> Option<String> {
        self.checks.unsupported().map(|what| format!("its schema's {what}"))
    }

    fn prepare(&self, args: &RawArgs<'_>) -> Result<Box<dyn PreparedCall>, InvalidArgs> {
        let (args, notes) = parse_value(self.definition.name.as_str(), &self.checks, args)?;
        Ok(Box::new(DynamicCall { args, notes, handler: Arc::clone(&self.handler) }))
    }
}

struct DynamicCall {
    args: Value,
    notes: Vec<ArgumentNote>,
    handler: DynamicHandler,
}

impl PreparedCall for DynamicCall {
    fn run(self: Box<Self>, approved: ExecutionPermit) -> OutputFuture {
        (self.handler)(self.args, approved.context())
    }

    fn notes(&self) -> &[ArgumentNote] {
        &self.notes
    }
}
