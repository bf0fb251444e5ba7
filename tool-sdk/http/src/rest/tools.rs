//! Lists and describes tools.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use serde_json::Value;
use tool_sdk_core::ToolsetView;
use tool_sdk_core::provider::{Dialect, encode_tool};

use super::caller::ToolCaller;
use super::problem::ProblemDetails;
use super::service::RestService;

/// The body of `GET /v1/tools`.
#[derive(Debug, Serialize)]
pub(super) struct ToolList {
    /// Complete definitions, sorted by name.
    tools: Vec<Value>,
}

/// `GET /v1/tools`: the tools that a model may see.
pub(super) async fn list_tools(
    State(service): State<Arc<RestService>>,
    ToolCaller(caller): ToolCaller,
) -> Json<ToolList> {
    let view = service.view_for(&caller);
    let tools = view.definitions().map(|it| encode_tool(it, Dialect::ToolsJson)).collect();
    Json(ToolList { tools })
}

/// `GET /v1/tools/{name}`
pub(super) async fn get_tool(
    State(service): State<Arc<RestService>>,
    ToolCaller(caller): ToolCaller,
    Path(name): Path<String>,
) -> Result<Json<Value>, ProblemDetails> {
    let view = service.view_for(&caller);
    let definition = view.definition(&name).ok_or_else(|| unknown_tool(&view, &name))?;
    Ok(Json(encode_tool(definition, Dialect::ToolsJson)))
}

/// Returns the problem of a tool that does not exist for the client.
pub(super) fn unknown_tool(view: &ToolsetView, name: &str) -> ProblemDetails {
    let shown: String = name.chars().take(80).collect();
    let problem = ProblemDetails::not_found(format!("there is no tool `{shown}`"));
    let names: Vec<_> = view.close_names(name).into_iter().map(|it| format!("`{it}`")).collect();
    match names.as_slice() {
        [] => problem.suggest("list the tools with `GET /v1/tools`"),
        names => problem.suggest(format!("did you mean {}?", names.join(" or "))),
    }
}
