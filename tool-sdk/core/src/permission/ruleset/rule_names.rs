//! The names under which rules match a tool.
//!
//! A foreign server decides which tools it has, and so whether the name of one of them needs a
//! hash. A rule that denies or asks matches a tool under either name (MC1); a rule that allows
//! matches only its current name. The same holds for the aliases of a tool whose permission other
//! tools share.

use crate::name::ToolName;
use crate::tool::Definition;

/// The names of a tool.
#[derive(Clone, Debug)]
pub struct RuleNames<'n> {
    own_names: Vec<&'n str>,
    forbidden_only: Vec<&'n str>,
}

impl<'n> RuleNames<'n> {
    /// Returns the names that the tool has.
    pub(super) fn own_names(&self) -> impl Iterator<Item = &'n str> {
        self.own_names.iter().copied()
    }

    /// Returns the names under which the tool can be denied: all that it has, had or may have, and
    /// those of tools with which it shares a permission.
    pub(super) fn forbidden_names(&self) -> impl Iterator<Item = &'n str> {
        self.own_names.iter().chain(&self.forbidden_only).copied()
    }

    /// Adds names that the tool has.
    pub(crate) fn with_names(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        self.own_names.extend(names);
        self
    }

    /// Adds names under which the tool can only be denied.
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

/// The names of a permission.
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
