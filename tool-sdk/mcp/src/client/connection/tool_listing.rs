//! The tools of one server: listed, checked and published in the toolset.
//!
//! Schemas are compiled on another thread unless all of them are small; those that did not change are
//! reused. Each listing replaces the earlier one in one step, and the last one wins.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use tokio::time::sleep;
use tool_sdk_core::{Tool, ToolError, Toolset};

use super::{LiveConnection, ServerConnection, with_timeout};
use crate::client::remote::{RemoteConnection, RemoteError, RemoteTool};
use crate::client::tool::{DescriptionLint, ForeignTool, PinDifferences, ToolSchemas};
use crate::client::tool_index::OtherToolNames;
use crate::client::{naming, time_limit};

/// How long notifications of changed tools are collected before the tools are listed.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// How many tools of one server are used; the others are left out with a warning.
const MAX_TOOLS: usize = 1000;

/// Lists up to this length are prepared inline when all of their schemas are cheap.
const MAX_INLINE_TOOLS: usize = 32;

/// A listed tool with its compiled schemas, or why it cannot be called.
struct PreparedTool {
    tool: RemoteTool,
    schemas: Result<Arc<ToolSchemas>, String>,
    lint: DescriptionLint,
}

/// A prepared list of tools, and the warnings about the list.
pub(super) struct PreparedListing {
    tools: Vec<PreparedTool>,
    warnings: Vec<String>,
}

impl ServerConnection {
    /// Whether the server offers exactly this tool now.
    pub(crate) fn offers_tool(&self, tool: &ForeignTool) -> bool {
        self.lock_state().tools.iter().any(|offered| offered.is_same_tool(tool))
    }

    /// Replaces a tool in the toolset by one with its current revision.
    pub(crate) fn refresh_revision(&self, tool: &ForeignTool) {
        let _turn = self.publish_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock_state();
        let Some(at) = state.tools.iter().position(|offered| offered.is_same_tool(tool)) else {
            return;
        };
        let (Some(before), Some(toolset)) = (state.published.get(at).cloned(), self.toolset())
        else {
            return;
        };
        let renewed = state.tools[at].with_current_revision();
        let added: Arc<dyn Tool> = Arc::new(renewed.clone());
        (state.tools[at], state.published[at]) = (renewed, Arc::clone(&added));
        drop(state);
        // The name is the same, so there is no conflict.
        let _ = toolset.replace_added_for(&self.audience, &[before], vec![added]);
    }

    /// Publishes the tools in another toolset from now on.
    pub(crate) fn attach_toolset(&self, toolset: &Arc<Toolset>) {
        *self.toolset.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(toolset);
        let added = self.lock_state().published.clone();
        if let Err(conflict) = toolset.replace_added_for(&self.audience, &[], added) {
            self.lock_state().warnings.push(format!("its tools are left out: {conflict}"));
        }
    }

    pub(super) fn toolset(&self) -> Option<Arc<Toolset>> {
        self.toolset.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// Compiles the schemas of the tools that the configuration allows; schemas that did not change
    /// are reused.
    pub(super) async fn prepare_tools(
        &self,
        listed: &[RemoteTool],
    ) -> Result<PreparedListing, RemoteError> {
        let oddities = self.config.unknown_filter_names(listed);
        let wanted =
            |tool: &&RemoteTool| self.config.allows_tool(&tool.name) && tool.is_visible_to_models();
        // Twice the limit, because duplicates are dropped later.
        let listed: Vec<RemoteTool> =
            listed.iter().filter(wanted).take(2 * MAX_TOOLS).cloned().collect();
        let known: BTreeMap<String, Arc<ToolSchemas>> = {
            let state = self.lock_state();
            let each = state.tools.iter();
            each.map(|tool| (tool.remote_name().to_owned(), Arc::clone(tool.schemas()))).collect()
        };
        let is_quick = listed.len() <= MAX_INLINE_TOOLS && listed.iter().all(ToolSchemas::is_cheap);
        let make = move || {
            let of = |tool: RemoteTool| {
                let same = known.get(&tool.name).filter(|schemas| schemas.matches_tool(&tool));
                let schemas = match same {
                    Some(schemas) => Ok(Arc::clone(schemas)),
                    None => ToolSchemas::compile(&tool).map(Arc::new),
                };
                // The text of a tool that is left out is not checked.
                let lint = schemas
                    .as_ref()
                    .map(|_| DescriptionLint::check_tool(&tool))
                    .unwrap_or_default();
                PreparedTool { tool, schemas, lint }
            };
            listed.into_iter().map(of).collect()
        };
        let made = match is_quick {
            true => Some(make()),
            false => time_limit::run_with_limit(self.config.startup_timeout, make).await,
        };
        let tools =
            made.ok_or_else(|| RemoteError::timeout("checking its tool schemas took too long"))?;
        Ok(PreparedListing { tools, warnings: oddities })
    }

    /// Replaces the published tools by these. A listing of an earlier connection is ignored.
    pub(super) fn publish_tools(
        self: &Arc<Self>,
        remote: &Arc<dyn RemoteConnection>,
        listed: PreparedListing,
    ) {
        let _turn = self.publish_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let is_now = |now: &LiveConnection| Arc::ptr_eq(&now.remote, remote);
        if !self.lock_state().connection.as_ref().is_some_and(is_now) {
            return;
        }
        let Some(toolset) = self.toolset() else { return };
        let (tools, mut warnings) = self.accept_tools(listed.tools);
        warnings.extend(listed.warnings);
        warnings
            .extend(remote.listing_warnings().iter().map(|remark| self.secrets.clean_text(remark)));
        if self.has_same_tools(&tools) {
            // An unchanged list must not notify the subscribers of the toolset.
            self.lock_state().warnings = warnings;
            return;
        }
        let mut added: Vec<Arc<dyn Tool>> = Vec::new();
        let before = self.lock_state().published.clone();
        for tool in &tools {
            added.push(Arc::new(tool.clone()));
        }
        match toolset.replace_added_for(&self.audience, &before, added.clone()) {
            Ok(()) => {
                let names = tools.iter().map(|tool| tool.remote_name().to_owned()).collect();
                self.tool_index.set_tools(self.name(), names);
                let mut state = self.lock_state();
                (state.tools, state.published) = (tools, added);
                state.warnings = warnings;
            }
            Err(conflict) => {
                warnings.push(format!("its tools are left out: {conflict}"));
                self.lock_state().warnings = warnings;
            }
        }
    }

    /// Whether these tools, with these revisions, are published already.
    fn has_same_tools(&self, tools: &[ForeignTool]) -> bool {
        let state = self.lock_state();
        let same = |(one, other): (&ForeignTool, &ForeignTool)| {
            one.is_same_tool(other) && one.definition().revision == other.definition().revision
        };
        state.tools.len() == tools.len() && state.tools.iter().zip(tools).all(same)
    }

    /// Returns the tools that can be called, and why the others cannot.
    fn accept_tools(
        self: &Arc<Self>,
        listed: Vec<PreparedTool>,
    ) -> (Vec<ForeignTool>, Vec<String>) {
        let (mut tools, mut warnings) = (Vec::<ForeignTool>::new(), Vec::new());
        let names = listed.iter().map(|made| made.tool.name.clone()).collect::<Vec<_>>();
        let names = naming::model_names(self.name(), names.iter().map(String::as_str));
        for PreparedTool { tool, schemas, lint } in listed {
            let raw = tool.name.escape_debug().take(80).collect::<String>();
            let Some(called) = names.get(tool.name.as_str()) else {
                warnings.push(format!(
                    "{raw}: left out, its name is not 1 to 128 of a-z A-Z 0-9 _ - ."
                ));
                continue;
            };
            if tools.iter().any(|other| other.remote_name() == tool.name) {
                warnings.push(format!("{raw}: left out, the server lists the name twice"));
                continue;
            }
            if tools.len() == MAX_TOOLS {
                warnings.push(format!("only the first {MAX_TOOLS} of its tools are used"));
                break;
            }
            match schemas {
                Ok(schemas) => {
                    tools.push(ForeignTool::new(self, called.clone(), &tool, schemas, lint));
                }
                Err(why) => warnings.push(format!("{raw}: left out, {why}")),
            }
        }
        (tools, warnings)
    }

    /// Returns the tools that are not the server's own, by the names that models and their servers
    /// use.
    pub(crate) fn other_tool_names(&self) -> OtherToolNames {
        let own = naming::name_prefix(self.name());
        let names = self.toolset().map(|toolset| {
            let view = toolset.view();
            let names = view.definitions().map(|definition| definition.name.to_string());
            names.filter(|name| !name.starts_with(&own)).collect()
        });
        self.tool_index.names_of_others(self.name(), names.unwrap_or_default())
    }

    /// Returns the definition that pinning would record for each tool, by its name here.
    pub(crate) fn pin_texts(&self) -> BTreeMap<String, String> {
        let tools = self.lock_state().tools.clone();
        tools
            .iter()
            .map(|tool| (tool.definition().name.to_string(), tool.definition_text()))
            .collect()
    }

    /// Returns the difference of each tool to its pinned definition, where there is one.
    pub(crate) fn pin_differences(&self) -> PinDifferences {
        let tools = self.lock_state().tools.clone();
        let name = |tool: &ForeignTool| tool.definition().name.to_string();
        tools.iter().filter_map(|it| Some((name(it), it.definition_difference()?))).collect()
    }

    /// Pins the tools if `shown` is what the server says now; returns whether it is.
    pub(crate) fn pin_reviewed(&self, shown: &BTreeMap<String, String>) -> Result<bool, ToolError> {
        let tools = self.lock_state().tools.clone();
        let is_shown = |tool: &ForeignTool| {
            shown.get(tool.definition().name.as_str()) == Some(&tool.definition_text())
        };
        if tools.len() != shown.len() || !tools.iter().all(is_shown) {
            return Ok(false);
        }
        tools.iter().try_for_each(ForeignTool::pin_definition).map(|()| true)
    }

    /// Pins every tool as the server describes it now.
    pub(crate) fn pin_all(&self) -> Result<(), ToolError> {
        let tools = self.lock_state().tools.clone();
        tools.iter().try_for_each(ForeignTool::pin_definition)
    }
}

/// Lists the tools again after each notification that they changed.
pub(super) async fn watch_tool_changes(
    server: Weak<ServerConnection>,
    remote: Arc<dyn RemoteConnection>,
) {
    loop {
        tokio::select! {
            () = remote.tools_changed() => {}
            () = remote.closed() => return,
        }
        // Servers that change one tool mostly change more right after it.
        sleep(DEBOUNCE).await;
        let Some(limit) = server.upgrade().map(|server| server.config.startup_timeout) else {
            return;
        };
        let listed = with_timeout(limit, remote.list_tools()).await;
        let Some(server) = server.upgrade() else { return };
        let made = match listed {
            Ok(tools) => server.prepare_tools(&tools).await,
            Err(error) => Err(error),
        };
        match made {
            Ok(made) => server.publish_tools(&remote, made),
            Err(error) => drop(server.record_failure(error)),
        }
    }
}
