//! All rules about examples: a model copies what it sees.

use std::collections::HashSet;

use serde_json::{Map, Value};
use syn::LitStr;

use super::limit;
use super::param::FunctionParams;
use crate::attr::CheckedItems;
use crate::diag::{Diagnostics, expected_one_of};

/// The examples, each a JSON object that the parameters accept as far as syntax can tell.
pub(super) fn lower_examples(
    items: &CheckedItems<'_>,
    params: &FunctionParams,
    diag: &mut Diagnostics,
) -> Vec<String> {
    let literals = items.strings("example", diag);
    for literal in &literals {
        if let Some(arguments) = parse_object(literal, diag)
            && params.strukt.is_none()
            && params.is_complete
        {
            check_arguments(&arguments, params, literal, diag);
        }
    }
    literals.iter().map(LitStr::value).collect()
}

fn parse_object(literal: &LitStr, diag: &mut Diagnostics) -> Option<Map<String, Value>> {
    let help = r##"write an object, such as `r#"{"path": "a.txt"}"#`"##;
    match serde_json::from_str(&literal.value()) {
        Ok(Value::Object(arguments)) => {
            let text = literal.value();
            let Some(key) = find_repeated_key(&text) else { return Some(arguments) };
            diag.error(literal, format_args!("duplicate `{key}` in `example`"), "keep one of them");
        }
        Ok(_) => diag.error(literal, "`example` must be a JSON object", help),
        Err(error) => {
            diag.error(literal, format_args!("`example` must be a JSON object: {error}"), help);
        }
    }
    None
}

fn check_arguments(
    arguments: &Map<String, Value>,
    params: &FunctionParams,
    literal: &LitStr,
    diag: &mut Diagnostics,
) {
    let shown = || params.sent.iter().filter(|param| !param.is_hidden);
    let keys = || shown().map(|param| param.key.as_str());
    let is_unknown = |argument: &&String| !keys().any(|key| key == *argument);
    let unknown: Vec<&String> = arguments.keys().filter(is_unknown).collect();
    for argument in &unknown {
        let help = expected_one_of(argument, keys());
        diag.error(literal, format_args!("unknown argument `{argument}` in `example`"), help);
    }
    if !unknown.is_empty() {
        // A missing argument may be present under a wrong name.
        return;
    }
    for param in shown() {
        let given = arguments.get(&param.key);
        if let Some(reason) = given.and_then(|value| limit::why_refused(value, &param.limits)) {
            let what = format_args!("`{}` in `example` {reason}", param.key);
            diag.error(literal, what, "write a value that the parameter takes");
        }
        let is_required = param.default.is_none() && !param.is_optional;
        if is_required && given.is_none() {
            diag.error(
                literal,
                format_args!("`example` has no `{}`, which is required", param.key),
                format_args!("add `\"{}\": ..`", param.key),
            );
        }
    }
}

/// Returns a duplicate key in one object of `json`, which is well-formed.
fn find_repeated_key(json: &str) -> Option<String> {
    let mut objects: Vec<HashSet<String>> = Vec::new();
    let mut rest = json;
    while let Some(at) = rest.find(['{', '}', '"']) {
        let from = &rest[at..];
        let length = if from.starts_with('"') { json_string_len(from) } else { 1 };
        let (token, after) = from.split_at(length);
        rest = after;
        match token {
            "{" => objects.push(HashSet::new()),
            "}" => drop(objects.pop()),
            _ if after.trim_start().starts_with(':') => {
                let key: String = serde_json::from_str(token).ok()?;
                if !objects.last_mut()?.insert(key.clone()) {
                    return Some(key);
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns the length of the JSON string at the start of `text`.
fn json_string_len(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stands_once_in_each_object() {
        for (json, expected) in [
            (r#"{"a": 1, "b": {"a": 2}, "c": [{"a": 1}, {"a": 1}]}"#, None),
            (r#"{"a": "a", "b": "\"a\": {", "c": "a"}"#, None),
            (r#"{"a": 1, "a" : 2}"#, Some("a")),
            (r#"{"a": 1, "\u0061": 2}"#, Some("a")),
            (r#"{"x": [{"b": 1, "c\\": {}, "b": 1}]}"#, Some("b")),
        ] {
            assert_eq!(find_repeated_key(json).as_deref(), expected, "{json}");
        }
    }
}
