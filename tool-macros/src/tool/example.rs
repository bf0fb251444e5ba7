//! Every rule about examples: a model copies what it sees.

use serde_json::{Map, Value};
use syn::LitStr;

use super::param::Params;
use crate::attr::Items;
use crate::diag::{Diagnostics, expected_one_of};

/// The examples, each a JSON object that the parameters accept as far as syntax can tell.
pub(super) fn lower(items: &Items<'_>, params: &Params, diag: &mut Diagnostics) -> Vec<String> {
    let literals = items.strings("example", diag);
    for literal in &literals {
        if let Some(arguments) = object(literal, diag)
            && params.strukt.is_none()
            && params.is_complete
        {
            fits(&arguments, params, literal, diag);
        }
    }
    literals.iter().map(LitStr::value).collect()
}

fn object(literal: &LitStr, diag: &mut Diagnostics) -> Option<Map<String, Value>> {
    let help = r##"write an object, such as `r#"{"path": "a.txt"}"#`"##;
    match serde_json::from_str(&literal.value()) {
        Ok(Value::Object(arguments)) => return Some(arguments),
        Ok(_) => diag.error(literal, "`example` must be a JSON object", help),
        Err(error) => {
            diag.error(literal, format_args!("`example` must be a JSON object: {error}"), help);
        }
    }
    None
}

fn fits(arguments: &Map<String, Value>, params: &Params, literal: &LitStr, diag: &mut Diagnostics) {
    let keys = || params.sent.iter().map(|param| param.key.as_str());
    let is_unknown = |argument: &&String| !keys().any(|key| key == *argument);
    let unknown: Vec<&String> = arguments.keys().filter(is_unknown).collect();
    for argument in &unknown {
        let help = expected_one_of(argument, keys());
        diag.error(literal, format_args!("unknown argument `{argument}` in `example`"), help);
    }
    if !unknown.is_empty() {
        // What is missing may be there under the wrong name.
        return;
    }
    for param in &params.sent {
        let is_required = param.default.is_none() && !param.is_optional;
        if is_required && !arguments.contains_key(&param.key) {
            diag.error(
                literal,
                format_args!("`example` has no `{}`, which is required", param.key),
                format_args!("add `\"{}\": ..`", param.key),
            );
        }
    }
}
