//! Validates schemas from other sources, after upgrading earlier drafts to 2020-12.
//!
//! **Invariant:** nothing is fetched. A `$ref` must lead to a place in the same document.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::local_refs::with_local_refs;
use super::{SchemaError, draft_refs, walk};

/// The maximum nesting of a schema; the schema of a tool stays far below.
pub(super) const MAX_DEPTH: usize = 64;

/// Checks that `schema` can describe the parameters of a tool.
pub(super) fn check_parameters(schema: Value) -> Result<Map<String, Value>, SchemaError> {
    let says_object = |ty: &Value| *ty == "object" || *ty == Value::from(vec!["object"]);
    let is_object = schema.get("type").is_some_and(says_object);
    let mut root = upgrade_root(schema, "parameters")?;
    if is_object {
        // Arguments are an object, even if the type beside a reference does not count in this
        // draft.
        root.shift_insert(0, "type".to_owned(), "object".into());
    }
    if root.get("type").and_then(Value::as_str) != Some("object") {
        let found = root.get("type").map_or("nothing".to_owned(), Value::to_string);
        return Err(SchemaError::new(
            "",
            format_args!("`type` must be \"object\" for parameters, found {found}"),
        ));
    }
    reject_faults(root)
}

/// Checks that `schema` can describe the result of a tool, which may have any type.
pub(super) fn check_result(schema: Value) -> Result<Map<String, Value>, SchemaError> {
    upgrade_root(schema, "a result").and_then(reject_faults)
}

fn reject_faults(root: Map<String, Value>) -> Result<Map<String, Value>, SchemaError> {
    match find_faults(&root).into_iter().next() {
        Some(fault) => Err(fault),
        None => Ok(root),
    }
}

/// Returns all faults of a schema.
pub(crate) fn find_faults(root: &Map<String, Value>) -> Vec<SchemaError> {
    let mut found = Vec::new();
    let mut ends = BTreeSet::new();
    check_node(root, &mut ReferenceChecker { root, acyclic: &mut ends }, "", 0, &mut found);
    found
}

/// Follows the references of a schema; `ends` caches those without a cycle.
struct ReferenceChecker<'a> {
    root: &'a Map<String, Value>,
    acyclic: &'a mut BTreeSet<String>,
}

fn check_node(
    schema: &Map<String, Value>,
    references: &mut ReferenceChecker<'_>,
    path: &str,
    depth: usize,
    found: &mut Vec<SchemaError>,
) {
    if depth > MAX_DEPTH {
        found.push(SchemaError::new(path, format_args!("nested deeper than {MAX_DEPTH} levels")));
        return;
    }
    for (keyword, value) in schema {
        if let Some(expected) = expected_value(keyword, value) {
            found.push(SchemaError::new(path, format_args!("`{keyword}` must be {expected}")));
        }
    }
    if let Some(Value::String(reference)) = schema.get("$ref")
        && let Some(problem) = references.find_reference_problem(reference)
    {
        found.push(SchemaError::new(path, problem));
    }
    walk::for_each_subschema(schema, &mut |_, step, inner| {
        let path = format!("{path}{step}");
        match inner {
            Value::Object(inner) => check_node(inner, references, &path, depth + 1, found),
            Value::Bool(_) => {}
            _ => found.push(SchemaError::new(path, "a schema must be an object or a boolean")),
        }
    });
}

impl ReferenceChecker<'_> {
    /// Returns the problem of a `$ref`, if there is one.
    fn find_reference_problem(&mut self, reference: &str) -> Option<String> {
        if !reference.starts_with('#') {
            return Some(format!(
                "`$ref` {reference:?} leads out of the schema; only `#/...` can be followed"
            ));
        }
        if walk::resolve_ref(self.root, reference).is_none() {
            return Some(format!("`$ref` {reference:?} leads nowhere"));
        }
        self.is_cyclic(reference, &mut Vec::new())
            .then(|| format!("`$ref` {reference:?} leads back to itself"))
    }

    /// Whether a reference leads back to itself for the same value, so that validation would not
    /// terminate.
    fn is_cyclic(&mut self, reference: &str, open: &mut Vec<String>) -> bool {
        if open.iter().any(|known| known == reference) {
            return true;
        }
        if self.acyclic.contains(reference) {
            return false;
        }
        let Some(target) = walk::resolve_ref(self.root, reference) else { return false };
        open.push(reference.to_owned());
        let round = open.len() > MAX_DEPTH || self.has_cycle(&target, open);
        open.pop();
        if !round {
            self.acyclic.insert(reference.to_owned());
        }
        round
    }

    /// Follows every reference that applies to the same value as `schema`.
    fn has_cycle(&mut self, schema: &Map<String, Value>, open: &mut Vec<String>) -> bool {
        if let Some(Value::String(reference)) = schema.get("$ref")
            && self.is_cyclic(reference, open)
        {
            return true;
        }
        let mut round = false;
        walk::for_each_subschema(schema, &mut |keyword, _, inner| {
            let same = matches!(
                keyword,
                "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas"
            );
            if let Value::Object(inner) = inner
                && same
                && !round
            {
                round = self.has_cycle(inner, open);
            }
        });
        round
    }
}

/// Keywords whose values are not checked, or are schemas.
const UNCHECKED_KEYWORDS: [&str; 19] = [
    "$anchor",
    "$defs",
    "$schema",
    "$vocabulary",
    "additionalProperties",
    "const",
    "contains",
    "contentSchema",
    "default",
    "definitions",
    "else",
    // From OpenAPI, often found in schemas.
    "example",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Finds unknown keywords that are similar to known ones, for schemas that are written by hand.
pub(crate) fn find_misspelt(root: &Map<String, Value>) -> Vec<SchemaError> {
    let mut found = Vec::new();
    find_misspelt_within(root, "", 0, &mut found);
    found
}

fn find_misspelt_within(
    schema: &Map<String, Value>,
    path: &str,
    depth: usize,
    found: &mut Vec<SchemaError>,
) {
    for keyword in schema.keys().filter(|it| !is_keyword(it) && !it.starts_with("x-")) {
        let known = UNCHECKED_KEYWORDS.iter().chain(&CHECKED_KEYWORDS);
        let close = known.min_by_key(|it| strsim::damerau_levenshtein(it, keyword));
        if let Some(close) = close.filter(|it| strsim::damerau_levenshtein(it, keyword) < 2) {
            let problem = format_args!("unknown keyword `{keyword}`; did you mean `{close}`?");
            found.push(SchemaError::new(path, problem));
        }
    }
    if depth <= MAX_DEPTH {
        walk::for_each_subschema(schema, &mut |_, step, inner| {
            if let Value::Object(inner) = inner {
                find_misspelt_within(inner, &format!("{path}{step}"), depth + 1, found);
            }
        });
    }
}

fn is_keyword(keyword: &str) -> bool {
    UNCHECKED_KEYWORDS.contains(&keyword) || CHECKED_KEYWORDS.contains(&keyword)
}

/// Keywords whose values are [checked](expected_value).
const CHECKED_KEYWORDS: [&str; 38] = [
    "$comment",
    "$id",
    "$ref",
    "allOf",
    "anyOf",
    "contentEncoding",
    "contentMediaType",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "readOnly",
    "required",
    "title",
    "type",
    "uniqueItems",
    "writeOnly",
];

/// Returns what the value of `keyword` must be, if it is invalid.
pub fn expected_value(keyword: &str, value: &Value) -> Option<&'static str> {
    let (fits, expected) = match keyword {
        "type" => (is_type(value), "one of the seven type names, or a list of them"),
        "properties" | "patternProperties" | "$defs" | "dependentSchemas" => {
            (value.is_object(), "an object of schemas")
        }
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
            (value.as_array().is_some_and(|list| !list.is_empty()), "a list of schemas")
        }
        "required" => (is_name_list(value), "a list of different names"),
        "dependentRequired" => (
            value.as_object().is_some_and(|map| map.values().all(is_name_list)),
            "an object of lists of names",
        ),
        "enum" => (value.is_array(), "a list of values"),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => {
            let whole = value.as_f64().is_some_and(|number| number >= 0.0 && number.fract() == 0.0);
            (whole, "a whole number that is not negative")
        }
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
            (value.is_number(), "a number")
        }
        "multipleOf" => (value.as_f64().is_some_and(|number| number > 0.0), "a number above 0"),
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => {
            (value.is_boolean(), "true or false")
        }
        "description" | "title" | "format" | "pattern" | "$ref" | "$id" | "$anchor"
        | "$comment" | "contentEncoding" | "contentMediaType" => (value.is_string(), "a text"),
        "examples" => (value.is_array(), "a list of values"),
        _ => return None,
    };
    (!fits).then_some(expected)
}

fn is_type(value: &Value) -> bool {
    const NAMES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
    let name = |value: &Value| value.as_str().is_some_and(|name| NAMES.contains(&name));
    match value {
        Value::Array(types) => !types.is_empty() && types.iter().all(name) && are_distinct(types),
        value => name(value),
    }
}

fn is_name_list(value: &Value) -> bool {
    value.as_array().is_some_and(|names| names.iter().all(Value::is_string) && are_distinct(names))
}

fn are_distinct(values: &[Value]) -> bool {
    values.iter().enumerate().all(|(at, value)| !values[..at].contains(value))
}

/// Upgrades a schema of an earlier draft to 2020-12, and removes annotations of the root.
pub(super) fn upgrade_root(schema: Value, what: &str) -> Result<Map<String, Value>, SchemaError> {
    let Value::Object(mut root) = schema else {
        let problem = format_args!("a schema of {what} must be a JSON object");
        return Err(SchemaError::new("", problem));
    };
    let draft = Draft::from_schema(&root);
    let rename = root.contains_key("definitions") && !root.contains_key("$defs");
    draft_refs::redirect_refs(&mut root, rename);
    if rename && let Some(definitions) = root.shift_remove("definitions") {
        root.insert("$defs".to_owned(), definitions);
    }
    upgrade_schema(&mut root, draft, 0);
    if let Cow::Owned(told) = with_local_refs(&root) {
        root = told;
    }
    walk::sanitize_definition_names(&mut root);
    for keyword in ["$schema", "$id", "title"] {
        root.shift_remove(keyword);
    }
    Ok(root)
}

/// The draft that a schema declares, where it differs from later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Draft {
    Four,
    Six,
    Seven,
    /// 2019-09.
    Eight,
    Newest,
}

/// Whether a schema with this `$schema` is interpreted as declared.
pub fn is_followed_draft(said: &Value) -> bool {
    let root = Map::from_iter([("$schema".to_owned(), said.clone())]);
    let is_newest = |it: &str| it.contains("json-schema.org/draft/2020-12");
    Draft::from_schema(&root) != Draft::Newest || said.as_str().is_some_and(is_newest)
}

impl Draft {
    fn from_schema(root: &Map<String, Value>) -> Self {
        let said = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let named = [
            ("draft-04", Self::Four),
            ("draft-06", Self::Six),
            ("draft-07", Self::Seven),
            ("2019-09", Self::Eight),
        ];
        let known = said.contains("json-schema.org");
        let found = named.into_iter().find(|(name, _)| known && said.contains(name));
        found.map_or(Self::Newest, |(_, draft)| draft)
    }

    /// Returns the draft that introduced `keyword`.
    fn introducing(keyword: &str) -> Self {
        match keyword {
            "const" | "contains" | "propertyNames" => Self::Six,
            "if" | "then" | "else" => Self::Seven,
            "dependentRequired"
            | "dependentSchemas"
            | "maxContains"
            | "minContains"
            | "unevaluatedItems"
            | "unevaluatedProperties" => Self::Eight,
            "prefixItems" => Self::Newest,
            _ => Self::Four,
        }
    }
}

/// Keywords that stay beside a `$ref` up to draft 7: annotations, and definitions.
const REF_SIBLINGS: [&str; 7] =
    ["$ref", "$defs", "definitions", "description", "title", "default", "examples"];

fn upgrade_schema(schema: &mut Map<String, Value>, draft: Draft, depth: usize) {
    if draft < Draft::Newest {
        schema.retain(|keyword, _| Draft::introducing(keyword) <= draft);
    }
    // Up to draft 7, keywords beside a reference are ignored.
    if draft <= Draft::Seven && schema.get("$ref").is_some_and(Value::is_string) {
        schema.retain(|keyword, _| REF_SIBLINGS.contains(&keyword.as_str()));
    }
    if let Some(Value::Array(_)) = schema.get("items")
        && let Some(items) = schema.shift_remove("items")
    {
        schema.insert("prefixItems".to_owned(), items);
        if let Some(rest) = schema.shift_remove("additionalItems") {
            schema.insert("items".to_owned(), rest);
        }
    }
    if let Some(Value::Object(dependencies)) = schema.get("dependencies") {
        let (names, schemas): (Vec<_>, Vec<_>) =
            dependencies.clone().into_iter().partition(|(_, value)| value.is_array());
        schema.shift_remove("dependencies");
        for (keyword, entries) in [("dependentRequired", names), ("dependentSchemas", schemas)] {
            if !entries.is_empty() {
                schema.insert(keyword.to_owned(), Value::Object(entries.into_iter().collect()));
            }
        }
    }
    if let Some([only]) = schema.get("type").and_then(Value::as_array).map(Vec::as_slice) {
        let only = only.clone();
        schema.insert("type".to_owned(), only);
    }
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        if let Some(Value::Bool(yes)) = schema.get(exclusive) {
            let yes = *yes;
            schema.shift_remove(exclusive);
            if yes && let Some(value) = schema.shift_remove(bound) {
                schema.insert(exclusive.to_owned(), value);
            }
        }
    }
    if depth <= MAX_DEPTH {
        walk::for_each_subschema_mut(schema, &mut |_, inner| {
            if let Value::Object(inner) = inner {
                upgrade_schema(inner, draft, depth + 1);
            }
        });
    }
}
