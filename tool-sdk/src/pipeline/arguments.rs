//! The arguments of a call as rules see them, decoded and resolved when a rule first asks.

use std::cell::OnceCell;

use serde_json::Value;

use super::files;
use super::frame::Frame;
use crate::context::Context;
use crate::permission::{Arguments, Rule, Ruleset};
use crate::tool::{Prepared, Subject, Way};
use crate::toolset::is_about_files;

/// The arguments of one form of a call.
pub(super) struct Given<'a> {
    frame: &'a Frame<'a>,
    prepared: &'a dyn Prepared,
    text: &'a str,
    cx: &'a Context,
    rules: &'a Ruleset,
    parsed: OnceCell<Value>,
    paths: OnceCell<Vec<Subject>>,
    ways: OnceCell<Vec<Way>>,
}

impl<'a> Given<'a> {
    /// Those of `prepared`, which was sent as `text`, as `rules` look at them.
    pub(super) fn new(
        frame: &'a Frame<'a>,
        prepared: &'a dyn Prepared,
        text: &'a str,
        cx: &'a Context,
        rules: &'a Ruleset,
    ) -> Self {
        let (parsed, paths, ways) = Default::default();
        Self { frame, prepared, text, cx, rules, parsed, paths, ways }
    }

    /// The ways on which the rules mean a file.
    pub(super) fn ways(&self) -> &[Way] {
        self.ways.get_or_init(|| files::ways(self.frame.session, self.rules))
    }
}

impl Arguments for Given<'_> {
    fn value(&self, name: &str) -> Option<Value> {
        let parse = || serde_json::from_str(self.text).unwrap_or_default();
        self.frame.argument(self.parsed.get_or_init(parse), name)
    }

    fn paths(&self) -> &[Subject] {
        self.paths.get_or_init(|| {
            let mut paths = self.prepared.paths(self.cx);
            paths.iter_mut().for_each(|path| path.seen_from(self.ways()));
            paths
        })
    }

    fn is_path(&self, rule: &Rule) -> bool {
        is_about_files(rule, self.frame.core.toolset.everything().iter())
    }
}
