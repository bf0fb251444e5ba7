//! Validates a value against a compiled schema, and reports all faults.
//!
//! The work is bounded by the size of the value, also for schemas with alternatives: the target
//! of a reference is checked against the same value once, and all steps are counted.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::slice;

use serde_json::{Number, Value};

use super::fault::{ArgPath, Fault, FaultKind, Faults, closest_name};
use super::json::{JsonValue, QuotedExcerpt, shorten_number};
use super::json_number::JsonNumber;
use super::node::{ReferenceTargets, SchemaNode, kind_bits};
use crate::schema::is_f32_limit;

/// The members of an object.
pub(super) type JsonMembers<'m, 'j> = &'m [(Cow<'j, str>, JsonValue<'j>)];

/// The maximum depth of schemas and values together.
const MAX_SCHEMA_DEPTH: usize = 512;

/// The maximum number of cached faults that are repeated for one value.
const MAX_REPEATED_FAULTS: usize = 16;

/// The faults by the addresses of a schema and a value.
type FaultCache = HashMap<(usize, usize), Rc<[Fault]>>;

/// The validation of one value against one schema.
pub(super) struct SchemaValidation<'c> {
    targets: &'c ReferenceTargets,
    /// The number of steps that may still be made.
    remaining_steps: Cell<usize>,
    depth: Cell<usize>,
    /// The results for containers and for targets of references, by address; both are not moved
    /// until the validation ends.
    fault_cache: RefCell<FaultCache>,
}

impl<'c> SchemaValidation<'c> {
    fn new(targets: &'c ReferenceTargets, value: &JsonValue<'_>) -> Self {
        let (remaining_steps, fault_cache) = (Cell::new(step_budget(value)), RefCell::default());
        Self { targets, remaining_steps, depth: Cell::new(0), fault_cache }
    }

    /// Whether the step limit was not reached.
    pub(super) fn has_steps_left(&self) -> bool {
        self.remaining_steps.get() > 0
    }

    /// Returns the target of the reference in `node`.
    pub(super) fn resolve(&self, node: &SchemaNode) -> Option<&'c SchemaNode> {
        self.targets.resolve(node)
    }

    /// Whether `value` matches `node`, without a message.
    pub(super) fn fits(
        &self,
        node: &SchemaNode,
        value: &JsonValue<'_>,
        place: &ArgPath<'_>,
    ) -> bool {
        let mut found = Faults::default();
        node.check(value, place, &mut found, self);
        found.is_empty()
    }

    /// Validates `value` against the target of a reference, once.
    fn validate_reference(
        &self,
        target: &SchemaNode,
        value: &JsonValue<'_>,
        place: &ArgPath<'_>,
        faults: &mut Faults,
    ) {
        if !matches!(value, JsonValue::Array(_) | JsonValue::Object(_)) {
            return target.check(value, place, faults, self);
        }
        let key = (std::ptr::from_ref(target).addr(), std::ptr::from_ref(value).addr());
        let known = self.fault_cache.borrow().get(&key).cloned();
        if let Some(known) = known {
            return known.iter().for_each(|fault| faults.push(fault.clone()));
        }
        let mut found = Faults::default();
        target.check(value, place, &mut found, self);
        let repeated = found.first_faults(MAX_REPEATED_FAULTS).into();
        self.fault_cache.borrow_mut().insert(key, repeated);
        faults.append(found);
    }
}

impl SchemaNode {
    /// Whether the schema accepts `null`.
    pub(super) fn takes_null(&self, targets: &ReferenceTargets) -> bool {
        let check = SchemaValidation::new(targets, &JsonValue::Null);
        check.fits(self, &JsonValue::Null, &ArgPath::root())
    }

    /// Checks all arguments.
    pub(super) fn check_all(
        &self,
        value: &JsonValue<'_>,
        targets: &ReferenceTargets,
        faults: &mut Faults,
    ) {
        self.check_completely(value, &ArgPath::root(), targets, faults);
    }

    /// Checks the value of the argument `name`.
    pub(super) fn check_argument(
        &self,
        name: &str,
        value: &JsonValue<'_>,
        targets: &ReferenceTargets,
        faults: &mut Faults,
    ) {
        let root = ArgPath::root();
        self.check_completely(value, &ArgPath::member(&root, name), targets, faults);
    }

    fn check_completely(
        &self,
        value: &JsonValue<'_>,
        place: &ArgPath<'_>,
        targets: &ReferenceTargets,
        faults: &mut Faults,
    ) {
        let check = SchemaValidation::new(targets, value);
        let before = faults.checkpoint();
        self.check(value, place, faults, &check);
        if !check.has_steps_left() {
            // The faults may only come from the step limit.
            faults.roll_back(before);
            let words = "has too many alternatives to check; send less, or less deep";
            faults.push_at(FaultKind::Constraint, place, words);
        }
    }

    pub(super) fn check(
        &self,
        value: &JsonValue<'_>,
        place: &ArgPath<'_>,
        faults: &mut Faults,
        check: &SchemaValidation<'_>,
    ) {
        if check.depth.get() >= MAX_SCHEMA_DEPTH {
            check.remaining_steps.set(0);
        }
        match check.remaining_steps.get() {
            0 => return,
            left => check.remaining_steps.set(left - 1),
        }
        check.depth.set(check.depth.get() + 1);
        self.check_here(value, place, faults, check);
        check.depth.set(check.depth.get() - 1);
    }

    fn check_here(
        &self,
        value: &JsonValue<'_>,
        place: &ArgPath<'_>,
        faults: &mut Faults,
        check: &SchemaValidation<'_>,
    ) {
        if let Some(target) = check.resolve(self) {
            check.validate_reference(target, value, place, faults);
        }
        if self.rejects_all || self.types & kind_bits(value) == 0 {
            return self.report_wrong_type(value, place, faults);
        }
        self.check_fixed(value, place, faults);
        match value {
            JsonValue::Number(number) => self.check_number(number, place, faults),
            JsonValue::String(text) => self.check_text(text, place, faults),
            JsonValue::Array(items) => self.check_items(items, place, faults, check),
            JsonValue::Object(members) => self.check_members(members, value, place, faults, check),
            JsonValue::Null | JsonValue::Bool(_) => {}
        }
        self.check_alternatives(value, place, faults, check);
    }

    fn report_wrong_type(&self, value: &JsonValue<'_>, place: &ArgPath<'_>, faults: &mut Faults) {
        let said = self.describe_value(value);
        let mut add = |words: fmt::Arguments<'_>| faults.push_at(FaultKind::Type, place, words);
        let worded = self.words_with_article.as_str();
        match value {
            _ if self.rejects_all => add(format_args!("{said}, but must be left out")),
            JsonValue::Null if self.is_optional => {
                add(format_args!("{said}, but must be {worded}; leave it out instead"));
            }
            _ => add(format_args!("{said}, but must be {worded}")),
        }
    }

    /// Describes a value: "is 9000", or what can be said of a sensitive one.
    fn describe_value<'v>(&self, value: &'v JsonValue<'v>) -> ValueDescription<'v> {
        ValueDescription { value, is_sensitive: self.is_sensitive }
    }

    fn check_fixed(&self, value: &JsonValue<'_>, place: &ArgPath<'_>, faults: &mut Faults) {
        let (all, one) = (self.enumeration.as_deref(), self.constant.as_ref().map(slice::from_ref));
        let fits = |allowed: &[Value]| allowed.iter().any(|it| value.equals_value(it));
        if all.is_none_or(fits) && one.is_none_or(fits) {
            return;
        }
        let allowed = one.or(all).unwrap_or_default();
        let close = match value {
            JsonValue::String(text) if !self.is_sensitive => {
                let known: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
                closest_name(text, &known).map(|close| format!("; did you mean {close:?}?"))
            }
            _ => None,
        };
        faults.push_at(
            FaultKind::Constraint,
            place,
            format_args!(
                "{}, but must be {}{}",
                self.describe_value(value),
                self.words_with_article.as_str(),
                close.unwrap_or_default()
            ),
        );
    }

    fn check_number(&self, number: &JsonNumber<'_>, place: &ArgPath<'_>, faults: &mut Faults) {
        let value = Magnitude::new(number.as_i128(), number.as_f64());
        let fits = self.minimum.as_ref().is_none_or(|low| !value.is_below(&low.into()))
            && self.maximum.as_ref().is_none_or(|high| !Magnitude::from(high).is_below(&value))
            && self
                .exclusive_minimum
                .as_ref()
                .is_none_or(|low| Magnitude::from(low).is_below(&value))
            && self.exclusive_maximum.as_ref().is_none_or(|high| value.is_below(&high.into()));
        if !fits {
            let value = JsonValue::Number(number.clone());
            let said = self.describe_value(&value);
            return faults.push_at(
                FaultKind::Constraint,
                place,
                format_args!("{said}, but must be {}", self.describe_range(number.as_f64())),
            );
        }
        if let (Some(step), Some(number)) = (self.multiple_of, number.as_f64()) {
            let steps = number / step;
            if (steps - steps.round()).abs() > 1e-9 {
                faults.push_at(
                    FaultKind::Constraint,
                    place,
                    format_args!("must be a multiple of {step}"),
                );
            }
        }
    }

    /// Describes the bounds that `value` violates. The limits of `f32` are told by its name.
    fn describe_range(&self, value: Option<f64>) -> String {
        let is_limit = |bound: &&Number| bound.as_f64().is_some_and(is_f32_limit);
        let is_limited = self.minimum.iter().chain(&self.maximum).any(|bound| is_limit(&bound));
        if is_limited && value.is_none_or(|value| value.abs() > f64::from(f32::MAX)) {
            return "a number of 32 bits".to_owned();
        }
        // Of two bounds on one side, the narrower one is enough.
        let at_least = |low: &&Number, above: &Option<Number>| {
            above.as_ref().is_none_or(|it| Magnitude::from(it).is_below(&(*low).into()))
        };
        let at_most = |high: &&Number, below: &Option<Number>| {
            below.as_ref().is_none_or(|it| Magnitude::from(*high).is_below(&it.into()))
        };
        let minimum = self.minimum.as_ref().filter(|low| !is_limit(low));
        let minimum = minimum.filter(|low| at_least(low, &self.exclusive_minimum));
        let maximum = self.maximum.as_ref().filter(|high| !is_limit(high));
        let maximum = maximum.filter(|high| at_most(high, &self.exclusive_maximum));
        let above = self.exclusive_minimum.as_ref().filter(|_| minimum.is_none());
        let below = self.exclusive_maximum.as_ref().filter(|_| maximum.is_none());
        if let (Some(low), Some(high)) = (minimum, maximum) {
            return match low == high {
                true => low.to_string(),
                false => format!("between {low} and {high}"),
            };
        }
        let bounds = [
            ("at least", minimum),
            ("more than", above),
            ("at most", maximum),
            ("less than", below),
        ];
        let bounds = bounds.into_iter().filter_map(|(words, bound)| Some((words, bound?)));
        bounds.map(|(words, bound)| format!("{words} {bound}")).collect::<Vec<_>>().join(" and ")
    }

    fn check_text(&self, text: &str, place: &ArgPath<'_>, faults: &mut Faults) {
        if self.min_length.is_some() || self.max_length.is_some() {
            let length = text.chars().count() as u64;
            self.check_count(length, self.min_length, self.max_length, "character", place, faults);
        }
        if let Some(pattern) = &self.pattern
            && !pattern.is_match(text)
        {
            let value = JsonValue::String(text.into());
            let said = self.describe_value(&value);
            faults.push_at(
                FaultKind::Constraint,
                place,
                format_args!("{said}, but must match the pattern {}", pattern.as_str()),
            );
        }
    }

    fn check_count(
        &self,
        count: u64,
        min: Option<u64>,
        max: Option<u64>,
        what: &str,
        place: &ArgPath<'_>,
        faults: &mut Faults,
    ) {
        if min.is_none_or(|min| count >= min) && max.is_none_or(|max| count <= max) {
            return;
        }
        let must = match (min, max) {
            (Some(min), Some(max)) if min == max => format!("exactly {min}"),
            (Some(min), Some(max)) => format!("between {min} and {max}"),
            (Some(min), None) => format!("at least {min}"),
            (None, Some(max)) => format!("at most {max}"),
            (None, None) => return,
        };
        let plural = if count == 1 { "" } else { "s" };
        faults.push_at(
            FaultKind::Constraint,
            place,
            format_args!("has {count} {what}{plural}, but must have {must}"),
        );
    }

    fn check_items(
        &self,
        items: &[JsonValue<'_>],
        place: &ArgPath<'_>,
        faults: &mut Faults,
        check: &SchemaValidation<'_>,
    ) {
        let count = items.len() as u64;
        self.check_count(count, self.min_items, self.max_items, "item", place, faults);
        for (index, item) in items.iter().enumerate() {
            let place = ArgPath::item(place, index);
            match (self.prefix_items.get(index), &self.items) {
                (Some(node), _) => node.check(item, &place, faults, check),
                (None, Some(node)) => node.check(item, &place, faults, check),
                (None, None) if self.no_more_items => {
                    faults.push_at(FaultKind::Constraint, &place, "is one item too many");
                    break;
                }
                (None, None) => break,
            }
        }
        if self.unique_items {
            let mut seen = std::collections::HashSet::new();
            let text = |item: &JsonValue<'_>| {
                let mut value = item.to_value();
                value.sort_all_objects();
                value.to_string()
            };
            if !items.iter().all(|item| seen.insert(text(item))) {
                faults.push_at(FaultKind::Constraint, place, "must not hold the same item twice");
            }
        }
    }

    fn check_members(
        &self,
        members: JsonMembers<'_, '_>,
        value: &JsonValue<'_>,
        place: &ArgPath<'_>,
        faults: &mut Faults,
        check: &SchemaValidation<'_>,
    ) {
        let count = members.len() as u64;
        self.check_count(count, self.min_properties, self.max_properties, "member", place, faults);
        for (key, member) in members {
            let place = self.member_path(place, key);
            match (self.property(key), &self.additional) {
                (Some(node), _) => node.check(member, &place, faults, check),
                (None, _) if self.matches_name_pattern(key) => {}
                (None, Some(node)) => node.check(member, &place, faults, check),
                (None, None) if self.is_closed => self.report_unknown_member(&place, faults),
                (None, None) => {}
            }
        }
        for (name, required, node) in &self.properties {
            if *required && value.member(name).is_none() {
                node.report_missing(name, self.description(name), place, faults);
            }
        }
        for name in &self.required_only {
            if value.member(name).is_none() {
                // The member is described elsewhere, or not at all.
                faults.push_at(FaultKind::Missing, &ArgPath::member(place, name), "is required");
            }
        }
        self.check_member_names(members, place, faults, check);
    }

    /// Returns the location of a member. In a sensitive value, a name that the schema does not
    /// know is part of the value.
    pub(super) fn member_path<'p>(&self, place: &'p ArgPath<'p>, key: &'p str) -> ArgPath<'p> {
        match self.is_sensitive && self.property(key).is_none() {
            true => ArgPath::hidden_member(place),
            false => ArgPath::member(place, key),
        }
    }

    /// Reports a missing argument `name` of this schema.
    fn report_missing(
        &self,
        name: &str,
        description: &str,
        place: &ArgPath<'_>,
        faults: &mut Faults,
    ) {
        let place = ArgPath::member(place, name);
        let words = if self.type_words.is_empty() { "any value" } else { &self.type_words };
        let colon = if description.is_empty() { "" } else { ": " };
        faults.push_at(
            FaultKind::Missing,
            &place,
            format_args!("is required ({words}){colon}{description}"),
        );
    }

    /// Reports that the argument `name` is missing.
    pub(super) fn report_missing_argument(&self, name: &str, faults: &mut Faults) {
        if let Some(node) = self.property(name) {
            node.report_missing(name, self.description(name), &ArgPath::root(), faults);
        }
    }
}

/// The description of a value.
pub(super) struct ValueDescription<'v> {
    pub(super) value: &'v JsonValue<'v>,
    pub(super) is_sensitive: bool,
}

impl fmt::Display for ValueDescription<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("is ")?;
        match self.value {
            JsonValue::Bool(value) if !self.is_sensitive => {
                f.write_str(if *value { "true" } else { "false" })
            }
            JsonValue::Number(number) if !self.is_sensitive => {
                f.write_str(&shorten_number(number.as_str()))
            }
            JsonValue::String(text) if !self.is_sensitive => {
                f.write_str("the string ")?;
                fmt::Display::fmt(&QuotedExcerpt(text), f)
            }
            other => f.write_str(other.kind_name()),
        }
    }
}

/// The size of a number: exact for whole numbers, approximate for others.
struct Magnitude {
    exact: Option<i128>,
    approximate: Option<f64>,
}

impl Magnitude {
    fn new(exact: Option<i128>, approximate: Option<f64>) -> Self {
        Self { exact, approximate }
    }

    fn is_below(&self, other: &Self) -> bool {
        match (self.exact, other.exact) {
            (Some(a), Some(b)) => a < b,
            _ => self.approximate.zip(other.approximate).is_some_and(|(a, b)| a < b),
        }
    }
}

impl From<&Number> for Magnitude {
    fn from(bound: &Number) -> Self {
        Self::new(bound.as_i128(), bound.as_f64())
    }
}

/// Returns the number of steps for `value`: linear in its size, with room for alternatives.
fn step_budget(value: &JsonValue<'_>) -> usize {
    fn size(value: &JsonValue<'_>) -> usize {
        match value {
            JsonValue::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
            JsonValue::Object(members) => {
                1 + members.iter().map(|(_, value)| size(value)).sum::<usize>()
            }
            _ => 1,
        }
    }
    (1 << 14) + size(value).saturating_mul(64)
}
