//! A strict JSON tree: no duplicate keys, bounded depth, nothing after the value.
//!
//! serde_json parses the text; this module adds the checks that it lacks.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::fmt::{self, Write as _};

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

use super::fault::{Fault, FaultKind, without_position};
use super::json_number::{self, JsonNumber};
use super::{MAX_BYTES, MAX_DEPTH};

/// A JSON value that borrows from the text where possible.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum JsonValue<'a> {
    Null,
    Bool(bool),
    Number(JsonNumber<'a>),
    String(Cow<'a, str>),
    Array(Vec<JsonValue<'a>>),
    Object(Vec<(Cow<'a, str>, JsonValue<'a>)>),
}

impl<'a> JsonValue<'a> {
    /// Parses one value that is the whole text.
    pub(crate) fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        Self::parse_at(0, text)
    }

    /// Parses the value of an argument, which is one level deep.
    pub(super) fn parse_argument(text: &'a str) -> Result<Self, serde_json::Error> {
        Self::parse_at(1, text)
    }

    fn parse_at(depth: usize, text: &'a str) -> Result<Self, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let seed = ValueSeed { depth, text, numbers: &Cell::new(0) };
        let value = seed.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(value)
    }

    /// Parses the arguments of a call: an object of bounded size.
    pub(super) fn parse_arguments(text: &'a str) -> Result<Self, Fault> {
        if text.len() > MAX_BYTES {
            return Err(Fault::too_long(text.len()));
        }
        match Self::parse(text) {
            Ok(tree @ JsonValue::Object(_)) => Ok(tree),
            Ok(other) => Err(Fault::not_an_object(other.kind_name())),
            Err(error) => Err(Fault::malformed(text, &error)),
        }
    }

    /// Returns the type of the value with its article.
    pub(super) fn kind_name(&self) -> &'static str {
        match self {
            JsonValue::Null => "null",
            JsonValue::Bool(_) => "a boolean",
            JsonValue::Number(_) => "a number",
            JsonValue::String(_) => "a string",
            JsonValue::Array(_) => "a list",
            JsonValue::Object(_) => "an object",
        }
    }

    /// Returns the value without borrows.
    pub(super) fn into_owned<'b>(self) -> JsonValue<'b> {
        match self {
            JsonValue::Null => JsonValue::Null,
            JsonValue::Bool(value) => JsonValue::Bool(value),
            JsonValue::Number(number) => JsonValue::Number(number.into_owned()),
            JsonValue::String(text) => JsonValue::String(Cow::Owned(text.into_owned())),
            JsonValue::Array(items) => {
                JsonValue::Array(items.into_iter().map(JsonValue::into_owned).collect())
            }
            JsonValue::Object(members) => JsonValue::Object(
                members
                    .into_iter()
                    .map(|(key, value)| (Cow::Owned(key.into_owned()), value.into_owned()))
                    .collect(),
            ),
        }
    }

    /// Returns the value as JSON text, with numbers as they were written.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        self.write_json(&mut text);
        text
    }

    fn write_json(&self, text: &mut String) {
        let mut separator = "";
        match self {
            JsonValue::Null => text.push_str("null"),
            JsonValue::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
            JsonValue::Number(number) => text.push_str(number.as_str()),
            JsonValue::String(value) => text.push_str(&Value::from(value.as_ref()).to_string()),
            JsonValue::Array(items) => {
                text.push('[');
                for item in items {
                    text.push_str(std::mem::replace(&mut separator, ","));
                    item.write_json(text);
                }
                text.push(']');
            }
            JsonValue::Object(members) => {
                text.push('{');
                for (key, value) in members {
                    text.push_str(std::mem::replace(&mut separator, ","));
                    text.push_str(&Value::from(key.as_ref()).to_string());
                    text.push(':');
                    value.write_json(text);
                }
                text.push('}');
            }
        }
    }

    /// Converts the value to that of serde_json.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            JsonValue::Null => Value::Null,
            JsonValue::Bool(value) => Value::Bool(*value),
            JsonValue::Number(number) => Value::Number(number.to_number()),
            JsonValue::String(text) => Value::String(text.to_string()),
            JsonValue::Array(items) => {
                Value::Array(items.iter().map(JsonValue::to_value).collect())
            }
            JsonValue::Object(members) => Value::Object(
                members.iter().map(|(key, value)| (key.to_string(), value.to_value())).collect(),
            ),
        }
    }

    /// Whether the value equals a value of the schema.
    pub(super) fn equals_value(&self, value: &Value) -> bool {
        match (self, value) {
            (JsonValue::Null, Value::Null) => true,
            (JsonValue::Bool(a), Value::Bool(b)) => a == b,
            (JsonValue::Number(a), Value::Number(b)) => {
                a.to_number() == *b || a.as_f64() == b.as_f64()
            }
            (JsonValue::String(a), Value::String(b)) => a == b,
            (JsonValue::Array(a), Value::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.equals_value(b))
            }
            (JsonValue::Object(a), Value::Object(b)) => {
                a.len() == b.len()
                    && a.iter()
                        .all(|(key, a)| b.get(key.as_ref()).is_some_and(|b| a.equals_value(b)))
            }
            _ => false,
        }
    }

    /// Returns the member `key` of an object.
    pub(super) fn member(&self, key: &str) -> Option<&JsonValue<'a>> {
        match self {
            JsonValue::Object(members) => {
                members.iter().find(|(name, _)| name == key).map(|(_, value)| value)
            }
            _ => None,
        }
    }
}

/// Parses one value at a known depth.
#[derive(Clone, Copy)]
struct ValueSeed<'de, 'n> {
    depth: usize,
    text: &'de str,
    /// The position behind the last number; numbers are parsed in the order of the text.
    numbers: &'n Cell<usize>,
}

impl<'de> ValueSeed<'de, '_> {
    fn enter_level<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth == MAX_DEPTH {
            return Err(E::custom(format_args!("nested deeper than {MAX_DEPTH} levels")));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }

    /// Whether this is the key under which serde_json passes a number as it was written, if a
    /// crate of the program enables its feature `arbitrary_precision`. The text is then
    /// serde_json's own and not part of the input.
    fn is_number_token(self, key: &str) -> bool {
        const MARK: &str = "$serde_json::private::Number";
        key == MARK && !self.text.as_bytes().as_ptr_range().contains(&key.as_ptr())
    }

    /// Parses a number that serde_json passes as text.
    fn parse_number<E: serde::de::Error>(self, text: &str) -> Result<JsonValue<'de>, E> {
        let is_finite = text.parse().is_ok_and(f64::is_finite);
        let number = is_finite.then(|| serde_json::from_str(text).ok()).flatten();
        number
            .map(|number| self.next_number(number))
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn next_number(self, value: Number) -> JsonValue<'de> {
        let place = json_number::next_number(self.text, self.numbers).unwrap_or_default();
        JsonValue::Number(JsonNumber::new(&self.text[place], value))
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'de, '_> {
    type Value = JsonValue<'de>;

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<JsonValue<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'de, '_> {
    type Value = JsonValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<JsonValue<'de>, E> {
        Ok(JsonValue::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<JsonValue<'de>, E> {
        Ok(JsonValue::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<JsonValue<'de>, E> {
        Ok(self.next_number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<JsonValue<'de>, E> {
        Ok(self.next_number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<JsonValue<'de>, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("number out of range"))?;
        Ok(self.next_number(number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<JsonValue<'de>, E> {
        Ok(JsonValue::String(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<JsonValue<'de>, E> {
        Ok(JsonValue::String(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<JsonValue<'de>, A::Error> {
        let inner = self.enter_level()?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(JsonValue::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonValue<'de>, A::Error> {
        let inner = self.enter_level()?;
        let mut members: Vec<(Cow<'de, str>, JsonValue<'de>)> = Vec::new();
        let mut seen = SeenKeys::default();
        while let Some(JsonValue::String(key)) = map.next_key_seed(inner)? {
            if let Cow::Borrowed(key) = key
                && self.is_number_token(key)
            {
                let JsonValue::String(number) = map.next_value_seed(inner)? else {
                    return Err(A::Error::custom("expected a number"));
                };
                return self.parse_number(&number);
            }
            if !seen.insert(&members, &key) {
                return Err(A::Error::custom(format_args!(
                    "the key {} comes twice",
                    QuotedExcerpt(&key)
                )));
            }
            members.push((key, map.next_value_seed(inner)?));
        }
        Ok(JsonValue::Object(members))
    }
}

/// The keys of an object so far: compared one by one while they are few, in a hash set when they
/// are many.
#[derive(Default)]
struct SeenKeys<'a>(HashSet<Cow<'a, str>>);

impl<'a> SeenKeys<'a> {
    const MAX_COMPARED: usize = 16;

    fn insert(&mut self, members: &[(Cow<'a, str>, JsonValue<'a>)], key: &str) -> bool {
        if members.len() < Self::MAX_COMPARED {
            return members.iter().all(|(name, _)| name != key);
        }
        if self.0.is_empty() {
            self.0.extend(members.iter().map(|(name, _)| name.clone()));
        }
        self.0.insert(Cow::Owned(key.to_owned()))
    }
}

/// The maximum number of characters of a value in a message.
const MAX_EXCERPT_CHARS: usize = 60;

/// Returns the start of a number, which may have any length.
pub(super) fn shorten_number(number: &str) -> Cow<'_, str> {
    match number.get(..MAX_EXCERPT_CHARS) {
        Some(start) if start.len() < number.len() => format!("{start}…").into(),
        _ => number.into(),
    }
}

/// A text in a message: quoted, escaped and truncated.
pub(super) struct QuotedExcerpt<'a>(pub(super) &'a str);

impl fmt::Display for QuotedExcerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b' ';
        if self.0.len() <= MAX_EXCERPT_CHARS && self.0.bytes().all(plain) {
            f.write_char('"')?;
            f.write_str(self.0)?;
            return f.write_char('"');
        }
        match self.0.char_indices().nth(MAX_EXCERPT_CHARS) {
            Some((cut, _)) => write!(f, "{:?}…", &self.0[..cut]),
            None => write!(f, "{:?}", self.0),
        }
    }
}

impl Fault {
    fn malformed(text: &str, error: &serde_json::Error) -> Self {
        let words = if text.trim_ascii().is_empty() {
            "the arguments are empty; send `{}` for a call without arguments".to_owned()
        } else if text.trim_ascii_start().starts_with("```") {
            "the arguments are in a code fence; send the JSON object alone, without ```".to_owned()
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

    /// Parses the number `text` as serde_json with `arbitrary_precision` passes it.
    fn parse_number_token<'t>(
        text: &'t str,
        mark: &'t str,
    ) -> Result<JsonValue<'t>, serde_json::Error> {
        let seed = ValueSeed { depth: 0, text, numbers: &Cell::new(0) };
        let mark = BorrowedStrDeserializer::new(mark);
        let entries = std::iter::once((NumberToken(mark), text));
        seed.deserialize(MapDeserializer::new(entries))
    }

    struct NumberToken<'t>(BorrowedStrDeserializer<'t, serde_json::Error>);

    impl<'t> IntoDeserializer<'t, serde_json::Error> for NumberToken<'t> {
        type Deserializer = BorrowedStrDeserializer<'t, serde_json::Error>;

        fn into_deserializer(self) -> Self::Deserializer {
            self.0
        }
    }

    // Cargo unifies features: any crate of the program may enable this one.
    #[test]
    fn numbers_that_are_handed_on_as_text_are_numbers() {
        const MARK: &str = "$serde_json::private::Number";
        for number in ["0.2", "1.0", "1e19", "340282366920938463463374607431768211455"] {
            assert_eq!(
                parse_number_token(number, MARK).unwrap(),
                JsonValue::parse(number).unwrap(),
                "{number}"
            );
        }
        assert!(parse_number_token("1e400", MARK).is_err());
        // A client that sends this key sends an object, however it is written.
        for sent in [
            r#"{"$serde_json::private::Number":"1"}"#,
            r#"{"\u0024serde_json::private::Number":"1"}"#,
        ] {
            assert!(matches!(JsonValue::parse(sent), Ok(JsonValue::Object(_))), "{sent}");
        }
    }
}
