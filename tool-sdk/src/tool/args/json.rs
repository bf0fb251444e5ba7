//! JSON text as a strict tree: no duplicate keys, bounded depth, nothing after the value.
//!
//! serde_json does the reading; this adds what it leaves open.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::fmt::{self, Write as _};

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

use super::fault::{Fault, FaultKind, without_position};
use super::numeral::{self, Numeral};
use super::{MAX_BYTES, MAX_DEPTH};

/// A JSON value that keeps what it can borrow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    Number(Numeral<'a>),
    String(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl<'a> Json<'a> {
    /// Reads one value that fills the whole text.
    pub(crate) fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        Self::parse_at(0, text)
    }

    /// Reads the value of an argument, which is one level down.
    pub(super) fn parse_argument(text: &'a str) -> Result<Self, serde_json::Error> {
        Self::parse_at(1, text)
    }

    fn parse_at(depth: usize, text: &'a str) -> Result<Self, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let seed = Seed { depth, text, numbers: &Cell::new(0) };
        let value = seed.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(value)
    }

    /// Reads the arguments of a call: an object of bounded size.
    pub(super) fn parse_arguments(text: &'a str) -> Result<Self, Fault> {
        if text.len() > MAX_BYTES {
            return Err(Fault::too_long(text.len()));
        }
        match Self::parse(text) {
            Ok(tree @ Json::Object(_)) => Ok(tree),
            Ok(other) => Err(Fault::not_an_object(other.kind())),
            Err(error) => Err(Fault::malformed(text, &error)),
        }
    }

    /// What kind of value it is, with its article.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "a boolean",
            Json::Number(_) => "a number",
            Json::String(_) => "a string",
            Json::Array(_) => "a list",
            Json::Object(_) => "an object",
        }
    }

    /// The same value without borrows.
    pub(super) fn into_owned<'b>(self) -> Json<'b> {
        match self {
            Json::Null => Json::Null,
            Json::Bool(value) => Json::Bool(value),
            Json::Number(number) => Json::Number(number.into_owned()),
            Json::String(text) => Json::String(Cow::Owned(text.into_owned())),
            Json::Array(items) => Json::Array(items.into_iter().map(Json::into_owned).collect()),
            Json::Object(members) => Json::Object(
                members
                    .into_iter()
                    .map(|(key, value)| (Cow::Owned(key.into_owned()), value.into_owned()))
                    .collect(),
            ),
        }
    }

    /// The value as JSON text again, with its numbers as they were written.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) {
        let mut separator = "";
        match self {
            Json::Null => text.push_str("null"),
            Json::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
            Json::Number(number) => text.push_str(number.as_str()),
            Json::String(value) => text.push_str(&Value::from(value.as_ref()).to_string()),
            Json::Array(items) => {
                text.push('[');
                for item in items {
                    text.push_str(std::mem::replace(&mut separator, ","));
                    item.write(text);
                }
                text.push(']');
            }
            Json::Object(members) => {
                text.push('{');
                for (key, value) in members {
                    text.push_str(std::mem::replace(&mut separator, ","));
                    text.push_str(&Value::from(key.as_ref()).to_string());
                    text.push(':');
                    value.write(text);
                }
                text.push('}');
            }
        }
    }

    /// The value as serde_json has it.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => Value::Number(number.to_number()),
            Json::String(text) => Value::String(text.to_string()),
            Json::Array(items) => Value::Array(items.iter().map(Json::to_value).collect()),
            Json::Object(members) => Value::Object(
                members.iter().map(|(key, value)| (key.to_string(), value.to_value())).collect(),
            ),
        }
    }

    /// Whether the value equals one of a schema's.
    pub(super) fn equals(&self, value: &Value) -> bool {
        match (self, value) {
            (Json::Null, Value::Null) => true,
            (Json::Bool(a), Value::Bool(b)) => a == b,
            (Json::Number(a), Value::Number(b)) => a.to_number() == *b || a.as_f64() == b.as_f64(),
            (Json::String(a), Value::String(b)) => a == b,
            (Json::Array(a), Value::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.equals(b))
            }
            (Json::Object(a), Value::Object(b)) => {
                a.len() == b.len()
                    && a.iter().all(|(key, a)| b.get(key.as_ref()).is_some_and(|b| a.equals(b)))
            }
            _ => false,
        }
    }

    /// The member `key` of an object.
    pub(super) fn member(&self, key: &str) -> Option<&Json<'a>> {
        match self {
            Json::Object(members) => {
                members.iter().find(|(name, _)| name == key).map(|(_, value)| value)
            }
            _ => None,
        }
    }
}

/// Reads one value at a known depth.
#[derive(Clone, Copy)]
struct Seed<'de, 'n> {
    depth: usize,
    text: &'de str,
    /// Behind the last number: they come in the order in which they are written.
    numbers: &'n Cell<usize>,
}

impl<'de> Seed<'de, '_> {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth == MAX_DEPTH {
            return Err(E::custom(format_args!("nested deeper than {MAX_DEPTH} levels")));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }

    /// Whether this is the key under which serde_json hands a number on as it was written, where
    /// some crate of the program has turned on its feature `arbitrary_precision`. It is
    /// serde_json's own text then, and no part of what was read.
    fn is_mark_of_number(self, key: &str) -> bool {
        const MARK: &str = "$serde_json::private::Number";
        key == MARK && !self.text.as_bytes().as_ptr_range().contains(&key.as_ptr())
    }

    /// A number that serde_json left as text.
    fn number_of<E: serde::de::Error>(self, text: &str) -> Result<Json<'de>, E> {
        let is_finite = text.parse().is_ok_and(f64::is_finite);
        let number = is_finite.then(|| serde_json::from_str(text).ok()).flatten();
        number.map(|number| self.number(number)).ok_or_else(|| E::custom("number out of range"))
    }

    fn number(self, value: Number) -> Json<'de> {
        let place = numeral::next(self.text, self.numbers).unwrap_or_default();
        Json::Number(Numeral::new(&self.text[place], value))
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'de, '_> {
    type Value = Json<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'de, '_> {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json<'de>, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json<'de>, E> {
        Ok(self.number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json<'de>, E> {
        Ok(self.number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Json<'de>, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("number out of range"))?;
        Ok(self.number(number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::String(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json<'de>, E> {
        Ok(Json::String(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json<'de>, A::Error> {
        let inner = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Json::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json<'de>, A::Error> {
        let inner = self.deeper()?;
        let mut members: Vec<(Cow<'de, str>, Json<'de>)> = Vec::new();
        let mut seen = Seen::default();
        while let Some(Json::String(key)) = map.next_key_seed(inner)? {
            if let Cow::Borrowed(key) = key
                && self.is_mark_of_number(key)
            {
                let Json::String(number) = map.next_value_seed(inner)? else {
                    return Err(A::Error::custom("expected a number"));
                };
                return self.number_of(&number);
            }
            if !seen.insert(&members, &key) {
                return Err(A::Error::custom(format_args!("the key {} comes twice", Brief(&key))));
            }
            members.push((key, map.next_value_seed(inner)?));
        }
        Ok(Json::Object(members))
    }
}

/// Which keys an object had: by comparison while they are few, by a set when they are many.
#[derive(Default)]
struct Seen<'a>(HashSet<Cow<'a, str>>);

impl<'a> Seen<'a> {
    const FEW: usize = 16;

    fn insert(&mut self, members: &[(Cow<'a, str>, Json<'a>)], key: &str) -> bool {
        if members.len() < Self::FEW {
            return members.iter().all(|(name, _)| name != key);
        }
        if self.0.is_empty() {
            self.0.extend(members.iter().map(|(name, _)| name.clone()));
        }
        self.0.insert(Cow::Owned(key.to_owned()))
    }
}

/// The most characters of a value that a message repeats.
const MAX: usize = 60;

/// The start of a number that may be of any length.
pub(super) fn shortened(number: &str) -> Cow<'_, str> {
    match number.get(..MAX) {
        Some(start) if start.len() < number.len() => format!("{start}…").into(),
        _ => number.into(),
    }
}

/// A text for a message: quoted, escaped and short.
pub(super) struct Brief<'a>(pub(super) &'a str);

impl fmt::Display for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b' ';
        if self.0.len() <= MAX && self.0.bytes().all(plain) {
            f.write_char('"')?;
            f.write_str(self.0)?;
            return f.write_char('"');
        }
        match self.0.char_indices().nth(MAX) {
            Some((cut, _)) => write!(f, "{:?}…", &self.0[..cut]),
            None => write!(f, "{:?}", self.0),
        }
    }
}

impl Fault {
    fn malformed(text: &str, error: &serde_json::Error) -> Self {
        let words = if text.trim_ascii().is_empty() {
            "the arguments are empty; send `{}` when there is nothing to say".to_owned()
        } else if text.starts_with('\u{feff}') {
            "the arguments are not valid JSON: they begin with a byte order mark".to_owned()
        } else {
            let lines: usize =
                text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
            let at = lines + error.column().saturating_sub(1);
            let words = without_position(&error.to_string());
            format!("the arguments are not valid JSON: {words}, at byte {at}")
        };
        Self::new(FaultKind::Malformed, String::new(), words)
    }
}

#[cfg(test)]
mod tests {
    use serde::de::IntoDeserializer;
    use serde::de::value::{BorrowedStrDeserializer, MapDeserializer};

    use super::*;

    /// What serde_json with `arbitrary_precision` gives for the number `text`.
    fn marked<'t>(text: &'t str, mark: &'t str) -> Result<Json<'t>, serde_json::Error> {
        let seed = Seed { depth: 0, text, numbers: &Cell::new(0) };
        let mark = BorrowedStrDeserializer::new(mark);
        let entries = std::iter::once((Marked(mark), text));
        seed.deserialize(MapDeserializer::new(entries))
    }

    struct Marked<'t>(BorrowedStrDeserializer<'t, serde_json::Error>);

    impl<'t> IntoDeserializer<'t, serde_json::Error> for Marked<'t> {
        type Deserializer = BorrowedStrDeserializer<'t, serde_json::Error>;

        fn into_deserializer(self) -> Self::Deserializer {
            self.0
        }
    }

    // Cargo unifies features: any crate of a program may turn this one on.
    #[test]
    fn numbers_that_are_handed_on_as_text_are_numbers() {
        const MARK: &str = "$serde_json::private::Number";
        for number in ["0.2", "1.0", "1e19", "340282366920938463463374607431768211455"] {
            assert_eq!(marked(number, MARK).unwrap(), Json::parse(number).unwrap(), "{number}");
        }
        assert!(marked("1e400", MARK).is_err());
        // Who sends that key sends an object, however it is written.
        for sent in [
            r#"{"$serde_json::private::Number":"1"}"#,
            r#"{"\u0024serde_json::private::Number":"1"}"#,
        ] {
            assert!(matches!(Json::parse(sent), Ok(Json::Object(_))), "{sent}");
        }
    }
}
