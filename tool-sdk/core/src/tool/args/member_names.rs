//! Checks the names of an object's members: `patternProperties` and `propertyNames`.

use super::fault::{ArgPath, Fault, FaultKind, Faults};
use super::json::JsonValue;
use super::node::SchemaNode;
use super::validate::{JsonMembers, SchemaValidation};

impl SchemaNode {
    /// Whether the name matches one of `patternProperties`.
    pub(super) fn matches_name_pattern(&self, name: &str) -> bool {
        self.pattern_properties.iter().any(|(pattern, _)| pattern.is_match(name))
    }

    /// Checks the names of the members, and the values of those whose names match a pattern.
    pub(super) fn check_member_names(
        &self,
        members: JsonMembers<'_, '_>,
        place: &ArgPath<'_>,
        faults: &mut Faults,
        check: &SchemaValidation<'_>,
    ) {
        for (key, member) in members {
            let inner = self.member_path(place, key);
            for (pattern, node) in &self.pattern_properties {
                if pattern.is_match(key) {
                    node.check(member, &inner, faults, check);
                }
            }
            if let Some(names) = &self.property_names {
                let mut found = Faults::default();
                names.check(&JsonValue::String(key.as_ref().into()), &inner, &mut found, check);
                for fault in found.into_iter() {
                    let words = format!("the name of {}", fault.message);
                    faults.push(Fault::new(fault.kind, fault.pointer, words));
                }
            }
        }
    }

    /// Reports a member that no property and no name pattern allows.
    pub(super) fn report_unknown_member(&self, place: &ArgPath<'_>, faults: &mut Faults) {
        let patterns = self.pattern_properties.iter().map(|(pattern, _)| format!("`{pattern}`"));
        let patterns = patterns.collect::<Vec<_>>().join(" or ");
        if patterns.is_empty() {
            return faults.push_unknown(place, &self.known_names());
        }
        let words = format_args!("has a name that is not known; names match {patterns}");
        faults.push_at(FaultKind::Unknown, place, words);
    }
}
