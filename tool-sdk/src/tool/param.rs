//! What a type must be to be a parameter, and its decoding in place.
//!
//! Everything that depends on a parameter's type is instantiated here once per type, not
//! once per tool: [`ParamType`] holds it as function pointers, and the table of a tool
//! names each of its types in one constant.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Deref;
use std::path::PathBuf;

use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde::de::value::Error as GivenError;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde_json::Value;

use crate::escape;
use crate::schema::SchemaFn;

/// A type that a tool may take as a parameter.
///
/// Implemented for everything that is `Deserialize` and `JsonSchema`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a tool parameter",
    label = "a model cannot send this type as JSON",
    note = "derive `serde::Deserialize` and `schemars::JsonSchema` of schemars 1 for `{Self}` or for what it holds, or take `State<..>` of what the host lends"
)]
pub trait Param: DeserializeOwned + JsonSchema + Send + 'static {
    /// What is known about the type. Generated code asks for it as `<T as Param>::FACTS`: a type
    /// that is not found is told where it stands in the function, with other suggestions in
    /// brackets than outside, and so both places say the same.
    #[doc(hidden)]
    const FACTS: &'static ParamType;
}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> Param for T {
    const FACTS: &'static ParamType = <T as Facts>::PARAM;
}

/// A type of which a default can be computed.
#[diagnostic::on_unimplemented(
    message = "default of type `{Self}` cannot be told",
    label = "the schema says it as JSON",
    note = "derive `serde::Serialize` for `{Self}`, or write a literal"
)]
pub trait Told: Serialize {}

#[diagnostic::do_not_recommend]
impl<T: Serialize> Told for T {}

/// A computed default as the schema says it.
pub fn default_value<T: Told>(default: T) -> Value {
    serde_json::to_value(default).unwrap_or(Value::Null)
}

/// All arguments of a tool as one struct.
///
/// # Examples
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use tool_sdk::{Args, tool};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Search {
///     /// What to look for.
///     query: String,
///     /// How many results at most.
///     #[serde(default)]
///     #[schemars(range(min = 1, max = 50))]
///     limit: Option<u32>,
/// }
///
/// /// Search the catalogue.
/// #[tool(read)]
/// async fn search(args: Args<Search>) -> String {
///     format!("nothing found for {}", args.query)
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "tools take it apart in their signature")]
pub struct Args<T>(pub T);

impl<T> Deref for Args<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// What a table needs to know about the type of a parameter.
///
/// A value stands behind [`Any`] as an `Option<T>` until the tool's own code takes it, so
/// one piece of code takes the arguments of every tool.
#[derive(Debug)]
pub struct ParamType {
    /// Which type it is.
    pub(crate) id: fn() -> TypeId,
    /// The type's schema.
    pub(crate) schema: SchemaFn,
    /// Decodes the value at the start of a text; says how many bytes it took.
    pub(crate) decode: fn(&str, &mut dyn Any) -> Result<usize, serde_json::Error>,
    /// Whether the argument may be absent.
    pub(crate) optional: fn() -> bool,
    /// Fills the place for an absent argument; says whether the type allows that.
    pub(crate) fill_absent: fn(&mut dyn Any) -> bool,
}

/// The facts about `T`.
#[must_use]
pub(super) const fn param_type<T: Param>() -> &'static ParamType {
    T::PARAM
}

/// What a table needs to know about a struct that holds all arguments.
#[derive(Debug)]
pub struct StructType {
    /// The type's schema.
    pub(crate) schema: SchemaFn,
    /// Decodes a whole text.
    pub(crate) decode: fn(&str, &mut dyn Any) -> Result<(), serde_json::Error>,
}

/// The facts about a struct `T` that holds all arguments.
#[must_use]
pub const fn struct_type<T: Param>() -> &'static StructType {
    T::STRUCT
}

/// Lets what is known about a type be named as constants, of which there is one per type.
trait Facts {
    const PARAM: &'static ParamType;
    const STRUCT: &'static StructType;
}

impl<T: Param> Facts for T {
    const PARAM: &'static ParamType = &ParamType {
        id: TypeId::of::<T>,
        schema: schema_of::<T>,
        decode: decode::<T>,
        optional: || absent::<T>().is_some(),
        fill_absent: |slot| {
            place::<T>(slot).is_some_and(|slot| {
                *slot = absent();
                slot.is_some()
            })
        },
    };

    const STRUCT: &'static StructType = &StructType {
        schema: schema_of::<T>,
        decode: |text, slot| {
            let value = serde_json::from_str(text)?;
            *place::<T>(slot).ok_or_else(misplaced)? = Some(value);
            Ok(())
        },
    };
}

/// What is known about the types that most tools take. A build without optimisation links
/// what stands here instead of compiling it again for every program with tools.
#[used]
static COMMON: [&ParamType; 16] = [
    param_type::<String>(),
    param_type::<Option<String>>(),
    param_type::<Vec<String>>(),
    param_type::<Option<Vec<String>>>(),
    param_type::<bool>(),
    param_type::<Option<bool>>(),
    param_type::<u8>(),
    param_type::<u32>(),
    param_type::<Option<u32>>(),
    param_type::<u64>(),
    param_type::<Option<u64>>(),
    param_type::<usize>(),
    param_type::<Option<usize>>(),
    param_type::<i64>(),
    param_type::<f64>(),
    param_type::<Option<f64>>(),
];

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> schemars::Schema {
    generator.subschema_for::<T>()
}

/// The place for a `T`; generated code has one of the right type for every parameter.
fn place<T: 'static>(slot: &mut dyn Any) -> Option<&mut Option<T>> {
    slot.downcast_mut()
}

#[cold]
fn misplaced() -> serde_json::Error {
    serde_json::Error::custom("there is no place for the value")
}

/// Decodes one value at the start of `text`; says how many bytes it took.
fn decode<T: Param>(text: &str, slot: &mut dyn Any) -> Result<usize, serde_json::Error> {
    let into = place::<T>(slot).ok_or_else(misplaced)?;
    match whole_number(text, into).or_else(|| plain_text(text, into)) {
        Some(length) => Ok(length),
        None => parsed(text, into),
    }
}

/// Decodes whatever `T` is.
#[inline(never)]
fn parsed<T: Param>(text: &str, into: &mut Option<T>) -> Result<usize, serde_json::Error> {
    if let Some(length) = long_text(text, into) {
        return Ok(length);
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<T>();
    match values.next() {
        Some(value) => *into = Some(value?),
        None => return Err(serde_json::Error::custom("expected a value")),
    }
    Ok(values.byte_offset())
}

/// Decodes a text, when that is what `T` is, in blocks and not byte by byte.
///
/// What is not plain, such as `\u`, is left to serde_json, which also words every error.
fn plain_text<T: 'static>(text: &str, into: &mut Option<T>) -> Option<usize> {
    let into = into as &mut dyn Any;
    if let Some(slot) = into.downcast_mut::<Option<String>>() {
        let (value, length) = escape::plain_json_string(text)?;
        *slot = Some(value);
        return Some(length);
    }
    let slot = into.downcast_mut::<Option<Option<String>>>()?;
    let (value, length) = escape::plain_json_string(text)?;
    *slot = Some(Some(value));
    Some(length)
}

/// Decodes a long text for a type that is made of one, in blocks as well.
///
/// What the type refuses, or takes in another way than as a text, is left to serde_json.
fn long_text<T: Param>(text: &str, into: &mut Option<T>) -> Option<usize> {
    /// So short that reading it twice would matter where a type refuses it.
    const SHORT: usize = 4 << 10;
    if text.len() < SHORT || !text.starts_with('"') {
        return None;
    }
    let (value, length) = escape::plain_json_string(text)?;
    *into = Some(T::deserialize(Given::Text(value)).ok()?);
    Some(length)
}

/// Decodes a whole number that is written plainly, when that is what `T` is.
///
/// Most numbers are a few digits, for which setting a parser up costs more than reading
/// them. Everything else, and every fault, is left to serde_json.
fn whole_number<T: Param>(text: &str, into: &mut Option<T>) -> Option<usize> {
    if !is_whole_number(TypeId::of::<T>()) {
        return None;
    }
    let (value, length) = digits(text.as_bytes())?;
    *into = Some(T::deserialize(Given::Number(value)).ok()?);
    Some(length)
}

/// Whether this is one of the whole numbers; known when an optimised program is built.
#[inline]
fn is_whole_number(id: TypeId) -> bool {
    macro_rules! any_of {
        ($($number:ty),*) => { $(id == TypeId::of::<$number>())||* };
    }
    any_of!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize)
}

/// The number at the start of `text` and its length: digits without a leading zero, not so
/// many that they could be too many, and nothing behind them that belongs to a number.
#[inline(always)]
fn digits(text: &[u8]) -> Option<(u64, usize)> {
    const MOST: usize = 18;
    let mut value = 0_u64;
    for (at, &byte) in text.iter().enumerate().take(MOST + 1) {
        if byte.is_ascii_digit() {
            value = value.wrapping_mul(10) + u64::from(byte - b'0');
            continue;
        }
        let plain = at > 0 && at <= MOST && (text[0] != b'0' || at == 1);
        let ends = matches!(byte, b',' | b'}' | b' ' | b'\n' | b'\r' | b'\t');
        return (plain && ends).then_some((value, at));
    }
    None
}

/// What `T` is when the argument is absent: a type that decodes from nothing is optional.
fn absent<T: Param>() -> Option<T> {
    T::deserialize(Given::Nothing).ok()
}

/// What a type is asked to make a value of, where no text is read.
enum Given {
    /// Says "none" to who asks for an optional value, as serde's own handling of a missing
    /// field does.
    Nothing,
    Number(u64),
    Text(String),
}

impl<'de> Deserializer<'de> for Given {
    type Error = GivenError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivenError> {
        match self {
            Self::Nothing => Err(GivenError::custom("absent")),
            Self::Number(value) => visitor.visit_u64(value),
            Self::Text(value) => visitor.visit_string(value),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivenError> {
        match self {
            Self::Nothing => visitor.visit_none(),
            Self::Number(_) => self.deserialize_any(visitor),
            Self::Text(_) => visitor.visit_some(self),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier
        ignored_any
    }
}

macro_rules! kinds {
    ($($(#[$attr:meta])* $name:ident => $([$($g:ident),*] $ty:ty),+;)*) => {$(
        $(#[$attr])*
        pub trait $name {}

        $(#[diagnostic::do_not_recommend]
        impl<$($g),*> $name for $ty {})+
        #[diagnostic::do_not_recommend]
        impl<T: $name> $name for Option<T> {}
    )*};
}

kinds! {
    /// A parameter type that `range` may bound.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` has no range", label = "not a number", note = "`range` bounds numbers"
    )]
    Ranged => [] i8, [] i16, [] i32, [] i64, [] i128, [] isize, [] u8, [] u16, [] u32, [] u64,
        [] u128, [] usize, [] f32, [] f64;
    /// A parameter type that `length` may bound.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` has no length", label = "neither text nor a list",
        note = "`length` bounds strings, lists and maps"
    )]
    Lengthy => [] String, [] PathBuf, [T] Vec<T>, [T, S] HashSet<T, S>, [T] BTreeSet<T>,
        [K, V, S] HashMap<K, V, S>, [K, V] BTreeMap<K, V>;
    /// A parameter type that `pattern` and `choices` may bound.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` is not text", label = "not text",
        note = "`pattern` and `choices` are for strings"
    )]
    Patterned => [] String, [] PathBuf;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What serde_json alone makes of the value at the start of `text`.
    fn by_serde<T: Param>(text: &str) -> Option<(T, usize)> {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<T>();
        let value = values.next()?.ok()?;
        Some((value, values.byte_offset()))
    }

    fn ours<T: Param>(text: &str) -> Option<(T, usize)> {
        let mut slot: Option<T> = None;
        let length = decode::<T>(text, &mut slot).ok()?;
        Some((slot?, length))
    }

    proptest! {
        // Those that take a text as it is, those that take it in another way, and none.
        #[test]
        fn long_texts_are_read_as_serde_json_reads_them(
            text in r#""x{4090}[x"\\n u0d8,}é]{0,12}"#
        ) {
            #[derive(Debug, PartialEq, serde::Deserialize, JsonSchema)]
            struct Wrapped(String);

            prop_assert_eq!(ours::<Value>(&text), by_serde(&text), "{}", text);
            prop_assert_eq!(ours::<Option<PathBuf>>(&text), by_serde(&text), "{}", text);
            prop_assert_eq!(ours::<Wrapped>(&text), by_serde(&text), "{}", text);
            prop_assert_eq!(ours::<bool>(&text), by_serde(&text), "{}", text);
        }

        #[test]
        fn numbers_are_read_as_serde_json_reads_them(
            text in "(-?[0-9]{0,22}|0[0-9]{1,3}|[0-9]{1,3}[.eE][0-9]{0,2}|[0-9a-z]{0,4})[,}\\] x\n]?[0-9}]{0,2}"
        ) {
            prop_assert_eq!(ours::<i64>(&text), by_serde::<i64>(&text), "{}", text);
            prop_assert_eq!(ours::<u64>(&text), by_serde::<u64>(&text), "{}", text);
            prop_assert_eq!(ours::<u8>(&text), by_serde::<u8>(&text), "{}", text);
            prop_assert_eq!(ours::<i16>(&text), by_serde::<i16>(&text), "{}", text);
        }
    }
}
