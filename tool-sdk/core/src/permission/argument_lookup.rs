//! The arguments of a call, as rules on arguments see them.
//!
//! **Invariant:** nothing is decoded or resolved before a rule on an argument needs it.

use serde_json::Value;

use super::Rule;
use crate::tool::Resource;

/// Looks up the arguments of a call for rules.
pub(crate) trait ArgumentLookup {
    /// Returns the value of the argument `name`; `None` when the call has no such argument.
    fn value(&self, name: &str) -> Option<Value>;

    /// Returns the paths among the values, including those that are not resources of the call.
    fn paths(&self) -> &[Resource] {
        &[]
    }

    /// Whether the argument of `rule` holds a path in the tools that it names. Such a rule is about
    /// files, and also applies to calls without that argument.
    fn is_path(&self, rule: &Rule) -> bool {
        let _ = rule;
        false
    }
}

/// Looks up values alone; no argument is known to be a path.
impl<F: Fn(&str) -> Option<Value>> ArgumentLookup for F {
    fn value(&self, name: &str) -> Option<Value> {
        self(name)
    }
}

/// The arguments of a file that no call names: there are none, and rules on paths apply to it.
pub(crate) struct NoArguments;

impl ArgumentLookup for NoArguments {
    fn value(&self, _: &str) -> Option<Value> {
        None
    }

    fn is_path(&self, _: &Rule) -> bool {
        true
    }
}
