//! A value against a compiled schema: every fault, in words.
//!
//! The work is bounded by the size of the value, also for schemas with alternatives.

use std::cell::Cell;
use std::fmt;

use serde_json::{Number, Value};

use super::fault::{FaultKind, Faults, Place, closest};
use super::json::{Brief, Json, shortened};
use super::node::{Node, kind_of, types};
use super::numeral::Numeral;

impl Node {
    /// Whether `null` is a value of its own here.
    pub(super) fn takes_null(&self) -> bool {
        let mut faults = Faults::default();
        self.check(&Json::Null, &Place::root(), &mut faults, &Cell::new(64));
        faults.is_empty()
    }

    /// Checks the arguments as a whole.
    pub(super) fn check_all(&self, value: &Json<'_>, faults: &mut Faults) {
        self.check(value, &Place::root(), faults, &budget(value));
    }

    /// Checks the value of the argument `name`.
    pub(super) fn check_argument(&self, name: &str, value: &Json<'_>, faults: &mut Faults) {
        let root = Place::root();
        self.check(value, &Place::key_of(&root, name), faults, &budget(value));
    }

    fn check(
        &self,
        value: &Json<'_>,
        place: &Place<'_>,
        faults: &mut Faults,
        budget: &Cell<usize>,
    ) {
        let Some(left) = budget.get().checked_sub(1) else {
            if faults.is_empty() {
                faults.add(FaultKind::Constraint, place, "has too many alternatives to check");
            }
            return;
        };
        budget.set(left);
        if let Some(target) = self.target() {
            target.check(value, place, faults, budget);
        }
        if self.never || self.types & kind_of(value) == 0 {
            return self.wrong_type(value, place, faults);
        }
        self.check_fixed(value, place, faults);
        match value {
            Json::Number(number) => self.check_number(number, place, faults),
            Json::String(text) => self.check_text(text, place, faults),
            Json::Array(items) => self.check_items(items, place, faults, budget),
            Json::Object(members) => self.check_members(members, value, place, faults, budget),
            Json::Null | Json::Bool(_) => {}
        }
        self.check_alternatives(value, place, faults, budget);
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
        let allowed: &[Value] = match (&self.enumeration, &self.constant) {
            (Some(all), _) => all,
            (None, Some(one)) => std::slice::from_ref(one),
            (None, None) => return,
        };
        if allowed.iter().any(|one| value.equals(one)) {
            return;
        }
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
        if let (Some(low), Some(high), None, None) =
            (&self.minimum, &self.maximum, &self.above, &self.below)
        {
            return match low == high {
                true => low.to_string(),
                false => format!("between {low} and {high}"),
            };
        }
        let bounds = [
            ("at least", &self.minimum),
            ("more than", &self.above),
            ("at most", &self.maximum),
            ("less than", &self.below),
        ];
        let bounds = bounds.into_iter().filter_map(|(words, bound)| Some((words, bound.as_ref()?)));
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
        budget: &Cell<usize>,
    ) {
        let count = items.len() as u64;
        self.check_count(count, self.min_items, self.max_items, "item", place, faults);
        for (index, item) in items.iter().enumerate() {
            let place = Place::index_of(place, index);
            match (self.prefix.get(index), &self.items) {
                (Some(node), _) => node.check(item, &place, faults, budget),
                (None, Some(node)) => node.check(item, &place, faults, budget),
                (None, None) if self.no_more_items => {
                    faults.add(FaultKind::Constraint, &place, "is one item too many");
                    break;
                }
                (None, None) => break,
            }
        }
        if self.unique {
            let mut seen = std::collections::HashSet::new();
            if !items.iter().all(|item| seen.insert(item.to_value().to_string())) {
                faults.add(FaultKind::Constraint, place, "must not hold the same item twice");
            }
        }
    }

    fn check_members(
        &self,
        members: &[(std::borrow::Cow<'_, str>, Json<'_>)],
        value: &Json<'_>,
        place: &Place<'_>,
        faults: &mut Faults,
        budget: &Cell<usize>,
    ) {
        let count = members.len() as u64;
        self.check_count(count, self.min_properties, self.max_properties, "member", place, faults);
        for (key, member) in members {
            let place = Place::key_of(place, key);
            match (self.property(key), &self.additional) {
                (Some(node), _) => node.check(member, &place, faults, budget),
                (None, Some(node)) => node.check(member, &place, faults, budget),
                (None, None) if self.closed => faults.unknown(&place, &self.names()),
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
                Self::anything().missing(name, "", place, faults);
            }
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

    fn check_alternatives(
        &self,
        value: &Json<'_>,
        place: &Place<'_>,
        faults: &mut Faults,
        budget: &Cell<usize>,
    ) {
        for node in &self.all_of {
            node.check(value, place, faults, budget);
        }
        if !self.any_of.is_empty() {
            Self::one_fits(&self.any_of, &self.words, value, place, faults, budget);
        }
        if !self.one_of.is_empty() {
            Self::one_fits(&self.one_of, &self.words, value, place, faults, budget);
            let fits = |node: &&Node| {
                let mut found = Faults::default();
                node.check(value, place, &mut found, budget);
                found.is_empty()
            };
            if self.one_of.iter().filter(fits).count() > 1 {
                faults.add(FaultKind::Type, place, "fits more than one of its allowed forms");
            }
        }
    }

    /// Reports the faults of the branch that was meant, when none fits.
    fn one_fits(
        branches: &[Node],
        words: &str,
        value: &Json<'_>,
        place: &Place<'_>,
        faults: &mut Faults,
        budget: &Cell<usize>,
    ) {
        let mut meant: Option<Faults> = None;
        for branch in branches {
            let mut found = Faults::default();
            branch.check(value, place, &mut found, budget);
            if found.is_empty() {
                return;
            }
            if branch.is_meant(value) && meant.is_none() {
                meant = Some(found);
            }
        }
        match meant {
            Some(found) => faults.append(found),
            None => {
                let sensitive = branches.iter().any(|node| node.sensitive);
                let said = Said { value, sensitive };
                let words = if words.is_empty() { "one of the allowed forms" } else { words };
                faults.add(FaultKind::Type, place, format_args!("{said}, but must be {words}"));
            }
        }
    }

    /// Whether `value` carries this branch's tag, or is the only kind of value it takes.
    fn is_meant(&self, value: &Json<'_>) -> bool {
        let Json::Object(_) = value else {
            return self.types != types::ANY && self.types & kind_of(value) != 0;
        };
        let mut tags =
            self.properties.iter().filter(|(_, _, node)| node.tag().is_some()).peekable();
        if tags.peek().is_some() {
            return tags.all(|(name, _, node)| {
                value
                    .member(name)
                    .is_some_and(|member| node.tag().is_some_and(|tag| member.equals(tag)))
            });
        }
        // An externally tagged variant: its one required member names it.
        self.properties.iter().any(|(name, required, _)| *required && value.member(name).is_some())
    }
}

impl Faults {
    fn append(&mut self, other: Faults) {
        self.beyond += other.beyond;
        for fault in other.into_iter() {
            self.push(fault);
        }
    }
}

/// What a value is, in words.
struct Said<'v> {
    value: &'v Json<'v>,
    sensitive: bool,
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

/// How many nodes may be visited for `value`: linear in its size, with room for
/// alternatives.
fn budget(value: &Json<'_>) -> Cell<usize> {
    fn size(value: &Json<'_>) -> usize {
        match value {
            Json::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
            Json::Object(members) => {
                1 + members.iter().map(|(_, value)| size(value)).sum::<usize>()
            }
            _ => 1,
        }
    }
    Cell::new(1024 + size(value).saturating_mul(64))
}
