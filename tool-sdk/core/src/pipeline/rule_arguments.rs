//! The arguments of a call as rules see them, decoded and resolved when a rule first needs them.

use std::cell::OnceCell;

use serde_json::Value;

use super::invocation::Invocation;
use super::session_files;
use crate::context::Context;
use crate::permission::{ArgumentLookup, Rule, Ruleset};
use crate::tool::{PathAlias, PreparedCall, Resource};
use crate::toolset::is_about_files;

/// The arguments of one form of a call.
pub(super) struct RuleArguments<'a> {
    invocation: &'a Invocation<'a>,
    prepared: &'a dyn PreparedCall,
    text: &'a str,
    cx: &'a Context,
    rules: &'a Ruleset,
    parsed: OnceCell<Value>,
    paths: OnceCell<Vec<Resource>>,
    aliases: OnceCell<Vec<PathAlias>>,
}

impl<'a> RuleArguments<'a> {
    /// Returns the arguments of `prepared`, which were sent as `text`, as `rules` see them.
    pub(super) fn new(
        invocation: &'a Invocation<'a>,
        prepared: &'a dyn PreparedCall,
        text: &'a str,
        cx: &'a Context,
        rules: &'a Ruleset,
    ) -> Self {
        let (parsed, paths, aliases) = Default::default();
        Self { invocation, prepared, text, cx, rules, parsed, paths, aliases }
    }

    /// Returns the other paths of a file that rules may use.
    pub(super) fn aliases(&self) -> &[PathAlias] {
        self.aliases
            .get_or_init(|| session_files::path_aliases(self.invocation.session, self.rules))
    }
}

impl ArgumentLookup for RuleArguments<'_> {
    fn value(&self, name: &str) -> Option<Value> {
        let parse = || serde_json::from_str(self.text).unwrap_or_default();
        self.invocation.argument(self.parsed.get_or_init(parse), name)
    }

    fn paths(&self) -> &[Resource] {
        self.paths.get_or_init(|| {
            let mut paths = self.prepared.paths(self.cx);
            paths.iter_mut().for_each(|path| path.set_path_aliases(self.aliases()));
            paths
        })
    }

    fn is_path(&self, rule: &Rule) -> bool {
        is_about_files(rule, self.invocation.inner.toolset.all_tools().iter())
    }
}
