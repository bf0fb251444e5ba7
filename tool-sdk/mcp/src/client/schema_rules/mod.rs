//! Rules for a server's schema that bound the work of validating any value with it.
//!
//! A recursive schema can make validation exponential in the depth of a value, and both come from
//! the server or from a model. The rules are checked once, when the schema is compiled, in time
//! linear in its size. A schema that breaks one is not validated here, and a warning says so.
//!
//! **Invariant:** with a schema that keeps the rules, validating a value takes at most
//! [`MAX_EVALUATIONS`] steps for each of its places and each level above that place.

mod graph;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use tool_sdk_core::internal::{is_meta_schema_ref, walk};

use self::graph::{SchemaGraph, SchemaPosition};

/// The longest schema, in bytes: more than a model can afford to read.
pub(super) const MAX_BYTES: usize = 256 << 10;

/// The most objects in a schema. Each may be a schema, for which a validator allocates many times
/// its text.
pub(super) const MAX_OBJECTS: usize = 10_000;

/// How often the schema may be evaluated on one place of a value. 2,000 evaluations take about
/// 0.1 ms, and an argument of 1 MiB has up to half a million places.
const MAX_EVALUATIONS: usize = 2_000;

/// How many schemas may be nested for one place of a value, which is at most 128 levels deep. Each
/// takes up to 2 KiB of the stack, see [`time_limit`](super::time_limit).
const MAX_IN_PLACE: usize = 32;

/// How many schemas may have an `$id`. The validator compiles the rest of such a schema again for
/// each path that leads to it.
const MAX_IDS: usize = 4;

/// The most evaluations in all schemas with an `unevaluated` keyword, for each of which the
/// validator compiles a copy of everything beside it.
const MAX_COPIED: usize = 20_000;

/// This many entries of a list cost as much as one evaluation.
const ENTRIES_PER_EVALUATION: usize = 8;

/// How many evaluations a pattern and a reference to a meta-schema count as.
const PATTERN_WEIGHT: usize = 20;
const META_SCHEMA_WEIGHT: usize = 200;

/// Marks a reference to a meta-schema, which is no longer visible when the rules are checked.
const META_SCHEMA_KEY: &str = "x-meta-schema";

/// Keywords that apply to what no other keyword evaluated, which the validator finds out by
/// evaluating other keywords again.
const UNEVALUATED_KEYWORDS: &[&str] = &["unevaluatedItems", "unevaluatedProperties"];

/// Counts the objects in a value.
pub(super) fn count_objects(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(count_objects).sum::<usize>(),
        Value::Array(items) => items.iter().map(count_objects).sum(),
        _ => 0,
    }
}

/// Checks that a schema is not too large to be read at all.
///
/// # Errors
///
/// Returns which limit it exceeds.
pub(super) fn check_size(schema: &Value) -> Result<(), String> {
    let length = schema.to_string().len();
    if length > MAX_BYTES {
        return Err(format!("it is {length} bytes long"));
    }
    let objects = count_objects(schema);
    if objects > MAX_OBJECTS {
        return Err(format!("it has {objects} parts"));
    }
    Ok(())
}

/// Checks how many schemas have their own `$id`, in any draft.
///
/// # Errors
///
/// Returns the broken rule.
pub(super) fn check_ids(schema: &Value) -> Result<(), String> {
    match count_ids(schema) > MAX_IDS {
        true => Err(format!("more than {MAX_IDS} of its schemas have their own `$id`")),
        false => Ok(()),
    }
}

fn count_ids(schema: &Value) -> usize {
    let Value::Object(schema) = schema else { return 0 };
    let mut count = usize::from(walk::has_any_keyword(schema, &["$id", "id"]));
    walk::for_each_in_any_draft(schema, &mut |inner| count += count_ids(inner));
    count
}

/// Marks each reference to a meta-schema.
pub(super) fn mark_meta_schema_refs(schema: &mut Value) {
    let Value::Object(schema) = schema else { return };
    if schema.get("$ref").and_then(Value::as_str).is_some_and(is_meta_schema_ref) {
        schema.insert(META_SCHEMA_KEY.to_owned(), true.into());
    }
    walk::for_each_subschema_mut(schema, &mut |_, inner| mark_meta_schema_refs(inner));
}

/// Returns how often a schema of the current draft, whose references are local, can be evaluated on
/// one place of a value.
///
/// # Errors
///
/// Returns the broken rule.
pub(super) fn check_evaluations(root: &Map<String, Value>) -> Result<usize, String> {
    let graph = SchemaGraph::build(root)?;
    let is_recursive = graph.find_recursive();
    let mut loads: Vec<ValidationLoad<'_>> =
        graph.schemas.iter().map(|_| ValidationLoad::default()).collect();
    let (mut copied, mut most) = (0, 1);
    for at in graph.order_for_evaluation(&is_recursive)? {
        let mut load = combine_edges(&graph, at, &is_recursive, &loads)?;
        if walk::has_any_keyword(graph.schemas[at], UNEVALUATED_KEYWORDS) {
            load.repeat_for_unevaluated()?;
            copied += load.evaluations;
        }
        load.check_limits(copied)?;
        most = most.max(load.evaluations);
        loads[at] = load;
    }
    Ok(most)
}

/// Returns the load of one schema, from the loads of those that it applies.
fn combine_edges<'s>(
    graph: &SchemaGraph<'s>,
    at: usize,
    is_recursive: &[bool],
    loads: &[ValidationLoad<'s>],
) -> Result<ValidationLoad<'s>, String> {
    let mut load =
        ValidationLoad { evaluations: own_weight(graph.schemas[at]), ..ValidationLoad::default() };
    let mut groups: [ValidationLoad<'s>; 4] = Default::default();
    for edge in &graph.edges[at] {
        let target = &loads[edge.to];
        let added = match edge.place.child() {
            Some(child) if is_recursive[edge.to] => ValidationLoad::of_recursion(child),
            Some(_) => {
                ValidationLoad { evaluations: target.evaluations, ..ValidationLoad::default() }
            }
            None => target.in_place(edge.place),
        };
        match edge.place {
            SchemaPosition::Branch => groups[0].or(added),
            SchemaPosition::DynamicTarget => groups[1].or(added),
            SchemaPosition::Member(_) | SchemaPosition::OtherMember => groups[2].or(added),
            SchemaPosition::ItemAt | SchemaPosition::OtherItem => groups[3].or(added),
            // `contains` is evaluated again to find the items that it evaluates.
            SchemaPosition::EveryItem => {
                load.and(ValidationLoad { is_reevaluated: true, ..added })?
            }
            _ => load.and(added)?,
        }
    }
    groups.into_iter().try_for_each(|group| load.and(group))?;
    Ok(load)
}

/// Which parts of a value a recursive schema applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ValuePart<'s> {
    Item,
    AnyMember,
    Member(&'s str),
}

/// The evaluations that a schema causes on a value and on the parts below, along one path of the
/// value.
#[derive(Debug, Default)]
struct ValidationLoad<'s> {
    evaluations: usize,
    /// How many schemas are nested for the same value.
    in_place: usize,
    /// The parts of the value to which recursive schemas apply.
    recursive: BTreeSet<ValuePart<'s>>,
    /// Whether an `unevaluated` keyword beside it would evaluate some of it again.
    is_reevaluated: bool,
}

impl<'s> ValidationLoad<'s> {
    fn of_recursion(child: ValuePart<'s>) -> Self {
        Self { recursive: BTreeSet::from([child]), ..Self::default() }
    }

    /// Returns the load for a schema that applies this one to the same value.
    fn in_place(&self, place: SchemaPosition<'s>) -> Self {
        Self {
            evaluations: self.evaluations,
            in_place: self.in_place + 1,
            recursive: self.recursive.clone(),
            is_reevaluated: self.is_reevaluated
                || !matches!(place, SchemaPosition::Reference | SchemaPosition::DynamicTarget),
        }
    }

    /// Adds a load on the same value.
    fn and(&mut self, other: Self) -> Result<(), String> {
        let has_any = |load: &Self| load.recursive.contains(&ValuePart::AnyMember);
        let has_member = |load: &Self| load.recursive.iter().any(|it| *it != ValuePart::Item);
        if !self.recursive.is_disjoint(&other.recursive)
            || (has_any(self) && has_member(&other))
            || (has_any(&other) && has_member(self))
        {
            return Err(TWO_WAYS.to_owned());
        }
        self.evaluations = self.evaluations.saturating_add(other.evaluations);
        self.join(other);
        Ok(())
    }

    /// Adds a load of which only one or the other applies.
    fn or(&mut self, other: Self) {
        self.evaluations = self.evaluations.max(other.evaluations);
        self.join(other);
        if self.recursive.contains(&ValuePart::AnyMember) {
            self.recursive.retain(|it| !matches!(it, ValuePart::Member(_)));
        }
    }

    fn join(&mut self, other: Self) {
        self.in_place = self.in_place.max(other.in_place);
        self.is_reevaluated |= other.is_reevaluated;
        self.recursive.extend(other.recursive);
    }

    fn repeat_for_unevaluated(&mut self) -> Result<(), String> {
        if self.is_reevaluated && !self.recursive.is_empty() {
            return Err(TWO_WAYS.to_owned());
        }
        self.evaluations = self.evaluations.saturating_mul(2);
        self.is_reevaluated = true;
        Ok(())
    }

    fn check_limits(&self, copied: usize) -> Result<(), String> {
        match () {
            () if self.evaluations > MAX_EVALUATIONS => {
                Err(format!("it is evaluated more than {MAX_EVALUATIONS} times on one value"))
            }
            () if self.in_place > MAX_IN_PLACE => {
                Err(format!("more than {MAX_IN_PLACE} of its schemas are nested for one value"))
            }
            () if copied > MAX_COPIED => {
                Err("its `unevaluated` keywords expand to too many schemas".to_owned())
            }
            () => Ok(()),
        }
    }
}

/// The work would double with each level of a value.
const TWO_WAYS: &str = "it recurses into the same part of a value in two ways";

/// Returns what the keywords of a schema cost, without its subschemas.
fn own_weight(schema: &Map<String, Value>) -> usize {
    let entries = |value: &Value| count_entries(value) / ENTRIES_PER_EVALUATION;
    let keyword = |(keyword, value): (&String, &Value)| match (keyword.as_str(), value) {
        ("pattern", _) => PATTERN_WEIGHT,
        ("patternProperties", Value::Object(patterns)) => PATTERN_WEIGHT * patterns.len(),
        (META_SCHEMA_KEY, _) => META_SCHEMA_WEIGHT,
        ("enum" | "const" | "required" | "dependentRequired", value) => entries(value),
        ("properties", Value::Object(schemas)) => schemas.len() / ENTRIES_PER_EVALUATION,
        ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
            schemas.len() / ENTRIES_PER_EVALUATION
        }
        _ => 0,
    };
    1 + schema.iter().map(keyword).sum::<usize>()
}

fn count_entries(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(count_entries).sum(),
        Value::Object(members) => members.values().map(count_entries).sum(),
        _ => 1,
    }
}
