//! Parses the arguments of a call in one walk over the top-level JSON object.
//!
//! Each value is decoded by its parameter's type where it stands in the text. After a value
//! that does not decode the walk continues behind it, so that one message names every fault.
//!
//! **Invariant:** a slot counts as filled only when the walk recorded no fault.

use std::any::Any;
use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::check::Checks;
use super::fault::{Fault, FaultKind, Faults, Place, without_position};
use super::json::Json;
use super::lenient;
use super::numeral::with_whole_numbers;
use super::{InvalidArgs, MAX_BYTES, Taken};
use crate::call::{Coercion, Note, RawArgs};
use crate::tool::native::{ArgsSpec, ParamSpec, Table};

/// Fills `slots`, which stand in the order of the table's parameters.
pub(crate) fn take(
    table: &Table,
    raw: &RawArgs<'_>,
    slots: &mut [&mut dyn Any],
) -> Result<Taken, InvalidArgs> {
    let ArgsSpec::Params(params) = table.spec().args else {
        return Err(InvalidArgs::new(
            table.spec().name,
            "the tool takes its arguments as a struct",
        ));
    };
    let mut walk = Walk {
        text: raw.text(),
        at: 0,
        params,
        checks: table.checks(),
        raw,
        slots,
        presence: vec![Presence::Absent; params.len()],
        faults: Faults::default(),
        notes: Vec::new(),
    };
    if walk.object().is_ok() {
        walk.fill_absent();
    }
    if walk.faults.is_empty() {
        Ok(Taken::new(walk.notes.into()))
    } else {
        Err(walk.faults.finish(table.spec().name.into(), walk.checks))
    }
}

/// Whether the walk has met a parameter.
#[derive(Clone, Copy, PartialEq)]
enum Presence {
    Absent,
    Present,
    /// It came as `null`, which leniency treats as absent.
    NullAsAbsent,
}

/// The key of a member, borrowed from the text when it has no escapes.
#[derive(Deserialize)]
struct Key<'t>(#[serde(borrow)] Cow<'t, str>);

/// The text cannot be followed any further; the fault is recorded.
struct Stopped;

struct Walk<'w, 'r, 's> {
    text: &'w str,
    at: usize,
    params: &'static [ParamSpec],
    checks: &'w Checks,
    raw: &'w RawArgs<'r>,
    slots: &'w mut [&'s mut dyn Any],
    /// One entry for each of `params`.
    presence: Vec<Presence>,
    faults: Faults,
    notes: Vec<Note>,
}

impl<'w> Walk<'w, '_, '_> {
    fn object(&mut self) -> Result<(), Stopped> {
        if self.text.len() > MAX_BYTES {
            self.faults.push(Fault::too_long(self.text.len()));
            return Err(Stopped);
        }
        if self.token() != b'{' {
            return Err(self.not_an_object());
        }
        self.at += 1;
        if self.token() == b'}' {
            self.at += 1;
            return self.end();
        }
        loop {
            self.member()?;
            match self.token() {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return self.end();
                }
                _ => return Err(self.broken("expected `,` or `}`")),
            }
        }
    }

    fn member(&mut self) -> Result<(), Stopped> {
        if self.token() != b'"' {
            return Err(self.broken("expected a key in double quotes"));
        }
        let Key(key) = self.parse_next()?;
        self.colon()?;
        self.argument(&key)
    }

    /// Parses the JSON value at which the walk stands, and goes behind it.
    fn parse_next<T: Deserialize<'w>>(&mut self) -> Result<T, Stopped> {
        let mut values = serde_json::Deserializer::from_str(&self.text[self.at..]).into_iter();
        match values.next() {
            Some(Ok(value)) => {
                self.at += values.byte_offset();
                Ok(value)
            }
            Some(Err(error)) => Err(self.broken(&without_position(&error.to_string()))),
            None => Err(self.broken("the text ends too early")),
        }
    }

    fn colon(&mut self) -> Result<(), Stopped> {
        if self.token() != b':' {
            return Err(self.broken("expected `:`"));
        }
        self.at += 1;
        Ok(())
    }

    /// The value of the argument `key`, before which the walk stands.
    fn argument(&mut self, key: &str) -> Result<(), Stopped> {
        let takes_hidden = self.raw.lenient.hidden;
        let known = self
            .params
            .iter()
            .position(|param| param.name == key && (takes_hidden || !param.options.hidden));
        let index = match known {
            Some(index) => Some(index),
            None => self.by_another_name(key)?,
        };
        match index {
            Some(index) => self.value(index, key),
            None => Ok(()),
        }
    }

    /// The parameter by a declared alias; an unknown argument is a fault.
    fn by_another_name(&mut self, key: &str) -> Result<Option<usize>, Stopped> {
        let takes_hidden = self.raw.lenient.hidden;
        let known = self.params.iter().position(|param| {
            param.options.aliases.contains(&key) && (takes_hidden || !param.options.hidden)
        });
        match known {
            Some(index) => {
                self.notes.push(Note::new(self.params[index].name, Coercion::Alias));
                Ok(Some(index))
            }
            None => {
                let root = Place::root();
                let known: Vec<&str> = self
                    .params
                    .iter()
                    .filter(|param| !param.options.hidden)
                    .map(|param| param.name)
                    .collect();
                self.faults.unknown(&Place::key_of(&root, key), &known);
                self.skip().map(|()| None)
            }
        }
    }

    fn value(&mut self, index: usize, key: &str) -> Result<(), Stopped> {
        let first = self.token();
        if self.presence[index] != Presence::Absent {
            return self.twice(index, key);
        }
        self.presence[index] = Presence::Present;
        if first == b'n' && !self.null(index)? {
            return Ok(());
        }
        let start = self.at;
        let check = &self.checks.parameters()[index];
        if !check.admits(first) {
            return self.undecoded(index, None);
        }
        let decoded = match (self.text.get(start..), self.slots.get_mut(index)) {
            (Some(rest), Some(slot)) => (self.params[index].ty.decode)(rest, *slot),
            _ => return Err(self.broken("expected a value")),
        };
        match decoded {
            Ok(length) => {
                self.at = start + length;
                if !check.after_decoding.is_satisfied_by(&self.text[start..self.at]) {
                    let before = self.faults.mark();
                    self.check(index, start);
                    if self.faults.mark() != before
                        && let Some(rest) = self.without_nulls(index, start)
                    {
                        self.faults.back_to(before);
                        self.faults.append(rest);
                    }
                }
                Ok(())
            }
            Err(error) => self.undecoded(index, Some(&error)),
        }
    }

    /// `null` for an argument that may be absent; says whether it is decoded as it stands.
    fn null(&mut self, index: usize) -> Result<bool, Stopped> {
        let param = &self.params[index];
        let may_be_absent = param.default.is_some() || (param.ty.optional)();
        let node = self.checks.root().property(param.name);
        if !may_be_absent || node.is_some_and(|node| node.takes_null(self.checks.targets())) {
            return Ok(true);
        }
        let start = self.at;
        self.skip()?;
        if self.raw.lenient.null_is_absent {
            self.presence[index] = Presence::NullAsAbsent;
            self.notes.push(Note::new(param.name, Coercion::NullAsAbsent));
        } else {
            self.check(index, start);
        }
        Ok(false)
    }

    fn twice(&mut self, index: usize, key: &str) -> Result<(), Stopped> {
        let (root, param) = (Place::root(), &self.params[index]);
        let place = Place::key_of(&root, key);
        let by_alias = self
            .notes
            .iter()
            .any(|note| note.what == Coercion::Alias && note.argument == param.name);
        let words = match (by_alias, key == param.name) {
            (false, _) => "comes twice".to_owned(),
            (true, true) => "comes twice, once by another name".to_owned(),
            (true, false) => format!("is another name of `{}`, which comes twice", param.name),
        };
        self.faults.add(FaultKind::Duplicate, &place, words);
        self.skip()
    }

    /// Checks the value from `start` to here against everything that the schema says.
    fn check(&mut self, index: usize, start: usize) {
        let name = self.params[index].name;
        match Json::parse_argument(&self.text[start..self.at]) {
            Ok(tree) => self.checks.check_argument(name, &tree, &mut self.faults),
            Err(error) => self.not_strict(name, &error),
        }
    }

    fn not_strict(&mut self, name: &str, error: &serde_json::Error) {
        let root = Place::root();
        let place = Place::key_of(&root, name);
        if self.checks.root().property(name).is_some_and(|node| node.is_sensitive()) {
            return self.faults.add(FaultKind::Malformed, &place, "is not acceptable");
        }
        let words = without_position(&error.to_string());
        self.faults.add(FaultKind::Malformed, &place, format_args!("is not acceptable: {words}"));
    }

    /// A value that its type refuses: says why in the schema's words, and goes on behind it.
    fn undecoded(
        &mut self,
        index: usize,
        error: Option<&serde_json::Error>,
    ) -> Result<(), Stopped> {
        let start = self.at;
        self.skip()?;
        if self.raw.lenient.stringified && self.stringified(index, start) {
            return Ok(());
        }
        if let Some(rest) = self.without_nulls(index, start) {
            self.faults.append(rest);
            return Ok(());
        }
        let found = self.faults.len();
        self.check(index, start);
        if self.faults.len() == found && self.whole(index, start) {
            return Ok(());
        }
        if self.faults.len() == found {
            let mut faults = std::mem::take(&mut self.faults);
            self.refused(self.params[index].name, error, &mut faults);
            self.faults = faults;
        }
        Ok(())
    }

    /// A value that only its type refuses.
    fn refused(&self, name: &str, error: Option<&serde_json::Error>, faults: &mut Faults) {
        let root = Place::root();
        let place = Place::key_of(&root, name);
        let is_sensitive = self.checks.root().property(name).is_some_and(|n| n.is_sensitive());
        match error {
            Some(error) if !is_sensitive => faults.decoding(&place, error),
            _ => faults.add(FaultKind::Type, &place, "is not acceptable"),
        }
    }

    /// Decodes a value with whole numbers that are not written as such; says whether that
    /// worked.
    fn whole(&mut self, index: usize, start: usize) -> bool {
        let text = &self.text[start..self.at];
        let Some(text) = with_whole_numbers(text) else { return false };
        let decoded = (self.params[index].ty.decode)(&text, self.slots[index]).is_ok();
        if decoded {}
        decoded
    }

    /// Decodes a value without the `null`s that stand for what is absent in it, where there are
    /// any; gives what else is wrong.
    fn without_nulls(&mut self, index: usize, start: usize) -> Option<Faults> {
        if !self.raw.lenient.null_is_absent {
            return None;
        }
        let param = &self.params[index];
        let targets = self.checks.targets();
        let node = self.checks.root().property(param.name)?;
        let mut tree = Json::parse_argument(&self.text[start..self.at]).ok()?;
        if !lenient::without_nulls(&mut tree, &[node], targets, &mut |_| {}) {
            return None;
        }
        self.notes.push(Note::new(param.name, Coercion::NullAsAbsent));
        let mut faults = Faults::default();
        self.checks.check_argument(param.name, &tree, &mut faults);
        let text = tree.to_text();
        let text = with_whole_numbers(&text).unwrap_or(text);
        if faults.is_empty()
            && let Err(error) = (param.ty.decode)(&text, self.slots[index])
        {
            self.refused(param.name, Some(&error), &mut faults);
        }
        Some(faults)
    }

    /// Reads an object or a list that came as a string; says whether that worked.
    fn stringified(&mut self, index: usize, start: usize) -> bool {
        let param = &self.params[index];
        let wants = self.checks.root().property(param.name).is_some_and(|n| n.wants_container());
        let Ok(Json::String(inner)) = Json::parse_argument(&self.text[start..self.at]) else {
            return false;
        };
        if !wants {
            return false;
        }
        let Ok(tree) = Json::parse_argument(&inner) else { return false };
        let mut faults = Faults::default();
        self.checks.check_argument(param.name, &tree, &mut faults);
        if faults.is_empty() && (param.ty.decode)(&inner, self.slots[index]).is_ok() {
            self.notes.push(Note::new(param.name, Coercion::Stringified));
            return true;
        }
        false
    }

    /// Fills the slots of optional parameters that are absent, and reports required ones.
    fn fill_absent(&mut self) {
        for (index, param) in self.params.iter().enumerate() {
            if self.presence[index] == Presence::Present || param.default.is_some() {
                continue;
            }
            if !(param.ty.fill_absent)(self.slots[index]) {
                self.checks.root().missing_argument(param.name, &mut self.faults);
            }
        }
    }

    fn end(&mut self) -> Result<(), Stopped> {
        self.token();
        match self.text.len() == self.at {
            true => Ok(()),
            false => Err(self.broken("something follows the closing `}`")),
        }
    }

    /// Goes behind the value at which the walk stands.
    fn skip(&mut self) -> Result<(), Stopped> {
        self.parse_next::<IgnoredAny>().map(drop)
    }

    fn broken(&mut self, words: &str) -> Stopped {
        let at = self.at;
        let words = if self.at >= self.text.len() { "the text ends too early" } else { words };
        self.faults.malformed(&format_args!("{words}, at byte {at}"));
        Stopped
    }

    fn not_an_object(&mut self) -> Stopped {
        self.faults.push(match Json::parse_arguments(self.text) {
            Err(fault) => fault,
            Ok(_) => Fault::not_an_object("something else"),
        });
        Stopped
    }

    /// Goes over blanks; gives the byte behind them, which is 0 at the end: that byte starts
    /// nothing in JSON.
    fn token(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                Some(&byte) => return byte,
                None => return 0,
            }
        }
    }
}
