//! Says a schema with the words that a provider knows.
//!
//! One walk serves every dialect; a [`SchemaSubset`] says what the dialect knows. What it does
//! not know becomes another keyword that means the same, or a sentence in the description,
//! or, when neither is possible, a [`RewriteLoss`] that the lint reports.
//!
//! **Invariant:** what is sent is never refused by the provider for its form, except where
//! the lint says so; what is accepted is still decided by the tool's own schema.

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

/// What a dialect knows of JSON Schema.
#[derive(Debug)]
pub(super) struct SchemaSubset {
    /// The keywords, beside `type`, `description` and what holds schemas.
    pub(super) keywords: &'static [&'static str],
    /// The values of `format`.
    pub(super) formats: &'static [&'static str],
    /// Whether it follows `$ref`.
    pub(super) references: bool,
    /// Whether `type` may be a list.
    pub(super) type_lists: bool,
    /// Whether it takes only objects that are closed and require all of their properties.
    pub(super) strict: bool,
}

/// Something that the dialect cannot say.
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

/// How many schemas a schema without `$ref` may unfold into.
const MAX_SCHEMAS: usize = 2000;

/// The schema in the words of `subset`, and what they cannot say.
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
    /// The references that are being unfolded.
    open: Vec<String>,
    budget: usize,
    /// The definitions that are referred to, by the name under which they are kept.
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

    /// A schema, wherever it stands.
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

    /// Keeps the keywords that the dialect knows, and says the others.
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

    /// Whether the dialect knows a keyword that holds no schemas, with this value.
    fn supports_value(&self, keyword: &str, value: &Value) -> bool {
        match keyword {
            "format" => value.as_str().is_some_and(|name| self.subset.formats.contains(&name)),
            _ => self.supports(keyword),
        }
    }

    /// Says in words what the dialect has no keyword for.
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
                self.add_loss(path, format_args!("`{keyword}` cannot be said"), fix);
            }
        }
    }

    /// A schema that stands inside of another one.
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

/// Bounds that only say how wide a type is, where a double cannot hold them, are nothing that a
/// model could heed.
fn is_type_range(bound: &Value) -> bool {
    is_type_limit(bound)
        && bound.as_f64().is_some_and(|bound| bound.abs() > 9_007_199_254_740_991.0)
}
