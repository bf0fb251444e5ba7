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

use super::page::Shows;
use crate::name::ToolName;
use crate::surface::provider;
use crate::tool::Definition;
use crate::toolset::View;

/// Which of the two ways of speaking a peer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Era {
    /// Sessions that begin with a handshake.
    Legacy,
    /// Requests that stand for themselves.
    Modern,
}

impl Era {
    /// A peer that did not say is an old one.
    pub(super) fn of(version: Option<&ProtocolVersion>) -> Self {
        match version {
            Some(version) if *version >= ProtocolVersion::V_2026_07_28 => Self::Modern,
            _ => Self::Legacy,
        }
    }
}

/// How many bytes a page has at most, about, but for one with a single tool. Some clients never
/// ask for a second page, so the first holds all that a message can well hold.
const PAGE: usize = 1024 * 1024;

/// What tells a cursor from the name of a tool, which nobody was told to send.
const AFTER: &str = "after:";

/// For how long a modern peer may take a list for current without asking again. Those that
/// listen are told of a change at once.
pub(super) const FRESH_MS: u64 = 60_000;

/// The tools in the protocol's words, kept until the toolset changes.
#[derive(Default)]
pub(super) struct Listing {
    kept: Mutex<HashMap<(Era, Shows), Kept>>,
    /// Pages as legacy peers read them, by where they begin.
    text: Mutex<HashMap<(Shows, usize), Text>>,
}

/// A page in JSON, and the view of which it is.
type Text = (Arc<View>, Arc<str>);

/// The tools of one view.
struct Kept {
    view: Arc<View>,
    tools: Arc<Tools>,
}

/// Tools by their names.
#[derive(Default)]
struct Tools {
    all: Vec<Tool>,
    /// About how many bytes there are up to the end of each.
    ends: Vec<usize>,
}

impl Tools {
    fn of(view: &View, era: Era, shows: Shows) -> Self {
        let listed = view.permitted().filter(|definition| shows.lists(definition));
        let mut tools = Self::default();
        let mut end = 0;
        for definition in listed {
            if let Some(tool) = tool(definition, era, shows) {
                end += size(definition);
                tools.all.push(tool);
                tools.ends.push(end);
            }
        }
        tools
    }

    /// Where the page that begins with the tool at `start` ends.
    fn page_end(&self, start: usize) -> usize {
        let before = start.checked_sub(1).map_or(0, |last| self.ends[last]);
        let fitting = self.ends.partition_point(|end| *end <= before + PAGE);
        fitting.max(start + 1).min(self.all.len())
    }

    /// Whether a page begins at `start` when one is read after the other.
    fn begins_page(&self, start: usize) -> bool {
        let mut at = 0;
        while at < start {
            at = self.page_end(at);
        }
        at == start
    }
}

impl Listing {
    /// One page of the list.
    pub(super) fn page(
        &self,
        view: &Arc<View>,
        (era, shows): (Era, Shows),
        from: Option<PaginatedRequestParams>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.tools(view, era, shows);
        let start = start(&tools.all, from.and_then(|params| params.cursor).as_deref())?;
        let end = tools.page_end(start);
        let page = &tools.all[start..end];
        let more = end < tools.all.len();
        let last = page.last().filter(|_| more).map(|tool| format!("{AFTER}{}", tool.name));
        let mut result = ListToolsResult::with_all_items(page.to_vec());
        result.next_cursor = last;
        Ok(match era {
            Era::Legacy => result,
            Era::Modern => result.with_ttl_ms(FRESH_MS).with_cache_scope(CacheScope::Private),
        })
    }

    /// One page as legacy peers read it, in JSON. Nothing where it is none of those that follow
    /// one another from the first, so that no more than the whole list is kept.
    pub(super) fn text(
        &self,
        view: &Arc<View>,
        shows: Shows,
        cursor: Option<&str>,
    ) -> Option<Arc<str>> {
        if shows == Shows::Text && cursor.is_none() {
            let whole = provider::mcp_listing(view);
            if whole.len() <= PAGE {
                return Some(whole);
            }
        }
        let start = match cursor {
            Some(_) => {
                let tools = self.tools(view, Era::Legacy, shows);
                start(&tools.all, cursor).ok().filter(|start| tools.begins_page(*start))?
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
        let mut page = self.page(view, (Era::Legacy, shows), Some(from)).ok()?;
        // Peers of this era do not know it.
        page.result_type = None;
        let text: Arc<str> = serde_json::to_string(&page).ok()?.into();
        kept.insert((shows, start), (Arc::clone(view), Arc::clone(&text)));
        Some(text)
    }

    /// One tool.
    pub(super) fn tool(&self, view: &Arc<View>, era: Era, name: &str) -> Option<Tool> {
        let tools = self.tools(view, era, Shows::Text);
        let at = tools.all.binary_search_by(|tool| (*tool.name).cmp(name)).ok()?;
        Some(tools.all[at].clone())
    }

    fn tools(&self, view: &Arc<View>, era: Era, shows: Shows) -> Arc<Tools> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.get(&(era, shows)) {
            Some(kept) if Arc::ptr_eq(&kept.view, view) => Arc::clone(&kept.tools),
            _ => {
                let tools = Arc::new(Tools::of(view, era, shows));
                kept.insert(
                    (era, shows),
                    Kept { view: Arc::clone(view), tools: Arc::clone(&tools) },
                );
                tools
            }
        }
    }
}

/// Where a page begins. A cursor has the name of the last tool on the page before: tools may
/// come and go between two pages, and none is missed.
fn start(tools: &[Tool], cursor: Option<&str>) -> Result<usize, ErrorData> {
    let Some(cursor) = cursor else { return Ok(0) };
    let last = cursor.strip_prefix(AFTER).filter(|last| ToolName::new((*last).to_owned()).is_ok());
    let last = last.ok_or_else(|| ErrorData::invalid_params("there is no such cursor", None))?;
    Ok(tools.partition_point(|tool| *tool.name <= *last))
}

/// About how many bytes a tool is in the protocol's words.
fn size(definition: &Definition) -> usize {
    const REST: usize = 200;
    let output = definition.output.as_ref().map_or(0, |output| output.as_str().len());
    REST + definition.description.len() + definition.parameters.as_str().len() + output
}

/// A tool in the protocol's words. Modern peers take any value as a structured result, and
/// are told its schema as it is.
fn tool(definition: &Definition, era: Era, shows: Shows) -> Option<Tool> {
    let mut tool = Tool::deserialize(&provider::mcp_tool(definition)).ok()?;
    if let (Era::Modern, Some(output)) = (era, &definition.output) {
        tool.output_schema = Some(Arc::new(output.as_map().clone()));
    }
    tool.meta = shows.of_tool(definition);
    Some(tool)
}
