//! A server's own schema, in whichever draft it is written, as something that judges values.
//!
//! **Invariant:** nothing is fetched, and no schema or pattern takes endless work.

use std::fmt;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::suspicion;
use crate::schema::{Schema, SchemaError};

/// The longest schema that is looked at, in bytes.
pub(super) const MOST_BYTES: usize = 256 << 10;

/// How far a pattern may go back and look again.
const MOST_BACKTRACKING: usize = 100_000;

/// The schema as it judges, and as models and peers are told of it, for which `read` takes it.
///
/// # Errors
///
/// Says why nothing could be judged by it.
pub(super) fn usable(
    schema: &Value,
    read: impl FnOnce(Value) -> Result<Schema, SchemaError>,
) -> Result<(Validator, Schema), String> {
    let length = schema.to_string().len();
    if length > MOST_BYTES {
        return Err(format!("it is {length} bytes long"));
    }
    let wrong = |what: &dyn fmt::Display| format!("it is not usable: {what}");
    let told = read(suspicion::readable_schema(schema)).map_err(|error| wrong(&error))?;
    let patterns = PatternOptions::fancy_regex().backtrack_limit(MOST_BACKTRACKING);
    let options = jsonschema::options().with_pattern_options(patterns);
    let validator = options.build(schema).map_err(|error| wrong(&error))?;
    Ok((validator, told))
}
