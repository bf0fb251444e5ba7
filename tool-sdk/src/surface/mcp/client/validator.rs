//! A server's own schema, in whichever draft it is written, as something that judges values.
//!
//! **Invariant:** nothing is fetched, and neither schema, pattern nor value takes endless work.

use std::fmt;

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

use super::{cost, suspicion};
use crate::schema::{Schema, SchemaError};

/// The longest schema that is looked at, in bytes.
pub(super) const MOST_BYTES: usize = 256 << 10;

/// How far a pattern may go back and look again.
const MOST_BACKTRACKING: usize = 100_000;

/// A schema that judges.
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
    /// # Errors
    ///
    /// Says why nothing could be judged by it.
    pub(super) fn of(
        schema: &Value,
        read: impl FnOnce(Value) -> Result<Schema, SchemaError>,
    ) -> Result<Self, String> {
        let length = schema.to_string().len();
        if length > MOST_BYTES {
            return Err(format!("it is {length} bytes long"));
        }
        let wrong = |what: &dyn fmt::Display| format!("it is not usable: {what}");
        let told = read(suspicion::readable_schema(schema)).map_err(|error| wrong(&error))?;
        let patterns = PatternOptions::fancy_regex().backtrack_limit(MOST_BACKTRACKING);
        let options = jsonschema::options().with_pattern_options(patterns);
        let validator = options.build(schema).map_err(|error| wrong(&error))?;
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
