//! Lists the tools of a server, page by page.
//!
//! **Invariant:** every list is bounded, and an invalid entry does not affect the others.

use std::collections::HashSet;
use std::sync::PoisonError;

use rmcp::model::{ClientRequest, PaginatedRequestParams, RequestOptionalParam, ServerResult};
use rmcp::service::ServiceError;
use serde::Deserialize;
use serde_json::Value;

use super::task_support::take_task_support;
use super::{RmcpConnection, convert_via_json, depth_limit, disconnected_error};
use crate::client::remote::{RemoteError, RemoteTool};
use crate::client::schema_rules;

/// The most pages of a list.
const MAX_PAGES: usize = 1000;

/// The most bytes of a list.
const MAX_BYTES: usize = 16 << 20;

/// The most objects in the schemas of a list; each costs many times its bytes.
const MAX_PARTS: usize = 100_000;

/// Each entry counts as at least this many bytes, as it costs as much memory.
const MIN_ENTRY_BYTES: usize = 512;

impl RmcpConnection {
    pub(super) async fn list_all_tools(&self) -> Result<Vec<RemoteTool>, RemoteError> {
        let (mut tools, mut remarks) = (Vec::new(), Vec::new());
        let (mut cursor, mut seen, mut bytes, mut parts) = (None, HashSet::new(), 0, 0);
        let left_out = 'pages: loop {
            let page = self.fetch_page(cursor.take()).await?;
            remarks.extend(page.dropped_names.iter().map(|name| {
                format!("{}: left out, its `x-mcp-header` is not supported", escape_name(name))
            }));
            for tool in page.tools {
                bytes += tool.to_string().len().max(MIN_ENTRY_BYTES);
                if bytes > MAX_BYTES {
                    break 'pages Some(format!(
                        "only the first {MAX_BYTES} bytes of its list are used"
                    ));
                }
                parts += schema_rules::count_objects(&tool);
                if parts > MAX_PARTS {
                    break 'pages Some(format!(
                        "only the first {MAX_PARTS} parts of its list are used"
                    ));
                }
                if depth_limit::is_placeholder(&tool) {
                    remarks
                        .push(format!("{}: left out, it is nested too deeply", tool_name(&tool)));
                    continue;
                }
                match RemoteTool::deserialize(&tool) {
                    Ok(mut tool) => {
                        tool.task_support = take_task_support(&mut tool.meta);
                        tools.push(tool);
                    }
                    Err(why) => remarks.push(format!("{}: left out, {why}", tool_name(&tool))),
                }
            }
            match page.next_cursor {
                Some(_) if seen.len() + 1 == MAX_PAGES => {
                    break Some(format!("only the first {MAX_PAGES} pages of its list are used"));
                }
                Some(next) if seen.insert(next.clone()) => cursor = Some(next),
                // A cursor that repeats means that every page was read.
                _ => break None,
            }
        };
        remarks.extend(left_out);
        *self.listing_warnings.lock().unwrap_or_else(PoisonError::into_inner) = remarks;
        Ok(tools)
    }

    /// Requests one page of the list, which may contain invalid entries.
    async fn fetch_page(&self, cursor: Option<String>) -> Result<ToolPage, RemoteError> {
        let from = PaginatedRequestParams::default().with_cursor(cursor);
        let request = ClientRequest::ListToolsRequest(RequestOptionalParam::with_param(from));
        self.notifications.take_listed_names();
        let mut asked = self.send_request(request).await?;
        let Some(handle) = &mut asked.handle else { return Err(disconnected_error()) };
        let answer = (&mut handle.rx).await;
        asked.handle = None;
        let answer = answer.unwrap_or(Err(ServiceError::TransportClosed));
        let told = self.notifications.take_listed_names();
        match answer.map_err(|error| self.to_remote_error(error))? {
            ServerResult::ListToolsResult(page) => {
                let kept: HashSet<_> = page.tools.iter().map(|tool| &*tool.name).collect();
                let is_missing = |name: &String| !kept.contains(name.as_str());
                let left_out = told.into_iter().filter(is_missing).collect();
                convert_via_json(&page)
                    .map(|page: ToolPage| ToolPage { dropped_names: left_out, ..page })
            }
            // rmcp does not parse pages with unknown entries.
            ServerResult::CustomResult(page) => serde_json::from_value(page.0).ok(),
            _ => None,
        }
        .ok_or_else(|| RemoteError::protocol("the server's response is not a list of tools"))
    }
}

/// One page of a list of tools.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolPage {
    tools: Vec<Value>,
    next_cursor: Option<String>,
    /// The names of the tools that rmcp dropped.
    #[serde(skip)]
    dropped_names: Vec<String>,
}

/// Returns the name of an entry.
fn tool_name(tool: &Value) -> String {
    escape_name(tool["name"].as_str().unwrap_or("without a name"))
}

fn escape_name(name: &str) -> String {
    name.escape_debug().take(80).collect()
}
