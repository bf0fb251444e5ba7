//! Adapts tools of older systems: a name, a schema, and a function from JSON to text.
//!
//! They become [`DynamicTool`]s, so hooks, permissions and limits apply to them, too.
//!
//! **Invariant:** every use of the trait gets a deprecation warning that points to `#[tool]`.
#![expect(deprecated, reason = "the bridge names what is deprecated")]

use std::future::Future;
use std::sync::Arc;

use serde_json::Value;

use super::{Definition, DynamicTool};
use crate::context::Context;
use crate::error::{ErrorKind, ToolError};
use crate::name::ToolName;
use crate::schema::Schema;

/// A tool of an older system, until it is migrated to `#[tool]`.
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
///         "Greets a person."
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
#[deprecated(note = "write a function with `#[tool]`, or implement `Tool`")]
pub trait LegacyTool: Send + Sync + 'static {
    /// Returns the name of the tool.
    fn name(&self) -> &str;

    /// Returns what the tool does and when to use it; part of the model's prompt.
    fn description(&self) -> &str;

    /// Returns the JSON Schema of the arguments.
    fn parameters(&self) -> Value;

    /// Runs the tool with arguments that match the schema.
    fn execute(&self, args: Value) -> impl Future<Output = Result<String, ToolError>> + Send;
}

impl DynamicTool {
    /// Creates a tool from a legacy one; hooks, permissions and limits apply to it as to any
    /// other.
    ///
    /// # Errors
    ///
    /// Fails when its name or its schema is not valid for a tool.
    #[deprecated(note = "write a function with `#[tool]`, or implement `Tool`")]
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
