//! Decodes arguments: from JSON text to typed values, once, with all faults in one message.
//!
//! One [`walk`] over the text decodes each argument by its own type and collects all faults. The
//! tool's schema checks what decoding does not enforce ([`checks`]). Both see the same text, and
//! the published schema is the one that is checked. Nested values are parsed into a strict tree
//! first ([`json`]).
//!
//! **Invariant:** a tool runs only if its arguments were parsed completely.

mod alternatives;
mod checks;
#[cfg(feature = "external-schemas")]
mod external;
mod fault;
mod json;
mod json_number;
mod lenient;
mod member_names;
mod node;
mod schema_self_check;
#[cfg(test)]
mod tests;
mod validate;
mod walk;

use std::any::Any;

use serde_json::Value;

pub use self::checks::ArgChecks;
pub use self::fault::closest_name;
use self::fault::{ArgPath, Faults};
pub use self::fault::{Fault, FaultKind, InvalidArgs};
use self::json::JsonValue;
use self::json_number::with_whole_numbers;
pub(crate) use self::node::unsupported;
pub(crate) use self::schema_self_check::find_self_violations;
pub(super) use self::walk::parse_args;
use super::Resource;
use super::native::{ArgsSpec, Table};
use super::path_collector::ArgPaths;
use crate::call::{ArgumentNote, RawArgs};
use crate::context::Context;

/// The maximum length of arguments, in bytes.
pub(crate) const MAX_BYTES: usize = 1 << 20;
/// The maximum depth of arguments.
pub(crate) const MAX_DEPTH: usize = 64;

/// The metadata of decoded arguments.
#[derive(Debug)]
pub struct ParsedArgs {
    /// The accepted deviations from the schema.
    pub(super) notes: Box<[ArgumentNote]>,
    /// The paths among the arguments.
    pub(super) paths: ArgPaths,
}

impl ParsedArgs {
    /// Creates the metadata of arguments without paths.
    fn new(notes: Box<[ArgumentNote]>) -> Self {
        Self { notes, paths: ArgPaths::default() }
    }

    /// Returns the resources of a call whose tool names none: the paths among its arguments.
    pub(super) fn resources(&self, cx: &Context) -> Option<Vec<Resource>> {
        self.paths.resources(cx)
    }

    /// Returns the paths among the arguments, regardless of the tool's resources.
    pub(super) fn paths(&self, cx: &Context) -> Vec<Resource> {
        self.paths.resources(cx).unwrap_or_default()
    }
}

/// Decodes all arguments as one struct into `slot`, which is an `Option` of it.
pub(super) fn parse_struct(
    table: &Table,
    raw: &RawArgs<'_>,
    slot: &mut dyn Any,
) -> Result<ParsedArgs, InvalidArgs> {
    let (checks, name) = (table.checks(), table.spec().name);
    let ArgsSpec::Struct(ty) = table.spec().args else {
        return Err(InvalidArgs::new(name, "the tool takes its arguments one by one"));
    };
    let (text, notes) = parse_text(name, checks, raw)?;
    let decoded = (ty.decode)(&text, slot).or_else(|error| match with_whole_numbers(&text) {
        Some(text) => (ty.decode)(&text, slot),
        None => Err(error),
    });
    match decoded {
        Ok(()) => Ok(ParsedArgs::new(notes.into())),
        Err(error) => {
            let mut faults = Faults::default();
            faults.push_decode_error(&ArgPath::root(), &error);
            Err(faults.into_error(name.to_owned().into(), checks))
        }
    }
}

/// Checks that every JSON parser understands the text in the same way: one object, no duplicate
/// keys, bounded length and depth.
pub fn check_strict(text: &str) -> Result<(), String> {
    JsonValue::parse_arguments(text).map(drop).map_err(|fault| fault.message)
}

/// Like [`check_strict`], for any value whose size is limited elsewhere.
pub fn check_unambiguous(text: &str) -> Result<(), serde_json::Error> {
    JsonValue::parse(text).map(drop)
}

/// Parses arguments that are described only by a schema.
pub(crate) fn parse_value(
    name: &str,
    checks: &ArgChecks,
    raw: &RawArgs<'_>,
) -> Result<(Value, Vec<ArgumentNote>), InvalidArgs> {
    if let Some(unsupported) = checks.unsupported() {
        let words = format_args!("the tool cannot be called: its schema's {unsupported}");
        return Err(InvalidArgs::new(name.to_owned(), words));
    }
    let (tree, notes) = parse_tree(name, checks, raw)?;
    Ok((tree.to_value(), notes))
}

/// Returns the text after checking it against the schema; it differs from the input only by
/// declared leniency.
pub fn parse_text<'a>(
    name: &str,
    checks: &ArgChecks,
    raw: &'a RawArgs<'_>,
) -> Result<(std::borrow::Cow<'a, str>, Vec<ArgumentNote>), InvalidArgs> {
    let (tree, notes) = parse_tree(name, checks, raw)?;
    let text = if notes.is_empty() { raw.text().into() } else { tree.to_text().into() };
    Ok((text, notes))
}

/// Returns the arguments as a tree after checking them against the schema.
fn parse_tree<'a>(
    name: &str,
    checks: &ArgChecks,
    raw: &'a RawArgs<'_>,
) -> Result<(JsonValue<'a>, Vec<ArgumentNote>), InvalidArgs> {
    let mut faults = Faults::default();
    let mut tree = match JsonValue::parse_arguments(raw.text()) {
        Ok(tree) => tree,
        Err(fault) => {
            faults.push(fault);
            return Err(faults.into_error(name.to_owned().into(), checks));
        }
    };
    let mut notes = Vec::new();
    if raw.lenient != crate::call::Leniency::default() {
        lenient::apply_leniency(
            &mut tree,
            checks.root(),
            checks.targets(),
            raw.lenient,
            &mut notes,
        );
    }
    checks.check_all(&tree, &mut faults);
    if !faults.is_empty() {
        return Err(faults.into_error(name.to_owned().into(), checks));
    }
    Ok((tree, notes))
}
