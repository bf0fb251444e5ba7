//! A rule: which events it waits for, its condition, and its actions.
//!
//! **Invariant:** a rule that exists is complete: its expressions are compiled, and its actions are
//! tools with arguments of their schemas.

use std::path::PathBuf;

use serde_json::{Map, Value};
use tool_sdk::event::EventKind;

use super::expression::{EventExpression, EventScope};
use super::template::ArgumentTemplate;

/// How often a rule reacts in a minute, unless it says otherwise.
pub(super) const DEFAULT_PER_MINUTE: u32 = 60;

/// Where a rule is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleScope {
    /// The configuration folder of the user.
    User,
    /// A project, whose folder the user trusts.
    Project,
    /// The program.
    Host,
}

impl RuleScope {
    /// Returns the name of the scope.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Host => "host",
        }
    }
}

/// The place of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RulePlace {
    pub(super) scope: RuleScope,
    pub(super) file: PathBuf,
    /// Counted from 1.
    pub(super) line: usize,
}

/// What a rule waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EventTrigger {
    /// Events of this kind, by its name.
    Kind(&'static str),
    /// Events of this kind that a tool emits.
    Emitted(String),
}

impl EventTrigger {
    /// Parses `failed`, or `emitted:NAME`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Some(name) = text.strip_prefix("emitted:") {
            return (!name.is_empty()).then(|| Self::Emitted(name.to_owned()));
        }
        // No rule can wait for events that were lost.
        let mut kinds = EventKind::NAMES.into_iter().filter(|kind| *kind != "lost");
        kinds.find(|kind| *kind == text).map(Self::Kind)
    }

    /// Whether the trigger fits an event of this kind; `emitted` is the kind that its tool gave it.
    pub(super) fn fits(&self, kind: &str, emitted: Option<&str>) -> bool {
        match self {
            Self::Kind(wanted) => *wanted == kind,
            Self::Emitted(wanted) => emitted == Some(wanted),
        }
    }

    pub(super) fn to_text(&self) -> String {
        match self {
            Self::Kind(kind) => (*kind).to_owned(),
            Self::Emitted(name) => format!("emitted:{name}"),
        }
    }
}

/// One action of a rule: a call of a tool.
#[derive(Debug)]
pub(super) struct RuleAction {
    pub(super) tool: &'static str,
    pub(super) arguments: ArgumentTemplate,
}

/// A rule: event, condition, actions.
#[derive(Debug)]
pub(super) struct EventRule {
    pub(super) name: String,
    pub(super) place: RulePlace,
    pub(super) triggers: Vec<EventTrigger>,
    pub(super) condition: Option<EventExpression>,
    /// How often the rule reacts in a minute.
    pub(super) max_per_minute: u32,
    pub(super) actions: Vec<RuleAction>,
}

impl EventRule {
    /// Whether the rule waits for events of this kind.
    pub(super) fn waits_for(&self, kind: &str, emitted: Option<&str>) -> bool {
        self.triggers.iter().any(|trigger| trigger.fits(kind, emitted))
    }

    /// Whether the condition holds.
    ///
    /// # Errors
    ///
    /// Fails when the condition cannot be evaluated for this event.
    pub(super) fn holds(&self, scope: &EventScope) -> Result<bool, String> {
        self.condition.as_ref().map_or(Ok(true), |condition| condition.holds(scope))
    }

    /// Returns the rule as a person reads it.
    pub(super) fn describe(&self) -> Map<String, Value> {
        let triggers: Vec<String> = self.triggers.iter().map(EventTrigger::to_text).collect();
        let actions: Vec<&str> = self.actions.iter().map(|action| action.tool).collect();
        let mut entry = Map::new();
        entry.insert("name".to_owned(), self.name.clone().into());
        entry.insert("on".to_owned(), triggers.into());
        if let Some(condition) = &self.condition {
            entry.insert("when".to_owned(), condition.source().into());
        }
        entry.insert("actions".to_owned(), actions.into());
        entry.insert("max_per_minute".to_owned(), self.max_per_minute.into());
        entry.insert("scope".to_owned(), self.place.scope.as_str().into());
        entry.insert("file".to_owned(), self.place.file.to_string_lossy().into());
        entry.insert("line".to_owned(), self.place.line.into());
        entry
    }
}
