//! Compiles a server's JSON Schema, of any draft, into a validator with bounded cost.
//!
//! **Invariant:** nothing is fetched, and neither schema, pattern nor value takes unbounded work.

use std::borrow::Cow;
use std::fmt;

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value, json};

use super::cost::{self, Room};
use super::{patterns, suspicion};
use crate::schema::{Schema, SchemaError, encoded, followable, is_standard, localized, walk};

/// The longest schema, in bytes.
pub(super) const MOST_BYTES: usize = 256 << 10;

/// The most objects in a schema, each of which may be a schema.
const MOST_PARTS: usize = 10_000;

/// The backtracking limit of a pattern.
const MOST_BACKTRACKING: usize = 20_000;

/// The size limit of a compiled pattern, in bytes (RX1).
const MOST_COMPILED: usize = 1 << 20;

/// A compiled schema.
#[derive(Debug)]
pub(super) struct Judge {
    validator: Validator,
    /// The schema in the current draft, for models and clients.
    told: Schema,
    /// The schema for estimating the cost, if it refers to meta-schemas.
    counted: Option<Schema>,
    /// Patterns that are not checked here.
    unread: Vec<String>,
}

/// The result of validating a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict<T> {
    /// The value matches the schema.
    Fits,
    /// It does not, for these reasons; empty if finding them would be too expensive.
    Breaks(Vec<T>),
    /// Validating would be too expensive.
    TooMuch,
}

impl Judge {
    /// Compiles a schema; `read` converts it to the form that models and clients see.
    ///
    /// The server may refer to the meta-schemas of JSON Schema. They are validated, and left out of
    /// what models and clients see.
    ///
    /// # Errors
    ///
    /// Returns why the schema cannot be used.
    pub(super) fn of(
        schema: &Value,
        read: impl Fn(Value) -> Result<Schema, SchemaError>,
    ) -> Result<Self, String> {
        let length = schema.to_string().len();
        if length > MOST_BYTES {
            return Err(format!("it is {length} bytes long"));
        }
        let parts = cost::parts(schema);
        if parts > MOST_PARTS {
            return Err(format!("it has {parts} parts"));
        }
        let wrong = |what: &dyn fmt::Display| format!("it is not valid: {what}");
        let readable = suspicion::readable_schema(schema);
        let (told, counted) = match read(readable.clone()) {
            Ok(told) => (told, None),
            Err(error) => {
                let counted = followable(cost::marked(&readable)).and_then(&read);
                let told = followable(readable).and_then(&read).map_err(|_| wrong(&error))?;
                (told, counted.ok())
            }
        };
        if !cost::is_written_out_in_time(told.as_map()) {
            return Err("its references expand to too many schemas".to_owned());
        }
        let mut room = Room::default();
        let has_no_room = |pattern: &str| !cost::is_known(pattern) || !room.take(pattern);
        let mut unread = Vec::new();
        let mut leave = |schema: &mut Cow<'_, Value>, left: Option<(Value, Vec<String>)>| {
            let Some((rest, patterns)) = left else { return false };
            unread.extend(patterns);
            *schema = Cow::Owned(rest);
            true
        };
        let mut judging = of_one_resource(schema)?;
        if let Some(encoded) = encoded(&judging) {
            judging = Cow::Owned(encoded);
        }
        let left = patterns::without(&judging, has_no_room);
        leave(&mut judging, left);
        let mut validator = build(&judging);
        if validator.is_err() {
            let is_unreadable = |pattern: &str| build(&json!({ "pattern": pattern })).is_err();
            let left = patterns::without(&judging, is_unreadable);
            if leave(&mut judging, left) {
                validator = build(&judging);
            }
        }
        let validator = validator.map_err(|error| wrong(&error))?;
        Ok(Self { validator, told, counted, unread })
    }

    /// Returns a warning for each pattern that is not checked.
    pub(super) fn oddities(&self) -> impl Iterator<Item = String> {
        self.unread.iter().map(|pattern| {
            let pattern = pattern.escape_debug().take(80).collect::<String>();
            format!("the pattern `{pattern}` is checked by the server only")
        })
    }

    /// The schema that models and clients see.
    pub(super) fn told(&self) -> &Schema {
        &self.told
    }

    /// Whether validating is so cheap that it can run inline.
    pub(super) fn is_quick(&self, value: &Value) -> bool {
        cost::is_little(self.counted.as_ref().unwrap_or(&self.told).as_map(), value)
    }

    /// Whether a value can be validated within the limits.
    pub(super) fn is_bounded(&self, value: &Value) -> bool {
        self.work(value).is_bounded()
    }

    fn work(&self, value: &Value) -> cost::Work {
        cost::work(self.counted.as_ref().unwrap_or(&self.told).as_map(), value)
    }

    /// Validates a value; returns at most `most` reasons, each converted by `fault`.
    pub(super) fn judge<T>(
        &self,
        value: &Value,
        most: usize,
        fault: impl Fn(ValidationError<'_>) -> T,
    ) -> Verdict<T> {
        let work = self.work(value);
        match () {
            () if !work.is_bounded() => Verdict::TooMuch,
            () if self.validator.is_valid(value) => Verdict::Fits,
            () if !work.tells_faults() => Verdict::Breaks(Vec::new()),
            () => {
                Verdict::Breaks(self.validator.iter_errors(value).take(most).map(fault).collect())
            }
        }
    }
}

/// Up to this many schemas with an `$id` are compiled as they are.
const FEW_RESOURCES: usize = 4;

/// Merges the resources of a schema with many `$id`s into one: the validator would compile each
/// part again for each path that leads to it.
fn of_one_resource(schema: &Value) -> Result<Cow<'_, Value>, String> {
    let Value::Object(root) = schema else { return Ok(Cow::Borrowed(schema)) };
    if resources(root) <= FEW_RESOURCES {
        return Ok(Cow::Borrowed(schema));
    }
    let whole = localized(root).into_owned();
    match resources(&whole) > 1 || depends_on_the_way(&whole) {
        true => Err("too many of its schemas have their own `$id`".to_owned()),
        false => Ok(Cow::Owned(Value::Object(whole))),
    }
}

fn resources(schema: &Map<String, Value>) -> usize {
    let mut count = usize::from(walk::has(schema, &["$id", "id"]));
    walk::each_in_any_draft(schema, &mut |inner| {
        count += inner.as_object().map_or(0, resources);
    });
    count
}

fn depends_on_the_way(schema: &Map<String, Value>) -> bool {
    let mut depends = walk::has(schema, &["$dynamicRef", "$recursiveRef"]);
    walk::each_in_any_draft(schema, &mut |inner| {
        depends |= inner.as_object().is_some_and(depends_on_the_way);
    });
    depends
}

/// Builds a validator within limits. `format` is an annotation, as in the standard since 2019, and
/// the content of texts is not checked.
fn build(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(MOST_BACKTRACKING)
        .size_limit(MOST_COMPILED)
        .dfa_size_limit(8 * MOST_COMPILED);
    let options = jsonschema::options()
        .with_pattern_options(patterns)
        .should_validate_formats(false)
        .without_content_media_type_support("application/json")
        .without_content_encoding_support("base64");
    let made = options.build(schema);
    made.or_else(|error| options.build(&of_one_draft(schema)).map_err(|_| error))
}

/// Replaces references to meta-schemas of another draft, which the validator does not know: they
/// describe roughly an object or a boolean.
fn of_one_draft(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Value::Object(schema) = &mut schema {
        without_standards(schema);
    }
    schema
}

fn without_standards(schema: &mut Map<String, Value>) {
    if schema.get("$ref").and_then(Value::as_str).is_some_and(is_standard) {
        schema.clear();
        schema.insert("type".to_owned(), json!(["object", "boolean"]));
    }
    walk::each_in_any_draft_mut(schema, &mut |inner| {
        if let Value::Object(inner) = inner {
            without_standards(inner);
        }
    });
}
