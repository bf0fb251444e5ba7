//! Arguments: from JSON text to decoded values, once, with every fault in one message.
//!
//! One [`walk`] over the text decodes each argument by its own type and finds every fault.
//! What decoding does not enforce, the tool's schema does ([`check`]): both see the same text,
//! and the schema that is advertised is the one that is checked. Values that may nest are
//! parsed into a strict tree first ([`json`]).
//!
//! **Invariant:** no text runs a tool unless all of it was understood.

mod alternatives;
mod check;
#[cfg(feature = "external-schemas")]
mod external;
mod fault;
mod json;
mod lenient;
mod member_names;
mod node;
mod numeral;
mod own;
#[cfg(test)]
mod tests;
mod verify;
mod walk;

use std::any::Any;

use serde_json::Value;

pub(crate) use self::check::Checks;
#[cfg(feature = "cli")]
pub(crate) use self::fault::closest;
pub use self::fault::{Fault, FaultKind, InvalidArgs};
use self::fault::{Faults, Place};
use self::json::Json;
pub(crate) use self::node::unsupported;
use self::numeral::with_whole_numbers;
pub(crate) use self::own::unkept;
pub(super) use self::walk::take;
use super::Subject;
use super::native::{ArgsSpec, Table};
use super::paths::Paths;
use crate::call::{Note, RawArgs};
use crate::context::Context;

/// The longest text that is looked at, in bytes.
pub(crate) const MAX_BYTES: usize = 1 << 20;
/// How deep arguments may nest.
pub(crate) const MAX_DEPTH: usize = 64;

/// What is left of arguments beside their values.
#[derive(Debug)]
pub struct Taken {
    /// What was accepted beyond the contract.
    pub(super) notes: Box<[Note]>,
    /// The paths among them.
    pub(super) paths: Paths,
}

impl Taken {
    /// What was taken beside paths.
    fn new(notes: Box<[Note]>) -> Self {
        Self { notes, paths: Paths::default() }
    }

    /// What a call touches whose tool does not say: the paths among its arguments.
    pub(super) fn subjects(&self, cx: &Context) -> Option<Vec<Subject>> {
        self.paths.subjects(cx)
    }

    /// The paths among the arguments, whatever the tool says.
    pub(super) fn paths(&self, cx: &Context) -> Vec<Subject> {
        self.paths.subjects(cx).unwrap_or_default()
    }
}

/// Decodes all arguments as one struct, of which `slot` is an `Option`.
pub(super) fn take_struct(
    table: &Table,
    raw: &RawArgs<'_>,
    slot: &mut dyn Any,
) -> Result<Taken, InvalidArgs> {
    let (checks, name) = (table.checks(), table.spec().name);
    let ArgsSpec::Struct(ty) = table.spec().args else {
        return Err(InvalidArgs::new(name, "the tool takes its arguments one by one"));
    };
    let (text, notes) = checked(name, checks, raw)?;
    let decoded = (ty.decode)(&text, slot).or_else(|error| match with_whole_numbers(&text) {
        Some(text) => (ty.decode)(&text, slot),
        None => Err(error),
    });
    match decoded {
        Ok(()) => Ok(Taken::new(notes.into())),
        Err(error) => {
            let mut faults = Faults::default();
            faults.decoding(&Place::root(), &error);
            Err(faults.finish(name.to_owned().into(), checks))
        }
    }
}

/// Whether every reader understands the text in the same way: one object, no key twice, not
/// too long, not too deep.
pub(crate) fn is_strict(text: &str) -> Result<(), String> {
    Json::parse_arguments(text).map(drop).map_err(|fault| fault.message)
}

/// The same of any value that is bounded elsewhere.
pub(crate) fn is_clear(text: &str) -> Result<(), serde_json::Error> {
    Json::parse(text).map(drop)
}

/// Decodes arguments that only a schema describes.
pub(crate) fn take_value(
    name: &str,
    checks: &Checks,
    raw: &RawArgs<'_>,
) -> Result<(Value, Vec<Note>), InvalidArgs> {
    if let Some(unsupported) = checks.unsupported() {
        let words = format_args!("the tool cannot be called: its schema's {unsupported}");
        return Err(InvalidArgs::new(name.to_owned(), words));
    }
    let (tree, notes) = accepted(name, checks, raw)?;
    Ok((tree.to_value(), notes))
}

/// The text, once it keeps the schema; it differs from what came in only by declared
/// leniency.
pub(crate) fn checked<'a>(
    name: &str,
    checks: &Checks,
    raw: &'a RawArgs<'_>,
) -> Result<(std::borrow::Cow<'a, str>, Vec<Note>), InvalidArgs> {
    let (tree, notes) = accepted(name, checks, raw)?;
    let text = if notes.is_empty() { raw.text().into() } else { tree.to_text().into() };
    Ok((text, notes))
}

/// The arguments as a tree, once they keep the schema.
fn accepted<'a>(
    name: &str,
    checks: &Checks,
    raw: &'a RawArgs<'_>,
) -> Result<(Json<'a>, Vec<Note>), InvalidArgs> {
    let mut faults = Faults::default();
    let mut tree = match Json::parse_arguments(raw.text()) {
        Ok(tree) => tree,
        Err(fault) => {
            faults.push(fault);
            return Err(faults.finish(name.to_owned().into(), checks));
        }
    };
    let mut notes = Vec::new();
    if raw.lenient != crate::call::Lenient::default() {
        lenient::relax(&mut tree, checks.root(), checks.targets(), raw.lenient, &mut notes);
    }
    checks.check_all(&tree, &mut faults);
    if !faults.is_empty() {
        return Err(faults.finish(name.to_owned().into(), checks));
    }
    Ok((tree, notes))
}
