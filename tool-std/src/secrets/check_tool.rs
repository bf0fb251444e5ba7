//! The tool `check_env_vars`: tells which variables are set.

use schemars::JsonSchema;
use serde::Serialize;
use tool_sdk::{Context, InvalidArgs, Output, ToolError, TypedOutput, tool};

use crate::secrets::{NAME_PATTERN, request_tool::is_name};

/// Which variables are set.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct SecretVariableCheck {
    /// The names of those that are set.
    pub available: Vec<String>,
    /// The names of those that are not.
    pub missing: Vec<String>,
}

/// Tell which variables, such as API keys, are set and which are missing.
///
/// Values are not shown. Ask the user for missing ones with `request_env_var`.
#[tool(
    read,
    category = "secrets",
    approval(required = |_, _| false),
    validate = check_names,
    display(name = "Variables", primary = required_vars, show(required_vars), summary = "Checking variables"),
    example = r#"{"required_vars": ["WEATHER_API_KEY"]}"#
)]
pub async fn check_env_vars(
    /// The names of the variables.
    #[arg(length = 1..=50)]
    required_vars: Vec<String>,
    cx: &Context,
) -> Result<TypedOutput<SecretVariableCheck>, ToolError> {
    let store = cx.session().secrets();
    let (mut available, mut missing) = (Vec::new(), Vec::new());
    for name in required_vars {
        match store.find(cx.session(), &name).await? {
            Some(_) => available.push(name),
            None => missing.push(name),
        }
    }
    let line = |names: &[String]| match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    };
    let text = format!("available: {}\nmissing: {}", line(&available), line(&missing));
    Ok(TypedOutput::new(Output::text(text), SecretVariableCheck { available, missing }))
}

fn check_names(args: &CheckEnvVarsArgs) -> Result<(), InvalidArgs> {
    match args.required_vars.iter().find(|name| !is_name(name)) {
        Some(wrong) => Err(InvalidArgs::for_argument(
            "required_vars",
            format_args!("has `{}`, which does not match {NAME_PATTERN}", wrong.escape_debug()),
        )),
        None => Ok(()),
    }
}
