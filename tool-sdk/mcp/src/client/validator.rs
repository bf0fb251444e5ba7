//! Compiles a server's JSON Schema, of any draft, into a validator with bounded cost.
//!
//! **Invariant:** nothing is fetched, and neither schema, pattern nor value takes unbounded work.

use std::borrow::Cow;
use std::fmt;

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value, json};

use super::schema_cost::{self, PatternBudget};
use super::{description_lint, schema_patterns};
use tool_sdk_core::internal::{
    is_meta_schema_ref, walk, with_encoded_refs, with_local_refs, without_remote_refs,
};
use tool_sdk_core::{Schema, SchemaError};

/// The longest schema, in bytes.
pub(super) const MAX_BYTES: usize = 256 << 10;

/// The most objects in a schema, each of which may be a schema.
const MAX_PARTS: usize = 10_000;

/// The backtracking limit of a pattern.
const BACKTRACK_LIMIT: usize = 20_000;

/// The size limit of a compiled pattern, in bytes (RX1).
const COMPILED_SIZE_LIMIT: usize = 1 << 20;

/// A compiled schema.
#[derive(Debug)]
pub(super) struct SchemaValidator {
    validator: Validator,
    /// The schema in the current draft, for models and clients.
    schema: Schema,
    /// The schema for estimating the cost, if it refers to meta-schemas.
    cost_schema: Option<Schema>,
    /// Patterns that are not checked here.
    skipped_patterns: Vec<String>,
}

/// The result of validating a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ValidationOutcome<T> {
    /// The value matches the schema.
    Valid,
    /// It does not, for these reasons; empty if finding them would be too expensive.
    Invalid(Vec<T>),
    /// Validating would be too expensive.
    TooExpensive,
}

impl SchemaValidator {
    /// Compiles a schema; `read` converts it to the form that models and clients see.
    ///
    /// The server may refer to the meta-schemas of JSON Schema. They are validated, and left out of
    /// what models and clients see.
    ///
    /// # Errors
    ///
    /// Returns why the schema cannot be used.
    pub(super) fn compile(
        schema: &Value,
        read: impl Fn(Value) -> Result<Schema, SchemaError>,
    ) -> Result<Self, String> {
        let length = schema.to_string().len();
        if length > MAX_BYTES {
            return Err(format!("it is {length} bytes long"));
        }
        let parts = schema_cost::count_parts(schema);
        if parts > MAX_PARTS {
            return Err(format!("it has {parts} parts"));
        }
        let wrong = |what: &dyn fmt::Display| format!("it is not valid: {what}");
        let readable = description_lint::clean_schema(schema);
        let (told, counted) = match read(readable.clone()) {
            Ok(told) => (told, None),
            Err(error) => {
                let counted = without_remote_refs(schema_cost::mark_meta_schema_refs(&readable))
                    .and_then(&read);
                let told =
                    without_remote_refs(readable).and_then(&read).map_err(|_| wrong(&error))?;
                (told, counted.ok())
            }
        };
        if !schema_cost::is_expansion_bounded(told.as_map()) {
            return Err("its references expand to too many schemas".to_owned());
        }
        let mut room = PatternBudget::default();
        let has_no_room =
            |pattern: &str| !schema_cost::is_supported_syntax(pattern) || !room.try_take(pattern);
        let mut unread = Vec::new();
        let mut leave = |schema: &mut Cow<'_, Value>, left: Option<(Value, Vec<String>)>| {
            let Some((rest, patterns)) = left else { return false };
            unread.extend(patterns);
            *schema = Cow::Owned(rest);
            true
        };
        let mut judging = merge_resources(schema)?;
        if let Some(encoded) = with_encoded_refs(&judging) {
            judging = Cow::Owned(encoded);
        }
        let left = schema_patterns::without_patterns(&judging, has_no_room);
        leave(&mut judging, left);
        let mut validator = build_validator(&judging);
        if validator.is_err() {
            let is_unreadable =
                |pattern: &str| build_validator(&json!({ "pattern": pattern })).is_err();
            let left = schema_patterns::without_patterns(&judging, is_unreadable);
            if leave(&mut judging, left) {
                validator = build_validator(&judging);
            }
        }
        let validator = validator.map_err(|error| wrong(&error))?;
        Ok(Self { validator, schema: told, cost_schema: counted, skipped_patterns: unread })
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
        schema_cost::is_cheap(self.cost_schema.as_ref().unwrap_or(&self.schema).as_map(), value)
    }

    /// Whether a value can be validated within the limits.
    pub(super) fn is_affordable(&self, value: &Value) -> bool {
        self.estimate_cost(value).is_affordable()
    }

    fn estimate_cost(&self, value: &Value) -> schema_cost::CostEstimate {
        schema_cost::estimate_cost(
            self.cost_schema.as_ref().unwrap_or(&self.schema).as_map(),
            value,
        )
    }

    /// Validates a value; returns at most `most` reasons, each converted by `fault`.
    pub(super) fn validate<T>(
        &self,
        value: &Value,
        most: usize,
        fault: impl Fn(ValidationError<'_>) -> T,
    ) -> ValidationOutcome<T> {
        let work = self.estimate_cost(value);
        match () {
            () if !work.is_affordable() => ValidationOutcome::TooExpensive,
            () if self.validator.is_valid(value) => ValidationOutcome::Valid,
            () if !work.allows_error_listing() => ValidationOutcome::Invalid(Vec::new()),
            () => ValidationOutcome::Invalid(
                self.validator.iter_errors(value).take(most).map(fault).collect(),
            ),
        }
    }
}

/// Up to this many schemas with an `$id` are compiled as they are.
const MAX_RESOURCES: usize = 4;

/// Merges the resources of a schema with many `$id`s into one: the validator would compile each
/// part again for each path that leads to it.
fn merge_resources(schema: &Value) -> Result<Cow<'_, Value>, String> {
    let Value::Object(root) = schema else { return Ok(Cow::Borrowed(schema)) };
    if count_resources(root) <= MAX_RESOURCES {
        return Ok(Cow::Borrowed(schema));
    }
    let whole = with_local_refs(root).into_owned();
    match count_resources(&whole) > 1 || has_dynamic_refs(&whole) {
        true => Err("too many of its schemas have their own `$id`".to_owned()),
        false => Ok(Cow::Owned(Value::Object(whole))),
    }
}

fn count_resources(schema: &Map<String, Value>) -> usize {
    let mut count = usize::from(walk::has_any_keyword(schema, &["$id", "id"]));
    walk::for_each_in_any_draft(schema, &mut |inner| {
        count += inner.as_object().map_or(0, count_resources);
    });
    count
}

fn has_dynamic_refs(schema: &Map<String, Value>) -> bool {
    let mut depends = walk::has_any_keyword(schema, &["$dynamicRef", "$recursiveRef"]);
    walk::for_each_in_any_draft(schema, &mut |inner| {
        depends |= inner.as_object().is_some_and(has_dynamic_refs);
    });
    depends
}

/// Builds a validator within limits. `format` is an annotation, as in the standard since 2019, and
/// the content of texts is not checked.
fn build_validator(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(BACKTRACK_LIMIT)
        .size_limit(COMPILED_SIZE_LIMIT)
        .dfa_size_limit(8 * COMPILED_SIZE_LIMIT);
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
