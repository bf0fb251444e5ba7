//! What a host does with the parts of plugins that the pipeline does not know: agents and MCP servers.

use futures_util::future::BoxFuture;

use super::PluginScope;

/// A part of a plugin besides its tools, hooks and rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PluginPart {
    /// Its agents.
    Agents,
    /// Its MCP servers.
    McpServers,
}

impl PluginPart {
    /// Returns the name of the part for people: `agents` or `MCP servers`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::McpServers => "MCP servers",
        }
    }
}

/// Adds one [part](PluginPart) of plugins to a program that runs, and removes it with the plugin.
///
/// [`PluginManager::with_host`](crate::PluginManager::with_host) names it. A program without a host for
/// a part has that part of a plugin when it starts again.
pub trait PluginHost: Send + Sync + 'static {
    /// Returns the part that it adds.
    fn part(&self) -> PluginPart;

    /// Adds the part of a plugin that was loaded. Returns what the user should know, one line each.
    fn attach(&self, scope: &PluginScope) -> impl Future<Output = Vec<String>> + Send;

    /// Removes the part of a plugin that is no longer loaded. Returns what did not end.
    fn detach(&self, scope: &PluginScope) -> impl Future<Output = Vec<String>> + Send;
}

/// A [`PluginHost`] behind a pointer; implemented for every host.
pub(crate) trait DynPluginHost: Send + Sync + 'static {
    fn part(&self) -> PluginPart;
    fn attach<'a>(&'a self, scope: &'a PluginScope) -> BoxFuture<'a, Vec<String>>;
    fn detach<'a>(&'a self, scope: &'a PluginScope) -> BoxFuture<'a, Vec<String>>;
}

impl<H: PluginHost> DynPluginHost for H {
    fn part(&self) -> PluginPart {
        PluginHost::part(self)
    }

    fn attach<'a>(&'a self, scope: &'a PluginScope) -> BoxFuture<'a, Vec<String>> {
        Box::pin(PluginHost::attach(self, scope))
    }

    fn detach<'a>(&'a self, scope: &'a PluginScope) -> BoxFuture<'a, Vec<String>> {
        Box::pin(PluginHost::detach(self, scope))
    }
}
