//! Estimates how much work it is to validate a value against a schema, without doing it.
//!
//! A recursive schema can make validation exponential in the depth of the value; both are untrusted.
//! The estimate visits each pair of a subschema and a value once, and counts how often a validator
//! would visit it and how much the keywords cost there, see [`keyword_cost`]. [`compile_limits`] bounds the work of
//! compiling a schema.
//!
//! **Invariant:** estimating takes no more steps than the work that is allowed.

mod compile_limits;
mod keyword_cost;
mod pattern_cost;

use std::collections::HashMap;

use serde_json::{Map, Value};

pub(super) use self::compile_limits::{PatternBudget, count_parts, is_expansion_bounded};
use self::keyword_cost::KeywordCosts;
pub(super) use self::keyword_cost::mark_meta_schema_refs;
pub(super) use self::pattern_cost::is_supported_syntax;
use tool_sdk_core::internal::walk;

/// The most evaluations of a subschema on a value: some seconds.
const MAX_EVALUATIONS: f64 = 50_000_000.0;

/// Up to this many evaluations run inline: some milliseconds.
const MAX_INLINE_EVALUATIONS: f64 = 50_000.0;

/// How deep evaluations may nest.
const MAX_DEPTH: usize = 1_000;

/// The estimated work to validate a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CostEstimate {
    /// How often a subschema is evaluated on a value.
    evaluations: f64,
    /// How many of them are inside one another.
    depth: usize,
}

impl CostEstimate {
    /// Whether the value can be validated.
    pub(super) fn is_affordable(self) -> bool {
        self.evaluations <= MAX_EVALUATIONS
    }

    /// Whether the errors can be listed as well: that repeats the validation on each level.
    pub(super) fn allows_error_listing(self) -> bool {
        self.evaluations * (self.depth as f64) <= MAX_EVALUATIONS
    }
}

/// Estimates the work to validate `value` against `schema`.
pub(super) fn estimate_cost(schema: &Map<String, Value>, value: &Value) -> CostEstimate {
    let mut count = CostCounter::new(schema, MAX_EVALUATIONS);
    let meetings = count.schema_cost(schema, value);
    CostEstimate { evaluations: meetings, depth: count.max_depth }
}

/// Whether the work is so little that it can run inline.
pub(super) fn is_cheap(schema: &Map<String, Value>, value: &Value) -> bool {
    let mut count = CostCounter::new(schema, MAX_INLINE_EVALUATIONS);
    let meetings = count.schema_cost(schema, value);
    meetings * (count.max_depth as f64) <= MAX_INLINE_EVALUATIONS
}

struct CostCounter<'s> {
    /// Where counting stops.
    limit: f64,
    root: &'s Map<String, Value>,
    /// Finished estimates, by the addresses of schema and value.
    memo: HashMap<(usize, usize), f64>,
    keyword_costs: KeywordCosts,
    /// Property names that were evaluated; kept alive because their addresses are keys.
    #[expect(clippy::vec_box, reason = "in a box each stays where it is")]
    name_values: Vec<Box<Value>>,
    /// The targets of dynamic references; collected on first use.
    anchors: Option<AnchorTargets<'s>>,
    steps: f64,
    depth: usize,
    max_depth: usize,
}

impl<'s> CostCounter<'s> {
    fn new(root: &'s Map<String, Value>, limit: f64) -> Self {
        Self {
            limit,
            root,
            memo: HashMap::new(),
            keyword_costs: KeywordCosts::default(),
            name_values: Vec::new(),
            anchors: None,
            steps: 0.0,
            depth: 0,
            max_depth: 0,
        }
    }

    fn schema_cost(&mut self, schema: &'s Map<String, Value>, value: &Value) -> f64 {
        self.steps += 1.0;
        if self.steps > self.limit || self.depth > MAX_DEPTH {
            return f64::INFINITY;
        }
        let key = (std::ptr::from_ref(schema).addr(), std::ptr::from_ref(value).addr());
        if let Some(known) = self.memo.get(&key) {
            return *known;
        }
        let leads_on = value.is_object()
            || value.is_array()
            || walk::has_any_keyword(schema, IN_PLACE_APPLICATORS);
        if leads_on {
            // A cycle on the same value: infinite cost.
            self.memo.insert(key, f64::INFINITY);
        }
        self.depth += 1;
        self.max_depth = self.max_depth.max(self.depth);
        let meetings = self.keywords_cost(schema, value);
        self.depth -= 1;
        if leads_on {
            self.memo.insert(key, meetings);
        }
        meetings
    }

    fn keywords_cost(&mut self, schema: &'s Map<String, Value>, value: &Value) -> f64 {
        let own = self.keyword_costs.keyword_cost(schema, value);
        self.steps += own;
        let mut meetings = 1.0 + own;
        for (keyword, held) in schema {
            meetings += match (keyword.as_str(), held) {
                ("$ref", Value::String(reference)) => self.ref_cost(reference, value),
                ("$dynamicRef", Value::String(reference)) => {
                    self.dynamic_ref_cost(reference, value)
                }
                ("$recursiveRef", _) => self.dynamic_ref_cost(RECURSIVE_ANCHOR, value),
                ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                    schemas.iter().map(|inner| self.subschema_cost(inner, value)).sum()
                }
                ("not" | "if" | "then" | "else", inner) => self.subschema_cost(inner, value),
                ("dependentSchemas", Value::Object(schemas)) => {
                    schemas.values().map(|inner| self.subschema_cost(inner, value)).sum()
                }
                ("properties", Value::Object(schemas)) if value.is_object() => schemas
                    .iter()
                    .map(|(name, inner)| {
                        value.get(name).map_or(0.0, |one| self.subschema_cost(inner, one))
                    })
                    .sum(),
                ("patternProperties", Value::Object(schemas)) => {
                    schemas.values().map(|inner| self.children_cost(inner, value)).sum()
                }
                ("prefixItems", Value::Array(schemas)) => schemas
                    .iter()
                    .zip(value.as_array().into_iter().flatten())
                    .map(|(inner, one)| self.subschema_cost(inner, one))
                    .sum(),
                ("propertyNames", inner) => self.property_names_cost(inner, value),
                ("additionalProperties", inner) if value.is_object() => {
                    self.children_cost(inner, value)
                }
                ("items" | "contains", inner) if value.is_array() => {
                    self.children_cost(inner, value)
                }
                ("unevaluatedItems" | "unevaluatedProperties", inner) => {
                    self.children_cost(inner, value)
                }
                _ => 0.0,
            };
        }
        // The validator finds the evaluated parts by validating again.
        match walk::has_any_keyword(schema, &["unevaluatedItems", "unevaluatedProperties"]) {
            true => 2.0 * meetings,
            false => meetings,
        }
    }

    fn subschema_cost(&mut self, schema: &'s Value, value: &Value) -> f64 {
        match schema {
            Value::Object(schema) => self.schema_cost(schema, value),
            _ => {
                self.steps += 1.0;
                1.0
            }
        }
    }

    /// Each property name costs as much as the longest one.
    fn property_names_cost(&mut self, schema: &'s Value, value: &Value) -> f64 {
        let Value::Object(members) = value else { return 0.0 };
        self.steps += members.len() as f64;
        let Some(longest) = members.keys().max_by_key(|name| name.len()) else { return 0.0 };
        let longest = Box::new(Value::String(longest.clone()));
        let meetings = self.subschema_cost(schema, &longest);
        self.name_values.push(longest);
        members.len() as f64 * meetings
    }

    /// A dynamic reference costs as much as the most expensive of its possible targets.
    fn dynamic_ref_cost(&mut self, reference: &str, value: &Value) -> f64 {
        let root = self.root;
        let known = self.anchors.get_or_insert_with(|| {
            let mut found = AnchorTargets::from([(RECURSIVE_ANCHOR, vec![root])]);
            collect_anchors(root, &mut found);
            found
        });
        let anchor = reference.rsplit_once('#').map_or(reference, |(_, anchor)| anchor);
        let targets = known.get(anchor).cloned().unwrap_or_default();
        targets
            .into_iter()
            .map(|one| self.schema_cost(one, value))
            .reduce(f64::max)
            .unwrap_or(f64::INFINITY)
    }

    /// Applies a schema to each child of a value.
    fn children_cost(&mut self, schema: &'s Value, value: &Value) -> f64 {
        match value {
            Value::Array(items) => items.iter().map(|one| self.subschema_cost(schema, one)).sum(),
            Value::Object(members) => {
                members.values().map(|one| self.subschema_cost(schema, one)).sum()
            }
            _ => 0.0,
        }
    }

    fn ref_cost(&mut self, reference: &str, value: &Value) -> f64 {
        let root = self.root;
        let Some(pointer) = reference.strip_prefix('#') else { return f64::INFINITY };
        let found = match pointer {
            "" => Some(root),
            _ => walk::resolve_pointer(root, pointer).and_then(Value::as_object),
        };
        match (found, pointer) {
            (Some(schema), _) => self.schema_cost(schema, value),
            (None, pointer)
                if walk::resolve_pointer(root, pointer).is_some_and(Value::is_boolean) =>
            {
                1.0
            }
            (None, _) => f64::INFINITY,
        }
    }
}

/// Keywords that apply schemas to the same value.
const IN_PLACE_APPLICATORS: &[&str] =
    &["$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"];

/// The key for targets of `$recursiveRef`, which has no name.
const RECURSIVE_ANCHOR: &str = "";

/// Schemas with a dynamic anchor, by its name.
type AnchorTargets<'s> = HashMap<&'s str, Vec<&'s Map<String, Value>>>;

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(schema: &Value, value: &Value) -> CostEstimate {
        estimate_cost(schema.as_object().unwrap(), value)
    }

    /// Lists nested `depth` times.
    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!(1), |inner, _| json!([inner]))
    }

    #[test]
    fn counts_evaluations() {
        let list = json!({ "type": "array", "items": { "type": "integer" } });
        assert_eq!(of(&list, &json!([1, 2, 3])).evaluations.floor(), 4.0);
        let books = json!({
            "properties": { "all": { "items": { "$ref": "#/$defs/book" } } },
            "$defs": { "book": { "properties": { "title": { "type": "string" } } } },
        });
        let value = json!({ "all": [{ "title": "a" }, { "title": "b", "n": 1 }] });
        assert_eq!(of(&books, &value).evaluations.floor(), 9.0);
        assert!(of(&books, &value).allows_error_listing());
        let many = json!({ "all": vec![json!({ "title": "x", "n": [1, 2, 3] }); 100_000] });
        assert!(of(&books, &many).is_affordable());
    }

    // fault 10: neither a schema nor a value is long, and both together would never end.
    #[test]
    fn exponential_work_is_unbounded() {
        let twice = |keyword: &str| {
            json!({ "$ref": "#/$defs/t", "$defs": { "t": { keyword: [
                { "items": { "$ref": "#/$defs/t" } }, { "items": { "$ref": "#/$defs/t" } },
            ] } } })
        };
        for keyword in ["allOf", "anyOf", "oneOf"] {
            assert!(of(&twice(keyword), &nested(10)).is_affordable());
            for depth in [30, 60, 100] {
                assert!(!of(&twice(keyword), &nested(depth)).is_affordable(), "{keyword} {depth}");
            }
        }
        let both = json!({ "patternProperties": { "a": { "$ref": "#" } },
            "properties": { "a": { "$ref": "#" } } });
        let deep = (0..60).fold(json!(1), |inner, _| json!({ "a": inner }));
        assert!(!of(&both, &deep).is_affordable());
        let looks_back = json!({ "items": { "$ref": "#" }, "unevaluatedItems": false });
        assert!(!of(&looks_back, &nested(60)).is_affordable());

        // The same on one value, without any depth.
        let mut chain = json!({ "$defs": {}, "$ref": "#/$defs/d0" });
        for at in 0..60 {
            let next = json!({ "$ref": format!("#/$defs/d{}", at + 1) });
            chain["$defs"][format!("d{at}")] = json!({ "allOf": [next, next] });
        }
        chain["$defs"]["d60"] = json!({ "type": "integer" });
        assert!(!of(&chain, &json!(1)).is_affordable());
        assert!(!of(&json!({ "allOf": [{ "$ref": "#" }] }), &json!(1)).is_affordable());
    }

    // An extensible tree, as the standard shows it.
    #[test]
    fn dynamic_reference_costs_its_most_expensive_target() {
        let tree = json!({
            "$ref": "#/$defs/tree", "$dynamicAnchor": "node", "unevaluatedProperties": false,
            "$defs": { "tree": { "$dynamicAnchor": "node", "properties": {
                "data": true, "kids": { "items": { "$dynamicRef": "#node" } },
            } } },
        });
        let value = (0..4).fold(json!({}), |inner, _| json!({ "data": 1, "kids": [inner] }));
        assert!(of(&tree, &value).allows_error_listing());
        let nowhere = json!({ "$dynamicRef": "#other" });
        assert!(!of(&nowhere, &json!(1)).is_affordable());
        let back = json!({ "items": { "$recursiveRef": "#" } });
        assert!(of(&back, &nested(20)).allows_error_listing());
    }

    // fault 10: a single evaluation may be expensive.
    #[test]
    fn long_values_cost_each_evaluation() {
        let many = |one: Value| {
            let all = vec![json!({ "$ref": "#/$defs/t" }); 20_000];
            json!({ "properties": { "v": { "anyOf": all } }, "$defs": { "t": one } })
        };
        let text = json!({ "v": "ab".repeat(200_000) });
        assert!(of(&many(json!({ "type": "string" })), &text).is_affordable());
        for heavy in [
            json!({ "pattern": "^(a|b)*c$" }),
            json!({ "maxLength": 3 }),
            json!({ "enum": ["a", text["v"]] }),
        ] {
            assert!(!of(&many(heavy.clone()), &text).is_affordable(), "{heavy:.80}");
        }
        let names: Map<_, _> = (0..20_000).map(|at| (at.to_string(), json!([]))).collect();
        let named = json!({ "v": names });
        let list = json!({ "v": (0..20_000).collect::<Vec<_>>() });
        for (heavy, value) in [
            (json!({ "propertyNames": { "minLength": 2 } }), &named),
            (json!({ "patternProperties": { "x": false } }), &named),
            (json!({ "uniqueItems": true }), &list),
            (json!({ "items": { "enum": [0, 1, 2] } }), &list),
        ] {
            assert!(!of(&many(heavy.clone()), value).is_affordable(), "{heavy}");
        }
    }

    #[test]
    fn deep_nesting_is_unbounded() {
        let within = |inner| json!({ "allOf": [inner] });
        let mut schema =
            (0..40).fold(json!({ "items": { "$ref": "#" } }), |inner, _| within(inner));
        assert!(of(&schema, &nested(10)).is_affordable());
        assert!(!of(&schema, &nested(60)).is_affordable());
        schema["items"] = json!({ "pattern": "^(?=a)(a+)+(?=$)" });
        assert!(!of(&schema, &json!(vec!["aaaaaaaaaaaaaaaa!"; 20_000])).is_affordable());
        assert!(of(&schema, &json!(vec!["aaaaaaaaaaaaaaaa!"; 5_000])).is_affordable());
        assert!(of(&schema, &json!(vec!["a"; 2_000])).is_affordable());
        schema["items"] = json!({ "pattern": "^\\d{4}-\\d{2}$" });
        assert!(of(&schema, &json!(vec!["a"; 20_000])).is_affordable());
    }
}
