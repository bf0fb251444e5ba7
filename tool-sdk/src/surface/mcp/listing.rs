//! What a peer is told of the tools: the same definitions in the same order, page by page.
//!
//! **Invariant:** the list depends on the toolset, the era and on what kind of client asks,
//! never on the peer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    CacheScope, ErrorData, ListToolsResult, PaginatedRequestParams, ProtocolVersion, Tool,
};

use super::page::Shows;
use crate::name::ToolName;
use crate::surface::provider::{self, Dialect};
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

/// How many tools stand on a page.
const PAGE: usize = 500;

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
    tools: Arc<[Tool]>,
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
        let start = start(&tools, from.and_then(|params| params.cursor).as_deref())?;
        let page = &tools[start..tools.len().min(start + PAGE)];
        let more = start + page.len() < tools.len();
        let last = page.last().filter(|_| more).map(|tool| tool.name.clone().into_owned());
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
        let start = match cursor {
            Some(_) => start(&self.tools(view, Era::Legacy, shows), cursor).ok()?,
            None => 0,
        };
        if !start.is_multiple_of(PAGE) {
            return None;
        }
        let mut kept = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, text)) = kept.get(&(shows, start))
            && Arc::ptr_eq(known, view)
        {
            return Some(Arc::clone(text));
        }
        let from = PaginatedRequestParams::default().with_cursor(cursor.map(str::to_owned));
        let page = self.page(view, (Era::Legacy, shows), Some(from)).ok()?;
        let mut page = serde_json::to_value(page).ok()?;
        page.as_object_mut()?.remove("resultType");
        let text: Arc<str> = page.to_string().into();
        kept.insert((shows, start), (Arc::clone(view), Arc::clone(&text)));
        Some(text)
    }

    /// One tool.
    pub(super) fn tool(&self, view: &Arc<View>, era: Era, name: &str) -> Option<Tool> {
        let tools = self.tools(view, era, Shows::Text);
        let at = tools.binary_search_by(|tool| (*tool.name).cmp(name)).ok()?;
        Some(tools[at].clone())
    }

    fn tools(&self, view: &Arc<View>, era: Era, shows: Shows) -> Arc<[Tool]> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.get(&(era, shows)) {
            Some(kept) if Arc::ptr_eq(&kept.view, view) => Arc::clone(&kept.tools),
            _ => {
                let listed = view.permitted().filter(|definition| shows.lists(definition));
                let tools: Arc<[Tool]> =
                    listed.filter_map(|definition| tool(definition, era, shows)).collect();
                kept.insert(
                    (era, shows),
                    Kept { view: Arc::clone(view), tools: Arc::clone(&tools) },
                );
                tools
            }
        }
    }
}

/// Where a page begins. A cursor is the name of the last tool on the page before: tools may
/// come and go between two pages, and none is missed.
fn start(tools: &[Tool], cursor: Option<&str>) -> Result<usize, ErrorData> {
    match cursor {
        Some(last) if ToolName::new(last.to_owned()).is_ok() => {
            Ok(tools.partition_point(|tool| *tool.name <= *last))
        }
        Some(_) => Err(ErrorData::invalid_params("there is no such cursor", None)),
        None => Ok(0),
    }
}

/// A tool in the protocol's words. Modern peers take any value as a structured result, and
/// are told its schema as it is.
fn tool(definition: &Definition, era: Era, shows: Shows) -> Option<Tool> {
    let mut tool: Tool = serde_json::from_value(provider::tool(definition, Dialect::Mcp)).ok()?;
    if let (Era::Modern, Some(output)) = (era, &definition.output) {
        tool.output_schema = Some(Arc::new(output.as_map().clone()));
    }
    tool.meta = shows.of_tool(definition);
    Some(tool)
}
