//! A server's own schema, in whichever draft it is written, as something that judges values.
//!
//! **Invariant:** nothing is fetched, and neither schema, pattern nor value takes endless work.

use std::fmt;

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value, json};

use super::{cost, suspicion};
use crate::schema::{Schema, SchemaError, followable, is_standard, walk};

/// The longest schema that is looked at, in bytes.
pub(super) const MOST_BYTES: usize = 256 << 10;

/// How far a pattern may go back and look again.
const MOST_BACKTRACKING: usize = 20_000;

/// A schema that judges.
#[derive(Debug)]
pub(super) struct Judge {
    validator: Validator,
    /// The schema in the words of today.
    told: Schema,
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
        let wrong = |what: &dyn fmt::Display| format!("it is not usable: {what}");
        let readable = suspicion::readable_schema(schema);
        let told = read(readable.clone())
            .or_else(|error| followable(readable).and_then(&read).map_err(|_| error))
            .map_err(|error| wrong(&error))?;
        if !cost::is_made_in_time(told.as_map()) {
            return Err("it stands for too much".to_owned());
        }
        let patterns = PatternOptions::fancy_regex().backtrack_limit(MOST_BACKTRACKING);
        let options = jsonschema::options().with_pattern_options(patterns);
        let validator = options
            .build(schema)
            .or_else(|error| options.build(&of_one_draft(schema)).map_err(|_| error))
            .map_err(|error| wrong(&error))?;
        Ok(Self { validator, told })
    }

    /// What models and peers are told.
    pub(super) fn told(&self) -> &Schema {
        &self.told
    }

    /// Whether it can be found out in time what is to be said of a value.
    pub(super) fn is_bounded(&self, value: &Value) -> bool {
        cost::work(self.told.as_map(), value).is_bounded()
    }

    /// Judges a value; of what is wrong with it `most` reasons are given, each as `fault` makes it.
    pub(super) fn judge<T>(
        &self,
        value: &Value,
        most: usize,
        fault: impl Fn(ValidationError<'_>) -> T,
    ) -> Verdict<T> {
        let work = cost::work(self.told.as_map(), value);
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
    walk::each_mut(schema, &mut |_, inner| {
        if let Value::Object(inner) = inner {
            without_standards(inner);
        }
    });
}
