//! What a call was given, as far as rules on arguments want to know.
//!
//! **Invariant:** nothing is decoded or resolved before a rule on an argument asks.

use serde_json::Value;

use super::Rule;
use crate::tool::Resource;

/// The arguments of a call, as rules see them.
pub(crate) trait ArgumentLookup {
    /// The value of the argument `name`; `None` when the call has no such argument.
    fn value(&self, name: &str) -> Option<Value>;

    /// The paths among the values, also those that are no subjects of the call.
    fn paths(&self) -> &[Resource] {
        &[]
    }

    /// Whether the argument that `rule` is about holds a path in the tools that it names, so that
    /// it speaks of files wherever calls without that argument touch them.
    fn is_path(&self, rule: &Rule) -> bool {
        let _ = rule;
        false
    }
}

/// Values alone, of which nobody knows which are paths.
impl<F: Fn(&str) -> Option<Value>> ArgumentLookup for F {
    fn value(&self, name: &str) -> Option<Value> {
        self(name)
    }
}
