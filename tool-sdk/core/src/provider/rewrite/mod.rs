//! Rewrites a schema into the subset of JSON Schema that a provider supports.
//!
//! One walk serves every dialect, configured by a [`SchemaSubset`]. An unsupported keyword is
//! replaced by an equivalent one, or described in a sentence, or, if neither is possible, reported
//! as a [`RewriteLoss`].
//!
//! **Invariant:** the provider never refuses the form of the result, except where the lint reports
//! it. The tool's own schema still decides what is accepted.

mod keyword_rewrites;
mod references;
mod strict;
mod types;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value, json};

use self::keyword_rewrites::infer_type;
use self::strict::{close_object, make_nullable};
use self::types::split_types;
use super::{keyword_descriptions, unions};
use crate::schema::walk::{self, is_type};
use crate::schema::{Schema, is_type_limit, sort_keywords};

/// The subset of JSON Schema that a dialect supports.
#[derive(Debug)]
pub(super) struct SchemaSubset {
    /// The supported keywords, besides `type`, `description` and those that hold schemas.
    pub(super) keywords: &'static [&'static str],
    /// The supported values of `format`.
    pub(super) formats: &'static [&'static str],
    /// Whether `$ref` is supported.
    pub(super) references: bool,
    /// Whether `type` may be a list.
    pub(super) type_lists: bool,
    /// Whether objects must be closed and require all of their properties.
    pub(super) strict: bool,
}

/// A constraint that the dialect cannot express.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RewriteLoss {
    pub(super) path: String,
    pub(super) problem: String,
    pub(super) fix: String,
}

impl RewriteLoss {
    pub(super) fn new(
        path: impl Into<String>,
        problem: impl fmt::Display,
        fix: impl fmt::Display,
    ) -> Self {
        Self { path: path.into(), problem: problem.to_string(), fix: fix.to_string() }
    }
}

/// The maximum number of schemas after references are inlined.
const MAX_SCHEMAS: usize = 2000;

/// Rewrites a schema into `subset`, and returns what is lost.
pub(super) fn rewrite_schema(
    schema: &Schema,
    subset: &SchemaSubset,
) -> (Map<String, Value>, Vec<RewriteLoss>) {
    let mut losses = Vec::new();
    let flat = unions::flatten_root(schema.as_map(), &mut losses);
    let mut fitter = SchemaRewriter {
        root: schema.as_map(),
        subset,
        losses,
        open: Vec::new(),
        budget: MAX_SCHEMAS,
        wanted: BTreeMap::new(),
    };
    let mut root = fitter.rewrite(&flat, "");
    root.entry("properties").or_insert_with(|| json!({}));
    let defs = fitter.rewrite_definitions();
    if !defs.is_empty() {
        root.insert("$defs".to_owned(), Value::Object(defs));
    }
    sort_keywords(&mut root);
    (root, fitter.losses)
}

struct SchemaRewriter<'a> {
    root: &'a Map<String, Value>,
    subset: &'a SchemaSubset,
    losses: Vec<RewriteLoss>,
    /// The references that are being inlined.
    open: Vec<String>,
    budget: usize,
    /// The referenced definitions, by the name under which they are kept.
    wanted: BTreeMap<String, String>,
}

impl SchemaRewriter<'_> {
    fn supports(&self, keyword: &str) -> bool {
        self.subset.keywords.contains(&keyword)
    }

    fn add_loss(&mut self, path: &str, problem: impl fmt::Display, fix: impl fmt::Display) {
        let loss = RewriteLoss::new(path, problem, fix);
        if !self.losses.contains(&loss) {
            self.losses.push(loss);
        }
    }

    /// Rewrites a schema at any place.
    fn rewrite(&mut self, schema: &Map<String, Value>, path: &str) -> Map<String, Value> {
        self.budget = self.budget.saturating_sub(1);
        let mut schema = schema.clone();
        if let Some(Value::String(reference)) = schema.shift_remove("$ref") {
            return self.rewrite_reference(reference, schema, path);
        }
        unions::merge_all_of(&mut schema, self.root, path, &mut self.losses);
        unions::flatten_union(&mut schema, self.root, path, &mut self.losses);
        let mut notes = Vec::new();
        infer_type(&mut schema);
        self.replace_keywords(&mut schema, &mut notes);
        if self.subset.strict {
            self.replace_untyped(&mut schema, path, &mut notes);
        }
        let mut fitted = self.rewrite_keywords(schema, path, notes);
        if !self.subset.type_lists {
            split_types(&mut fitted);
        }
        sort_keywords(&mut fitted);
        fitted
    }

    /// Keeps supported keywords and describes the others.
    fn rewrite_keywords(
        &mut self,
        schema: Map<String, Value>,
        path: &str,
        mut notes: Vec<String>,
    ) -> Map<String, Value> {
        let ty = schema.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let required: Vec<String> = walk::required_names(&schema).map(str::to_owned).collect();
        let is_closed =
            self.subset.strict && (is_type(&schema, "object") || schema.contains_key("properties"));
        let mut fitted = Map::new();
        for (keyword, value) in schema {
            let here = format!("{path}/{keyword}");
            let kept = match (keyword.as_str(), value) {
                ("type" | "description", value) => Some(value),
                ("properties", Value::Object(properties)) => {
                    Some(self.rewrite_properties(properties, &required, &here))
                }
                ("required", value) => (!self.subset.strict).then_some(value),
                ("items", value) => Some(self.rewrite_nested(&value, &here)),
                ("additionalProperties", rest @ Value::Object(_)) if !self.subset.strict => {
                    Some(self.rewrite_nested(&rest, &here))
                }
                ("additionalProperties", value @ Value::Bool(_)) => Some(value),
                ("anyOf" | "oneOf" | "prefixItems", Value::Array(branches))
                    if keyword == "anyOf" || self.supports(&keyword) =>
                {
                    let branches = branches.iter().enumerate();
                    Some(
                        branches
                            .map(|(at, it)| self.rewrite_nested(it, &format!("{here}/{at}")))
                            .collect(),
                    )
                }
                ("minimum" | "maximum", bound) if is_type_range(&bound) => None,
                (known, value) if self.supports_value(known, &value) => Some(value),
                (unknown, value) => {
                    self.describe_unsupported(unknown, &value, &ty, path, &mut notes);
                    None
                }
            };
            if let Some(kept) = kept {
                fitted.insert(keyword, kept);
            }
        }
        if is_closed {
            close_object(&mut fitted);
        }
        keyword_descriptions::append_description(&mut fitted, &notes);
        fitted
    }

    /// Returns true if the dialect supports a keyword with this value. The keyword must not hold
    /// schemas.
    fn supports_value(&self, keyword: &str, value: &Value) -> bool {
        match keyword {
            "format" => value.as_str().is_some_and(|name| self.subset.formats.contains(&name)),
            _ => self.supports(keyword),
        }
    }

    /// Describes an unsupported keyword, or records the loss.
    fn describe_unsupported(
        &mut self,
        keyword: &str,
        value: &Value,
        ty: &str,
        path: &str,
        notes: &mut Vec<String>,
    ) {
        match keyword_descriptions::describe_keyword(keyword, value, ty) {
            keyword_descriptions::KeywordText::Sentence(text) => notes.push(text),
            keyword_descriptions::KeywordText::Omitted => {}
            keyword_descriptions::KeywordText::Unsupported(fix) => {
                self.add_loss(path, format_args!("`{keyword}` cannot be expressed"), fix);
            }
        }
    }

    /// Rewrites a nested schema.
    fn rewrite_nested(&mut self, schema: &Value, path: &str) -> Value {
        let schema = walk::as_object_schema(schema).unwrap_or_default();
        Value::Object(self.rewrite(&schema, path))
    }

    fn rewrite_properties(
        &mut self,
        properties: Map<String, Value>,
        required: &[String],
        path: &str,
    ) -> Value {
        let mut fitted = Map::new();
        for (name, schema) in properties {
            let path = format!("{path}/{}", walk::escape_pointer_step(&name));
            let schema = walk::as_object_schema(&schema).unwrap_or_default();
            let mut schema = self.rewrite(&schema, &path);
            if self.subset.strict && !required.contains(&name) {
                schema = make_nullable(schema);
            }
            fitted.insert(name, Value::Object(schema));
        }
        Value::Object(fitted)
    }
}

/// Returns true for the bounds of an integer type that a double cannot represent, such as
/// `u64::MAX`. They do not help a model.
fn is_type_range(bound: &Value) -> bool {
    is_type_limit(bound)
        && bound.as_f64().is_some_and(|bound| bound.abs() > 9_007_199_254_740_991.0)
}
