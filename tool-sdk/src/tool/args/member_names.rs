//! Checks the names of an object's members: `patternProperties` and `propertyNames`.

use super::fault::{Fault, FaultKind, Faults, Place};
use super::json::Json;
use super::node::Node;
use super::verify::{Check, Members};

impl Node {
    /// Whether the name matches one of `patternProperties`.
    pub(super) fn matches_name_pattern(&self, name: &str) -> bool {
        self.pattern_properties.iter().any(|(pattern, _)| pattern.is_match(name))
    }

    /// Checks the names of the members, and the values of those whose names match a pattern.
    pub(super) fn check_member_names(
        &self,
        members: Members<'_, '_>,
        place: &Place<'_>,
        faults: &mut Faults,
        check: &Check<'_>,
    ) {
        for (key, member) in members {
            let inner = self.place_of(place, key);
            for (pattern, node) in &self.pattern_properties {
                if pattern.is_match(key) {
                    node.check(member, &inner, faults, check);
                }
            }
            if let Some(names) = &self.property_names {
                let mut found = Faults::default();
                names.check(&Json::String(key.as_ref().into()), &inner, &mut found, check);
                for fault in found.into_iter() {
                    let words = format!("the name of {}", fault.message);
                    faults.push(Fault::new(fault.kind, fault.pointer, words));
                }
            }
        }
    }

    /// Reports a member that neither a property nor a name pattern allows.
    pub(super) fn report_unknown_member(&self, place: &Place<'_>, faults: &mut Faults) {
        let patterns = self.pattern_properties.iter().map(|(pattern, _)| format!("`{pattern}`"));
        let patterns = patterns.collect::<Vec<_>>().join(" or ");
        if patterns.is_empty() {
            return faults.unknown(place, &self.names());
        }
        let words = format_args!("has a name that is not known; names match {patterns}");
        faults.add(FaultKind::Unknown, place, words);
    }
}
