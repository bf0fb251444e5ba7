//! Applies leniency that the surface declared: deviations from the schema that are accepted.
//!
//! Strict function calling sends every property of every object, with `null` for absent ones. For
//! a schema with several branches, it also sends the properties of the other branches.

use std::ptr;

use super::json::JsonValue;
use super::node::{ReferenceTargets, SchemaNode};
use crate::call::{ArgumentNote, Coercion, Leniency};

/// Applies declared leniency to all arguments.
pub(super) fn apply_leniency(
    tree: &mut JsonValue<'_>,
    root: &SchemaNode,
    targets: &ReferenceTargets,
    lenient: Leniency,
    notes: &mut Vec<ArgumentNote>,
) {
    if lenient.stringified
        && let JsonValue::Object(members) = tree
    {
        for (key, value) in members {
            if root.property(key).is_some_and(SchemaNode::wants_container)
                && let JsonValue::String(inner) = value
                && let Ok(parsed) = JsonValue::parse(inner)
            {
                notes.push(ArgumentNote::new(key, Coercion::Stringified));
                *value = parsed.into_owned();
            }
        }
    }
    if lenient.null_is_absent {
        remove_nulls(tree, &[root], targets, &mut |name| {
            notes.push(ArgumentNote::new(name, Coercion::NullAsAbsent));
        });
    }
}

/// Removes every `null` that means "absent" from a value that `nodes` describe; returns whether
/// there was one. Calls `tell` with the name of each member of the value that had one.
pub(super) fn remove_nulls(
    value: &mut JsonValue<'_>,
    nodes: &[&SchemaNode],
    targets: &ReferenceTargets,
    tell: &mut dyn FnMut(&str),
) -> bool {
    match value {
        JsonValue::Object(_) => remove_member_nulls(value, nodes, targets, tell),
        JsonValue::Array(items) => {
            let forms = applicable_schemas(nodes, None, targets);
            let mut any = false;
            for (at, item) in items.iter_mut().enumerate() {
                let speaking: Vec<&SchemaNode> = forms
                    .iter()
                    .filter_map(|node| node.prefix_items.get(at).or(node.items.as_deref()))
                    .collect();
                any |= remove_nulls(item, &speaking, targets, &mut |_| {});
            }
            any
        }
        _ => false,
    }
}

fn remove_member_nulls(
    value: &mut JsonValue<'_>,
    nodes: &[&SchemaNode],
    targets: &ReferenceTargets,
    tell: &mut dyn FnMut(&str),
) -> bool {
    let JsonValue::Object(members) = value else { return false };
    let (nulls, rest): (Vec<_>, Vec<_>) = std::mem::take(members)
        .into_iter()
        .partition(|(_, value)| matches!(value, JsonValue::Null));
    *members = rest;
    // A name without a value does not select a branch.
    let meant = applicable_schemas(nodes, Some(value), targets);
    let JsonValue::Object(members) = value else { return false };
    let mut any = false;
    for (key, null) in nulls {
        let own: Vec<&SchemaNode> = meant.iter().filter_map(|node| node.property(&key)).collect();
        let stays = match own.as_slice() {
            [] => applicable_schemas(nodes, None, targets)
                .iter()
                .all(|node| node.property(&key).is_none()),
            own => {
                meant.iter().any(|node| node.requires(&key))
                    || own.iter().any(|node| node.takes_null(targets))
            }
        };
        match stays {
            true => members.push((key, null)),
            false => {
                tell(&key);
                any = true;
            }
        }
    }
    for (key, member) in members {
        let speaking: Vec<&SchemaNode> = meant
            .iter()
            .filter_map(|node| node.property(key).or(node.additional.as_deref()))
            .collect();
        if remove_nulls(member, &speaking, targets, &mut |_| {}) {
            tell(key);
            any = true;
        }
    }
    any
}

/// Returns every schema that may describe the same value as one of `nodes`. Of several branches,
/// only the one that `value` most likely means, if that can be determined.
fn applicable_schemas<'n>(
    nodes: &[&'n SchemaNode],
    value: Option<&JsonValue<'_>>,
    targets: &'n ReferenceTargets,
) -> Vec<&'n SchemaNode> {
    let mut found: Vec<&SchemaNode> = Vec::new();
    let mut open = nodes.to_vec();
    while let Some(node) = open.pop() {
        if found.iter().any(|known| ptr::eq(*known, node)) {
            continue;
        }
        found.push(node);
        open.extend(targets.resolve(node));
        open.extend(&node.all_of);
        for branches in [&node.any_of, &node.one_of] {
            let is_meant = |branch: &&SchemaNode| {
                let branch = targets.resolve(branch).unwrap_or(branch);
                value.is_some_and(|value| branch.matches_tag(value))
            };
            match branches.iter().find(is_meant) {
                Some(meant) => open.push(meant),
                None => open.extend(branches),
            }
        }
    }
    found
}
