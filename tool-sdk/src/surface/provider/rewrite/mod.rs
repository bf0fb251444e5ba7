//! Says a schema with the words that a provider knows.
//!
//! One walk serves every dialect; a [`Subset`] says what the dialect knows. What it does
//! not know becomes another keyword that means the same, or a sentence in the description,
//! or, when neither is possible, a [`Loss`] that the lint reports.
//!
//! **Invariant:** what is sent is never refused by the provider for its form, except where
//! the lint says so; what is accepted is still decided by the tool's own schema.

mod alike;
mod references;
mod strict;
mod types;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value, json};

use self::alike::give_type;
use self::strict::{close, nullable};
use self::types::split_types;
use super::{unions, words};
use crate::schema::walk::{self, is_type};
use crate::schema::{Schema, is_widest, order};

/// What a dialect knows of JSON Schema.
#[derive(Debug)]
pub(super) struct Subset {
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
pub(super) struct Loss {
    pub(super) path: String,
    pub(super) problem: String,
    pub(super) fix: String,
}

impl Loss {
    pub(super) fn new(
        path: impl Into<String>,
        problem: impl fmt::Display,
        fix: impl fmt::Display,
    ) -> Self {
        Self { path: path.into(), problem: problem.to_string(), fix: fix.to_string() }
    }
}

/// How many schemas a schema without `$ref` may unfold into.
const BUDGET: usize = 2000;

/// The schema in the words of `subset`, and what they cannot say.
pub(super) fn fit(schema: &Schema, subset: &Subset) -> (Map<String, Value>, Vec<Loss>) {
    let mut losses = Vec::new();
    let flat = unions::flat_root(schema.as_map(), &mut losses);
    let mut fitter = Fitter {
        root: schema.as_map(),
        subset,
        losses,
        open: Vec::new(),
        budget: BUDGET,
        wanted: BTreeMap::new(),
    };
    let mut root = fitter.schema(&flat, "");
    root.entry("properties").or_insert_with(|| json!({}));
    let defs = fitter.definitions();
    if !defs.is_empty() {
        root.insert("$defs".to_owned(), Value::Object(defs));
    }
    order(&mut root);
    (root, fitter.losses)
}

struct Fitter<'a> {
    root: &'a Map<String, Value>,
    subset: &'a Subset,
    losses: Vec<Loss>,
    /// The references that are being unfolded.
    open: Vec<String>,
    budget: usize,
    /// The definitions that are referred to, by the name under which they are kept.
    wanted: BTreeMap<String, String>,
}

impl Fitter<'_> {
    fn knows(&self, keyword: &str) -> bool {
        self.subset.keywords.contains(&keyword)
    }

    fn lose(&mut self, path: &str, problem: impl fmt::Display, fix: impl fmt::Display) {
        let loss = Loss::new(path, problem, fix);
        if !self.losses.contains(&loss) {
            self.losses.push(loss);
        }
    }

    /// A schema, wherever it stands.
    fn schema(&mut self, schema: &Map<String, Value>, path: &str) -> Map<String, Value> {
        self.budget = self.budget.saturating_sub(1);
        let mut schema = schema.clone();
        if let Some(Value::String(reference)) = schema.shift_remove("$ref") {
            return self.reference(reference, schema, path);
        }
        unions::merge_all_of(&mut schema, self.root, path, &mut self.losses);
        unions::flatten_beside(&mut schema, self.root, path, &mut self.losses);
        let mut notes = Vec::new();
        give_type(&mut schema);
        self.alike(&mut schema, &mut notes);
        if self.subset.strict {
            self.as_text(&mut schema, path, &mut notes);
        }
        let mut fitted = self.keywords(schema, path, notes);
        if !self.subset.type_lists {
            split_types(&mut fitted);
        }
        order(&mut fitted);
        fitted
    }

    /// Keeps the keywords that the dialect knows, and says the others.
    fn keywords(
        &mut self,
        schema: Map<String, Value>,
        path: &str,
        mut notes: Vec<String>,
    ) -> Map<String, Value> {
        let ty = schema.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let required: Vec<String> = walk::required(&schema).map(str::to_owned).collect();
        let is_closed =
            self.subset.strict && (is_type(&schema, "object") || schema.contains_key("properties"));
        let mut fitted = Map::new();
        for (keyword, value) in schema {
            let here = format!("{path}/{keyword}");
            let kept = match (keyword.as_str(), value) {
                ("type" | "description", value) => Some(value),
                ("properties", Value::Object(properties)) => {
                    Some(self.properties(properties, &required, &here))
                }
                ("required", value) => (!self.subset.strict).then_some(value),
                ("items", value) => Some(self.inside(&value, &here)),
                ("additionalProperties", rest @ Value::Object(_)) if !self.subset.strict => {
                    Some(self.inside(&rest, &here))
                }
                ("additionalProperties", value @ Value::Bool(_)) => Some(value),
                ("anyOf" | "oneOf" | "prefixItems", Value::Array(branches))
                    if keyword == "anyOf" || self.knows(&keyword) =>
                {
                    let branches = branches.iter().enumerate();
                    Some(
                        branches.map(|(at, it)| self.inside(it, &format!("{here}/{at}"))).collect(),
                    )
                }
                ("minimum" | "maximum", bound) if says_nothing(&bound) => None,
                (known, value) if self.keeps(known, &value) => Some(value),
                (unknown, value) => {
                    self.say(unknown, &value, &ty, path, &mut notes);
                    None
                }
            };
            if let Some(kept) = kept {
                fitted.insert(keyword, kept);
            }
        }
        if is_closed {
            close(&mut fitted);
        }
        words::describe(&mut fitted, &notes);
        fitted
    }

    /// Whether the dialect knows a keyword that holds no schemas, with this value.
    fn keeps(&self, keyword: &str, value: &Value) -> bool {
        match keyword {
            "format" => value.as_str().is_some_and(|name| self.subset.formats.contains(&name)),
            _ => self.knows(keyword),
        }
    }

    /// Says in words what the dialect has no keyword for.
    fn say(&mut self, keyword: &str, value: &Value, ty: &str, path: &str, notes: &mut Vec<String>) {
        match words::say(keyword, value, ty) {
            words::Said::InWords(text) => notes.push(text),
            words::Said::Needless => {}
            words::Said::Lost(fix) => {
                self.lose(path, format_args!("`{keyword}` cannot be said"), fix);
            }
        }
    }

    /// A schema that stands inside of another one.
    fn inside(&mut self, schema: &Value, path: &str) -> Value {
        let schema = walk::object(schema).unwrap_or_default();
        Value::Object(self.schema(&schema, path))
    }

    fn properties(
        &mut self,
        properties: Map<String, Value>,
        required: &[String],
        path: &str,
    ) -> Value {
        let mut fitted = Map::new();
        for (name, schema) in properties {
            let path = format!("{path}/{}", walk::escape(&name));
            let schema = walk::object(&schema).unwrap_or_default();
            let mut schema = self.schema(&schema, &path);
            if self.subset.strict && !required.contains(&name) {
                schema = nullable(schema);
            }
            fitted.insert(name, Value::Object(schema));
        }
        Value::Object(fitted)
    }
}

/// Bounds that only say how wide a type is, where a double cannot hold them, are nothing that a
/// model could heed.
fn says_nothing(bound: &Value) -> bool {
    is_widest(bound) && bound.as_f64().is_some_and(|bound| bound.abs() > 9_007_199_254_740_991.0)
}
