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
use tool_sdk_core::internal::closest_name;

/// The errors of one file, each with its position.
#[derive(Debug)]
pub(crate) struct ConfigErrors<'t> {
    text: &'t str,
    /// The byte offset and message of each error.
    errors: RefCell<Vec<(usize, String)>>,
}

impl<'t> ConfigErrors<'t> {
    /// Starts with no errors for `text`.
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, errors: RefCell::default() }
    }

    /// Parses the file and returns its root table; `None` after a syntax error, because further
    /// errors would only follow from it.
    pub(crate) fn parse_root(&self) -> Option<TomlValue<'_, 't>> {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in &errors {
            self.push_error(error.span().map_or(0, |span| span.start), error.message());
        }
        let value = Spanned::new(table.span(), DeValue::Table(table.into_inner()));
        errors.is_empty().then(|| TomlValue { errors: self, path: String::new(), value })
    }

    fn push_error(&self, byte: usize, message: impl Into<String>) {
        self.errors.borrow_mut().push((byte, message.into()));
    }

    /// Records an error for each key that is not in `known`, and returns their number.
    fn report_unknown_keys(&self, table: &DeTable<'_>, known: &[&str]) -> usize {
        let strangers = table.keys().filter(|key| !known.contains(&&**key.get_ref()));
        let tell = |key: &Spanned<Cow<'_, str>>| {
            let meant = match closest_name(key.get_ref(), known) {
                Some(close) => format!("did you mean `{close}`?"),
                None => format!("the keys here are {}", known.join(", ")),
            };
            let name = key.get_ref().escape_debug();
            self.push_error(key.span().start, format!("unknown key `{name}`; {meant}"));
        };
        strangers.map(tell).count()
    }

    /// Whether there are no errors.
    pub(super) fn is_empty(&self) -> bool {
        self.errors.borrow().is_empty()
    }

    /// Returns the line of a byte offset, counted from 1.
    pub(super) fn line_number(&self, byte: usize) -> usize {
        1 + self.text.bytes().take(byte).filter(|byte| *byte == b'\n').count()
    }

    /// Formats all errors in file order, one a line, as `name:line: message`.
    pub(crate) fn format_errors(&self, name: &str) -> String {
        let mut told = self.errors.borrow().clone();
        told.sort_by_key(|(byte, _)| *byte);
        let line = |(byte, message): (usize, String)| {
            format!("{name}:{}: {}", self.line_number(byte), message.replace('\n', ", "))
        };
        told.into_iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// A value of the file, with its key path and position.
#[derive(Clone, Debug)]
pub(crate) struct TomlValue<'m, 't> {
    errors: &'m ConfigErrors<'t>,
    path: String,
    value: Spanned<DeValue<'t>>,
}

impl<'m, 't> TomlValue<'m, 't> {
    /// Returns the byte offset of the value.
    pub(super) fn start_byte(&self) -> usize {
        self.value.span().start
    }

    /// Records an error at this value.
    pub(crate) fn report_error(&self, message: impl Display) {
        self.errors.push_error(self.start_byte(), format!("`{}`: {message}", self.path));
    }

    /// Records an error at a value inside this one. `path` leads to it, such as `list[0].key`;
    /// the position is that of the last component that exists.
    pub(super) fn report_error_at(&self, path: &str, message: impl Display) {
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
        self.errors.push_error(found.span().start, format!("`{}.{path}`: {message}", self.path));
    }

    /// Deserializes the value; records an error if it has another type.
    pub(crate) fn read_value<T: DeserializeOwned>(self) -> Option<T> {
        let (mistakes, path, start) = (self.errors, self.path, self.value.span().start);
        match T::deserialize(ValueDeserializer::from(self.value)) {
            Ok(value) => Some(value),
            Err(error) => {
                let place = error.span().map_or(start, |span| span.start);
                mistakes.push_error(place, format!("`{path}`: {}", error.message()));
                None
            }
        }
    }

    /// Inserts the name of the table, which comes from its key, as a string under `key`. Records
    /// an error if the table sets `key` itself.
    pub(super) fn insert_name(mut self, key: &'static str, text: &str) -> Option<Self> {
        if self.value.get_ref().as_table().is_some_and(|table| table.contains_key(key)) {
            self.report_error(format_args!(
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
    pub(super) fn map_items<T: DeserializeOwned, U, E: Display>(
        self,
        make: impl Fn(T) -> Result<U, E>,
    ) -> Vec<U> {
        self.into_items().into_iter().filter_map(|item| item.read_with(&make)).collect()
    }

    /// Deserializes the value and converts it with `make`.
    pub(crate) fn read_with<T: DeserializeOwned, U, E: Display>(
        self,
        make: impl FnOnce(T) -> Result<U, E>,
    ) -> Option<U> {
        let (mistakes, path, start) = (self.errors, self.path.clone(), self.start_byte());
        let made = make(self.read_value()?);
        made.map_err(|why| mistakes.push_error(start, format!("`{path}`: {why}"))).ok()
    }

    /// Returns the value unless it is a table with a key that is not in `known`, because other
    /// errors may follow from the unknown key.
    pub(super) fn check_keys(self, known: &[&str]) -> Option<Self> {
        let strangers = match self.value.get_ref() {
            DeValue::Table(table) => self.errors.report_unknown_keys(table, known),
            _ => 0,
        };
        (strangers == 0).then_some(self)
    }

    /// Returns the table; records an error for each key that is not in `known`.
    pub(crate) fn into_table_with(self, known: &[&str]) -> Option<TomlTable<'m, 't>> {
        let keys = self.into_table()?;
        keys.errors.report_unknown_keys(&keys.table, known);
        Some(keys)
    }

    /// Returns the entries of a table whose keys are names.
    fn into_named_values(self) -> Vec<(String, Self)> {
        let Some(mut keys) = self.into_table() else { return Vec::new() };
        let names: Vec<_> = keys.table.keys().map(|name| name.get_ref().to_string()).collect();
        let take = |name: String| keys.take_value(&name).map(|part| (name, part));
        names.into_iter().filter_map(take).collect()
    }

    fn into_table(self) -> Option<TomlTable<'m, 't>> {
        if self.value.get_ref().as_table().is_none() {
            self.report_error("expected a table");
        }
        match self.value.into_inner() {
            DeValue::Table(table) => {
                Some(TomlTable { errors: self.errors, path: self.path, table })
            }
            _ => None,
        }
    }

    /// Returns the items of a list.
    fn into_items(self) -> Vec<Self> {
        if self.value.get_ref().as_array().is_none() {
            self.report_error("expected a list");
        }
        let DeValue::Array(items) = self.value.into_inner() else { return Vec::new() };
        let item =
            |(at, value)| Self { errors: self.errors, path: format!("{}[{at}]", self.path), value };
        items.into_iter().enumerate().map(item).collect()
    }
}

/// A table from which values are taken key by key.
#[derive(Debug)]
pub(crate) struct TomlTable<'m, 't> {
    errors: &'m ConfigErrors<'t>,
    path: String,
    table: DeTable<'t>,
}

impl<'m, 't> TomlTable<'m, 't> {
    /// Removes and returns the value of `key`.
    pub(crate) fn take_value(&mut self, key: &str) -> Option<TomlValue<'m, 't>> {
        let value = self.table.remove(key)?;
        let dot = if self.path.is_empty() { "" } else { "." };
        Some(TomlValue { errors: self.errors, path: format!("{}{dot}{key}", self.path), value })
    }

    /// Deserializes the value of `key`.
    pub(crate) fn read_value<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        self.take_value(key)?.read_value()
    }

    /// Parses the string value of `key`.
    pub(super) fn parse_word<T: FromStr<Err: Display>>(&mut self, key: &str) -> Option<T> {
        self.take_value(key)?.read_with(|word: String| word.parse())
    }

    /// Returns the items of the list under `key`.
    pub(crate) fn take_items(&mut self, key: &str) -> Vec<TomlValue<'m, 't>> {
        self.take_value(key).map(TomlValue::into_items).unwrap_or_default()
    }

    /// Deserializes the items of the list under `key`; `None` if the key is missing.
    pub(super) fn read_list<T: DeserializeOwned>(&mut self, key: &str) -> Option<Vec<T>> {
        let items = self.take_value(key)?.into_items();
        Some(items.into_iter().filter_map(TomlValue::read_value).collect())
    }

    /// Returns the named entries of the table under `key`.
    pub(crate) fn take_named_values(&mut self, key: &str) -> Vec<(String, TomlValue<'m, 't>)> {
        self.take_value(key).map(TomlValue::into_named_values).unwrap_or_default()
    }
}
