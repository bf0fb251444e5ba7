//! Compiles a server's JSON Schema, of any draft, into a validator with bounded work.
//!
//! **Invariant:** nothing is fetched, and a schema that breaks a [rule](super::schema_rules) is
//! never used to validate.

use std::borrow::Cow;

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value, json};
use tool_sdk_core::{
    Schema, SchemaError,
    internal::{is_meta_schema_ref, walk, with_encoded_refs, without_remote_refs},
};

use super::schema_repair::{collect_patterns, without_patterns};
use super::{description_lint, schema_rules};

/// The longest pattern, in bytes (RX1).
const MAX_PATTERN_LEN: usize = 4 << 10;

/// The size limit of a compiled pattern, in bytes (RX1).
const MAX_PATTERN_SIZE: usize = 1 << 20;

/// The memory for the compiled patterns of a schema, which share it equally, in bytes.
const PATTERN_MEMORY: usize = 8 << 20;

/// Up to so many evaluations run inline: about a millisecond.
const MAX_INLINE_WORK: usize = 20_000;

/// Up to so many levels of a value are validated inline, on the stack of the caller.
const MAX_INLINE_DEPTH: usize = 16;

/// Up to so many evaluations, the errors are listed: that repeats the work for each level of a value.
const MAX_LISTED_WORK: usize = 1_000_000;

/// This many bytes of a text cost as much as one more place of the value.
const BYTES_PER_PLACE: usize = 64;

/// A compiled schema.
#[derive(Debug)]
pub(super) struct SchemaValidator {
    /// The schema in the current draft, for models and clients.
    schema: Schema,
    /// The validator, or the rule that the schema breaks.
    validator: Result<BoundedValidator, String>,
    /// Patterns that are not checked here.
    skipped_patterns: Vec<String>,
}

/// A validator whose work is bounded by the size of the value.
#[derive(Debug)]
struct BoundedValidator {
    validator: Validator,
    /// The most evaluations for one place of a value.
    evaluations: usize,
}

impl SchemaValidator {
    /// Compiles a schema; `read` converts it to the form that models and clients see.
    ///
    /// The server may refer to the meta-schemas of JSON Schema. They are validated, and left out of
    /// what models and clients see.
    ///
    /// # Errors
    ///
    /// Returns why the schema cannot be used at all. One that breaks a rule can be shown and not
    /// validated.
    pub(super) fn compile(
        schema: &Value,
        read: impl Fn(Value) -> Result<Schema, SchemaError>,
    ) -> Result<Self, String> {
        schema_rules::check_size(schema)?;
        let readable = description_lint::clean_schema(schema);
        let (shown, marked) = match read(readable.clone()) {
            Ok(shown) => (shown, None),
            Err(error) => {
                let mut marked = readable.clone();
                schema_rules::mark_meta_schema_refs(&mut marked);
                let local = |schema| without_remote_refs(schema).and_then(&read);
                let shown = local(readable).map_err(|_| invalid_schema(&error))?;
                (shown, local(marked).ok())
            }
        };
        let evaluations = schema_rules::check_ids(schema).and_then(|()| {
            schema_rules::check_evaluations(marked.as_ref().unwrap_or(&shown).as_map())
        });
        let mut skipped_patterns = Vec::new();
        let validator = match evaluations {
            Ok(evaluations) => {
                let validator = build_bounded(schema, &mut skipped_patterns)?;
                Ok(BoundedValidator { validator, evaluations })
            }
            Err(rule) => Err(rule),
        };
        Ok(Self { schema: shown, validator, skipped_patterns })
    }

    /// Returns the rule that the schema breaks; nothing is validated with it then.
    pub(super) fn broken_rule(&self) -> Option<&str> {
        self.validator.as_ref().err().map(String::as_str)
    }

    /// Returns a warning for each pattern that is not checked.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        self.skipped_patterns.iter().map(|pattern| {
            let pattern = pattern.escape_debug().take(80).collect::<String>();
            format!("the pattern `{pattern}` is checked by the server only")
        })
    }

    /// The schema that models and clients see.
    pub(super) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Whether validating is so cheap that it can run inline.
    pub(super) fn is_cheap(&self, value: &Value) -> bool {
        let is_cheap = |it: &BoundedValidator| it.max_work(value) <= MAX_INLINE_WORK;
        self.validator.as_ref().is_ok_and(is_cheap) && has_depth(value, MAX_INLINE_DEPTH)
    }

    /// Validates a value. Returns at most `most` reasons, each converted by `fault`, why it does not
    /// match; none if it would take too long to find them.
    ///
    /// # Errors
    ///
    /// Fails when the value does not match.
    pub(super) fn validate<T>(
        &self,
        value: &Value,
        most: usize,
        fault: impl Fn(ValidationError<'_>) -> T,
    ) -> Result<(), Vec<T>> {
        let Ok(bounded) = &self.validator else { return Ok(()) };
        match () {
            () if bounded.validator.is_valid(value) => Ok(()),
            () if bounded.max_work(value) > MAX_LISTED_WORK => Err(Vec::new()),
            () => Err(bounded.validator.iter_errors(value).take(most).map(fault).collect()),
        }
    }
}

impl BoundedValidator {
    /// Returns how many evaluations a value takes at most, not counting that recursive schemas
    /// evaluate again what they find on each level.
    fn max_work(&self, value: &Value) -> usize {
        count_places(value).saturating_mul(self.evaluations)
    }
}

/// Counts the places in a value; a long text is several.
fn count_places(value: &Value) -> usize {
    let of_text = |text: &String| text.len() / BYTES_PER_PLACE;
    let inner = match value {
        Value::String(text) => of_text(text),
        Value::Array(items) => items.iter().map(count_places).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, it)| of_text(name) + count_places(it)).sum()
        }
        _ => 0,
    };
    1 + inner
}

/// Whether a value has at most `levels` levels of objects and arrays.
fn has_depth(value: &Value, levels: usize) -> bool {
    let is_inner = |it: &Value| levels > 0 && has_depth(it, levels - 1);
    match value {
        Value::Array(items) => items.iter().all(is_inner),
        Value::Object(members) => members.values().all(is_inner),
        _ => true,
    }
}

fn invalid_schema(why: &dyn std::fmt::Display) -> String {
    format!("it is not valid: {why}")
}

/// Builds the validator of a schema, without the patterns that are not supported; adds these to
/// `skipped`.
fn build_bounded(schema: &Value, skipped: &mut Vec<String>) -> Result<Validator, String> {
    let mut schema = match with_encoded_refs(schema) {
        Some(encoded) => Cow::Owned(encoded),
        None => Cow::Borrowed(schema),
    };
    let memory = PATTERN_MEMORY / collect_patterns(&schema).len().max(1);
    let is_unsupported = |pattern: &str| {
        pattern.len() > MAX_PATTERN_LEN
            || build_validator(&json!({ "pattern": pattern }), memory).is_err()
    };
    if let Some((rest, patterns)) = without_patterns(&schema, &is_unsupported) {
        schema = Cow::Owned(rest);
        *skipped = patterns;
    }
    build_validator(&schema, memory).map_err(|error| invalid_schema(&error))
}

/// Builds a validator that matches patterns in linear time. `format` is an annotation, as in the
/// standard since 2019, and the content of texts is not checked.
fn build_validator(
    schema: &Value,
    pattern_memory: usize,
) -> Result<Validator, ValidationError<'static>> {
    let pattern_size = pattern_memory.min(MAX_PATTERN_SIZE);
    let patterns =
        PatternOptions::regex().size_limit(pattern_size).dfa_size_limit(8 * pattern_size);
    let options = jsonschema::options()
        .with_pattern_options(patterns)
        .should_validate_formats(false)
        .without_content_media_type_support("application/json")
        .without_content_encoding_support("base64");
    let made = options.build(schema);
    made.or_else(|error| options.build(&without_other_drafts(schema)).map_err(|_| error))
}

/// Replaces references to meta-schemas of another draft, which the validator does not know: they
/// describe roughly an object or a boolean.
fn without_other_drafts(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Value::Object(schema) = &mut schema {
        replace_meta_schema_refs(schema);
    }
    schema
}

fn replace_meta_schema_refs(schema: &mut Map<String, Value>) {
    if schema.get("$ref").and_then(Value::as_str).is_some_and(is_meta_schema_ref) {
        schema.clear();
        schema.insert("type".to_owned(), json!(["object", "boolean"]));
    }
    walk::for_each_in_any_draft_mut(schema, &mut |inner| {
        if let Value::Object(inner) = inner {
            replace_meta_schema_refs(inner);
        }
    });
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::client::time_limit::block_with_limit;

    fn compile(schema: &Value) -> SchemaValidator {
        let schema = schema.clone();
        let work = move || SchemaValidator::compile(&schema, Schema::result_from_value);
        block_with_limit(Duration::from_secs(60), work).expect("it ends in time").unwrap()
    }

    /// Validates a value, which must not take long.
    #[track_caller]
    fn is_valid(schema: &Value, value: Value) -> bool {
        let validator = compile(schema);
        assert_eq!(validator.broken_rule(), None);
        let work = move || validator.validate(&value, 1, |_| ()).is_ok();
        block_with_limit(Duration::from_secs(60), work).expect("it ends in time")
    }

    /// Lists nested `depth` times.
    fn nested(depth: usize, end: Value) -> Value {
        (0..depth).fold(end, |inner, _| json!([inner]))
    }

    // fault 10: what keeps the rules is validated in time, at any depth.
    #[test]
    fn deep_values_are_validated_in_time() {
        let looks_back = json!({
            "type": ["array", "integer"], "items": { "$ref": "#" }, "unevaluatedItems": false,
        });
        let in_place = (0..31).fold(
            json!({ "type": ["array", "integer"], "items": { "$ref": "#" } }),
            |inner, _| json!({ "allOf": [inner] }),
        );
        let spread = json!({
            "type": ["array", "integer"], "items": { "$ref": "#" },
            "anyOf": vec![json!({ "items": { "items": { "items": true } } }); 100],
        });
        for schema in [looks_back, in_place, spread] {
            for depth in [10, 60, 120] {
                assert!(is_valid(&schema, nested(depth, json!(1))), "{depth}: {schema:.80}");
                assert!(!is_valid(&schema, nested(depth, json!("x"))), "{depth}: {schema:.80}");
            }
        }
    }

    // fault 10
    #[test]
    fn long_values_are_validated_in_time() {
        let text = || json!("ab".repeat(200_000));
        let repeated = |one: Value| json!({ "anyOf": vec![json!({ "$ref": "#/$defs/t" }); 80], "$defs": { "t": one } });
        let list = || json!((0..20_000).collect::<Vec<_>>());
        let names = || (0..20_000).map(|at| (at.to_string(), json!([]))).collect::<Value>();
        for (one, value) in [
            (json!({ "pattern": "^(a|b)*c$" }), text()),
            (json!({ "pattern": "((a|b|ab)*c|(a|b|ab)*e)$" }), text()),
            (json!({ "maxLength": 3 }), text()),
            (json!({ "enum": ["a", "b"] }), text()),
            (json!({ "const": "a" }), text()),
            (json!({ "items": { "enum": [0, 1, 2] } }), list()),
            (json!({ "uniqueItems": true, "maxItems": 3 }), list()),
            (json!({ "propertyNames": { "minLength": 2 } }), names()),
            (json!({ "patternProperties": { "1$": false } }), names()),
        ] {
            assert!(!is_valid(&repeated(one.clone()), value), "{one}");
        }
    }

    #[track_caller]
    fn check_pattern(pattern: &str, is_kept: bool) {
        let validator = compile(&json!({ "pattern": pattern }));
        let skipped: Vec<_> = validator.warnings().collect();
        assert_eq!(skipped.is_empty(), is_kept, "{pattern:.80}: {skipped:?}");
        assert!(skipped.iter().all(|it| it.contains("is checked by the server only")));
    }

    // fault 10: the first branch fails in exponentially many ways, and the second one matches.
    #[test]
    fn patterns_are_matched_in_linear_time() {
        for pattern in ["((a|b|ab)*c|(a|b|ab)*d)$", "^(a|b|ab)*c$|^(a|b|ab)*d$", "^(a+)+$|d$"] {
            check_pattern(pattern, true);
            assert!(is_valid(&json!({ "pattern": pattern }), json!("ab".repeat(40) + "d")));
        }
        for pattern in ["a+b*", "^[a-zA-Z0-9_-]{1,64}$", r"^\d{4}-\d{2}$", "^(?:c)(?<name>d)$"] {
            check_pattern(pattern, true);
        }
        for backtracks in [
            r"^(?!\s*$).+",
            "^(?=a)(?:(a|b|ab)*(?=c)c|(a|b|ab)*d)$",
            "^(?=a)(a+)+(?=$)",
            r"^(a)\1$",
            "(?<=a)b",
            "^(?=a",
        ] {
            check_pattern(backtracks, false);
        }
    }

    // fault 10, RX1: a short pattern may compile to much memory.
    #[test]
    fn patterns_are_limited_in_size() {
        for large in [r"\p{L}{600}", r"(?x)\p{L} {600}", r"((\w{50}){50}){50}"] {
            check_pattern(large, false);
        }
        check_pattern(&"x".repeat(MAX_PATTERN_LEN + 1), false);
        let named = |pattern: &dyn Fn(usize) -> String| {
            let each = (0..300).map(|at| (at.to_string(), json!({ "pattern": pattern(at) })));
            compile(&json!({ "properties": each.collect::<Value>() })).warnings().count()
        };
        assert_eq!(named(&|at| format!("^[a-z_]{{1,64}}{at}$")), 0);
        assert_eq!(named(&|at| format!("^.{{0,2500}}{at}$")), 300, "together they take too much");
    }

    // Without the pattern, the rest of the schema is validated.
    #[test]
    fn unsupported_pattern_is_skipped() {
        let schema = json!({ "properties": { "a": { "type": "string", "pattern": "^(?=a)b" } } });
        assert!(is_valid(&schema, json!({ "a": "c" })));
        assert!(!is_valid(&schema, json!({ "a": 1 })));
    }

    #[test]
    fn small_values_are_validated_inline() {
        let list = compile(&json!({ "items": { "type": "integer" } }));
        assert!(list.is_cheap(&json!([1, 2])) && !list.is_cheap(&json!(vec![1; 100_000])));
        assert!(!list.is_cheap(&json!(["x".repeat(1 << 20)])));
        assert!(!list.is_cheap(&nested(17, json!(1))));
    }
}
