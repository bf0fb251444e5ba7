//! Describes the constraints of a JSON Schema in words for help pages.

use serde_json::Value;
use tool_sdk_core::internal::describe_type;

use crate::style;

/// Returns the type, limits, pattern and default of a value; "required" if it has no default.
pub(crate) fn describe_constraints(schema: &Value, required: bool) -> Vec<String> {
    let mut facts = vec![describe_type(schema)];
    facts.retain(|words| !words.is_empty());
    for (min, max, of) in [
        ("minLength", "maxLength", "characters"),
        ("minItems", "maxItems", "items"),
        ("minProperties", "maxProperties", "entries"),
    ] {
        facts.extend(describe_bounds(schema.get(min), schema.get(max), of));
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        facts.push(format!("matches `{pattern}`"));
    }
    match schema.get("default") {
        Some(default) => facts.push(format!("default: {default}")),
        None if required => facts.push("required".to_owned()),
        None => {}
    }
    facts
}

fn describe_bounds(min: Option<&Value>, max: Option<&Value>, of: &str) -> Option<String> {
    let count = |bound: Option<&Value>| bound.and_then(Value::as_u64);
    match (count(min).filter(|min| *min > 0), count(max)) {
        (None, None) => None,
        (Some(min), None) => Some(format!("at least {min} {of}")),
        (None, Some(max)) => Some(format!("at most {max} {of}")),
        (Some(min), Some(max)) if min == max => Some(format!("exactly {min} {of}")),
        (Some(min), Some(max)) => Some(format!("{min} to {max} {of}")),
    }
}

/// Returns the values of an `enum` as `a|b|c`, if that is at most 40 bytes long.
pub(super) fn short_choices(schema: &Value) -> Option<String> {
    const MAX: usize = 40;
    let values = schema.get("enum")?.as_array()?;
    let choices = values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|");
    Some(style::sanitize_text(&choices).into_owned())
        .filter(|text| text.len() <= MAX && !text.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_facts(schema: Value, required: bool, expected: &str) {
        assert_eq!(describe_constraints(&schema, required)[1..].join("; "), expected);
    }

    #[test]
    fn describes_limits_and_defaults() {
        check_facts(
            json!({"type": "string", "maxLength": 9}),
            true,
            "at most 9 characters; required",
        );
        check_facts(
            json!({"type": "string", "minLength": 1, "maxLength": 9}),
            false,
            "1 to 9 characters",
        );
        check_facts(
            json!({"type": "array", "minItems": 2, "maxItems": 2}),
            false,
            "exactly 2 items",
        );
        check_facts(json!({"type": "array", "minItems": 2}), false, "at least 2 items");
        check_facts(json!({"type": "string", "pattern": "^a"}), false, "matches `^a`");
        check_facts(json!({"type": "string", "default": "x"}), true, "default: \"x\"");
    }
}
