//! Parses the arguments of a call in one walk over the top-level JSON object.
//!
//! Each value is decoded by its parameter's type where it stands in the text. After a value that
//! cannot be decoded, the walk continues behind it, so that one message lists all faults.
//!
//! **Invariant:** a slot counts as filled only when the walk recorded no fault.

use std::any::Any;
use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::checks::ArgChecks;
use super::fault::{ArgPath, Fault, FaultKind, Faults, without_position};
use super::json::JsonValue;
use super::json_number::with_whole_numbers;
use super::lenient;
use super::{InvalidArgs, MAX_BYTES, ParsedArgs};
use crate::call::{ArgumentNote, Coercion, RawArgs};
use crate::tool::native::{ArgsSpec, ParamSpec, Table};

/// Decodes the arguments into `slots`, which are in the order of the table's parameters.
pub(crate) fn parse_args(
    table: &Table,
    raw: &RawArgs<'_>,
    slots: &mut [&mut dyn Any],
) -> Result<ParsedArgs, InvalidArgs> {
    let ArgsSpec::Params(params) = table.spec().args else {
        return Err(InvalidArgs::new(
            table.spec().name,
            "the tool takes its arguments as a struct",
        ));
    };
    let mut walk = ArgWalk {
        text: raw.text(),
        position: 0,
        params,
        checks: table.checks(),
        raw,
        slots,
        presence: vec![Presence::Absent; params.len()],
        faults: Faults::default(),
        notes: Vec::new(),
    };
    if walk.parse_object().is_ok() {
        walk.fill_absent();
    }
    if walk.faults.is_empty() {
        Ok(ParsedArgs::new(walk.notes.into()))
    } else {
        Err(walk.faults.into_error(table.spec().name.into(), walk.checks))
    }
}

/// Whether the walk has met a parameter.
#[derive(Clone, Copy, PartialEq)]
enum Presence {
    Absent,
    Present,
    /// It was `null`, which leniency treats as absent.
    NullAsAbsent,
}

/// The key of a member, borrowed from the text when it has no escapes.
#[derive(Deserialize)]
struct MemberKey<'t>(#[serde(borrow)] Cow<'t, str>);

/// The rest of the text cannot be parsed; the fault is recorded.
struct ParseStopped;

struct ArgWalk<'w, 'r, 's> {
    text: &'w str,
    position: usize,
    params: &'static [ParamSpec],
    checks: &'w ArgChecks,
    raw: &'w RawArgs<'r>,
    slots: &'w mut [&'s mut dyn Any],
    /// One entry for each of `params`.
    presence: Vec<Presence>,
    faults: Faults,
    notes: Vec<ArgumentNote>,
}

impl<'w> ArgWalk<'w, '_, '_> {
    fn parse_object(&mut self) -> Result<(), ParseStopped> {
        if self.text.len() > MAX_BYTES {
            self.faults.push(Fault::too_long(self.text.len()));
            return Err(ParseStopped);
        }
        if self.peek_token() != b'{' {
            return Err(self.report_not_an_object());
        }
        self.position += 1;
        if self.peek_token() == b'}' {
            self.position += 1;
            return self.expect_end();
        }
        loop {
            self.parse_member()?;
            match self.peek_token() {
                b',' => self.position += 1,
                b'}' => {
                    self.position += 1;
                    return self.expect_end();
                }
                _ => return Err(self.report_malformed("expected `,` or `}`")),
            }
        }
    }

    fn parse_member(&mut self) -> Result<(), ParseStopped> {
        if self.peek_token() != b'"' {
            return Err(self.report_malformed("expected a key in double quotes"));
        }
        let MemberKey(key) = self.parse_here()?;
        self.expect_colon()?;
        self.parse_argument(&key)
    }

    /// Parses the JSON value at the current position, and moves behind it.
    fn parse_here<T: Deserialize<'w>>(&mut self) -> Result<T, ParseStopped> {
        let mut values =
            serde_json::Deserializer::from_str(&self.text[self.position..]).into_iter();
        match values.next() {
            Some(Ok(value)) => {
                self.position += values.byte_offset();
                Ok(value)
            }
            Some(Err(error)) => Err(self.report_malformed(&without_position(&error.to_string()))),
            None => Err(self.report_malformed("the text ends too early")),
        }
    }

    fn expect_colon(&mut self) -> Result<(), ParseStopped> {
        if self.peek_token() != b':' {
            return Err(self.report_malformed("expected `:`"));
        }
        self.position += 1;
        Ok(())
    }

    /// Parses the value of the argument `key`, at the current position.
    fn parse_argument(&mut self, key: &str) -> Result<(), ParseStopped> {
        let takes_hidden = self.raw.lenient.hidden;
        let known = self
            .params
            .iter()
            .position(|param| param.name == key && (takes_hidden || !param.options.hidden));
        let index = match known {
            Some(index) => Some(index),
            None => self.find_by_alias(key)?,
        };
        match index {
            Some(index) => self.parse_value(index, key),
            None => Ok(()),
        }
    }

    /// Returns the parameter with the alias `key`; reports an unknown argument.
    fn find_by_alias(&mut self, key: &str) -> Result<Option<usize>, ParseStopped> {
        let takes_hidden = self.raw.lenient.hidden;
        let known = self.params.iter().position(|param| {
            param.options.aliases.contains(&key) && (takes_hidden || !param.options.hidden)
        });
        match known {
            Some(index) => {
                self.notes.push(ArgumentNote::new(self.params[index].name, Coercion::Alias));
                Ok(Some(index))
            }
            None => {
                let root = ArgPath::root();
                let known: Vec<&str> = self
                    .params
                    .iter()
                    .filter(|param| !param.options.hidden)
                    .map(|param| param.name)
                    .collect();
                self.faults.push_unknown(&ArgPath::member(&root, key), &known);
                self.skip_value().map(|()| None)
            }
        }
    }

    fn parse_value(&mut self, index: usize, key: &str) -> Result<(), ParseStopped> {
        let first = self.peek_token();
        if self.presence[index] != Presence::Absent {
            return self.report_duplicate(index, key);
        }
        self.presence[index] = Presence::Present;
        if first == b'n' && !self.parse_null(index)? {
            return Ok(());
        }
        let start = self.position;
        let check = &self.checks.parameters()[index];
        if !check.admits(first) {
            return self.report_undecoded(index, None);
        }
        let decoded = match (self.text.get(start..), self.slots.get_mut(index)) {
            (Some(rest), Some(slot)) => (self.params[index].ty.decode)(rest, *slot),
            _ => return Err(self.report_malformed("expected a value")),
        };
        match decoded {
            Ok(length) => {
                self.position = start + length;
                if !check.after_decoding.is_satisfied_by(&self.text[start..self.position]) {
                    let before = self.faults.checkpoint();
                    self.check_value(index, start);
                    if self.faults.checkpoint() != before
                        && let Some(rest) = self.decode_without_nulls(index, start)
                    {
                        self.faults.roll_back(before);
                        self.faults.append(rest);
                    }
                }
                Ok(())
            }
            Err(error) => self.report_undecoded(index, Some(&error)),
        }
    }

    /// Handles `null` for an argument that may be absent; returns whether it is decoded as it is.
    fn parse_null(&mut self, index: usize) -> Result<bool, ParseStopped> {
        let param = &self.params[index];
        let may_be_absent = param.default.is_some() || (param.ty.optional)();
        let node = self.checks.root().property(param.name);
        if !may_be_absent || node.is_some_and(|node| node.takes_null(self.checks.targets())) {
            return Ok(true);
        }
        let start = self.position;
        self.skip_value()?;
        if self.raw.lenient.null_is_absent {
            self.presence[index] = Presence::NullAsAbsent;
            self.notes.push(ArgumentNote::new(param.name, Coercion::NullAsAbsent));
        } else {
            self.check_value(index, start);
        }
        Ok(false)
    }

    fn report_duplicate(&mut self, index: usize, key: &str) -> Result<(), ParseStopped> {
        let (root, param) = (ArgPath::root(), &self.params[index]);
        let place = ArgPath::member(&root, key);
        let by_alias = self
            .notes
            .iter()
            .any(|note| note.what == Coercion::Alias && note.argument == param.name);
        let words = match (by_alias, key == param.name) {
            (false, _) => "comes twice".to_owned(),
            (true, true) => "comes twice, once by an alias".to_owned(),
            (true, false) => format!("is an alias of `{}`, which comes twice", param.name),
        };
        self.faults.push_at(FaultKind::Duplicate, &place, words);
        self.skip_value()
    }

    /// Checks the value from `start` to the current position against the whole schema.
    fn check_value(&mut self, index: usize, start: usize) {
        let name = self.params[index].name;
        match JsonValue::parse_argument(&self.text[start..self.position]) {
            Ok(tree) => self.checks.check_argument(name, &tree, &mut self.faults),
            Err(error) => self.report_not_strict(name, &error),
        }
    }

    fn report_not_strict(&mut self, name: &str, error: &serde_json::Error) {
        let root = ArgPath::root();
        let place = ArgPath::member(&root, name);
        if self.checks.root().property(name).is_some_and(|node| node.is_sensitive()) {
            return self.faults.push_at(FaultKind::Malformed, &place, "is not acceptable");
        }
        let words = without_position(&error.to_string());
        self.faults.push_at(
            FaultKind::Malformed,
            &place,
            format_args!("is not acceptable: {words}"),
        );
    }

    /// Reports a value that its type refuses, in the schema's words, and continues behind it.
    fn report_undecoded(
        &mut self,
        index: usize,
        error: Option<&serde_json::Error>,
    ) -> Result<(), ParseStopped> {
        let start = self.position;
        self.skip_value()?;
        if self.raw.lenient.stringified && self.decode_stringified(index, start) {
            return Ok(());
        }
        if let Some(rest) = self.decode_without_nulls(index, start) {
            self.faults.append(rest);
            return Ok(());
        }
        let found = self.faults.len();
        self.check_value(index, start);
        if self.faults.len() == found && self.decode_whole_numbers(index, start) {
            return Ok(());
        }
        if self.faults.len() == found {
            let mut faults = std::mem::take(&mut self.faults);
            self.report_refusal(self.params[index].name, error, &mut faults);
            self.faults = faults;
        }
        Ok(())
    }

    /// Reports a value that only its type refuses.
    fn report_refusal(&self, name: &str, error: Option<&serde_json::Error>, faults: &mut Faults) {
        let root = ArgPath::root();
        let place = ArgPath::member(&root, name);
        let is_sensitive = self.checks.root().property(name).is_some_and(|n| n.is_sensitive());
        match error {
            Some(error) if !is_sensitive => faults.push_decode_error(&place, error),
            _ => faults.push_at(FaultKind::Type, &place, "is not acceptable"),
        }
    }

    /// Decodes a value whose whole numbers are not written as integers; returns whether that
    /// succeeded.
    fn decode_whole_numbers(&mut self, index: usize, start: usize) -> bool {
        let text = &self.text[start..self.position];
        let Some(text) = with_whole_numbers(text) else { return false };
        (self.params[index].ty.decode)(&text, self.slots[index]).is_ok()
    }

    /// Decodes a value without the `null`s that mean "absent", if there are any; returns the
    /// remaining faults.
    fn decode_without_nulls(&mut self, index: usize, start: usize) -> Option<Faults> {
        if !self.raw.lenient.null_is_absent {
            return None;
        }
        let param = &self.params[index];
        let targets = self.checks.targets();
        let node = self.checks.root().property(param.name)?;
        let mut tree = JsonValue::parse_argument(&self.text[start..self.position]).ok()?;
        if !lenient::remove_nulls(&mut tree, &[node], targets, &mut |_| {}) {
            return None;
        }
        self.notes.push(ArgumentNote::new(param.name, Coercion::NullAsAbsent));
        let mut faults = Faults::default();
        self.checks.check_argument(param.name, &tree, &mut faults);
        let text = tree.to_text();
        let text = with_whole_numbers(&text).unwrap_or(text);
        if faults.is_empty()
            && let Err(error) = (param.ty.decode)(&text, self.slots[index])
        {
            self.report_refusal(param.name, Some(&error), &mut faults);
        }
        Some(faults)
    }

    /// Parses an object or list that was sent as a string; returns whether that succeeded.
    fn decode_stringified(&mut self, index: usize, start: usize) -> bool {
        let param = &self.params[index];
        let wants = self.checks.root().property(param.name).is_some_and(|n| n.wants_container());
        let Ok(JsonValue::String(inner)) =
            JsonValue::parse_argument(&self.text[start..self.position])
        else {
            return false;
        };
        if !wants {
            return false;
        }
        let Ok(tree) = JsonValue::parse_argument(&inner) else { return false };
        let mut faults = Faults::default();
        self.checks.check_argument(param.name, &tree, &mut faults);
        if faults.is_empty() && (param.ty.decode)(&inner, self.slots[index]).is_ok() {
            self.notes.push(ArgumentNote::new(param.name, Coercion::Stringified));
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
                self.checks.root().report_missing_argument(param.name, &mut self.faults);
            }
        }
    }

    fn expect_end(&mut self) -> Result<(), ParseStopped> {
        self.peek_token();
        match self.text.len() == self.position {
            true => Ok(()),
            false => Err(self.report_malformed("something follows the closing `}`")),
        }
    }

    /// Moves behind the value at the current position.
    fn skip_value(&mut self) -> Result<(), ParseStopped> {
        self.parse_here::<IgnoredAny>().map(drop)
    }

    fn report_malformed(&mut self, words: &str) -> ParseStopped {
        let at = self.position;
        let words =
            if self.position >= self.text.len() { "the text ends too early" } else { words };
        self.faults.push_malformed(&format_args!("{words}, at byte {at}"));
        ParseStopped
    }

    fn report_not_an_object(&mut self) -> ParseStopped {
        self.faults.push(match JsonValue::parse_arguments(self.text) {
            Err(fault) => fault,
            Ok(_) => Fault::not_an_object("something else"),
        });
        ParseStopped
    }

    /// Skips whitespace; returns the next byte, or 0 at the end, since no JSON token starts with
    /// 0.
    fn peek_token(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.position) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.position += 1,
                Some(&byte) => return byte,
                None => return 0,
            }
        }
    }
}
