//! What a peer is told of the tools: the same definitions in the same order, page by page.
//!
//! **Invariant:** the list depends on the toolset, the era and on what kind of client asks,
//! never on the peer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    CacheScope, ErrorData, ListToolsResult, PaginatedRequestParams, ProtocolVersion, Tool,
};
use serde::Deserialize as _;

use super::ui::UiSupport;
use crate::name::ToolName;
use crate::surface::provider;
use crate::tool::Definition;
use crate::toolset::ToolsetView;

/// Which of the two ways of speaking a peer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ProtocolEra {
    /// Sessions that begin with a handshake.
    Legacy,
    /// Requests that stand for themselves.
    Modern,
}

impl ProtocolEra {
    /// A peer that did not say is an old one.
    pub(super) fn from_version(version: Option<&ProtocolVersion>) -> Self {
        match version {
            Some(version) if *version >= ProtocolVersion::V_2026_07_28 => Self::Modern,
            _ => Self::Legacy,
        }
    }
}

/// How many bytes a page has at most, about, but for one with a single tool. Some clients never
/// ask for a second page, so the first holds all that a message can well hold.
const MAX_PAGE_BYTES: usize = 1024 * 1024;

/// What tells a cursor from the name of a tool, which nobody was told to send.
const CURSOR_PREFIX: &str = "after:";

/// For how long a modern peer may take a list for current without asking again. Those that
/// listen are told of a change at once.
pub(super) const LIST_TTL_MS: u64 = 60_000;

/// The tools in the protocol's words, kept until the toolset changes.
#[derive(Default)]
pub(super) struct ToolListing {
    tools_cache: Mutex<HashMap<(ProtocolEra, UiSupport), CachedTools>>,
    /// Pages as legacy peers read them, by where they begin.
    text: Mutex<HashMap<(UiSupport, usize), CachedPage>>,
}

/// A page in JSON, and the view of which it is.
type CachedPage = (Arc<ToolsetView>, Arc<str>);

/// The tools of one view.
struct CachedTools {
    view: Arc<ToolsetView>,
    tools: Arc<ListedTools>,
}

/// Tools by their names.
#[derive(Default)]
struct ListedTools {
    all: Vec<Tool>,
    /// About how many bytes there are up to the end of each.
    ends: Vec<usize>,
}

impl ListedTools {
    fn from_view(view: &ToolsetView, era: ProtocolEra, shows: UiSupport) -> Self {
        let listed = view.permitted_definitions().filter(|definition| shows.lists_tool(definition));
        let mut tools = Self::default();
        let mut end = 0;
        for definition in listed {
            if let Some(tool) = to_protocol_tool(definition, era, shows) {
                end += estimate_bytes(definition);
                tools.all.push(tool);
                tools.ends.push(end);
            }
        }
        tools
    }

    /// Where the page that begins with the tool at `page_start` ends.
    fn page_end(&self, start: usize) -> usize {
        let before = start.checked_sub(1).map_or(0, |last| self.ends[last]);
        let fitting = self.ends.partition_point(|end| *end <= before + MAX_PAGE_BYTES);
        fitting.max(start + 1).min(self.all.len())
    }

    /// Whether a page begins at `page_start` when one is read after the other.
    fn begins_page(&self, start: usize) -> bool {
        let mut at = 0;
        while at < start {
            at = self.page_end(at);
        }
        at == start
    }
}

impl ToolListing {
    /// One page of the list.
    pub(super) fn list_page(
        &self,
        view: &Arc<ToolsetView>,
        (era, shows): (ProtocolEra, UiSupport),
        from: Option<PaginatedRequestParams>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.listed_tools(view, era, shows);
        let start = page_start(&tools.all, from.and_then(|params| params.cursor).as_deref())?;
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

    /// One page as legacy peers read it, in JSON. Nothing where it is none of those that follow
    /// one another from the first, so that no more than the whole list is kept.
    pub(super) fn page_json(
        &self,
        view: &Arc<ToolsetView>,
        shows: UiSupport,
        cursor: Option<&str>,
    ) -> Option<Arc<str>> {
        if shows == UiSupport::TextOnly && cursor.is_none() {
            let whole = provider::mcp_listing(view);
            if whole.len() <= MAX_PAGE_BYTES {
                return Some(whole);
            }
        }
        let start = match cursor {
            Some(_) => {
                let tools = self.listed_tools(view, ProtocolEra::Legacy, shows);
                page_start(&tools.all, cursor).ok().filter(|start| tools.begins_page(*start))?
            }
            None => 0,
        };
        let mut kept = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, text)) = kept.get(&(shows, start))
            && Arc::ptr_eq(known, view)
        {
            return Some(Arc::clone(text));
        }
        let from = PaginatedRequestParams::default().with_cursor(cursor.map(str::to_owned));
        let mut page = self.list_page(view, (ProtocolEra::Legacy, shows), Some(from)).ok()?;
        // Peers of this era do not know it.
        page.result_type = None;
        let text: Arc<str> = serde_json::to_string(&page).ok()?.into();
        kept.insert((shows, start), (Arc::clone(view), Arc::clone(&text)));
        Some(text)
    }

    /// One tool.
    pub(super) fn find_tool(
        &self,
        view: &Arc<ToolsetView>,
        era: ProtocolEra,
        name: &str,
    ) -> Option<Tool> {
        let tools = self.listed_tools(view, era, UiSupport::TextOnly);
        let at = tools.all.binary_search_by(|tool| (*tool.name).cmp(name)).ok()?;
        Some(tools.all[at].clone())
    }

    fn listed_tools(
        &self,
        view: &Arc<ToolsetView>,
        era: ProtocolEra,
        shows: UiSupport,
    ) -> Arc<ListedTools> {
        let mut kept = self.tools_cache.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.get(&(era, shows)) {
            Some(kept) if Arc::ptr_eq(&kept.view, view) => Arc::clone(&kept.tools),
            _ => {
                let tools = Arc::new(ListedTools::from_view(view, era, shows));
                kept.insert(
                    (era, shows),
                    CachedTools { view: Arc::clone(view), tools: Arc::clone(&tools) },
                );
                tools
            }
        }
    }
}

/// Where a page begins. A cursor has the name of the last tool on the page before: tools may
/// come and go between two pages, and none is missed.
fn page_start(tools: &[Tool], cursor: Option<&str>) -> Result<usize, ErrorData> {
    let Some(cursor) = cursor else { return Ok(0) };
    let last =
        cursor.strip_prefix(CURSOR_PREFIX).filter(|last| ToolName::new((*last).to_owned()).is_ok());
    let last = last.ok_or_else(|| ErrorData::invalid_params("there is no such cursor", None))?;
    Ok(tools.partition_point(|tool| *tool.name <= *last))
}

/// About how many bytes a tool is in the protocol's words.
fn estimate_bytes(definition: &Definition) -> usize {
    const REST: usize = 200;
    let output = definition.output.as_ref().map_or(0, |output| output.as_str().len());
    REST + definition.description.len() + definition.parameters.as_str().len() + output
}

/// A tool in the protocol's words. Modern peers take any value as a structured result, and
/// are told its schema as it is.
fn to_protocol_tool(definition: &Definition, era: ProtocolEra, shows: UiSupport) -> Option<Tool> {
    let mut tool = Tool::deserialize(&provider::mcp_tool(definition)).ok()?;
    if let (ProtocolEra::Modern, Some(output)) = (era, &definition.output) {
        tool.output_schema = Some(Arc::new(output.as_map().clone()));
    }
    tool.meta = shows.tool_meta(definition);
    Some(tool)
}
