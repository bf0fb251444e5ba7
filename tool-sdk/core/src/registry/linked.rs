//! Registers tools at link time: `#[tool]` submits them from every crate of the program.
//!
//! A crate that no code mentions is not linked, so its tools are missing; [`link!`](crate::link)
//! mentions it. The collected tools are in no particular order.

use super::{Registry, RegistryBuilder, RegistryError};
use crate::tool::FnTool;

/// A tool that is registered at link time.
#[derive(Debug)]
pub struct Registration(&'static FnTool);

impl Registration {
    /// Creates the registration of `tool`.
    #[must_use]
    pub const fn new(tool: &'static FnTool) -> Self {
        Self(tool)
    }
}

inventory::collect!(Registration);

/// Says why no tool may be linked.
const NO_TOOLS: &str = "no tools are linked into the program; if they are in another crate, name it \
                        with `tool_sdk::link!(the_crate);`, because the linker drops a crate that \
                        no code names";

impl Registry {
    /// Builds a registry of the tools of all linked crates. An empty one is a warning of `tracing`
    /// that names [`link!`](crate::link).
    ///
    /// # Errors
    ///
    /// Fails when two of them have the same name; every conflict is listed with both source
    /// locations.
    pub fn linked() -> Result<Self, RegistryError> {
        let registry = Self::builder().add_linked().build()?;
        if registry.is_empty() {
            tracing::warn!("{NO_TOOLS}");
        }
        Ok(registry)
    }
}

impl RegistryBuilder {
    /// Adds the tools of all linked crates.
    pub fn add_linked(self) -> Self {
        let linked: Vec<_> = inventory::iter::<Registration>().map(|it| it.0.shared()).collect();
        self.add(linked)
    }
}
