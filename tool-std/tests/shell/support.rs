//! A judge as a tool would be one: rules over what is understood.

use tool_sdk::Pattern;
use tool_std::shell::{Simple, Understood, understand};

/// What becomes of a script; a stricter verdict is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Allow,
    Ask,
    Deny,
}

pub(crate) struct Rules {
    pub(crate) allow: Vec<Pattern>,
    pub(crate) deny: Vec<Pattern>,
}

impl Rules {
    pub(crate) fn new(allow: &[&str], deny: &[&str]) -> Self {
        let patterns = |texts: &[&str]| texts.iter().map(|&text| Pattern::from(text)).collect();
        Self { allow: patterns(allow), deny: patterns(deny) }
    }

    pub(crate) fn judge(&self, script: &Understood) -> Verdict {
        if script.commands.iter().any(|simple| self.forbids(simple)) {
            return Verdict::Deny;
        }
        let is_open = script.opaque.is_some() || !script.writes.is_empty();
        match is_open || script.commands.iter().any(|simple| !self.permits(simple)) {
            true => Verdict::Ask,
            false => Verdict::Allow,
        }
    }

    pub(crate) fn script(&self, script: &str) -> Verdict {
        self.judge(&understand(script))
    }

    fn forbids(&self, simple: &Simple) -> bool {
        let bare = simple.bare();
        let matches = |text: &str| self.deny.iter().any(|rule| rule.matches(text));
        matches(&simple.text) || bare.is_some_and(|bare| matches(&bare))
    }

    fn permits(&self, simple: &Simple) -> bool {
        if simple.hidden {
            return !simple.dangerous;
        }
        if simple.asks.is_some_and(|why| !why.may_be_allowed()) || simple.dangerous {
            return false;
        }
        simple.safe || self.allow.iter().any(|rule| rule.matches(&simple.text))
    }
}

/// A file of the corpus or of another project.
#[macro_export]
macro_rules! fixture {
    ($path:literal) => {
        serde_json::from_str(include_str!(concat!("../fixtures/", $path))).expect("it is JSON")
    };
}

pub(crate) fn texts(script: &Understood) -> Vec<&str> {
    script.commands.iter().map(|simple| &*simple.text).collect()
}
