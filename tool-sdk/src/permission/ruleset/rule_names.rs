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
pub(crate) struct RuleNames<'n> {
    own_names: Vec<&'n str>,
    forbidden_only: Vec<&'n str>,
}

impl<'n> RuleNames<'n> {
    /// Those that it has.
    pub(super) fn own_names(&self) -> impl Iterator<Item = &'n str> {
        self.own_names.iter().copied()
    }

    /// Those under which it is forbidden: all that it has, had or may have, and those of whom it
    /// shares a permission with.
    pub(super) fn forbidden_names(&self) -> impl Iterator<Item = &'n str> {
        self.own_names.iter().chain(&self.forbidden_only).copied()
    }

    /// Adds names that it has.
    pub(crate) fn with_names(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        self.own_names.extend(names);
        self
    }

    /// Adds names under which it is only forbidden.
    pub(crate) fn with_forbidden(mut self, names: &'n [ToolName]) -> Self {
        self.forbidden_only.extend(names.iter().map(ToolName::as_str));
        self
    }
}

impl<'n> From<&'n [&'n str]> for RuleNames<'n> {
    fn from(own: &'n [&'n str]) -> Self {
        Self { own_names: own.to_vec(), forbidden_only: Vec::new() }
    }
}

impl<'n, const N: usize> From<&'n [&'n str; N]> for RuleNames<'n> {
    fn from(own: &'n [&'n str; N]) -> Self {
        Self::from(&own[..])
    }
}

/// Those of a permission.
impl<'n> From<&'n str> for RuleNames<'n> {
    fn from(permission: &'n str) -> Self {
        Self { own_names: vec![permission], forbidden_only: Vec::new() }
    }
}

impl<'n> From<&'n Definition> for RuleNames<'n> {
    fn from(tool: &'n Definition) -> Self {
        let own = std::iter::once(tool.permission()).chain(tool.names()).collect();
        Self { own_names: own, forbidden_only: tool.also.iter().map(ToolName::as_str).collect() }
    }
}
