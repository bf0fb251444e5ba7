//! The schemas of a document, and which of them applies which to what part of a value.

use std::collections::HashMap;
use std::ptr;

use serde_json::{Map, Value};
use tool_sdk_core::internal::walk;

use super::ValuePart;

/// The part of a value to which a schema applies another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemaPosition<'s> {
    /// The same value, by a reference.
    Reference,
    /// The same value, beside other schemas.
    Same,
    /// The same value, if no other branch applies.
    Branch,
    /// The same value, if the dynamic reference means this schema.
    DynamicTarget,
    /// The member of this name.
    Member(&'s str),
    /// Each member without a schema of its own.
    OtherMember,
    /// Each member, or its name, beside other schemas.
    EveryMember,
    /// The item at one index.
    ItemAt,
    /// Each item without a schema of its own.
    OtherItem,
    /// Each item, beside other schemas.
    EveryItem,
}

impl<'s> SchemaPosition<'s> {
    /// Returns the place of the subschemas of a keyword.
    fn of_keyword(keyword: &str, name: &'s str) -> Option<Self> {
        Some(match keyword {
            "allOf" | "anyOf" | "oneOf" | "not" | "if" | "dependentSchemas" => Self::Same,
            "then" | "else" => Self::Branch,
            "properties" => Self::Member(name),
            "additionalProperties" => Self::OtherMember,
            "patternProperties" | "propertyNames" | "unevaluatedProperties" => Self::EveryMember,
            "prefixItems" => Self::ItemAt,
            "items" => Self::OtherItem,
            "contains" | "unevaluatedItems" => Self::EveryItem,
            _ => return None,
        })
    }

    /// Returns the part of the value; `None` for the value itself.
    pub(super) fn child(self) -> Option<ValuePart<'s>> {
        match self {
            Self::Reference | Self::Same | Self::Branch | Self::DynamicTarget => None,
            Self::Member(name) => Some(ValuePart::Member(name)),
            Self::OtherMember | Self::EveryMember => Some(ValuePart::AnyMember),
            Self::ItemAt | Self::OtherItem | Self::EveryItem => Some(ValuePart::Item),
        }
    }
}

/// A schema applies another one.
pub(super) struct Edge<'s> {
    pub(super) place: SchemaPosition<'s>,
    pub(super) to: usize,
}

/// A schema that another one applies, and to what.
type AppliedSchema<'s> = (SchemaPosition<'s>, &'s Map<String, Value>);

/// All schemas that the root applies, directly or not; the root is the first.
pub(super) struct SchemaGraph<'s> {
    pub(super) schemas: Vec<&'s Map<String, Value>>,
    pub(super) edges: Vec<Vec<Edge<'s>>>,
}

/// Schemas with a dynamic anchor, by its name.
type AnchorTargets<'s> = HashMap<&'s str, Vec<&'s Map<String, Value>>>;

/// The key for targets of `$recursiveRef`, which has no name.
const RECURSIVE_ANCHOR: &str = "";

impl<'s> SchemaGraph<'s> {
    /// Follows all keywords and references from the root.
    ///
    /// # Errors
    ///
    /// Fails when a reference leads nowhere.
    pub(super) fn build(root: &'s Map<String, Value>) -> Result<Self, String> {
        let mut anchors = AnchorTargets::from([(RECURSIVE_ANCHOR, vec![root])]);
        collect_anchors(root, &mut anchors);
        let mut graph = Self { schemas: vec![root], edges: Vec::new() };
        let mut indices = HashMap::from([(ptr::from_ref(root), 0)]);
        while let Some(schema) = graph.schemas.get(graph.edges.len()).copied() {
            let mut edges = Vec::new();
            for (place, target) in applied_schemas(root, &anchors, schema)? {
                let next = graph.schemas.len();
                let to = *indices.entry(ptr::from_ref(target)).or_insert(next);
                if to == next {
                    graph.schemas.push(target);
                }
                edges.push(Edge { place, to });
            }
            graph.edges.push(edges);
        }
        Ok(graph)
    }

    /// Returns which schemas lead back to themselves, or to one that does.
    pub(super) fn find_recursive(&self) -> Vec<bool> {
        let mut is_recursive = vec![true; self.schemas.len()];
        for at in self.order_by(|_| true) {
            is_recursive[at] = false;
        }
        is_recursive
    }

    /// Returns the schemas in an order in which each comes after those that it applies to the same
    /// value, and after those that are not recursive.
    ///
    /// # Errors
    ///
    /// Fails when a schema applies itself to the same value.
    pub(super) fn order_for_evaluation(&self, is_recursive: &[bool]) -> Result<Vec<usize>, String> {
        let order = self.order_by(|edge| edge.place.child().is_none() || !is_recursive[edge.to]);
        match order.len() == self.schemas.len() {
            true => Ok(order),
            false => Err("a schema of it applies itself to the same value".to_owned()),
        }
    }

    /// Sorts the schemas topologically along the edges that count; those on or before a cycle are
    /// missing.
    fn order_by(&self, counts: impl Fn(&Edge<'_>) -> bool) -> Vec<usize> {
        let mut pending = vec![0_usize; self.schemas.len()];
        let mut users = vec![Vec::new(); self.schemas.len()];
        for (from, edges) in self.edges.iter().enumerate() {
            for edge in edges.iter().filter(|edge| counts(edge)) {
                pending[from] += 1;
                users[edge.to].push(from);
            }
        }
        let mut order: Vec<usize> = (0..pending.len()).filter(|at| pending[*at] == 0).collect();
        let mut next = 0;
        while let Some(&done) = order.get(next) {
            next += 1;
            for &user in &users[done] {
                pending[user] -= 1;
                if pending[user] == 0 {
                    order.push(user);
                }
            }
        }
        order
    }
}

/// Returns the schemas that `schema` applies, with the places; `true` and `false` are left out.
fn applied_schemas<'s>(
    root: &'s Map<String, Value>,
    anchors: &AnchorTargets<'s>,
    schema: &'s Map<String, Value>,
) -> Result<Vec<AppliedSchema<'s>>, String> {
    let mut found = Vec::new();
    for (keyword, value) in schema {
        match (keyword.as_str(), value) {
            ("$ref", Value::String(reference)) => {
                found.extend(
                    resolve_ref(root, reference)?.map(|it| (SchemaPosition::Reference, it)),
                );
            }
            ("$dynamicRef", Value::String(reference)) => {
                let anchor = reference.rsplit_once('#').map_or(&**reference, |(_, anchor)| anchor);
                found.extend(dynamic_targets(anchors, anchor)?);
            }
            ("$recursiveRef", _) => found.extend(dynamic_targets(anchors, RECURSIVE_ANCHOR)?),
            (keyword, value) => collect_applied(keyword, value, &mut found),
        }
    }
    Ok(found)
}

fn collect_applied<'s>(keyword: &str, value: &'s Value, found: &mut Vec<AppliedSchema<'s>>) {
    let mut add = |name: &'s str, inner: &'s Value| {
        if let (Some(place), Value::Object(inner)) =
            (SchemaPosition::of_keyword(keyword, name), inner)
        {
            found.push((place, inner));
        }
    };
    match (walk::subschema_kind(keyword), value) {
        (Some(walk::SubschemaKind::Map), Value::Object(named)) => {
            named.iter().for_each(|(name, inner)| add(name, inner));
        }
        (Some(walk::SubschemaKind::List), Value::Array(list)) => {
            list.iter().for_each(|inner| add("", inner));
        }
        (Some(walk::SubschemaKind::One), inner) => add("", inner),
        _ => {}
    }
}

/// Resolves a local reference; `None` if it leads to `true` or `false`.
fn resolve_ref<'s>(
    root: &'s Map<String, Value>,
    reference: &str,
) -> Result<Option<&'s Map<String, Value>>, String> {
    let found = match reference.strip_prefix('#') {
        Some("") => return Ok(Some(root)),
        Some(pointer) => walk::resolve_pointer(root, pointer),
        None => None,
    };
    match found {
        Some(Value::Object(target)) => Ok(Some(target)),
        Some(Value::Bool(_)) => Ok(None),
        _ => Err("a reference of it leads nowhere".to_owned()),
    }
}

/// Returns all targets that a dynamic reference may have.
fn dynamic_targets<'s>(
    anchors: &AnchorTargets<'s>,
    anchor: &str,
) -> Result<impl Iterator<Item = AppliedSchema<'s>> + use<'s>, String> {
    let targets = anchors.get(anchor).ok_or("a dynamic reference of it leads nowhere")?;
    Ok(targets.clone().into_iter().map(|target| (SchemaPosition::DynamicTarget, target)))
}

/// Collects all anchors of a schema.
fn collect_anchors<'s>(schema: &'s Map<String, Value>, found: &mut AnchorTargets<'s>) {
    if let Some(Value::String(anchor)) = schema.get("$dynamicAnchor") {
        found.entry(anchor).or_default().push(schema);
    }
    if schema.get("$recursiveAnchor") == Some(&Value::Bool(true)) {
        found.entry(RECURSIVE_ANCHOR).or_default().push(schema);
    }
    walk::for_each_subschema(schema, &mut |_, _, inner| {
        if let Value::Object(inner) = inner {
            collect_anchors(inner, found);
        }
    });
}
