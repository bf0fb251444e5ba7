//! Hashes the arguments of a call, so that equal calls have equal keys.
//!
//! The order of an object's members and the blanks between tokens do not count. Text that is not
//! JSON is hashed as it is. The text is hashed while it is parsed, because arguments may hold whole
//! files.
//!
//! Two different calls may share a key by chance, so nothing is allowed because of one.

use std::fmt;
use std::hash::{BuildHasher, Hash};

use foldhash::quality::FixedState;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// Returns the key of a call of `tool` with `arguments`.
pub(super) fn call_key(tool: &str, arguments: &str) -> u64 {
    hash((tool, json_key(arguments)))
}

/// Returns the key of a result: its text, and the facts that the text does not say.
pub(super) fn result_key(result: Result<&str, &str>, facts: &str) -> u64 {
    hash((result, facts))
}

fn json_key(text: &str) -> u64 {
    serde_json::from_str(text).map_or_else(|_| hash(text), |JsonKey(key)| key)
}

fn hash(value: impl Hash) -> u64 {
    FixedState::default().hash_one(value)
}

/// The key of one JSON value.
struct JsonKey(u64);

impl<'de> Deserialize<'de> for JsonKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonKeyVisitor).map(Self)
    }
}

/// Hashes a value together with its kind, so that `1` and `"1"` differ.
struct JsonKeyVisitor;

impl<'de> Visitor<'de> for JsonKeyVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<u64, E> {
        Ok(hash("null"))
    }

    fn visit_bool<E>(self, value: bool) -> Result<u64, E> {
        Ok(hash(("bool", value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<u64, E> {
        Ok(hash(("u64", value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<u64, E> {
        Ok(hash(("i64", value)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<u64, E> {
        Ok(hash(("f64", value.to_bits())))
    }

    fn visit_str<E>(self, value: &str) -> Result<u64, E> {
        Ok(hash(("string", value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<u64, A::Error> {
        let mut key = hash("array");
        while let Some(JsonKey(item)) = items.next_element()? {
            key = hash((key, item));
        }
        Ok(key)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<u64, A::Error> {
        // A sum does not depend on the order.
        let mut key = hash("object");
        while let Some((JsonKey(name), JsonKey(value))) = members.next_entry()? {
            key = key.wrapping_add(hash((name, value)));
        }
        Ok(key)
    }
}
