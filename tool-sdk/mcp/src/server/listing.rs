//! The response of `tools/list`: definitions in a fixed order, in pages, cached until the toolset
//! changes.
//!
//! **Invariant:** the list depends on the toolset view, the protocol era and the client's UI
//! support, never on the single client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{CacheScope, ErrorData, ListToolsResult, Tool};
use serde::Deserialize as _;
use serde_json::json;
use tool_sdk_core::{Definition, TaskSupport, ToolName, ToolsetView, provider};

use super::ui::UiSupport;

/// The protocol era of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ProtocolEra {
    /// Sessions that begin with `initialize`.
    Legacy,
    /// Stateless requests.
    Modern,
}

/// The approximate maximum size of a page, unless a single tool is larger. Some clients never
/// request a second page, so the first holds as much as fits in one message.
const MAX_PAGE_BYTES: usize = 1024 * 1024;

/// The prefix of cursors. It distinguishes them from tool names that a client invented.
const CURSOR_PREFIX: &str = "after:";

/// How long a modern client may cache a list. Subscribed clients are notified of a change at once.
pub(super) const LIST_TTL_MS: u64 = 60_000;

/// A cache of the tool list in protocol form.
#[derive(Default)]
pub(super) struct ToolListing {
    tools_cache: Mutex<HashMap<(ProtocolEra, UiSupport), CachedTools>>,
    /// JSON pages for legacy clients, by their first tool.
    page_cache: Mutex<HashMap<(UiSupport, usize), CachedPage>>,
}

/// A page as JSON, and the view that it was made from.
type CachedPage = (Arc<ToolsetView>, Arc<str>);

/// The tools of one view.
struct CachedTools {
    view: Arc<ToolsetView>,
    tools: Arc<ListedTools>,
}

/// Tools sorted by name.
#[derive(Default)]
struct ListedTools {
    all: Vec<Tool>,
    /// The approximate size in bytes up to the end of each tool.
    ends: Vec<usize>,
}

impl ListedTools {
    fn from_view(view: &ToolsetView, era: ProtocolEra, ui: UiSupport) -> Self {
        let listed = view.permitted_definitions().filter(|definition| ui.lists_tool(definition));
        let mut tools = Self::default();
        let mut end = 0;
        for definition in listed {
            if let Some(tool) = to_protocol_tool(definition, era, ui) {
                end += estimate_bytes(definition);
                tools.all.push(tool);
                tools.ends.push(end);
            }
        }
        tools
    }

    /// Returns the end of the page that begins at `start`.
    fn page_end(&self, start: usize) -> usize {
        let before = start.checked_sub(1).map_or(0, |last| self.ends[last]);
        let fitting = self.ends.partition_point(|end| *end <= before + MAX_PAGE_BYTES);
        fitting.max(start + 1).min(self.all.len())
    }

    /// Returns true if a page begins at `start` when pages are read in sequence.
    fn begins_page(&self, start: usize) -> bool {
        let mut at = 0;
        while at < start {
            at = self.page_end(at);
        }
        at == start
    }
}

impl ToolListing {
    /// Returns one page of the list.
    pub(super) fn list_page(
        &self,
        view: &Arc<ToolsetView>,
        (era, ui): (ProtocolEra, UiSupport),
        cursor: Option<&str>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.listed_tools(view, era, ui);
        let start = page_start(&tools.all, cursor)?;
        let end = tools.page_end(start);
        let page = &tools.all[start..end];
        let more = end < tools.all.len();
        let last = page.last().filter(|_| more).map(|tool| format!("{CURSOR_PREFIX}{}", tool.name));
        let mut result = ListToolsResult::with_all_items(page.to_vec());
        result.next_cursor = last;
        Ok(match era {
            ProtocolEra::Legacy => result,
            ProtocolEra::Modern => {
                result.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private)
            }
        })
    }

    /// Returns one page as JSON for legacy clients. Returns `None` for a page that is not in the
    /// sequence from the first one, so that the cache never exceeds the whole list.
    pub(super) fn page_json(
        &self,
        view: &Arc<ToolsetView>,
        ui: UiSupport,
        cursor: Option<&str>,
    ) -> Option<Arc<str>> {
        if ui == UiSupport::TextOnly && cursor.is_none() {
            let whole = provider::mcp_listing(view);
            if whole.len() <= MAX_PAGE_BYTES {
                return Some(whole);
            }
        }
        let start = match cursor {
            Some(_) => {
                let tools = self.listed_tools(view, ProtocolEra::Legacy, ui);
                page_start(&tools.all, cursor).ok().filter(|start| tools.begins_page(*start))?
            }
            None => 0,
        };
        let mut kept = self.page_cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, text)) = kept.get(&(ui, start))
            && Arc::ptr_eq(known, view)
        {
            return Some(Arc::clone(text));
        }
        let mut page = self.list_page(view, (ProtocolEra::Legacy, ui), cursor).ok()?;
        // Legacy clients do not know this field.
        page.result_type = None;
        let text: Arc<str> = with_task_support(&page, view)?.into();
        kept.insert((ui, start), (Arc::clone(view), Arc::clone(&text)));
        Some(text)
    }

    fn listed_tools(
        &self,
        view: &Arc<ToolsetView>,
        era: ProtocolEra,
        ui: UiSupport,
    ) -> Arc<ListedTools> {
        let mut kept = self.tools_cache.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.get(&(era, ui)) {
            Some(kept) if Arc::ptr_eq(&kept.view, view) => Arc::clone(&kept.tools),
            _ => {
                let tools = Arc::new(ListedTools::from_view(view, era, ui));
                kept.insert(
                    (era, ui),
                    CachedTools { view: Arc::clone(view), tools: Arc::clone(&tools) },
                );
                tools
            }
        }
    }
}

/// Returns the start of a page. A cursor holds the name of the last tool of the page before, so no
/// tool is skipped if others are added or removed in between.
fn page_start(tools: &[Tool], cursor: Option<&str>) -> Result<usize, ErrorData> {
    let Some(cursor) = cursor else { return Ok(0) };
    let last =
        cursor.strip_prefix(CURSOR_PREFIX).filter(|last| ToolName::new((*last).to_owned()).is_ok());
    let last = last.ok_or_else(|| {
        ErrorData::invalid_params("`cursor` is invalid; use `nextCursor` of the page before", None)
    })?;
    Ok(tools.partition_point(|tool| *tool.name <= *last))
}

/// Returns a page as JSON for legacy clients, with what the protocol type of the tools lacks.
fn with_task_support(page: &ListToolsResult, view: &ToolsetView) -> Option<String> {
    let mut page = serde_json::to_value(page).ok()?;
    for tool in page["tools"].as_array_mut()? {
        let support = view.definition(tool["name"].as_str()?)?.task_support;
        if support != TaskSupport::Forbidden {
            tool["execution"] = json!({ "taskSupport": support });
        }
    }
    Some(page.to_string())
}

/// Estimates the size of a tool in JSON.
fn estimate_bytes(definition: &Definition) -> usize {
    const REST: usize = 200;
    let output = definition.output.as_ref().map_or(0, |output| output.as_str().len());
    REST + definition.description.len() + definition.parameters.as_str().len() + output
}

/// Converts a definition. Modern clients accept any value as a structured result, so they get the
/// output schema unwrapped.
fn to_protocol_tool(definition: &Definition, era: ProtocolEra, ui: UiSupport) -> Option<Tool> {
    let mut tool = Tool::deserialize(&provider::mcp_tool(definition)).ok()?;
    if let (ProtocolEra::Modern, Some(output)) = (era, &definition.output) {
        tool.output_schema = Some(Arc::new(output.as_map().clone()));
    }
    tool.meta = ui.tool_meta(definition);
    Some(tool)
}
