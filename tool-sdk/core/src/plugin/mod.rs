//! Plugins: tools, hooks and rules that a host loads and unloads while it runs.
//!
//! A [`Plugin`] adds what it brings to a [`PluginRegistrar`]. From then on a [`PluginScope`] owns all
//! of it, until the plugin is unloaded.
//!
//! **Invariant:** a plugin that fails to load leaves nothing behind; what a scope owns ends with it.

mod host;
mod registrar;
mod scope;

use thiserror::Error;

pub(crate) use self::host::DynPluginHost;
pub use self::host::{PluginHost, PluginPart};
pub use self::registrar::PluginRegistrar;
pub use self::scope::PluginScope;
use crate::error::ToolError;
use crate::registry::RegistryError;

/// A set of tools, hooks and rules that is loaded and unloaded as a whole.
///
/// # Examples
///
/// ```
/// use tool_sdk::{
///     Call, Pipeline, Plugin, PluginRegistrar, Registry, Rule, Session, ToolError, tool, tools,
/// };
///
/// /// Ring the bell.
/// #[tool(read)]
/// fn ring() -> String {
///     "ding".to_owned()
/// }
///
/// struct Bell;
///
/// impl Plugin for Bell {
///     fn id(&self) -> &str {
///         "bell"
///     }
///
///     fn register(&self, registrar: &mut PluginRegistrar) -> Result<(), ToolError> {
///         registrar.add_tools(tools![ring]);
///         registrar.add_rules(["ask ring".parse::<Rule>().map_err(ToolError::config)?])
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let pipeline = Pipeline::new(Registry::default());
/// let plugins = pipeline.plugins();
/// plugins.load(&Bell)?;
/// let check = pipeline.check(&Session::default(), Call::new("ring", "{}")).await;
/// assert_eq!(check.expect("the call is valid").decision.action.as_str(), "ask");
///
/// plugins.unload("bell").await?;
/// assert!(pipeline.toolset().get("ring").is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Plugin: Send + Sync + 'static {
    /// Returns the id, which is unique among the loaded plugins.
    fn id(&self) -> &str;

    /// Adds what the plugin brings. It must not wait; what takes long is started by the first call
    /// that needs it.
    ///
    /// # Errors
    ///
    /// Fails when the plugin cannot work here; then nothing of it is loaded.
    fn register(&self, registrar: &mut PluginRegistrar) -> Result<(), ToolError>;
}

/// Why a plugin is not loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PluginError {
    /// A plugin of this id is loaded.
    #[error(
        "the plugin `{id}` of {second} has the id of the one that is loaded from {first}; unload that \
         one first"
    )]
    LoadedAlready {
        /// The id.
        id: String,
        /// The place of the loaded plugin.
        first: String,
        /// The place of the plugin that is not loaded.
        second: String,
    },
    /// A name of its tools is in use, or a tool cannot be called.
    #[error("the plugin `{id}` of {place} is not loaded: {source}")]
    Conflict {
        /// The id.
        id: String,
        /// The place of the plugin.
        place: String,
        /// The conflicts, each with both places.
        source: RegistryError,
    },
    /// The plugin failed.
    #[error("the plugin `{id}` of {place} is not loaded: {}", source.message())]
    Failed {
        /// The id.
        id: String,
        /// The place of the plugin.
        place: String,
        /// What went wrong.
        source: ToolError,
    },
}

impl PluginError {
    /// Returns the id of the plugin that is not loaded.
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::LoadedAlready { id, .. }
            | Self::Conflict { id, .. }
            | Self::Failed { id, .. } => id,
        }
    }

    /// Returns the place of the plugin that is not loaded.
    pub(crate) fn place(&self) -> &str {
        match self {
            Self::LoadedAlready { second: place, .. }
            | Self::Conflict { place, .. }
            | Self::Failed { place, .. } => place,
        }
    }
}

#[cfg(test)]
mod tests;
