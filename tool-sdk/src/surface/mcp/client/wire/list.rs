//! Lists the tools of a server, page by page.
//!
//! **Invariant:** every list is bounded, and an invalid entry does not affect the others.

use std::collections::HashSet;
use std::sync::PoisonError;

use rmcp::model::{ClientRequest, PaginatedRequestParams, RequestOptionalParam, ServerResult};
use rmcp::service::ServiceError;
use serde::Deserialize;
use serde_json::Value;

use super::super::cost;
use super::super::remote::{RemoteError, RemoteTool};
use super::{Wire, deep, gone, recast};

/// The most pages of a list.
const MOST_PAGES: usize = 1000;

/// The most bytes of a list.
const MOST_BYTES: usize = 16 << 20;

/// The most objects in the schemas of a list; each costs many times its bytes.
const MOST_PARTS: usize = 100_000;

/// Each entry counts as at least this many bytes, as it costs as much memory.
const LEAST_BYTES: usize = 512;

impl Wire {
    pub(super) async fn list(&self) -> Result<Vec<RemoteTool>, RemoteError> {
        let (mut tools, mut remarks) = (Vec::new(), Vec::new());
        let (mut cursor, mut seen, mut bytes, mut parts) = (None, HashSet::new(), 0, 0);
        let left_out = 'pages: loop {
            let page = self.page(cursor.take()).await?;
            remarks.extend(page.left_out.iter().map(|name| {
                format!("{}: left out, its `x-mcp-header` is not supported", shown(name))
            }));
            for tool in page.tools {
                bytes += tool.to_string().len().max(LEAST_BYTES);
                if bytes > MOST_BYTES {
                    break 'pages Some(format!(
                        "only the first {MOST_BYTES} bytes of its list are used"
                    ));
                }
                parts += cost::parts(&tool);
                if parts > MOST_PARTS {
                    break 'pages Some(format!(
                        "only the first {MOST_PARTS} parts of its list are used"
                    ));
                }
                if deep::was(&tool) {
                    remarks.push(format!("{}: left out, it is nested too deeply", name(&tool)));
                    continue;
                }
                match RemoteTool::deserialize(&tool) {
                    Ok(tool) => tools.push(tool),
                    Err(why) => remarks.push(format!("{}: left out, {why}", name(&tool))),
                }
            }
            match page.next_cursor {
                Some(_) if seen.len() + 1 == MOST_PAGES => {
                    break Some(format!("only the first {MOST_PAGES} pages of its list are used"));
                }
                Some(next) if seen.insert(next.clone()) => cursor = Some(next),
                // A cursor that repeats means that every page was read.
                _ => break None,
            }
        };
        remarks.extend(left_out);
        *self.remarks.lock().unwrap_or_else(PoisonError::into_inner) = remarks;
        Ok(tools)
    }

    /// Requests one page of the list, which may contain invalid entries.
    async fn page(&self, cursor: Option<String>) -> Result<Page, RemoteError> {
        let from = PaginatedRequestParams::default().with_cursor(cursor);
        let request = ClientRequest::ListToolsRequest(RequestOptionalParam::with_param(from));
        self.ears.take_listed();
        let mut asked = self.send(request).await?;
        let Some(handle) = &mut asked.handle else { return Err(gone()) };
        let answer = (&mut handle.rx).await;
        asked.handle = None;
        let answer = answer.unwrap_or(Err(ServiceError::TransportClosed));
        let told = self.ears.take_listed();
        match answer.map_err(|error| self.failed(error))? {
            ServerResult::ListToolsResult(page) => {
                let kept: HashSet<_> = page.tools.iter().map(|tool| &*tool.name).collect();
                let is_missing = |name: &String| !kept.contains(name.as_str());
                let left_out = told.into_iter().filter(is_missing).collect();
                recast(&page).map(|page: Page| Page { left_out, ..page })
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
struct Page {
    tools: Vec<Value>,
    next_cursor: Option<String>,
    /// The names of the tools that rmcp dropped.
    #[serde(skip)]
    left_out: Vec<String>,
}

/// Returns the name of an entry.
fn name(tool: &Value) -> String {
    shown(tool["name"].as_str().unwrap_or("without a name"))
}

fn shown(name: &str) -> String {
    name.escape_debug().take(80).collect()
}
