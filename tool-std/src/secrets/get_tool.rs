//! The tool `get_env_var`: shows a variable, and of a secret only that it is set.

use schemars::JsonSchema;
use serde::Serialize;
use tool_sdk::{Context, Output, ToolError, TypedOutput, tool};

use super::describe_value;

/// What a model may know about a variable.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct VariableInfo {
    /// The name.
    pub name: String,
    /// Whether the value is a secret.
    pub is_secret: bool,
    /// The value; of a secret the length and at most the last characters.
    pub description: String,
    /// Where the value is kept.
    pub origin: String,
}

/// Show a variable. Of a secret, such as an API key, you see only that it is set.
///
/// Other tools read secrets by their names; you never need the value.
#[tool(
    read,
    category = "secrets",
    approval(required = |_, _| false),
    display(name = "Variable", primary = variable_name, summary = "Looking up {variable_name}"),
    example = r#"{"variable_name": "WEATHER_API_KEY"}"#
)]
pub async fn get_env_var(
    /// The name of the variable.
    #[arg(length = 1..=100)]
    variable_name: &str,
    cx: &Context,
) -> Result<TypedOutput<VariableInfo>, ToolError> {
    let found = cx.session().secrets().find(cx.session(), variable_name).await?;
    let stored = found.ok_or_else(|| {
        ToolError::not_found(format_args!("`{variable_name}` is not set"))
            .hint("ask the user for it with `request_env_var`")
    })?;
    let described = describe_value(&stored);
    let text = format!("{variable_name}: {described}, from {}", stored.origin);
    let info = VariableInfo {
        name: variable_name.to_owned(),
        is_secret: stored.is_secret,
        description: described,
        origin: stored.origin,
    };
    Ok(TypedOutput::new(Output::text(text), info))
}
