//! Tools of an older kind: a name, a schema, and a function from JSON to text.
//!
//! They become [`DynamicTool`]s, so everything that a call goes through holds for them too.
//!
//! **Invariant:** whoever names the trait is told that there is a better way.
#![expect(deprecated, reason = "the bridge names what is deprecated")]

use std::future::Future;
use std::sync::Arc;

use serde_json::Value;

use super::{Definition, DynamicTool};
use crate::context::Context;
use crate::error::{ErrorKind, ToolError};
use crate::name::ToolName;
use crate::schema::Schema;

/// A tool as older systems have it, on its way to `#[tool]`.
///
/// # Examples
///
/// ```
/// # #![allow(deprecated)]
/// use serde_json::{Value, json};
/// use tool_sdk::{DynamicTool, LegacyTool, Registry, ToolError};
///
/// struct Greet;
///
/// impl LegacyTool for Greet {
///     fn name(&self) -> &str {
///         "greet"
///     }
///
///     fn description(&self) -> &str {
///         "Greets somebody."
///     }
///
///     fn parameters(&self) -> Value {
///         json!({ "type": "object", "properties": { "who": { "type": "string" } } })
///     }
///
///     async fn execute(&self, args: Value) -> Result<String, ToolError> {
///         Ok(format!("hello {}", args["who"].as_str().unwrap_or("you")))
///     }
/// }
///
/// let registry = Registry::builder().add(DynamicTool::legacy(Greet)?).build()?;
/// assert!(registry.contains("greet"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[deprecated(note = "write a function with `#[tool]`; what cannot be one implements `Tool`")]
pub trait LegacyTool: Send + Sync + 'static {
    /// The name by which it is called.
    fn name(&self) -> &str;

    /// What it does and when to use it; the model's prompt.
    fn description(&self) -> &str;

    /// The JSON Schema of its arguments.
    fn parameters(&self) -> Value;

    /// Runs it, with arguments that keep to the schema.
    fn execute(&self, args: Value) -> impl Future<Output = Result<String, ToolError>> + Send;
}

impl DynamicTool {
    /// A tool of the older kind, which gets hooks, permissions and limits as any other.
    ///
    /// # Errors
    ///
    /// Fails when its name or its schema cannot be those of a tool.
    #[deprecated(note = "write a function with `#[tool]`; what cannot be one implements `Tool`")]
    pub fn legacy(tool: impl LegacyTool) -> Result<Self, ToolError> {
        let name = ToolName::new(tool.name().to_owned())
            .map_err(|error| ToolError::new(ErrorKind::Config, &error).source(error))?;
        let parameters = Schema::from_value(tool.parameters()).map_err(|error| {
            let what = format_args!("schema of the tool `{name}`: {error}");
            ToolError::new(ErrorKind::Config, what).source(error)
        })?;
        let definition = Definition::new(name, tool.description().to_owned(), parameters);
        let tool = Arc::new(tool);
        Ok(Self::new(definition, move |args: Value, _: Context| {
            let tool = Arc::clone(&tool);
            async move { tool.execute(args).await }
        }))
    }
}
