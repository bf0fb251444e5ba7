//! `schema = "..."`: a committed schema, compared with the signature in test builds.
//!
//! Only the facts that syntax shows are compared: names, required, descriptions, defaults,
//! constraints. The rest is compared by the test that `expand` generates, in which the runtime
//! sees the types.
//!
//! **Invariant:** a difference is an error at the parameter that changed, and only under
//! `cfg(test)`, so that a build can still refresh the file.

use std::path::{Path, PathBuf};

use proc_macro2::Ident;
use serde_json::{Map, Value};
use syn::LitStr;
use syn::ext::IdentExt;

use super::model::{DefaultValue, NumberRange, ParamModel, RangeBound, SchemaLock};
use super::param::FunctionParams;
use crate::diag::Diagnostics;
use crate::docs::DocText;
use crate::span;

/// The parts of a tool that its schema describes.
pub(super) struct LockedSignature<'t> {
    pub(super) ident: &'t Ident,
    pub(super) description: &'t DocText,
    pub(super) params: &'t FunctionParams,
}

/// Rejects a `path` that does not name a file in the package.
pub(super) fn check_path(path: &LitStr, diag: &mut Diagnostics) {
    let file = path.value();
    if file.trim().is_empty() || Path::new(&file).is_absolute() {
        let what = "`schema` must be the path of a file in the package";
        diag.error(path, what, "write it as `schemas/read_page.json`");
    }
}

/// Compares the file at `path` with the signature.
///
/// With `TOOL_SDK_BLESS=1` in the environment nothing is compared, so that the test that writes
/// the file can be built.
pub(super) fn lower_lock(path: &LitStr, test: &str, signature: &LockedSignature<'_>) -> SchemaLock {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let file = path.value();
    let text = std::fs::read_to_string(root.join(&file));
    let is_there = text.is_ok();
    let is_blessed = std::env::var_os("TOOL_SDK_BLESS").is_some_and(|value| value == "1");
    let mut drifts = Diagnostics::default();
    match text {
        _ if is_blessed => {}
        Ok(text) => compare_schema(&text, path, signature, &mut drifts),
        Err(error) => {
            let what = format_args!("schema cannot be read: {error}");
            drifts.error(path, what, REFRESH);
        }
    }
    let test = Ident::new(test, span::macro_span(path));
    SchemaLock { path: file, is_there, test, drifts: drifts.to_tokens() }
}

/// How to update a schema, in a crate with a program and in one without.
const REFRESH: &str = "run the tests once with `TOOL_SDK_BLESS=1`, and read what changed";

/// Reports how `signature` differs from the schema in `text`.
fn compare_schema(
    text: &str,
    path: &LitStr,
    signature: &LockedSignature<'_>,
    drifts: &mut Diagnostics,
) {
    let file = match serde_json::from_str(text) {
        Ok(Value::Object(file)) => file,
        Ok(_) => return drifts.error(path, "schema must be a JSON object", REFRESH),
        Err(error) => {
            return drifts.error(path, format_args!("schema must be JSON: {error}"), REFRESH);
        }
    };
    let inner =
        ["inputSchema", "parameters"].into_iter().find_map(|key| file.get(key)?.as_object());
    if inner.is_some() {
        compare_description(file.get("description"), signature, drifts);
    }
    if signature.params.strukt.is_none() {
        compare_params(inner.unwrap_or(&file), path, signature, drifts);
    }
}

fn compare_description(
    there: Option<&Value>,
    signature: &LockedSignature<'_>,
    drifts: &mut Diagnostics,
) {
    if let (Some(there), DocText::Literal(here)) = (there, signature.description)
        && there != here
    {
        drifts.error(
            signature.ident,
            format_args!("description of `{}` drifted from its schema", signature.ident.unraw()),
            REFRESH,
        );
    }
}

fn compare_params(
    schema: &Map<String, Value>,
    path: &LitStr,
    signature: &LockedSignature<'_>,
    drifts: &mut Diagnostics,
) {
    let params = &signature.params.sent;
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let required: Vec<&str> = match schema.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    for param in params {
        let key = &param.key;
        let Some(property) = properties.get(key) else {
            if !param.is_hidden {
                let what = format_args!("parameter `{key}` is not in the schema");
                drifts.error(&param.ident, what, REFRESH);
            }
            continue;
        };
        let what = drifted_facts(param, property, required.contains(&key.as_str())).join(", ");
        if !what.is_empty() {
            let what = format_args!("parameter `{key}` drifted from its schema: {what}");
            drifts.error(&param.ident, what, REFRESH);
        }
    }
    let is_known = |name: &&String| params.iter().any(|param| param.key == **name);
    for name in properties.keys().filter(|name| !is_known(name)) {
        let what = format_args!("schema has a parameter `{name}` that the tool has not");
        drifts.error(path, what, REFRESH);
    }
}

/// Returns the facts of `param` that differ from its property.
fn drifted_facts(param: &ParamModel, property: &Value, is_required: bool) -> Vec<&'static str> {
    let mut drifted = Vec::new();
    if is_required != (param.default.is_none() && !param.is_optional) {
        drifted.push("required");
    }
    if let DocText::Literal(text) = &param.description
        && property.get("description") != Some(&Value::from(text.as_str()))
    {
        drifted.push("description");
    }
    if has_other_default(param, property) {
        drifted.push("default");
    }
    drifted.extend(drifted_limits(param, property));
    drifted
}

fn has_other_default(param: &ParamModel, property: &Value) -> bool {
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

/// Whether two values are equal; numbers by value.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() < f64::EPSILON,
        _ => a == b,
    }
}

/// Returns the constraints that differ from the file.
fn drifted_limits(param: &ParamModel, property: &Value) -> Vec<&'static str> {
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
        && find_keyword(property, "pattern") != Some(&Value::from(pattern.as_str()))
    {
        other.push("pattern");
    }
    let choices: Vec<Value> = limits.choices.iter().map(|choice| choice.as_str().into()).collect();
    if !choices.is_empty()
        && find_keyword(property, "enum").and_then(Value::as_array) != Some(&choices)
    {
        other.push("choices");
    }
    other
}

fn has_range(range: &NumberRange, property: &Value) -> bool {
    let is = |bound: &Option<RangeBound>, key: &str| {
        let there = find_keyword(property, key);
        match bound {
            None => true,
            Some(RangeBound::Const(_)) => there.is_some(),
            Some(RangeBound::Int(value)) => {
                let here = serde_json::from_str(&value.to_string());
                here.is_ok_and(|here| there.is_some_and(|there| is_same(&here, there)))
            }
            Some(RangeBound::Float(value)) => {
                there.is_some_and(|there| is_same(&(*value).into(), there))
            }
        }
    };
    is(&range.min, "minimum") && is(&range.max, "maximum")
}

/// Whether one of `keys` holds the number `text`; a constant is any number.
fn has_number(property: &Value, keys: &[&str], text: &str) -> bool {
    let there = keys.iter().find_map(|key| find_keyword(property, key)).and_then(Value::as_u64);
    match text.parse::<u64>() {
        Ok(here) => there == Some(here),
        Err(_) => there.is_some(),
    }
}

/// A keyword of a property, or of the branch of an optional one that is not null.
fn find_keyword<'v>(property: &'v Value, key: &str) -> Option<&'v Value> {
    property
        .get(key)
        .or_else(|| property.get("anyOf")?.as_array()?.iter().find_map(|branch| branch.get(key)))
}

#[cfg(test)]
mod tests {
    use proc_macro2::Span;

    use super::*;
    use crate::tool::param;

    #[track_caller]
    fn check(params: &str, schema: &str, expected: &[&str]) {
        let function = syn::parse_str(&format!("fn act({params}) {{}}")).unwrap();
        let mut diag = Diagnostics::default();
        let params = param::lower_params(&function, &mut diag);
        assert_eq!(diag.messages(), [""; 0]);
        let signature = LockedSignature {
            ident: &function.sig.ident,
            description: &DocText::Literal("Does things.".to_owned()),
            params: &params,
        };
        compare_schema(schema, &LitStr::new("act.json", Span::call_site()), &signature, &mut diag);
        let messages = diag.messages();
        let first: Vec<_> = messages.iter().filter_map(|message| message.lines().next()).collect();
        assert_eq!(first, expected);
    }

    #[test]
    fn a_schema_may_be_bare_or_in_a_definition() {
        let schema = r#"{
            "properties": {
                "path": { "type": "string", "description": "Path.", "pattern": "^a" },
                "limit": {
                    "description": "Limit.", "default": 5, "minimum": 1, "maximum": 9
                },
                "mode": { "description": "Mode.", "enum": ["a", "b"], "maxLength": 4 }
            },
            "required": ["path"]
        }"#;
        let params = "
            /** Path. */ #[arg(pattern = \"^a\")] path: String,
            /** Limit. */ #[arg(default = 5, range = 1..10)] limit: u32,
            /** Mode. */ #[arg(choices(\"a\", \"b\"), length = ..=4)] mode: Option<&str>,
            /** Secret. */ #[arg(hidden, default = LEVEL)] level: u8";
        check(params, schema, &[]);
        let definition = format!(r#"{{"description": "Other.", "inputSchema": {schema}}}"#);
        check(params, &definition, &["description of `act` drifted from its schema"]);
    }

    #[test]
    fn every_parameter_that_drifted_is_named_once() {
        check(
            "/** Path. */ path: String, /** N. */ #[arg(default = 1, range = 1..)] n: u8",
            r#"{
                "properties": {
                    "n": { "description": "No.", "default": 2, "minimum": 0 },
                    "old": {}
                },
                "required": ["n"]
            }"#,
            &[
                "parameter `path` is not in the schema",
                "parameter `n` drifted from its schema: required, description, default, range",
                "schema has a parameter `old` that the tool has not",
            ],
        );
    }

    #[test]
    fn a_broken_file_is_one_complaint() {
        check("/** N. */ n: u8", "[]", &["schema must be a JSON object"]);
        check(
            "/** N. */ n: u8",
            "{",
            &["schema must be JSON: EOF while parsing an object at line 1 column 1"],
        );
    }
}
