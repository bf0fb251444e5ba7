//! A server's own schema, in whichever draft it is written, as something that judges values.
//!
//! **Invariant:** nothing is fetched, and neither schema, pattern nor value takes endless work.

use std::borrow::Cow;
use std::fmt;

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value, json};

use super::cost::{self, Room};
use super::{patterns, suspicion};
use crate::schema::{Schema, SchemaError, encoded, followable, is_standard, localized, walk};

/// The longest schema that is looked at, in bytes.
pub(super) const MOST_BYTES: usize = 256 << 10;

/// How many parts it may have that may be schemas.
const MOST_PARTS: usize = 10_000;

/// How far a pattern may go back and look again.
const MOST_BACKTRACKING: usize = 20_000;

/// How large a pattern may become, in bytes (RX1).
const MOST_COMPILED: usize = 1 << 20;

/// A schema that judges.
#[derive(Debug)]
pub(super) struct Judge {
    validator: Validator,
    /// The schema in the words of today.
    told: Schema,
    /// The same with what its references to the standard's own schemas cost, where it has some.
    counted: Option<Schema>,
    /// Patterns that are left to the server.
    unread: Vec<String>,
}

/// What a schema says of a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict<T> {
    /// It is accepted.
    Fits,
    /// It is not, for these reasons; for none where it would be too much work to find them.
    Breaks(Vec<T>),
    /// It would be too much work to find out.
    TooMuch,
}

impl Judge {
    /// Takes a schema, of which models and peers are told what `read` makes of it.
    ///
    /// The server may refer to the standard's own schemas, which nobody else has to know: they
    /// judge all the same, and what is told leaves them out.
    ///
    /// # Errors
    ///
    /// Says why nothing could be judged by it.
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
        let wrong = |what: &dyn fmt::Display| format!("it is not usable: {what}");
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
            return Err("what it refers to stands for too much".to_owned());
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

    /// What is odd about it.
    pub(super) fn oddities(&self) -> impl Iterator<Item = String> {
        self.unread.iter().map(|pattern| {
            let pattern = pattern.escape_debug().take(80).collect::<String>();
            format!("the pattern `{pattern}` is left to the server")
        })
    }

    /// What models and peers are told.
    pub(super) fn told(&self) -> &Schema {
        &self.told
    }

    /// Whether that is found out in no time, so that nobody has to wait for it.
    pub(super) fn is_quick(&self, value: &Value) -> bool {
        cost::is_little(self.counted.as_ref().unwrap_or(&self.told).as_map(), value)
    }

    /// Whether it can be found out in time what is to be said of a value.
    pub(super) fn is_bounded(&self, value: &Value) -> bool {
        self.work(value).is_bounded()
    }

    fn work(&self, value: &Value) -> cost::Work {
        cost::work(self.counted.as_ref().unwrap_or(&self.told).as_map(), value)
    }

    /// Judges a value; of what is wrong with it `most` reasons are given, each as `fault` makes it.
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

/// So many schemas with an address of their own are made at once, by whichever ways one comes to
/// them.
const FEW_RESOURCES: usize = 4;

/// The schema with one address for all of it, where a validator would make each part of it anew
/// for each way that leads there.
fn of_one_resource(schema: &Value) -> Result<Cow<'_, Value>, String> {
    let Value::Object(root) = schema else { return Ok(Cow::Borrowed(schema)) };
    if resources(root) <= FEW_RESOURCES {
        return Ok(Cow::Borrowed(schema));
    }
    let whole = localized(root).into_owned();
    match resources(&whole) > 1 || depends_on_the_way(&whole) {
        true => Err("too many schemas in it have an address of their own".to_owned()),
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

/// Makes a validator, within limits. Formats are remarks, as the standard has it since 2019,
/// and what a text holds is not looked into.
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

/// A schema that refers to the standard's own schemas of another draft, which the validator does
/// not know: what they describe is roughly an object or a boolean.
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
