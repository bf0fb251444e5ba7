//! Checks arguments whose schema has keywords that only the crate `jsonschema` validates.
//!
//! `jsonschema` alone decides whether arguments are accepted. The native validator words the
//! faults that both find, so that messages read the same for every tool.
//!
//! **Invariant:** no message repeats a value, and none names members of a sensitive argument.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::ArgChecks;
use super::checks::ParameterCheck;
use super::fault::{ArgPath, FaultKind, Faults};
use super::json::JsonValue;
use super::node::SchemaNode;
use crate::schema::{
    ExternalValidator, PathSegment, Schema, SchemaViolation, ViolationKind, find_external_keyword,
    with_local_refs,
};

/// The part of a tool's checks that `jsonschema` makes.
pub(super) struct ExternalCheck {
    validator: ExternalValidator,
    /// The arguments whose contents no message repeats.
    sensitive: Vec<String>,
}

impl ExternalCheck {
    /// Compiles `schema` where it has external keywords.
    ///
    /// A schema that does not compile is reported by [`unsupported`](super::unsupported), and
    /// its tool is not registered.
    pub(super) fn compile(schema: &Map<String, Value>, sensitive: &[String]) -> Option<Self> {
        find_external_keyword(schema)?;
        let validator = ExternalValidator::new(&with_local_refs(schema)).ok()?;
        Some(Self { validator, sensitive: sensitive.to_vec() })
    }

    /// Reports the faults of `arguments`. The native validator has already `found` some of them,
    /// using the same schema, compiled as `root`.
    fn report_faults(
        &self,
        arguments: &Value,
        root: &SchemaNode,
        found: Faults,
        faults: &mut Faults,
    ) {
        let Ok(violations) = self.validator.find_violations(arguments) else {
            let words = "has too many alternatives to check; send less, or less deep";
            return faults.push_at(FaultKind::Constraint, &ArgPath::root(), words);
        };
        let is_worded = !found.is_empty() && violations.iter().any(|it| !it.is_external);
        if is_worded {
            faults.append(found);
        }
        for violation in violations.iter().filter(|it| it.is_external || !is_worded) {
            self.report_violation(violation, &violation.path, Some(root), &ArgPath::root(), faults);
        }
    }

    /// Reports a violation at the end of `path`, which starts at `place` with the schema `node`.
    fn report_violation(
        &self,
        violation: &SchemaViolation,
        path: &[PathSegment],
        node: Option<&SchemaNode>,
        place: &ArgPath<'_>,
        faults: &mut Faults,
    ) {
        match path {
            [PathSegment::Key(key), ..] if place.is_root() && self.sensitive.contains(key) => {
                let place = ArgPath::member(place, key);
                faults.push_at(FaultKind::Constraint, &place, "is not acceptable");
            }
            [PathSegment::Key(key), rest @ ..] => {
                let node = node.and_then(|node| node.property(key));
                self.report_violation(violation, rest, node, &ArgPath::member(place, key), faults);
            }
            [PathSegment::Index(index), rest @ ..] => {
                let node =
                    node.and_then(|node| node.prefix_items.get(*index).or(node.items.as_deref()));
                self.report_violation(violation, rest, node, &ArgPath::item(place, *index), faults);
            }
            [] => report_local(&violation.kind, node, place, faults),
        }
    }
}

fn report_local(
    kind: &ViolationKind,
    node: Option<&SchemaNode>,
    place: &ArgPath<'_>,
    faults: &mut Faults,
) {
    match kind {
        ViolationKind::Missing(name) => {
            faults.push_at(FaultKind::Missing, &ArgPath::member(place, name), "is required");
        }
        ViolationKind::Unknown(names) => {
            let known = node.map(SchemaNode::known_names).unwrap_or_default();
            for name in names {
                let place = ArgPath::member(place, name);
                match known.as_slice() {
                    [] => faults.push_at(FaultKind::Unknown, &place, "is not allowed"),
                    known => faults.push_unknown(&place, known),
                }
            }
        }
        ViolationKind::Other { keyword, message } => {
            let verb = if place.is_root() { "break" } else { "breaks" };
            let words = format_args!("{verb} `{keyword}`: {message}");
            faults.push_at(FaultKind::Constraint, place, words);
        }
    }
}

impl ArgChecks {
    /// Checks all arguments against the schema.
    pub(super) fn check_all(&self, arguments: &JsonValue<'_>, faults: &mut Faults) {
        let Some(external) = &self.external else {
            return self.root.check_all(arguments, &self.targets, faults);
        };
        let mut found = Faults::default();
        self.root.check_all(arguments, &self.targets, &mut found);
        external.report_faults(&arguments.to_value(), &self.root, found, faults);
    }

    /// Checks the value of the argument `name`.
    pub(super) fn check_argument(&self, name: &str, value: &JsonValue<'_>, faults: &mut Faults) {
        let Some(node) = self.root.property(name) else { return };
        let Some(external) = &self.external else {
            return node.check_argument(name, value, &self.targets, faults);
        };
        let mut found = Faults::default();
        node.check_argument(name, value, &self.targets, &mut found);
        let arguments = Value::Object(Map::from_iter([(name.to_owned(), value.to_value())]));
        external.report_faults(&arguments, &self.root, found, faults);
    }

    /// Has `jsonschema` validate the arguments where `schema` has external keywords.
    pub(super) fn with_external_check(mut self, schema: &Schema, sensitive: &[String]) -> Self {
        let mut schema = Cow::Borrowed(schema.as_map());
        if !self.parameters.is_empty() {
            // Each argument is checked separately, so the other required ones are absent.
            schema.to_mut().shift_remove("required");
        }
        self.external = ExternalCheck::compile(&schema, sensitive);
        if self.external.is_some() {
            self.parameters.iter_mut().for_each(ParameterCheck::require_whole_schema);
        }
        self
    }
}
