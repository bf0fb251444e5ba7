//! Describes JSON Schema keywords in sentences, for providers that do not support them.

use serde_json::{Map, Value};

/// How a keyword that the provider does not support is handled.
#[derive(Debug, PartialEq)]
pub(super) enum KeywordText {
    /// It is described in a sentence.
    Sentence(String),
    /// It is irrelevant for the model.
    Omitted,
    /// It cannot be expressed; the text says how to avoid it.
    Unsupported(&'static str),
}

const FIX_SPLIT: &str = "take an enum with a tag, or separate tools";
const FIX_NAMED_VALUES: &str = "take a list of structs with a name and a value";

/// Describes `keyword: value` for a value of type `ty`.
pub(super) fn describe_keyword(keyword: &str, value: &Value, ty: &str) -> KeywordText {
    let unit = if ty == "string" { "characters" } else { "items" };
    let text = match keyword {
        "default" if value.is_null() => return KeywordText::Omitted,
        "default" => format!("Default: {value}."),
        "const" => format!("Always {value}."),
        "enum" => format!("One of {}.", join_values(value)),
        "examples" => format!("For example {}.", join_values(value)),
        "deprecated" if *value == true => "Deprecated.".to_owned(),
        "format" => format!("Format: {}.", unquoted(value)),
        "pattern" => format!("Must match the regular expression `{}`.", unquoted(value)),
        "minimum" => format!("At least {value}."),
        "maximum" => format!("At most {value}."),
        "exclusiveMinimum" => format!("More than {value}."),
        "exclusiveMaximum" => format!("Less than {value}."),
        "multipleOf" => format!("A multiple of {value}."),
        "minLength" => {
            format!("At least {value} {}.", if *value == 1 { "character" } else { unit })
        }
        "maxLength" => format!("At most {value} {}.", if *value == 1 { "character" } else { unit }),
        "minItems" => format!("At least {value} {}.", if *value == 1 { "item" } else { unit }),
        "maxItems" => format!("At most {value} {}.", if *value == 1 { "item" } else { unit }),
        "minProperties" => format!("Number of entries: at least {value}."),
        "maxProperties" => format!("Number of entries: at most {value}."),
        "uniqueItems" if *value == true => "No item twice.".to_owned(),
        "contentEncoding" => format!("Encoded as {}.", unquoted(value)),
        "contentMediaType" => format!("Media type: {}.", unquoted(value)),
        "propertyNames" => match value.get("pattern").or_else(|| value.get("enum")) {
            Some(Value::String(pattern)) => {
                format!("Names must match the regular expression `{pattern}`.")
            }
            Some(names) => format!("Names are of {}.", join_values(names)),
            None => return KeywordText::Omitted,
        },
        "dependentRequired" => describe_dependencies(value),
        "not" => match (value.get("const"), value.get("enum")) {
            (Some(value), _) => format!("Not {value}."),
            (None, Some(values)) => format!("None of {}.", join_values(values)),
            (None, None) => return KeywordText::Unsupported(FIX_SPLIT),
        },
        "allOf" | "anyOf" | "oneOf" | "if" | "dependentSchemas" => {
            return KeywordText::Unsupported(FIX_SPLIT);
        }
        "additionalProperties" if value.is_object() => {
            return KeywordText::Unsupported(FIX_NAMED_VALUES);
        }
        "patternProperties" => return KeywordText::Unsupported(FIX_NAMED_VALUES),
        "contains" => {
            return KeywordText::Unsupported("say in the description which item must be there");
        }
        _ => return KeywordText::Omitted,
    };
    if text.is_empty() { KeywordText::Omitted } else { KeywordText::Sentence(text) }
}

fn describe_dependencies(value: &Value) -> String {
    let sentences: Vec<_> = value
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, others)| {
            let others: Vec<_> = others.as_array()?.iter().filter_map(Value::as_str).collect();
            Some(format!("With `{name}`, also send `{}`.", others.join("`, `")))
        })
        .collect();
    sentences.join(" ")
}

fn join_values(values: &Value) -> String {
    match values {
        Value::Array(values) => values.iter().map(Value::to_string).collect::<Vec<_>>().join(", "),
        value => value.to_string(),
    }
}

fn unquoted(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Appends sentences to the description.
pub(super) fn append_description(schema: &mut Map<String, Value>, sentences: &[String]) {
    if sentences.is_empty() {
        return;
    }
    let mut text = match schema.get("description") {
        Some(Value::String(text)) => text.trim_end().to_owned(),
        _ => String::new(),
    };
    if text.contains('\n') {
        text.push('\n');
    } else if !text.is_empty() {
        let ends = text.ends_with(['.', '!', '?', ':', ';', ')']);
        text.push_str(if ends { " " } else { ". " });
    }
    text.push_str(&sentences.join(" "));
    schema.insert("description".to_owned(), text.into());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(keyword: &str, value: Value, ty: &str, expected: &str) {
        assert_eq!(
            describe_keyword(keyword, &value, ty),
            KeywordText::Sentence(expected.to_owned())
        );
    }

    #[test]
    fn constraints_are_sentences() {
        check("default", json!(2000), "integer", "Default: 2000.");
        check("maxLength", json!(200), "string", "At most 200 characters.");
        check("minItems", json!(1), "array", "At least 1 item.");
        check("not", json!({ "const": 0 }), "integer", "Not 0.");
        check(
            "dependentRequired",
            json!({ "a": ["b", "c"] }),
            "object",
            "With `a`, also send `b`, `c`.",
        );
        assert_eq!(describe_keyword("x-own", &json!(1), "string"), KeywordText::Omitted);
        assert_eq!(
            describe_keyword("not", &json!({}), "string"),
            KeywordText::Unsupported(FIX_SPLIT)
        );
    }

    #[test]
    fn sentences_follow_the_description() {
        for (before, after) in [
            ("How many", "How many. A."),
            ("Why?", "Why? A."),
            ("a\n- b", "a\n- b\nA."),
            ("", "A."),
        ] {
            let mut schema = Map::from_iter([("description".to_owned(), json!(before))]);
            append_description(&mut schema, &["A.".to_owned()]);
            assert_eq!(schema["description"], after);
        }
    }
}
