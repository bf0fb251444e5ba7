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

impl Registry {
    /// Builds a registry of the tools of all linked crates.
    ///
    /// # Errors
    ///
    /// Fails when two of them have the same name; every conflict is listed with both source
    /// locations.
    pub fn linked() -> Result<Self, RegistryError> {
        Self::builder().add_linked().build()
    }
}

impl RegistryBuilder {
    /// Adds the tools of all linked crates.
    pub fn add_linked(self) -> Self {
        let linked: Vec<_> = inventory::iter::<Registration>().map(|it| it.0.shared()).collect();
        self.add(linked)
    }
}
