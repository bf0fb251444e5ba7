//! The tools of a server, page by page.
//!
//! **Invariant:** no list is endless, and what is no tool takes nobody else's place.

use std::collections::HashSet;
use std::sync::PoisonError;

use rmcp::model::{ClientRequest, PaginatedRequestParams, RequestOptionalParam, ServerResult};
use rmcp::service::ServiceError;
use serde::Deserialize;
use serde_json::Value;

use super::super::cost;
use super::super::remote::{RemoteError, RemoteTool};
use super::{Wire, deep, gone, recast};

/// How many pages a list may have.
const MOST_PAGES: usize = 1000;

/// How many bytes a list may have in all.
const MOST_BYTES: usize = 16 << 20;

/// How many parts the schemas of a list may have in all; each costs many times its bytes.
const MOST_PARTS: usize = 100_000;

/// As how many bytes an entry counts at least, because it costs as many here.
const LEAST_BYTES: usize = 512;

impl Wire {
    pub(super) async fn list(&self) -> Result<Vec<RemoteTool>, RemoteError> {
        let (mut tools, mut remarks) = (Vec::new(), Vec::new());
        let (mut cursor, mut seen, mut bytes, mut parts) = (None, HashSet::new(), 0, 0);
        let left_out = 'pages: loop {
            let page = self.page(cursor.take()).await?;
            remarks.extend(page.left_out.iter().map(|name| {
                format!("{}: left out, its `x-mcp-header` cannot be followed", shown(name))
            }));
            for tool in page.tools {
                bytes += tool.to_string().len().max(LEAST_BYTES);
                if bytes > MOST_BYTES {
                    break 'pages Some(format!("only {MOST_BYTES} bytes of its list count"));
                }
                parts += cost::parts(&tool);
                if parts > MOST_PARTS {
                    break 'pages Some(format!("only {MOST_PARTS} parts of its list count"));
                }
                if deep::was(&tool) {
                    remarks.push(format!("{}: left out, it is nested too deep", name(&tool)));
                    continue;
                }
                match RemoteTool::deserialize(&tool) {
                    Ok(tool) => tools.push(tool),
                    Err(why) => remarks.push(format!("{}: left out, {why}", name(&tool))),
                }
            }
            match page.next_cursor {
                Some(_) if seen.len() + 1 == MOST_PAGES => {
                    break Some(format!("only {MOST_PAGES} pages of its list count"));
                }
                Some(next) if seen.insert(next.clone()) => cursor = Some(next),
                // A server that leads back to a page has told everything that it has.
                _ => break None,
            }
        };
        remarks.extend(left_out);
        *self.remarks.lock().unwrap_or_else(PoisonError::into_inner) = remarks;
        Ok(tools)
    }

    /// One page of the list, in which not everything need be a tool.
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
            // The library knows no page with anything else in it.
            ServerResult::CustomResult(page) => serde_json::from_value(page.0).ok(),
            _ => None,
        }
        .ok_or_else(|| RemoteError::protocol("the server's list is none"))
    }
}

/// One page of a list of tools.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    tools: Vec<Value>,
    next_cursor: Option<String>,
    /// The names of those that the library has left out.
    #[serde(skip)]
    left_out: Vec<String>,
}

/// What a server calls something that it takes for a tool.
fn name(tool: &Value) -> String {
    shown(tool["name"].as_str().unwrap_or("without a name"))
}

fn shown(name: &str) -> String {
    name.escape_debug().take(80).collect()
}
