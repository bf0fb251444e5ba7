//! Shows the MCP servers whose tools the host added, connects them, and pins their tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tool_sdk_mcp::{ServerManager, ServerStatus};

use super::caller::AdministrationCaller;
use super::grants::blocking;
use super::problem::ProblemDetails;
use super::request::JsonBody;
use super::service::RestService;

/// The body of `GET /v1/servers`.
#[derive(Debug, Serialize)]
pub(super) struct ServerList {
    servers: Vec<ServerBody>,
}

#[derive(Debug, Serialize)]
struct ServerBody {
    #[serde(flatten)]
    status: ServerStatus,
    /// The tools as the server describes them now.
    definitions: Vec<ToolDefinitionBody>,
}

/// A tool as its server describes it now.
#[derive(Debug, Serialize)]
struct ToolDefinitionBody {
    #[serde(flatten)]
    definition: ToolText,
    /// A unified diff from the pinned definition, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<String>,
}

/// The description of a tool as readable text.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolText {
    tool: String,
    text: String,
}

/// `GET /v1/servers`
pub(super) async fn list_servers(
    State(service): State<Arc<RestService>>,
    _: AdministrationCaller,
) -> Json<ServerList> {
    let Some(manager) = &service.options.server_manager else {
        return Json(ServerList { servers: Vec::new() });
    };
    let body = |status: ServerStatus| {
        let mut differences = manager.pin_differences(&status.name);
        let texts = manager.pin_texts(&status.name).into_iter();
        let definition = |(tool, text)| ToolDefinitionBody {
            difference: differences.remove(&tool).map(|it| it.diff),
            definition: ToolText { tool, text },
        };
        let definitions = texts.map(definition).collect();
        ServerBody { status, definitions }
    };
    Json(ServerList { servers: manager.statuses().into_iter().map(body).collect() })
}

/// `POST /v1/servers/{name}/connection`: connects the server.
pub(super) async fn connect_server(
    State(service): State<Arc<RestService>>,
    _: AdministrationCaller,
    Path(name): Path<String>,
) -> Result<StatusCode, ProblemDetails> {
    let manager = service.find_server(&name)?;
    manager
        .connect(&name)
        .await
        .map(|_| StatusCode::NO_CONTENT)
        .map_err(|error| ProblemDetails::busy(format!("cannot connect to `{name}`: {error}")))
}

/// The body of `POST /v1/servers/{name}/pins`: what the person reviewed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReviewedTools {
    definitions: Vec<ToolText>,
}

/// `POST /v1/servers/{name}/pins`: pins the tools, if they are still as they were shown.
pub(super) async fn pin_tools(
    State(service): State<Arc<RestService>>,
    _: AdministrationCaller,
    Path(name): Path<String>,
    JsonBody(ReviewedTools { definitions }): JsonBody<ReviewedTools>,
) -> Result<StatusCode, ProblemDetails> {
    let manager = service.find_server(&name)?.clone();
    let shown: BTreeMap<_, _> = definitions.into_iter().map(|it| (it.tool, it.text)).collect();
    let pinned = blocking(move || manager.trust_reviewed(&name, &shown)).await?;
    match pinned.map_err(|error| ProblemDetails::from_error(&error))? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(ProblemDetails::conflict("the server describes its tools differently now")
            .suggest("read `GET /v1/servers` again, and review the definitions")),
    }
}

impl RestService {
    /// Returns the manager of the servers, if it knows this one.
    fn find_server(&self, name: &str) -> Result<&ServerManager, ProblemDetails> {
        let manager = self.options.server_manager.as_ref();
        manager
            .filter(|manager| manager.status(name).is_some())
            .ok_or_else(|| ProblemDetails::not_found("there is no server with this name"))
    }
}
