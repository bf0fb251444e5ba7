//! A value against a compiled schema: every fault, in words.
//!
//! The work is bounded by the size of the value, also for schemas with alternatives: what a
//! reference stands for is held against the same value once, and all steps are counted.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::slice;

use serde_json::{Number, Value};

use super::fault::{Fault, FaultKind, Faults, Place, closest};
use super::json::{Brief, Json, shortened};
use super::node::{Node, Targets, kind_of};
use super::numeral::Numeral;

/// The members of an object.
pub(super) type Members<'m, 'j> = &'m [(Cow<'j, str>, Json<'j>)];

/// So deep may schemas and values lead into each other.
const MAX_STEPS_DOWN: usize = 512;

/// So many faults of one value are told again where it is asked for again.
const MAX_REPEATED: usize = 16;

/// What was found, by the addresses of a schema and of a value.
type Known = HashMap<(usize, usize), Rc<[Fault]>>;

/// One value on its way through one schema.
pub(super) struct Check<'c> {
    targets: &'c Targets,
    /// How many more steps may be done.
    left: Cell<usize>,
    depth: Cell<usize>,
    /// What is known of lists and objects and of what references stand for: both stay where they
    /// are until the check ends.
    known: RefCell<Known>,
}

impl<'c> Check<'c> {
    fn new(targets: &'c Targets, value: &Json<'_>) -> Self {
        let (left, known) = (Cell::new(steps(value)), RefCell::default());
        Self { targets, left, depth: Cell::new(0), known }
    }

    /// Whether all has been looked at so far.
    pub(super) fn has_left(&self) -> bool {
        self.left.get() > 0
    }

    /// What `node` refers to.
    pub(super) fn target(&self, node: &Node) -> Option<&'c Node> {
        self.targets.of(node)
    }

    /// Whether `value` fits `node`, without words.
    pub(super) fn fits(&self, node: &Node, value: &Json<'_>, place: &Place<'_>) -> bool {
        let mut found = Faults::default();
        node.check(value, place, &mut found, self);
        found.is_empty()
    }

    /// Checks `value` against what a reference stands for, once.
    fn follow(&self, target: &Node, value: &Json<'_>, place: &Place<'_>, faults: &mut Faults) {
        if !matches!(value, Json::Array(_) | Json::Object(_)) {
            return target.check(value, place, faults, self);
        }
        let key = (std::ptr::from_ref(target).addr(), std::ptr::from_ref(value).addr());
        let known = self.known.borrow().get(&key).cloned();
        if let Some(known) = known {
            return known.iter().for_each(|fault| faults.push(fault.clone()));
        }
        let mut found = Faults::default();
        target.check(value, place, &mut found, self);
        let repeated = found.first(MAX_REPEATED).into();
        self.known.borrow_mut().insert(key, repeated);
        faults.append(found);
    }
}

impl Node {
    /// Whether `null` is a value of its own here.
    pub(super) fn takes_null(&self, targets: &Targets) -> bool {
        let check = Check::new(targets, &Json::Null);
        check.fits(self, &Json::Null, &Place::root())
    }

    /// Checks the arguments as a whole.
    pub(super) fn check_all(&self, value: &Json<'_>, targets: &Targets, faults: &mut Faults) {
        self.check_to_the_end(value, &Place::root(), targets, faults);
    }

    /// Checks the value of the argument `name`.
    pub(super) fn check_argument(
        &self,
        name: &str,
        value: &Json<'_>,
        targets: &Targets,
        faults: &mut Faults,
    ) {
        let root = Place::root();
        self.check_to_the_end(value, &Place::key_of(&root, name), targets, faults);
    }

    fn check_to_the_end(
        &self,
        value: &Json<'_>,
        place: &Place<'_>,
        targets: &Targets,
        faults: &mut Faults,
    ) {
        let check = Check::new(targets, value);
        let before = faults.mark();
        self.check(value, place, faults, &check);
        if !check.has_left() {
            // What was found may come from having stopped.
            faults.back_to(before);
            let words = "has too many alternatives to check; send less, or less deep";
            faults.add(FaultKind::Constraint, place, words);
        }
    }

    pub(super) fn check(
        &self,
        value: &Json<'_>,
        place: &Place<'_>,
        faults: &mut Faults,
        check: &Check<'_>,
    ) {
        if check.depth.get() >= MAX_STEPS_DOWN {
            check.left.set(0);
        }
        match check.left.get() {
            0 => return,
            left => check.left.set(left - 1),
        }
        check.depth.set(check.depth.get() + 1);
        self.check_here(value, place, faults, check);
        check.depth.set(check.depth.get() - 1);
    }

    fn check_here(
        &self,
        value: &Json<'_>,
        place: &Place<'_>,
        faults: &mut Faults,
        check: &Check<'_>,
    ) {
        if let Some(target) = check.target(self) {
            check.follow(target, value, place, faults);
        }
        if self.never || self.types & kind_of(value) == 0 {
            return self.wrong_type(value, place, faults);
        }
        self.check_fixed(value, place, faults);
        match value {
            Json::Number(number) => self.check_number(number, place, faults),
            Json::String(text) => self.check_text(text, place, faults),
            Json::Array(items) => self.check_items(items, place, faults, check),
            Json::Object(members) => self.check_members(members, value, place, faults, check),
            Json::Null | Json::Bool(_) => {}
        }
        self.check_alternatives(value, place, faults, check);
    }

    fn wrong_type(&self, value: &Json<'_>, place: &Place<'_>, faults: &mut Faults) {
        let said = self.said(value);
        let mut add = |words: fmt::Arguments<'_>| faults.add(FaultKind::Type, place, words);
        let worded = self.worded.as_str();
        match value {
            _ if self.never => add(format_args!("{said}, but must be left out")),
            Json::Null if self.optional => {
                add(format_args!("{said}, but must be {worded}; leave it out instead"));
            }
            _ => add(format_args!("{said}, but must be {worded}")),
        }
    }

    /// "is 9000", or what can be said of a value that must not be repeated.
    fn said<'v>(&self, value: &'v Json<'v>) -> Said<'v> {
        Said { value, sensitive: self.sensitive }
    }

    fn check_fixed(&self, value: &Json<'_>, place: &Place<'_>, faults: &mut Faults) {
        let (all, one) = (self.enumeration.as_deref(), self.constant.as_ref().map(slice::from_ref));
        let fits = |allowed: &[Value]| allowed.iter().any(|it| value.equals(it));
        if all.is_none_or(fits) && one.is_none_or(fits) {
            return;
        }
        let allowed = one.or(all).unwrap_or_default();
        let close = match value {
            Json::String(text) if !self.sensitive => {
                let known: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
                closest(text, &known).map(|close| format!("; did you mean {close:?}?"))
            }
            _ => None,
        };
        faults.add(
            FaultKind::Constraint,
            place,
            format_args!(
                "{}, but must be {}{}",
                self.said(value),
                self.worded.as_str(),
                close.unwrap_or_default()
            ),
        );
    }

    fn check_number(&self, number: &Numeral<'_>, place: &Place<'_>, faults: &mut Faults) {
        let value = Magnitude::of(number.as_i128(), number.as_f64());
        let fits = self.minimum.as_ref().is_none_or(|low| !value.is_below(&low.into()))
            && self.maximum.as_ref().is_none_or(|high| !Magnitude::from(high).is_below(&value))
            && self.above.as_ref().is_none_or(|low| Magnitude::from(low).is_below(&value))
            && self.below.as_ref().is_none_or(|high| value.is_below(&high.into()));
        if !fits {
            let value = Json::Number(number.clone());
            let said = self.said(&value);
            return faults.add(
                FaultKind::Constraint,
                place,
                format_args!("{said}, but must be {}", self.range_words()),
            );
        }
        if let (Some(step), Some(number)) = (self.multiple_of, number.as_f64()) {
            let steps = number / step;
            if (steps - steps.round()).abs() > 1e-9 {
                faults.add(
                    FaultKind::Constraint,
                    place,
                    format_args!("must be a multiple of {step}"),
                );
            }
        }
    }

    fn range_words(&self) -> String {
        // Of two bounds on one side, the narrower says all.
        let at_least = |low: &&Number, above: &Option<Number>| {
            above.as_ref().is_none_or(|it| Magnitude::from(it).is_below(&(*low).into()))
        };
        let at_most = |high: &&Number, below: &Option<Number>| {
            below.as_ref().is_none_or(|it| Magnitude::from(*high).is_below(&it.into()))
        };
        let minimum = self.minimum.as_ref().filter(|low| at_least(low, &self.above));
        let maximum = self.maximum.as_ref().filter(|high| at_most(high, &self.below));
        let above = self.above.as_ref().filter(|_| minimum.is_none());
        let below = self.below.as_ref().filter(|_| maximum.is_none());
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

    fn check_text(&self, text: &str, place: &Place<'_>, faults: &mut Faults) {
        if self.min_length.is_some() || self.max_length.is_some() {
            let length = text.chars().count() as u64;
            self.check_count(length, self.min_length, self.max_length, "character", place, faults);
        }
        if let Some(pattern) = &self.pattern
            && !pattern.is_match(text)
        {
            let value = Json::String(text.into());
            let said = self.said(&value);
            faults.add(
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
        place: &Place<'_>,
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
        faults.add(
            FaultKind::Constraint,
            place,
            format_args!("has {count} {what}{plural}, but must have {must}"),
        );
    }

    fn check_items(
        &self,
        items: &[Json<'_>],
        place: &Place<'_>,
        faults: &mut Faults,
        check: &Check<'_>,
    ) {
        let count = items.len() as u64;
        self.check_count(count, self.min_items, self.max_items, "item", place, faults);
        for (index, item) in items.iter().enumerate() {
            let place = Place::index_of(place, index);
            match (self.prefix.get(index), &self.items) {
                (Some(node), _) => node.check(item, &place, faults, check),
                (None, Some(node)) => node.check(item, &place, faults, check),
                (None, None) if self.no_more_items => {
                    faults.add(FaultKind::Constraint, &place, "is one item too many");
                    break;
                }
                (None, None) => break,
            }
        }
        if self.unique {
            let mut seen = std::collections::HashSet::new();
            let text = |item: &Json<'_>| {
                let mut value = item.to_value();
                value.sort_all_objects();
                value.to_string()
            };
            if !items.iter().all(|item| seen.insert(text(item))) {
                faults.add(FaultKind::Constraint, place, "must not hold the same item twice");
            }
        }
    }

    fn check_members(
        &self,
        members: Members<'_, '_>,
        value: &Json<'_>,
        place: &Place<'_>,
        faults: &mut Faults,
        check: &Check<'_>,
    ) {
        let count = members.len() as u64;
        self.check_count(count, self.min_properties, self.max_properties, "member", place, faults);
        for (key, member) in members {
            let place = self.place_of(place, key);
            match (self.property(key), &self.additional) {
                (Some(node), _) => node.check(member, &place, faults, check),
                (None, _) if self.matches_name_pattern(key) => {}
                (None, Some(node)) => node.check(member, &place, faults, check),
                (None, None) if self.closed => self.report_unknown_member(&place, faults),
                (None, None) => {}
            }
        }
        for (name, required, node) in &self.properties {
            if *required && value.member(name).is_none() {
                node.missing(name, self.description(name), place, faults);
            }
        }
        for name in &self.required_only {
            if value.member(name).is_none() {
                // What it is stands elsewhere, if anywhere.
                faults.add(FaultKind::Missing, &Place::key_of(place, name), "is required");
            }
        }
        self.check_member_names(members, place, faults, check);
    }

    /// The place of a member: where nothing may be repeated, a name that the schema does not know
    /// is part of the value.
    pub(super) fn place_of<'p>(&self, place: &'p Place<'p>, key: &'p str) -> Place<'p> {
        match self.sensitive && self.property(key).is_none() {
            true => Place::secret_of(place),
            false => Place::key_of(place, key),
        }
    }

    /// Reports that the argument `name` of this type is absent.
    fn missing(&self, name: &str, description: &str, place: &Place<'_>, faults: &mut Faults) {
        let place = Place::key_of(place, name);
        let words = if self.words.is_empty() { "any value" } else { &self.words };
        let colon = if description.is_empty() { "" } else { ": " };
        faults.add(
            FaultKind::Missing,
            &place,
            format_args!("is required ({words}){colon}{description}"),
        );
    }

    /// Reports that the argument `name` is absent.
    pub(super) fn missing_argument(&self, name: &str, faults: &mut Faults) {
        if let Some(node) = self.property(name) {
            node.missing(name, self.description(name), &Place::root(), faults);
        }
    }
}

/// What a value is, in words.
pub(super) struct Said<'v> {
    pub(super) value: &'v Json<'v>,
    pub(super) sensitive: bool,
}

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("is ")?;
        match self.value {
            Json::Bool(value) if !self.sensitive => {
                f.write_str(if *value { "true" } else { "false" })
            }
            Json::Number(number) if !self.sensitive => f.write_str(&shortened(number.as_str())),
            Json::String(text) if !self.sensitive => {
                f.write_str("the string ")?;
                fmt::Display::fmt(&Brief(text), f)
            }
            other => f.write_str(other.kind()),
        }
    }
}

/// How large a number is: exactly where it is whole, and about that everywhere.
struct Magnitude {
    exactly: Option<i128>,
    about: Option<f64>,
}

impl Magnitude {
    fn of(exactly: Option<i128>, about: Option<f64>) -> Self {
        Self { exactly, about }
    }

    fn is_below(&self, other: &Self) -> bool {
        match (self.exactly, other.exactly) {
            (Some(a), Some(b)) => a < b,
            _ => self.about.zip(other.about).is_some_and(|(a, b)| a < b),
        }
    }
}

impl From<&Number> for Magnitude {
    fn from(bound: &Number) -> Self {
        Self::of(bound.as_i128(), bound.as_f64())
    }
}

/// How many steps may be done for `value`: linear in its size, with room for alternatives.
fn steps(value: &Json<'_>) -> usize {
    fn size(value: &Json<'_>) -> usize {
        match value {
            Json::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
            Json::Object(members) => {
                1 + members.iter().map(|(_, value)| size(value)).sum::<usize>()
            }
            _ => 1,
        }
    }
    (1 << 14) + size(value).saturating_mul(64)
}
