//! Tools that the linker kept: what `#[tool]` registers, from every crate in the program.
//!
//! A crate that no code names is not linked at all, and its tools with it:
//! [`link!`](crate::link) names it. What was collected has no order of its own.

use super::{Registry, RegistryBuilder, RegistryError};
use crate::tool::FnTool;

/// A tool that registered itself.
#[derive(Debug)]
pub struct Registration(&'static FnTool);

impl Registration {
    /// The registration of `tool`.
    #[must_use]
    pub const fn new(tool: &'static FnTool) -> Self {
        Self(tool)
    }
}

inventory::collect!(Registration);

impl Registry {
    /// Every tool of every linked crate.
    ///
    /// # Errors
    ///
    /// Fails when two of them have the same name; every conflict is listed with both places.
    pub fn linked() -> Result<Self, RegistryError> {
        Self::builder().add_linked().build()
    }
}

impl RegistryBuilder {
    /// Adds every tool of every linked crate.
    pub fn add_linked(self) -> Self {
        let linked: Vec<_> = inventory::iter::<Registration>().map(|it| it.0.shared()).collect();
        self.add(linked)
    }
}
