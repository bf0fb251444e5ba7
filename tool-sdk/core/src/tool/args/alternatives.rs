//! Checks `allOf`, `anyOf`, `oneOf` and `not`, and reports values that match none of several
//! branches.

use super::fault::{ArgPath, FaultKind, Faults};
use super::json::JsonValue;
use super::node::{SchemaNode, kind_bits, types, with_article};
use super::validate::{SchemaValidation, ValueDescription};

impl SchemaNode {
    pub(super) fn check_alternatives(
        &self,
        value: &JsonValue<'_>,
        place: &ArgPath<'_>,
        faults: &mut Faults,
        check: &SchemaValidation<'_>,
    ) {
        for node in &self.all_of {
            node.check(value, place, faults, check);
        }
        if !self.any_of.is_empty() {
            let _ = self.count_fitting(&self.any_of, 1, value, place, faults, check);
        }
        if !self.one_of.is_empty()
            && self.count_fitting(&self.one_of, 2, value, place, faults, check) > 1
        {
            faults.push_at(FaultKind::Constraint, place, "fits more than one of its allowed forms");
        }
        if let Some(not) = &self.not
            && check.fits(not, value, place)
        {
            not.report_forbidden(place, faults);
        }
    }

    /// Reports a value that matches this schema although `not` forbids it.
    fn report_forbidden(&self, place: &ArgPath<'_>, faults: &mut Faults) {
        let words = match self.required_names().as_slice() {
            _ if self.is_described() => format!("must not be {}", self.words_with_article),
            [] => "has a form that is not allowed".to_owned(),
            names => format!("has a form that is not allowed: with `{}`", names.join("` and `")),
        };
        faults.push_at(FaultKind::Constraint, place, words);
    }

    /// Counts the branches that match, up to `enough`. If none matches, reports the faults of the
    /// branch that was most likely meant.
    fn count_fitting(
        &self,
        branches: &[SchemaNode],
        enough: usize,
        value: &JsonValue<'_>,
        place: &ArgPath<'_>,
        faults: &mut Faults,
        check: &SchemaValidation<'_>,
    ) -> usize {
        let mut fitting = 0;
        let mut meant: Option<Faults> = None;
        let mut others: Vec<Faults> = Vec::new();
        for branch in branches {
            let mut found = Faults::default();
            branch.check(value, place, &mut found, check);
            if found.is_empty() {
                fitting += 1;
                if fitting == enough {
                    break;
                }
            } else if fitting == 0 && meant.is_none() {
                match branch.matches_tag(value) {
                    true => meant = Some(found),
                    false => others.push(found),
                }
            }
        }
        if fitting > 0 {
            return fitting;
        }
        if let Some(found) = meant {
            faults.append(found);
            return 0;
        }
        let sensitive = branches.iter().any(|node| node.is_sensitive);
        let here = place.to_pointer();
        // A branch for another type of value does not describe this one.
        others.retain(|found| !found.has_type_fault_at(&here));
        match others.as_slice() {
            [] => {
                let said = ValueDescription { value, is_sensitive: sensitive };
                let words = describe_kinds(branches, check)
                    .unwrap_or_else(|| self.words_with_article.clone());
                faults.push_at(FaultKind::Type, place, format_args!("{said}, but must be {words}"));
            }
            [_] => others.drain(..).for_each(|only| faults.append(only)),
            several => match describe_missing(several, &here) {
                Some(names) => {
                    faults.push_at(FaultKind::Missing, place, format_args!("must have {names}"));
                }
                None => {
                    let words = describe_first_faults(several);
                    faults.push_at(
                        FaultKind::Constraint,
                        place,
                        format_args!("fits none of its allowed forms: {words}"),
                    );
                }
            },
        }
        0
    }

    /// Whether `value` has the tag of this branch, or the only type that the branch accepts.
    pub(super) fn matches_tag(&self, value: &JsonValue<'_>) -> bool {
        let JsonValue::Object(_) = value else {
            return self.types != types::ANY && self.types & kind_bits(value) != 0;
        };
        let mut tags =
            self.properties.iter().filter(|(_, _, node)| node.constant_tag().is_some()).peekable();
        if tags.peek().is_some() {
            return tags.all(|(name, _, node)| {
                value.member(name).is_some_and(|member| {
                    node.constant_tag().is_some_and(|tag| member.equals_value(tag))
                })
            });
        }
        // An externally tagged variant: its one required member names it.
        self.properties.iter().any(|(name, required, _)| *required && value.member(name).is_some())
    }
}

/// The maximum number of branches in a message.
const MAX_BRANCHES_SHOWN: usize = 4;

/// Describes the branches; `None` if one of them is described elsewhere or not at all.
fn describe_kinds(branches: &[SchemaNode], check: &SchemaValidation<'_>) -> Option<String> {
    let told = |node: &SchemaNode| node.reference.is_none() && node.is_described();
    if branches.iter().all(told) {
        return None;
    }
    let mut kinds: Vec<&str> = Vec::new();
    for branch in branches {
        let node = check.resolve(branch).unwrap_or(branch);
        if !told(node) {
            return Some("one of the allowed forms".to_owned());
        }
        if !kinds.contains(&node.type_words.as_str()) {
            kinds.push(&node.type_words);
        }
    }
    Some(with_article(&kinds.join(" or ")))
}

/// Describes what is missing, if every branch lacks only required names: "`a`, or `b` and `c`".
fn describe_missing(branches: &[Faults], here: &str) -> Option<String> {
    let names = |found: &Faults| -> Option<String> {
        let names = found.missing_names(here)?;
        Some(format!("`{}`", names.join("` and `")))
    };
    let mut choices: Vec<String> = Vec::new();
    for found in branches {
        let names = names(found)?;
        if !choices.contains(&names) {
            choices.push(names);
        }
    }
    choices.truncate(MAX_BRANCHES_SHOWN * 2);
    Some(choices.join(", or "))
}

/// Describes the first fault of each branch.
fn describe_first_faults(branches: &[Faults]) -> String {
    let mut all: Vec<&str> = Vec::new();
    for words in branches.iter().filter_map(Faults::first_message) {
        if !all.contains(&words) {
            all.push(words);
        }
    }
    let more = all.len().saturating_sub(MAX_BRANCHES_SHOWN);
    all.truncate(MAX_BRANCHES_SHOWN);
    let told = all.join("; or ");
    match more {
        0 => told,
        more => format!("{told}; or {more} more"),
    }
}
