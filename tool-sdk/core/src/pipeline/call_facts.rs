//! What a prepared call reports about itself, as data, for a program that decides about the call
//! elsewhere.
//!
//! A worker [describes](crate::Pipeline::describe) a call, and the host decides from the facts as it
//! does from those of its own tools.
//!
//! **Invariant:** the facts are those of the value that the worker decoded; nothing here decides.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::context::Context;
use crate::error::{ErrorKind, ToolError};
use crate::permission::Fingerprint;
use crate::tool::{PreparedCall, Resource};

/// What a prepared call reports about itself: what its [`PreparedCall`] answers, as data.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallFacts {
    /// The fingerprint of the call.
    pub fingerprint: Fingerprint,
    /// A one-line summary for people.
    pub summary: Option<String>,
    /// What the call touches; `None` when the tool does not name it.
    #[serde(with = "resource_records")]
    pub resources: Option<Vec<Resource>>,
    /// The paths among the arguments.
    #[serde(with = "resource_records")]
    pub paths: Option<Vec<Resource>>,
    /// Whether the tool requires an approval; `None` leaves that to the rules.
    pub approval_required: Option<bool>,
    /// The patterns that an "always" answer could grant.
    pub suggestions: Vec<String>,
    /// Whether only these patterns are offered.
    pub restricts_suggestions: bool,
    /// Whether the tool decides itself which calls a pattern covers.
    pub judges_patterns: bool,
    /// Whether the call is so dangerous that no "always" is offered.
    pub is_dangerous: bool,
    /// What can be shown before the call runs, or why it would fail.
    pub preview: Result<Option<Value>, FailureRecord>,
    /// The key by which calls of the tool are serialised.
    pub concurrency_key: Option<String>,
}

/// An error of a tool as data, without its source.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FailureRecord {
    /// The kind.
    pub kind: ErrorKind,
    /// The message.
    pub message: String,
    /// What to do instead.
    pub hint: Option<String>,
}

impl From<&ToolError> for FailureRecord {
    fn from(error: &ToolError) -> Self {
        let hint = error.suggestion().map(str::to_owned);
        Self { kind: error.kind(), message: error.message().to_owned(), hint }
    }
}

impl From<FailureRecord> for ToolError {
    fn from(record: FailureRecord) -> Self {
        let error = Self::new(record.kind, record.message);
        match record.hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

impl CallFacts {
    /// Asks a prepared call for everything it reports.
    pub(crate) fn collect(
        prepared: &dyn PreparedCall,
        cx: &Context,
        fingerprint: Fingerprint,
        summary: Option<String>,
    ) -> Self {
        let suggestions = prepared.suggestions();
        Self {
            fingerprint,
            summary,
            resources: prepared.resources(cx),
            paths: Some(prepared.paths(cx)),
            approval_required: prepared.approval_required(cx),
            judges_patterns: suggestions.iter().any(|it| prepared.covered_by(it).is_some()),
            suggestions,
            restricts_suggestions: prepared.restricts_suggestions(),
            is_dangerous: prepared.is_dangerous(),
            preview: prepared.preview(cx).map_err(|error| FailureRecord::from(&error)),
            concurrency_key: prepared.concurrency_key(),
        }
    }

    /// Returns the facts as those of a tool whose permissions begin with `prefix`, so that a rule
    /// or a sandbox of the deciding program never allows what another program does. Its rules that
    /// deny or ask match under the plain permission as well.
    #[doc(hidden)]
    #[must_use]
    pub fn with_permission_prefix(mut self, prefix: &str, permission: &str) -> Self {
        for resources in [&mut self.resources, &mut self.paths].into_iter().flatten() {
            let plain: Vec<Resource> = std::mem::take(resources);
            for resource in plain {
                let own = resource.permission().unwrap_or(permission).to_owned();
                let prefixed: Option<Cow<'static, str>> =
                    resource.permission().map(|own| format!("{prefix}{own}").into());
                let denied = resource.clone().with_permission(own).deny_rules_only();
                let resource = resource.without_confinement();
                resources.push(match prefixed {
                    Some(permission) => resource.with_permission(permission),
                    None => resource,
                });
                resources.push(denied);
            }
        }
        self
    }
}

/// Serializes resources whole; a [`Resource`] alone serializes as the text that people read.
mod resource_records {
    use super::{Deserialize, Deserializer, Resource, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct ResourceRecord(#[serde(with = "Resource")] Resource);

    #[expect(clippy::ref_option, reason = "serde calls it with a reference")]
    pub(super) fn serialize<S: Serializer>(
        resources: &Option<Vec<Resource>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let records = |it: &Vec<Resource>| -> Vec<ResourceRecord> {
            it.iter().cloned().map(ResourceRecord).collect()
        };
        resources.as_ref().map(records).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<Resource>>, D::Error> {
        let records = Option::<Vec<ResourceRecord>>::deserialize(deserializer)?;
        Ok(records.map(|it| it.into_iter().map(|ResourceRecord(resource)| resource).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::risk::RiskClass;

    #[test]
    fn resources_survive_the_way_to_another_program() {
        let gone = ToolError::not_found("there is no `shed`").hint("look elsewhere");
        let resource = Resource::path("src/a", "/srv/src/a")
            .with_permission("edit")
            .with_class(RiskClass::Write)
            .opaque()
            .requires_approval()
            .dangerous()
            .with_name("domain:docs.rs")
            .with_forbidden_spelling("a")
            .with_reason("because")
            .with_suggestions(["src/*"])
            .with_refusal(&gone)
            .with_writable_folders(["/srv"]);
        let facts = CallFacts {
            fingerprint: serde_json::from_str("\"00\"").unwrap(),
            summary: None,
            resources: Some(vec![resource.clone()]),
            paths: None,
            approval_required: Some(true),
            suggestions: Vec::new(),
            restricts_suggestions: false,
            judges_patterns: false,
            is_dangerous: false,
            preview: Err(FailureRecord::from(&gone)),
            concurrency_key: None,
        };
        let text = serde_json::to_string(&facts).unwrap();
        let read: CallFacts = serde_json::from_str(&text).unwrap();
        assert_eq!(read.resources, Some(vec![resource]));
        assert_eq!(ToolError::from(read.preview.unwrap_err()).to_string(), gone.to_string());
    }

    #[test]
    fn a_permission_of_the_host_never_allows_what_a_worker_does() {
        let facts = CallFacts {
            fingerprint: serde_json::from_str("\"00\"").unwrap(),
            summary: None,
            resources: Some(vec![
                Resource::new("a"),
                Resource::new("b").with_permission("edit").confined_by_sandbox(),
            ]),
            paths: None,
            approval_required: None,
            suggestions: Vec::new(),
            restricts_suggestions: false,
            judges_patterns: false,
            is_dangerous: false,
            preview: Ok(None),
            concurrency_key: None,
        };
        let facts = facts.with_permission_prefix("remote__ns__", "run");
        let resources = facts.resources.unwrap();
        let permissions: Vec<_> = resources.iter().map(Resource::permission).collect();
        assert_eq!(permissions, [None, Some("run"), Some("remote__ns__edit"), Some("edit")]);
        assert!(resources[1].has_deny_rules_only() && resources[3].has_deny_rules_only());
        assert!(!resources[2].is_confined_by_sandbox());
    }
}
