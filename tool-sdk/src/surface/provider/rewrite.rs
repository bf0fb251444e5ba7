//! Says a schema with the words that a provider knows.
//!
//! One walk serves every dialect; a [`Subset`] says what the dialect knows. What it does
//! not know becomes another keyword that means the same, or a sentence in the description,
//! or, when neither is possible, a [`Loss`] that the lint reports.
//!
//! **Invariant:** what is sent is never refused by the provider for its form, except where
//! the lint says so; what is accepted is still decided by the tool's own schema.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value, json};

use super::{unions, words};
use crate::schema::{Schema, is_widest, order, type_words, walk};

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

    fn reference(
        &mut self,
        reference: String,
        mut beside: Map<String, Value>,
        path: &str,
    ) -> Map<String, Value> {
        // Metadata of the place itself; it is not needed to say what the reference says.
        for keyword in ["$defs", "definitions", "title"] {
            beside.shift_remove(keyword);
        }
        if self.subset.references {
            if beside.is_empty() {
                let reference = self.want(reference);
                return Map::from_iter([("$ref".to_owned(), reference.into())]);
            }
            // A reference stands alone, so it becomes the only branch of a union.
            let only = json!({ "$ref": reference });
            let taken = beside.contains_key("allOf") || beside.contains_key("anyOf");
            let keyword = if taken { "allOf" } else { "anyOf" };
            if let Some(branches) =
                beside.entry(keyword).or_insert_with(|| json!([])).as_array_mut()
            {
                branches.push(only);
            }
            return self.schema(&beside, path);
        }
        let target = walk::resolve(self.root, &reference).map(Cow::into_owned);
        let again = self.open.contains(&reference) || self.budget == 0;
        let Some(mut target) = target.filter(|_| !again) else {
            return self.cut(&reference, beside, path);
        };
        for (keyword, value) in beside {
            target.insert(keyword, value);
        }
        self.open.push(reference);
        let fitted = self.schema(&target, path);
        self.open.pop();
        fitted
    }

    /// Ends a schema that leads back to itself.
    fn cut(
        &mut self,
        reference: &str,
        mut beside: Map<String, Value>,
        path: &str,
    ) -> Map<String, Value> {
        let problem = format!("the schema leads back to itself through {reference:?}");
        // The first place is enough: the fix is the same for all.
        if !self.losses.iter().any(|loss| loss.problem == problem) {
            self.lose(path, problem, "take a flat list whose items name their parent");
        }
        let target = walk::resolve(self.root, reference);
        let ty = target.as_deref().and_then(|target| target.get("type")?.as_str());
        beside.insert("type".to_owned(), ty.unwrap_or("object").into());
        let name = reference.rsplit('/').next().unwrap_or_default();
        let note = match ty {
            Some("object") | None => format!("The same fields as in the `{name}` around it."),
            Some(_) => format!("The same as the `{name}` around it."),
        };
        self.keywords(beside, path, vec![note])
    }

    /// The reference to a definition that is kept.
    fn want(&mut self, reference: String) -> String {
        if reference == "#" {
            return reference;
        }
        let name = match reference.strip_prefix("#/$defs/") {
            Some(name) if !name.contains('/') => name.to_owned(),
            _ => reference.trim_start_matches("#/").replace(['/', '~', '$', '%'], "_"),
        };
        let kept = format!("#/$defs/{name}");
        self.wanted.entry(name).or_insert(reference);
        kept
    }

    /// The definitions that are referred to, and those that they refer to.
    fn definitions(&mut self) -> Map<String, Value> {
        let mut done = Map::new();
        loop {
            let wanted = self.wanted.clone();
            let Some((name, reference)) =
                wanted.into_iter().find(|(name, _)| !done.contains_key(name))
            else {
                break;
            };
            let target = walk::resolve(self.root, &reference).map(Cow::into_owned);
            let path = reference.trim_start_matches('#').to_owned();
            let fitted = self.schema(&target.unwrap_or_default(), &path);
            done.insert(name, Value::Object(fitted));
        }
        done.sort_keys();
        done
    }

    /// Replaces keywords by others that say the same.
    fn alike(&self, schema: &mut Map<String, Value>, notes: &mut Vec<String>) {
        if !self.knows("const")
            && let Some(value) = schema.shift_remove("const")
        {
            schema.insert("enum".to_owned(), json!([value]));
        }
        if !self.knows("oneOf")
            && !schema.contains_key("anyOf")
            && let Some(branches) = schema.shift_remove("oneOf")
        {
            schema.insert("anyOf".to_owned(), branches);
        }
        if !self.knows("exclusiveMinimum") && is_type(schema, "integer") {
            inclusive(schema, "exclusiveMinimum", "minimum", 1);
            inclusive(schema, "exclusiveMaximum", "maximum", -1);
        }
        if !self.knows("prefixItems")
            && let Some(Value::Array(items)) = schema.shift_remove("prefixItems")
        {
            notes.push(format!("Items in this order: {}.", in_order(&items)));
            let mut different: Vec<Value> = Vec::new();
            for item in items {
                if !different.contains(&item) {
                    different.push(item);
                }
            }
            let items = match different.as_slice() {
                [only] => only.clone(),
                _ => json!({ "anyOf": different }),
            };
            schema.insert("items".to_owned(), items);
        }
        if is_type(schema, "array") && !schema.contains_key("prefixItems") {
            schema.entry("items").or_insert_with(|| json!({}));
        }
        if !schema.contains_key("properties")
            && let Some(Value::Object(patterns)) = schema.get("patternProperties")
            && let Some((pattern, rest)) = patterns.iter().next().filter(|_| patterns.len() == 1)
        {
            notes.push(format!("Names must match the regular expression `{pattern}`."));
            let rest = rest.clone();
            schema.shift_remove("patternProperties");
            schema.insert("additionalProperties".to_owned(), rest);
        } else if schema.contains_key("patternProperties") {
            // What the patterns allowed must not be refused for want of a word for it.
            schema.shift_remove("additionalProperties");
        }
    }

    /// What strict mode cannot say as a type is sent as JSON text, or as a plain value.
    fn as_text(&mut self, schema: &mut Map<String, Value>, path: &str, notes: &mut Vec<String>) {
        let named = schema
            .get("properties")
            .and_then(Value::as_object)
            .is_some_and(|properties| !properties.is_empty());
        let closed = schema.get("additionalProperties") == Some(&json!(false));
        if is_type(schema, "object") && !named && !closed && !path.is_empty() {
            let values = schema.get("additionalProperties").filter(|values| values.is_object());
            let values = values.map(|values| format!(" Each value: {}.", type_words(values)));
            notes.push(format!("A JSON object, sent as text.{}", values.unwrap_or_default()));
            for keyword in ["properties", "required", "additionalProperties"] {
                schema.shift_remove(keyword);
            }
            change_type(schema, "object", "string");
            self.lose(
                path,
                "an object with free names cannot be said; it is sent as JSON text",
                "take a list of structs with a name and a value",
            );
        }
        let says = ["type", "anyOf", "oneOf", "enum", "const"];
        if !says.iter().any(|keyword| schema.contains_key(*keyword)) {
            schema.insert("type".to_owned(), json!(["string", "number", "boolean"]));
            self.lose(
                path,
                "a value of any type cannot be said; only text, numbers and booleans can be sent",
                "take a type that says what is expected",
            );
        }
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
        let object = is_type(&schema, "object") || schema.contains_key("properties");
        let mut fitted = Map::new();
        for (keyword, value) in schema {
            let here = format!("{path}/{keyword}");
            match (keyword.as_str(), value) {
                ("type" | "description", value) => _ = fitted.insert(keyword, value),
                ("properties", Value::Object(properties)) => {
                    let properties = self.properties(properties, &required, &here);
                    fitted.insert(keyword, properties);
                }
                ("required", value) if !self.subset.strict => _ = fitted.insert(keyword, value),
                ("required", _) => {}
                ("items", value) => {
                    let items = walk::object(&value).unwrap_or_default();
                    let items = self.schema(&items, &here);
                    fitted.insert(keyword, Value::Object(items));
                }
                ("additionalProperties", Value::Object(rest)) if !self.subset.strict => {
                    let rest = self.schema(&rest, &here);
                    fitted.insert(keyword, Value::Object(rest));
                }
                ("additionalProperties", value @ Value::Bool(_)) => {
                    fitted.insert(keyword, value);
                }
                ("anyOf" | "oneOf" | "prefixItems", Value::Array(branches))
                    if keyword == "anyOf" || self.knows(&keyword) =>
                {
                    let branches = branches.iter().enumerate().map(|(at, branch)| {
                        let branch = walk::object(branch).unwrap_or_default();
                        Value::Object(self.schema(&branch, &format!("{here}/{at}")))
                    });
                    let branches = branches.collect();
                    fitted.insert(keyword, branches);
                }
                ("minimum" | "maximum", bound)
                    if is_widest(&bound) && bound.as_f64().is_some_and(beyond) => {}
                ("format", format)
                    if format.as_str().is_some_and(|name| self.subset.formats.contains(&name)) =>
                {
                    fitted.insert(keyword, format);
                }
                (_, value) if keyword != "format" && self.knows(&keyword) => {
                    fitted.insert(keyword, value);
                }
                (_, value) => match words::say(&keyword, &value, &ty) {
                    words::Said::InWords(text) => notes.push(text),
                    words::Said::Needless => {}
                    words::Said::Lost(fix) => {
                        self.lose(path, format_args!("`{keyword}` cannot be said"), fix);
                    }
                },
            }
        }
        if self.subset.strict && object {
            close(&mut fitted);
        }
        words::describe(&mut fitted, &notes);
        fitted
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

/// Bounds that a double cannot hold say nothing that a model could heed.
fn beyond(bound: f64) -> bool {
    bound.abs() > 9_007_199_254_740_991.0
}

fn is_type(schema: &Map<String, Value>, ty: &str) -> bool {
    match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|known| known == ty),
        Some(known) => known == ty,
        None => false,
    }
}

fn change_type(schema: &mut Map<String, Value>, from: &str, to: &str) {
    match schema.get_mut("type") {
        Some(Value::Array(types)) => {
            let has = types.iter().any(|ty| ty == to);
            types.retain(|ty| ty != from);
            if !has {
                types.insert(0, to.into());
            }
        }
        Some(ty) => *ty = to.into(),
        None => {}
    }
}

/// The type that the other keywords imply.
fn give_type(schema: &mut Map<String, Value>) {
    let has = |keywords: &[&str]| keywords.iter().any(|keyword| schema.contains_key(*keyword));
    if has(&["type", "anyOf", "oneOf"]) {
        return;
    }
    let ty = if let Some(value) = schema.get("const") {
        json!(type_of(value))
    } else if let Some(Value::Array(values)) = schema.get("enum") {
        let mut types: Vec<&str> = Vec::new();
        for value in values {
            if !types.contains(&type_of(value)) {
                types.push(type_of(value));
            }
        }
        match types.as_slice() {
            [] => return,
            [only] => json!(only),
            types => json!(types),
        }
    } else if has(&["properties", "additionalProperties", "required", "patternProperties"]) {
        json!("object")
    } else if has(&["items", "prefixItems", "minItems", "maxItems"]) {
        json!("array")
    } else if has(&["pattern", "minLength", "maxLength", "format"]) {
        json!("string")
    } else if has(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) {
        json!("number")
    } else {
        return;
    };
    schema.insert("type".to_owned(), ty);
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// "Less than 5" of a whole number is "at most 4".
fn inclusive(schema: &mut Map<String, Value>, exclusive: &str, bound: &str, step: i64) {
    let limit = schema.get(exclusive).and_then(Value::as_i64).and_then(|at| at.checked_add(step));
    if let Some(limit) = limit.filter(|_| !schema.contains_key(bound)) {
        schema.shift_remove(exclusive);
        schema.insert(bound.to_owned(), limit.into());
    }
}

fn in_order(items: &[Value]) -> String {
    let items = items.iter().map(|item| match item.get("description").and_then(Value::as_str) {
        Some(text) => format!("{} ({text})", type_words(item)),
        None => type_words(item),
    });
    items.collect::<Vec<_>>().join(", ")
}

/// A closed object that requires all of its properties.
fn close(schema: &mut Map<String, Value>) {
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    let names: Vec<Value> = properties
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str().into())
        .collect();
    schema.insert("required".to_owned(), Value::Array(names));
    schema.insert("additionalProperties".to_owned(), false.into());
}

/// An optional property where every property is required: `null` stands for its absence.
fn nullable(mut schema: Map<String, Value>) -> Map<String, Value> {
    if let Some(value) = schema.shift_remove("const") {
        schema.insert("enum".to_owned(), json!([value]));
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
        if !branches.contains(&json!({ "type": "null" })) {
            branches.push(json!({ "type": "null" }));
        }
        // The branches say the type; beside them it would forbid null.
        schema.shift_remove("type");
        return schema;
    }
    let listed = schema.contains_key("enum");
    match schema.get_mut("type") {
        Some(Value::Array(types)) => {
            if !types.iter().any(|ty| ty == "null") {
                types.push("null".into());
            }
        }
        Some(ty) if ty != "null" => *ty = json!([ty, "null"]),
        Some(_) => {}
        None if listed => {}
        None => {
            let description = schema.shift_remove("description");
            schema = Map::from_iter([("anyOf".to_owned(), json!([schema, { "type": "null" }]))]);
            if let Some(description) = description {
                schema.insert("description".to_owned(), description);
            }
        }
    }
    order(&mut schema);
    schema
}

/// One branch per type, where `type` may not be a list.
fn split_types(schema: &mut Map<String, Value>) {
    let Some(Value::Array(types)) = schema.get("type") else { return };
    let types: Vec<String> = types.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    schema.shift_remove("type");
    if schema.contains_key("anyOf") || schema.contains_key("oneOf") {
        return;
    }
    if let [only] = types.as_slice() {
        schema.insert("type".to_owned(), only.as_str().into());
        return;
    }
    let description = schema.shift_remove("description");
    let branches: Vec<Value> = types.iter().filter_map(|ty| branch(schema, ty)).collect();
    schema.clear();
    if let Some(description) = description {
        schema.insert("description".to_owned(), description);
    }
    schema.insert("anyOf".to_owned(), Value::Array(branches));
}

/// What `schema` says of values of type `ty`; nothing when its `enum` has none.
fn branch(schema: &Map<String, Value>, ty: &str) -> Option<Value> {
    let about = |keyword: &str| match keyword {
        "minLength" | "maxLength" | "pattern" | "format" => ty == "string",
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            matches!(ty, "integer" | "number")
        }
        "items" | "prefixItems" | "minItems" | "maxItems" | "uniqueItems" => ty == "array",
        "properties" | "required" | "additionalProperties" => ty == "object",
        _ => true,
    };
    let mut branch = Map::from_iter([("type".to_owned(), ty.into())]);
    for (keyword, value) in schema.iter().filter(|(keyword, _)| about(keyword)) {
        if keyword == "enum"
            && let Value::Array(values) = value
        {
            let of_type = |value: &&Value| {
                type_of(value) == ty || ty == "number" && type_of(value) == "integer"
            };
            let values: Vec<Value> = values.iter().filter(of_type).cloned().collect();
            match values.as_slice() {
                [] => return None,
                // `null` is the only value of its type.
                [Value::Null] => {}
                _ => _ = branch.insert(keyword.clone(), Value::Array(values)),
            }
        } else {
            branch.insert(keyword.clone(), value.clone());
        }
    }
    Some(Value::Object(branch))
}
