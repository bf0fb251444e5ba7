//! The names under which rules speak of a tool.
//!
//! A foreign server decides which tools it has, and with that whether one of them needs a hash
//! in its name. What forbids a tool under either name goes on doing so (MC1); what allows it
//! speaks of the name that it has. The same holds for the aliases of a tool by whose name others
//! are allowed and forbidden as well.

use crate::name::ToolName;
use crate::tool::Definition;

/// The names of a tool.
#[derive(Clone, Debug)]
pub(crate) struct Names<'n> {
    own: Vec<&'n str>,
    also: Vec<&'n str>,
}

impl<'n> Names<'n> {
    /// Those that it has.
    pub(super) fn own(&self) -> impl Iterator<Item = &'n str> {
        self.own.iter().copied()
    }

    /// Those under which it is forbidden: all that it has, had or may have, and those of whom it
    /// shares a permission with.
    pub(super) fn forbidden(&self) -> impl Iterator<Item = &'n str> {
        self.own.iter().chain(&self.also).copied()
    }

    /// Adds names that it has.
    pub(crate) fn and(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        self.own.extend(names);
        self
    }

    /// Adds names under which it is only forbidden.
    pub(crate) fn also(mut self, names: &'n [ToolName]) -> Self {
        self.also.extend(names.iter().map(ToolName::as_str));
        self
    }
}

impl<'n> From<&'n [&'n str]> for Names<'n> {
    fn from(own: &'n [&'n str]) -> Self {
        Self { own: own.to_vec(), also: Vec::new() }
    }
}

impl<'n, const N: usize> From<&'n [&'n str; N]> for Names<'n> {
    fn from(own: &'n [&'n str; N]) -> Self {
        Self::from(&own[..])
    }
}

/// Those of a permission.
impl<'n> From<&'n str> for Names<'n> {
    fn from(permission: &'n str) -> Self {
        Self { own: vec![permission], also: Vec::new() }
    }
}

impl<'n> From<&'n Definition> for Names<'n> {
    fn from(tool: &'n Definition) -> Self {
        let own = std::iter::once(tool.permission()).chain(tool.names()).collect();
        Self { own, also: tool.also.iter().map(ToolName::as_str).collect() }
    }
}
