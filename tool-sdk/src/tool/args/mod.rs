//! Arguments: from JSON text to decoded values, once, with every fault in one message.
//!
//! One [`walk`] over the text decodes each argument by its own type and finds every fault.
//! What decoding does not enforce, the tool's schema does ([`check`]): both see the same text,
//! and the schema that is advertised is the one that is checked. Values that may nest are
//! parsed into a strict tree first ([`json`]).
//!
//! **Invariant:** no text runs a tool unless all of it was understood.

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

pub(crate) use self::checks::ArgChecks;
#[cfg(feature = "cli")]
pub(crate) use self::fault::closest_name;
use self::fault::{ArgPath, Faults};
pub use self::fault::{Fault, FaultKind, InvalidArgs};
use self::json::JsonValue;
use self::json_number::with_whole_numbers;
pub(crate) use self::node::unsupported;
pub(crate) use self::schema_self_check::find_self_violations;
pub(super) use self::walk::parse_args;
use super::Resource;
use super::native::{ArgsSpec, Table};
use super::paths::ArgPaths;
use crate::call::{ArgumentNote, RawArgs};
use crate::context::Context;

/// The longest text that is looked at, in bytes.
pub(crate) const MAX_BYTES: usize = 1 << 20;
/// How deep arguments may nest.
pub(crate) const MAX_DEPTH: usize = 64;

/// What is left of arguments beside their values.
#[derive(Debug)]
pub struct ParsedArgs {
    /// What was accepted beyond the contract.
    pub(super) notes: Box<[ArgumentNote]>,
    /// The paths among them.
    pub(super) paths: ArgPaths,
}

impl ParsedArgs {
    /// What was taken beside paths.
    fn new(notes: Box<[ArgumentNote]>) -> Self {
        Self { notes, paths: ArgPaths::default() }
    }

    /// What a call touches whose tool does not say: the paths among its arguments.
    pub(super) fn resources(&self, cx: &Context) -> Option<Vec<Resource>> {
        self.paths.resources(cx)
    }

    /// The paths among the arguments, whatever the tool says.
    pub(super) fn paths(&self, cx: &Context) -> Vec<Resource> {
        self.paths.resources(cx).unwrap_or_default()
    }
}

/// Decodes all arguments as one struct, of which `slot` is an `Option`.
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

/// Whether every reader understands the text in the same way: one object, no key twice, not
/// too long, not too deep.
pub(crate) fn check_strict(text: &str) -> Result<(), String> {
    JsonValue::parse_arguments(text).map(drop).map_err(|fault| fault.message)
}

/// The same of any value that is bounded elsewhere.
pub(crate) fn check_unambiguous(text: &str) -> Result<(), serde_json::Error> {
    JsonValue::parse(text).map(drop)
}

/// Decodes arguments that only a schema describes.
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

/// The text, once it keeps the schema; it differs from what came in only by declared
/// leniency.
pub(crate) fn parse_text<'a>(
    name: &str,
    checks: &ArgChecks,
    raw: &'a RawArgs<'_>,
) -> Result<(std::borrow::Cow<'a, str>, Vec<ArgumentNote>), InvalidArgs> {
    let (tree, notes) = parse_tree(name, checks, raw)?;
    let text = if notes.is_empty() { raw.text().into() } else { tree.to_text().into() };
    Ok((text, notes))
}

/// The arguments as a tree, once they keep the schema.
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
