//! `schema = "..."`: a committed schema, compared with the signature in test builds.
//!
//! Compared is what syntax shows: names, required, descriptions, defaults, constraints.
//! The rest is for the runtime's own test, which sees the types.
//!
//! **Invariant:** a difference is an error at the parameter that drifted, and only under
//! `cfg(test)`, so that a build can still refresh the file.

use std::path::{Path, PathBuf};

use proc_macro2::{Ident, TokenStream};
use quote::ToTokens;
use serde_json::{Map, Value};
use syn::LitStr;
use syn::ext::IdentExt;

use super::model::{Bound, DefaultValue, Param, Range, SchemaLock};
use super::param::Params;
use crate::diag;
use crate::docs::Text;

/// How a drifted schema is brought up to date.
const REFRESH: &str = "run `cargo run -- schema --write schemas`";

/// Compares the file at `path` with the signature.
pub(super) fn lower(
    path: &LitStr,
    ident: &Ident,
    description: &Text,
    params: &Params,
) -> SchemaLock {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    locked(path, &root, ident, description, params)
}

fn locked(
    path: &LitStr,
    root: &Path,
    ident: &Ident,
    description: &Text,
    params: &Params,
) -> SchemaLock {
    let relative = path.value();
    let mut drifts = Drifts(TokenStream::new());
    let text = match std::fs::read_to_string(root.join(&relative)) {
        Ok(text) => text,
        Err(error) => {
            drifts.add(path, format_args!("schema `{relative}` cannot be read: {error}"));
            return SchemaLock { tracked: None, drifts: drifts.0 };
        }
    };
    match serde_json::from_str::<Value>(&text) {
        Ok(Value::Object(file)) => drifts.compare(&file, path, ident, description, params),
        Ok(_) => drifts.add(path, format_args!("schema `{relative}` must be a JSON object")),
        Err(error) => {
            drifts.add(path, format_args!("schema `{relative}` must be JSON: {error}"));
        }
    }
    SchemaLock { tracked: Some(relative), drifts: drifts.0 }
}

/// Differences, as compile errors.
struct Drifts(TokenStream);

impl Drifts {
    fn add(&mut self, at: impl ToTokens, what: impl std::fmt::Display) {
        self.0.extend(diag::spanned(at, what, REFRESH).to_compile_error());
    }

    fn compare(
        &mut self,
        file: &Map<String, Value>,
        path: &LitStr,
        ident: &Ident,
        description: &Text,
        params: &Params,
    ) {
        let inner =
            ["inputSchema", "parameters"].into_iter().find_map(|key| file.get(key)?.as_object());
        if let (Some(_), Text::Literal(here), Some(there)) =
            (inner, description, file.get("description"))
            && there != here
        {
            self.add(
                ident,
                format_args!("description of `{}` drifted from its schema", ident.unraw()),
            );
        }
        if params.strukt.is_some() {
            return;
        }
        let schema = inner.unwrap_or(file);
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let required = schema.get("required").and_then(Value::as_array);
        for param in &params.sent {
            match properties.get(&param.key) {
                Some(property) => {
                    let is_required =
                        required.is_some_and(|names| names.iter().any(|name| *name == *param.key));
                    self.compare_param(param, property, is_required);
                }
                None if param.is_hidden => {}
                None => {
                    self.add(
                        &param.ident,
                        format_args!("parameter `{}` is not in the schema", param.key),
                    );
                }
            }
        }
        let is_known = |name: &&String| params.sent.iter().any(|param| param.key == **name);
        for name in properties.keys().filter(|name| !is_known(name)) {
            self.add(path, format_args!("schema has a parameter `{name}` that the tool has not"));
        }
    }

    fn compare_param(&mut self, param: &Param, property: &Value, is_required: bool) {
        let mut drifted: Vec<&str> = Vec::new();
        if is_required != (param.default.is_none() && !param.is_optional) {
            drifted.push("required");
        }
        if let Text::Literal(text) = &param.description
            && property.get("description") != Some(&Value::from(text.as_str()))
        {
            drifted.push("description");
        }
        if has_other_default(param, property) {
            drifted.push("default");
        }
        drifted.extend(other_limits(param, property));
        if !drifted.is_empty() {
            let what = drifted.join(", ");
            self.add(
                &param.ident,
                format_args!("parameter `{}` drifted from its schema: {what}", param.key),
            );
        }
    }
}

fn has_other_default(param: &Param, property: &Value) -> bool {
    let there = property.get("default");
    match &param.default {
        None => there.is_some_and(|there| !there.is_null()),
        Some(DefaultValue::Expr(_)) => there.is_none(),
        Some(DefaultValue::Literal { json, .. }) => match (serde_json::from_str(json), there) {
            (Ok(here), Some(there)) => !is_same(&here, there),
            _ => true,
        },
    }
}

/// Whether two values are the same; numbers by value.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() < f64::EPSILON,
        _ => a == b,
    }
}

/// The constraints that are not what the file says.
fn other_limits(param: &Param, property: &Value) -> Vec<&'static str> {
    let limits = &param.limits;
    let mut other = Vec::new();
    if limits.range.as_ref().is_some_and(|range| !has_range(range, property)) {
        other.push("range");
    }
    if let Some(length) = &limits.length {
        let is_open = |max: &str| max.contains("MAX");
        let (min, max) = (length.min.to_string(), length.max.to_string());
        let min_there = ["minLength", "minItems", "minProperties"];
        let max_there = ["maxLength", "maxItems", "maxProperties"];
        let has_min = min == "0" || has_number(property, &min_there, &min);
        let has_max = is_open(&max) || has_number(property, &max_there, &max);
        if !(has_min && has_max) {
            other.push("length");
        }
    }
    if let Some(pattern) = &limits.pattern
        && lookup(property, "pattern") != Some(&Value::from(pattern.as_str()))
    {
        other.push("pattern");
    }
    let choices: Vec<Value> = limits.choices.iter().map(|choice| choice.as_str().into()).collect();
    if !choices.is_empty() && lookup(property, "enum").and_then(Value::as_array) != Some(&choices) {
        other.push("choices");
    }
    other
}

fn has_range(range: &Range, property: &Value) -> bool {
    let is = |bound: &Option<Bound>, key: &str| {
        let there = lookup(property, key);
        match bound {
            None => true,
            Some(Bound::Const(_)) => there.is_some(),
            Some(Bound::Int(value)) => {
                let here = serde_json::from_str(&value.to_string());
                here.is_ok_and(|here| there.is_some_and(|there| is_same(&here, there)))
            }
            Some(Bound::Float(value)) => {
                there.is_some_and(|there| is_same(&(*value).into(), there))
            }
        }
    };
    is(&range.min, "minimum") && is(&range.max, "maximum")
}

/// Whether one of `keys` holds the number `text`; a constant is any number.
fn has_number(property: &Value, keys: &[&str], text: &str) -> bool {
    let there = keys.iter().find_map(|key| lookup(property, key)).and_then(Value::as_u64);
    match text.parse::<u64>() {
        Ok(here) => there == Some(here),
        Err(_) => there.is_some(),
    }
}

/// A keyword of a property, or of the branch of an optional one that is not null.
fn lookup<'v>(property: &'v Value, key: &str) -> Option<&'v Value> {
    property
        .get(key)
        .or_else(|| property.get("anyOf")?.as_array()?.iter().find_map(|branch| branch.get(key)))
}
