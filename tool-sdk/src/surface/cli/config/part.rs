//! Reads a TOML file value by value and collects all errors with their positions.
//!
//! A wrong value becomes an error and `None`, so the caller goes on with the next one.
//!
//! **Invariant:** nothing here knows the keys of a configuration. `None` for a value that exists
//! means that its error is already recorded.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::Display;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use crate::tool::closest;

/// The errors of one file, each with its position.
#[derive(Debug)]
pub(in super::super) struct Mistakes<'t> {
    text: &'t str,
    /// The byte offset and message of each error.
    told: RefCell<Vec<(usize, String)>>,
}

impl<'t> Mistakes<'t> {
    /// Starts with no errors for `text`.
    pub(in super::super) fn of(text: &'t str) -> Self {
        Self { text, told: RefCell::default() }
    }

    /// Parses the file and returns its root table; `None` after a syntax error, because further
    /// errors would only follow from it.
    pub(in super::super) fn whole(&self) -> Option<Part<'_, 't>> {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in &errors {
            self.add(error.span().map_or(0, |span| span.start), error.message());
        }
        let value = Spanned::new(table.span(), DeValue::Table(table.into_inner()));
        errors.is_empty().then(|| Part { mistakes: self, path: String::new(), value })
    }

    fn add(&self, byte: usize, message: impl Into<String>) {
        self.told.borrow_mut().push((byte, message.into()));
    }

    /// Records an error for each key that is not in `known`, and returns their number.
    fn strangers(&self, table: &DeTable<'_>, known: &[&str]) -> usize {
        let strangers = table.keys().filter(|key| !known.contains(&&**key.get_ref()));
        let tell = |key: &Spanned<Cow<'_, str>>| {
            let meant = match closest(key.get_ref(), known) {
                Some(close) => format!("did you mean `{close}`?"),
                None => format!("the keys here are {}", known.join(", ")),
            };
            let name = key.get_ref().escape_debug();
            self.add(key.span().start, format!("unknown key `{name}`; {meant}"));
        };
        strangers.map(tell).count()
    }

    /// Whether there are no errors.
    pub(super) fn is_empty(&self) -> bool {
        self.told.borrow().is_empty()
    }

    /// Returns the line of a byte offset, counted from 1.
    pub(super) fn line(&self, byte: usize) -> usize {
        1 + self.text.bytes().take(byte).filter(|byte| *byte == b'\n').count()
    }

    /// Formats all errors in file order, one a line, as `name:line: message`.
    pub(in super::super) fn told(&self, name: &str) -> String {
        let mut told = self.told.borrow().clone();
        told.sort_by_key(|(byte, _)| *byte);
        let line = |(byte, message): (usize, String)| {
            format!("{name}:{}: {}", self.line(byte), message.replace('\n', ", "))
        };
        told.into_iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// A value of the file, with its key path and position.
#[derive(Clone, Debug)]
pub(in super::super) struct Part<'m, 't> {
    mistakes: &'m Mistakes<'t>,
    path: String,
    value: Spanned<DeValue<'t>>,
}

impl<'m, 't> Part<'m, 't> {
    /// Returns the byte offset of the value.
    pub(super) fn start(&self) -> usize {
        self.value.span().start
    }

    /// Records an error at this value.
    pub(in super::super) fn wrong(&self, message: impl Display) {
        self.mistakes.add(self.start(), format!("`{}`: {message}", self.path));
    }

    /// Records an error at a value inside this one. `path` leads to it, such as `list[0].key`;
    /// the position is that of the last component that exists.
    pub(super) fn wrong_at(&self, path: &str, message: impl Display) {
        let mut found = &self.value;
        let keys = path.split(['.', '[']).map(|key| key.trim_end_matches(']'));
        for key in keys {
            let next = match found.get_ref() {
                DeValue::Table(table) => table.get(key),
                DeValue::Array(items) => key.parse::<usize>().ok().and_then(|at| items.get(at)),
                _ => None,
            };
            let Some(next) = next else { break };
            found = next;
        }
        self.mistakes.add(found.span().start, format!("`{}.{path}`: {message}", self.path));
    }

    /// Deserializes the value; records an error if it has another type.
    pub(in super::super) fn read<T: DeserializeOwned>(self) -> Option<T> {
        let (mistakes, path, start) = (self.mistakes, self.path, self.value.span().start);
        match T::deserialize(ValueDeserializer::from(self.value)) {
            Ok(value) => Some(value),
            Err(error) => {
                let place = error.span().map_or(start, |span| span.start);
                mistakes.add(place, format!("`{path}`: {}", error.message()));
                None
            }
        }
    }

    /// Inserts the name of the table, which comes from its key, as a string under `key`. Records
    /// an error if the table sets `key` itself.
    pub(super) fn with_only(mut self, key: &'static str, text: &str) -> Option<Self> {
        if self.value.get_ref().as_table().is_some_and(|table| table.contains_key(key)) {
            self.wrong(format_args!(
                "unknown key `{key}`; the key of the table sets it to `{text}`"
            ));
            return None;
        }
        if let DeValue::Table(table) = self.value.get_mut() {
            let text = DeValue::String(text.to_owned().into());
            table.insert(Spanned::new(0..0, key.into()), Spanned::new(0..0, text));
        }
        Some(self)
    }

    /// Converts each item of a list with `make`.
    pub(super) fn items_as<T: DeserializeOwned, U, E: Display>(
        self,
        make: impl Fn(T) -> Result<U, E>,
    ) -> Vec<U> {
        self.items().into_iter().filter_map(|item| item.read_as(&make)).collect()
    }

    /// Deserializes the value and converts it with `make`.
    pub(in super::super) fn read_as<T: DeserializeOwned, U, E: Display>(
        self,
        make: impl FnOnce(T) -> Result<U, E>,
    ) -> Option<U> {
        let (mistakes, path, start) = (self.mistakes, self.path.clone(), self.start());
        let made = make(self.read()?);
        made.map_err(|why| mistakes.add(start, format!("`{path}`: {why}"))).ok()
    }

    /// Returns the value unless it is a table with a key that is not in `known`, because other
    /// errors may follow from the unknown key.
    pub(super) fn with_keys(self, known: &[&str]) -> Option<Self> {
        let strangers = match self.value.get_ref() {
            DeValue::Table(table) => self.mistakes.strangers(table, known),
            _ => 0,
        };
        (strangers == 0).then_some(self)
    }

    /// Returns the table; records an error for each key that is not in `known`.
    pub(in super::super) fn keys(self, known: &[&str]) -> Option<Keys<'m, 't>> {
        let keys = self.table()?;
        keys.mistakes.strangers(&keys.table, known);
        Some(keys)
    }

    /// Returns the entries of a table whose keys are names.
    fn named(self) -> Vec<(String, Self)> {
        let Some(mut keys) = self.table() else { return Vec::new() };
        let names: Vec<_> = keys.table.keys().map(|name| name.get_ref().to_string()).collect();
        let take = |name: String| keys.take(&name).map(|part| (name, part));
        names.into_iter().filter_map(take).collect()
    }

    fn table(self) -> Option<Keys<'m, 't>> {
        if self.value.get_ref().as_table().is_none() {
            self.wrong("expected a table");
        }
        match self.value.into_inner() {
            DeValue::Table(table) => Some(Keys { mistakes: self.mistakes, path: self.path, table }),
            _ => None,
        }
    }

    /// Returns the items of a list.
    fn items(self) -> Vec<Self> {
        if self.value.get_ref().as_array().is_none() {
            self.wrong("expected a list");
        }
        let DeValue::Array(items) = self.value.into_inner() else { return Vec::new() };
        let item = |(at, value)| Self {
            mistakes: self.mistakes,
            path: format!("{}[{at}]", self.path),
            value,
        };
        items.into_iter().enumerate().map(item).collect()
    }
}

/// A table from which values are taken key by key.
#[derive(Debug)]
pub(in super::super) struct Keys<'m, 't> {
    mistakes: &'m Mistakes<'t>,
    path: String,
    table: DeTable<'t>,
}

impl<'m, 't> Keys<'m, 't> {
    /// Removes and returns the value of `key`.
    pub(in super::super) fn take(&mut self, key: &str) -> Option<Part<'m, 't>> {
        let value = self.table.remove(key)?;
        let dot = if self.path.is_empty() { "" } else { "." };
        Some(Part { mistakes: self.mistakes, path: format!("{}{dot}{key}", self.path), value })
    }

    /// Deserializes the value of `key`.
    pub(in super::super) fn read<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        self.take(key)?.read()
    }

    /// Parses the string value of `key`.
    pub(super) fn word<T: FromStr<Err: Display>>(&mut self, key: &str) -> Option<T> {
        self.take(key)?.read_as(|word: String| word.parse())
    }

    /// Returns the items of the list under `key`.
    pub(in super::super) fn items(&mut self, key: &str) -> Vec<Part<'m, 't>> {
        self.take(key).map(Part::items).unwrap_or_default()
    }

    /// Deserializes the items of the list under `key`; `None` if the key is missing.
    pub(super) fn list<T: DeserializeOwned>(&mut self, key: &str) -> Option<Vec<T>> {
        let items = self.take(key)?.items();
        Some(items.into_iter().filter_map(Part::read).collect())
    }

    /// Returns the named entries of the table under `key`.
    pub(in super::super) fn named(&mut self, key: &str) -> Vec<(String, Part<'m, 't>)> {
        self.take(key).map(Part::named).unwrap_or_default()
    }
}
