//! The tool `debug_mcp_server`: shows the state of the configured MCP servers.

use std::fmt::Write as _;

use serde_json::json;
use tool_sdk::mcp::{ServerManager, ServerStatus};
use tool_sdk::{Context, Output, State, ToolError, tool};

/// The maximum number of bytes of a server's standard error that are shown.
const MAX_STDERR: usize = 4000;

/// Show how the servers are whose tools are used: whether they answer, what went wrong last,
/// what is odd about their tools, and what they wrote to standard error.
#[tool(
    read,
    category = "mcp",
    display(name = "Servers", primary = name, summary = "Looking at the servers")
)]
pub async fn debug_mcp_server(
    /// The server; all of them when it is left out.
    name: Option<String>,
    upstreams: State<ServerManager>,
    cx: &Context,
) -> Result<Output, ToolError> {
    let upstreams = upstreams.for_call(cx);
    // A server that was never connected has no state to show, so it is connected first.
    let is_unmet = |it: &ServerStatus| it.enabled && !it.connected && it.last_error.is_none();
    match &name {
        Some(name) if upstreams.status(name).as_ref().is_some_and(is_unmet) => {
            drop(upstreams.connect(name).await);
        }
        None if upstreams.statuses().iter().any(is_unmet) => drop(upstreams.connect_all().await),
        _ => {}
    }
    let statuses = match &name {
        Some(name) => {
            let unknown = || ToolError::not_found(format_args!("there is no server `{name}`"));
            vec![upstreams.status(name).ok_or_else(unknown)?]
        }
        None => upstreams.statuses(),
    };
    if statuses.is_empty() {
        return Ok(Output::text("(There are no servers.)"));
    }
    let statuses: Vec<ServerStatus> =
        statuses.into_iter().map(|status| status.visible_to_session(cx.session())).collect();
    let text = statuses.iter().map(format_status).collect::<Vec<_>>().join("\n\n");
    Ok(Output::text(text).display(json!(statuses)))
}

fn format_status(status: &ServerStatus) -> String {
    let state = match (status.enabled, status.connected) {
        (false, _) => "switched off",
        (true, false) => "not connected",
        (true, true) => "connected",
    };
    let mut text =
        format!("{}: {state}, {}", status.name, super::count_noun(status.tools.len(), "tool"));
    if let Some(error) = &status.last_error {
        let _ = write!(text, "\nlast error: {error}");
    }
    for warning in &status.warnings {
        let _ = write!(text, "\nwarning: {warning}");
    }
    let stderr = status.stderr.trim_end();
    if !stderr.is_empty() {
        let start = stderr.ceil_char_boundary(stderr.len().saturating_sub(MAX_STDERR));
        let _ = write!(text, "\nstandard error:\n{}", &stderr[start..]);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tool_sdk::mcp::{ServerCommand, ServerConfig};
    use tool_sdk::testing::Harness;
    use tool_sdk::{Call, ErrorKind, Pipeline, Registry, Session, tools};

    use super::*;

    // F126
    #[tokio::test]
    async fn reports_the_error_of_a_failed_server() {
        let upstreams = ServerManager::for_pipeline(&Pipeline::new(Registry::default()));
        let harness = Harness::new(tools![debug_mcp_server]).lend(upstreams.clone());
        let none = harness.ok("debug_mcp_server", json!({})).await;
        assert_eq!(none.as_text(), "(There are no servers.)");

        let words = "echo out of paper, $API_KEY >&2; exit 3";
        let broken = ServerCommand::new("sh", ["-c", words]).env("API_KEY", "hunter2hunter2");
        upstreams.add(ServerConfig::new("broken", broken).unwrap()).unwrap();
        assert!(upstreams.connect("broken").await.is_err());
        let shown = harness.ok("debug_mcp_server", json!({ "name": "broken" })).await;
        let text = shown.as_text();
        assert!(text.starts_with("broken: not connected, 0 tools\nlast error: "), "{text}");
        assert!(text.ends_with("standard error:\nout of paper, [redacted]"), "{text}");

        // F130: the error may quote another user's request.
        let session = Session::new("t").with_user("ada").with_service(upstreams.clone());
        let registry = Registry::builder().add(tools![debug_mcp_server]).build().unwrap();
        let call = Call::new("debug_mcp_server", r#"{"name": "broken"}"#);
        let told = Pipeline::new(registry).call(&session, call).await;
        assert_eq!(told.text(), "broken: not connected, 0 tools");
        let output = told.result.unwrap();
        let data = &output.display_data().unwrap()[0];
        assert_eq!((&data["last_error"], &data["stderr"]), (&json!(null), &json!("")));
        let unmet = ServerCommand::new("/no/such/program", ["x"]);
        upstreams.add(ServerConfig::new("unmet", unmet).unwrap()).unwrap();
        let shown = harness.ok("debug_mcp_server", json!({ "name": "unmet" })).await;
        assert!(shown.as_text().contains("last error: "), "{}", shown.as_text());
        let off = ServerCommand::new("sh", ["-c", words]);
        upstreams.add(ServerConfig::new("off", off).unwrap().enabled(false)).unwrap();
        let shown = harness.ok("debug_mcp_server", json!({ "name": "off" })).await;
        assert_eq!(shown.as_text(), "off: switched off, 0 tools");
        let error = harness.error("debug_mcp_server", json!({ "name": "other" })).await;
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}
