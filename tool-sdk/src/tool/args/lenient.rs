//! What is taken beyond the contract, where whoever brings the call has declared that.
//!
//! Strict function calling sends every property, in every object, and `null` for what it leaves
//! out; where a schema has several forms, also the properties of the others.

use std::ptr;

use super::json::Json;
use super::node::{Node, Targets};
use crate::call::{Coercion, Lenient, Note};

/// Applies declared leniency to all arguments.
pub(super) fn relax(
    tree: &mut Json<'_>,
    root: &Node,
    targets: &Targets,
    lenient: Lenient,
    notes: &mut Vec<Note>,
) {
    if lenient.stringified
        && let Json::Object(members) = tree
    {
        for (key, value) in members {
            if root.property(key).is_some_and(Node::wants_container)
                && let Json::String(inner) = value
                && let Ok(parsed) = Json::parse(inner)
            {
                notes.push(Note::new(key, Coercion::Stringified));
                *value = parsed.into_owned();
            }
        }
    }
    if lenient.null_is_absent {
        without_nulls(tree, &[root], targets, &mut |name| {
            notes.push(Note::new(name, Coercion::NullAsAbsent));
        });
    }
}

/// Takes every `null` away that stands for what is absent in a value of which `nodes` speak; says
/// whether there was any, and tells by `tell` in which members of the value.
pub(super) fn without_nulls(
    value: &mut Json<'_>,
    nodes: &[&Node],
    targets: &Targets,
    tell: &mut dyn FnMut(&str),
) -> bool {
    match value {
        Json::Object(_) => members_without_nulls(value, nodes, targets, tell),
        Json::Array(items) => {
            let forms = forms(nodes, None, targets);
            let mut any = false;
            for (at, item) in items.iter_mut().enumerate() {
                let speaking: Vec<&Node> = forms
                    .iter()
                    .filter_map(|node| node.prefix.get(at).or(node.items.as_deref()))
                    .collect();
                any |= without_nulls(item, &speaking, targets, &mut |_| {});
            }
            any
        }
        _ => false,
    }
}

fn members_without_nulls(
    value: &mut Json<'_>,
    nodes: &[&Node],
    targets: &Targets,
    tell: &mut dyn FnMut(&str),
) -> bool {
    let Json::Object(members) = value else { return false };
    let (nulls, rest): (Vec<_>, Vec<_>) =
        std::mem::take(members).into_iter().partition(|(_, value)| matches!(value, Json::Null));
    *members = rest;
    // A form is not the one that is meant for a name that came without a value.
    let meant = forms(nodes, Some(value), targets);
    let Json::Object(members) = value else { return false };
    let mut any = false;
    for (key, null) in nulls {
        let own: Vec<&Node> = meant.iter().filter_map(|node| node.property(&key)).collect();
        let stays = match own.as_slice() {
            [] => forms(nodes, None, targets).iter().all(|node| node.property(&key).is_none()),
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
        let speaking: Vec<&Node> = meant
            .iter()
            .filter_map(|node| node.property(key).or(node.additional.as_deref()))
            .collect();
        if without_nulls(member, &speaking, targets, &mut |_| {}) {
            tell(key);
            any = true;
        }
    }
    any
}

/// Every schema that may speak of the same value as one of `nodes`: of several forms the one that
/// `value` is meant to have, where that is to be seen.
fn forms<'n>(nodes: &[&'n Node], value: Option<&Json<'_>>, targets: &'n Targets) -> Vec<&'n Node> {
    let mut found: Vec<&Node> = Vec::new();
    let mut open = nodes.to_vec();
    while let Some(node) = open.pop() {
        if found.iter().any(|known| ptr::eq(*known, node)) {
            continue;
        }
        found.push(node);
        open.extend(targets.of(node));
        open.extend(&node.all_of);
        for branches in [&node.any_of, &node.one_of] {
            let is_meant = |branch: &&Node| {
                let branch = targets.of(branch).unwrap_or(branch);
                value.is_some_and(|value| branch.is_meant(value))
            };
            match branches.iter().find(is_meant) {
                Some(meant) => open.push(meant),
                None => open.extend(branches),
            }
        }
    }
    found
}
