//! The bounds of parameter types, and how parameters are decoded in place.
//!
//! Code that depends on a parameter's type is instantiated here once per type, not once per tool:
//! [`ParamType`] stores it as function pointers, and the table of a tool refers to each of its
//! types in one constant.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Deref;
use std::path::PathBuf;

use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde::de::value::Error as AbsentError;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde_json::Value;

use crate::schema::SchemaFn;

/// A type that a tool may take as a parameter.
///
/// Implemented for every type that is `Deserialize`, `JsonSchema`, `Send` and `'static`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a tool parameter",
    label = "derive `Deserialize` and `JsonSchema` for `{Self}`, or for the type in it",
    note = "`serde::Deserialize` decodes the JSON of the model, and `schemars::JsonSchema` of schemars 1 describes it",
    note = "for a type of another crate, such as `chrono`, enable the feature of `schemars` with its name and version, such as `chrono04`",
    note = "what the host provides instead is a `State<..>`"
)]
pub trait Param: Send + 'static {
    /// The facts about the type. Generated code names them as `<T as Param>::FACTS`. With this
    /// form, rustc reports an unresolved type in the same words and at the same place as in the
    /// user's function.
    #[doc(hidden)]
    const FACTS: &'static ParamType;
    /// The facts about the type as a struct that holds all arguments.
    #[doc(hidden)]
    const STRUCT: &'static StructType;
}

// `DeserializeOwned` and `JsonSchema` are not supertraits, because each would be an error of its
// own if both derives are missing.
#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> Param for T {
    const FACTS: &'static ParamType = &ParamType {
        id: TypeId::of::<T>,
        schema: schema_of::<T>,
        decode: decode_value::<T>,
        optional: || absent_value::<T>().is_some(),
        fill_absent: |slot| {
            slot_as::<T>(slot).is_some_and(|slot| {
                *slot = absent_value();
                slot.is_some()
            })
        },
    };

    const STRUCT: &'static StructType = &StructType {
        schema: schema_of::<T>,
        decode: |text, slot| {
            let value = serde_json::from_str(text)?;
            *slot_as::<T>(slot).ok_or_else(slot_type_error)? = Some(value);
            Ok(())
        },
    };
}

/// A type of which a default value can be computed.
#[diagnostic::on_unimplemented(
    message = "default of type `{Self}` cannot be serialized",
    label = "the schema contains it as JSON",
    note = "derive `serde::Serialize` for `{Self}`, or write a literal"
)]
pub trait Told: Serialize {}

#[diagnostic::do_not_recommend]
impl<T: Serialize> Told for T {}

/// Returns a computed default for the schema.
pub fn default_value<T: Told>(default: T) -> Value {
    serde_json::to_value(default).unwrap_or(Value::Null)
}

/// A type of which a default can be written as a string.
#[diagnostic::on_unimplemented(
    message = "default of type `{Self}` must not be a string",
    label = "expected a value of the type `{Self}`",
    note = "write the value, such as `default = {Self}::Variant`, and derive `serde::Serialize` for `{Self}`"
)]
pub trait TextDefault: Sized {
    /// Converts the string.
    fn from_text(text: &'static str) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: From<&'static str>> TextDefault for T {
    fn from_text(text: &'static str) -> Self {
        Self::from(text)
    }
}

/// Converts a default that is written as a string.
pub fn text_default<T: TextDefault>(text: &'static str) -> T {
    T::from_text(text)
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

/// The facts about the type of a parameter, for the table.
///
/// A value is stored behind [`Any`] as an `Option<T>` until the tool's own code takes it, so that
/// the same code decodes the arguments of every tool.
#[derive(Debug)]
pub struct ParamType {
    /// Returns the id of the type.
    pub(crate) id: fn() -> TypeId,
    /// The type's schema.
    pub(crate) schema: SchemaFn,
    /// Decodes the value at the start of a text; returns the number of bytes read.
    pub(crate) decode: fn(&str, &mut dyn Any) -> Result<usize, serde_json::Error>,
    /// Returns whether the argument may be absent.
    pub(crate) optional: fn() -> bool,
    /// Fills the slot of an absent argument; returns whether the type allows that.
    pub(crate) fill_absent: fn(&mut dyn Any) -> bool,
}

/// Returns the facts about `T`.
#[must_use]
pub(super) const fn param_type<T: Param>() -> &'static ParamType {
    T::FACTS
}

/// The facts about a struct that holds all arguments, for the table.
#[derive(Debug)]
pub struct StructType {
    /// The type's schema.
    pub(crate) schema: SchemaFn,
    /// Decodes a whole text.
    pub(crate) decode: fn(&str, &mut dyn Any) -> Result<(), serde_json::Error>,
}

/// Returns the facts about a struct `T` that holds all arguments.
#[must_use]
pub const fn struct_type<T: Param>() -> &'static StructType {
    T::STRUCT
}

/// The facts about common parameter types. Builds without optimisation link these instead of
/// compiling them again for every program with tools.
#[used]
static COMMON_TYPES: [&ParamType; 16] = [
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

/// Returns the slot as one for a `T`; generated code has a slot of the right type for every
/// parameter.
fn slot_as<T: 'static>(slot: &mut dyn Any) -> Option<&mut Option<T>> {
    slot.downcast_mut()
}

#[cold]
fn slot_type_error() -> serde_json::Error {
    serde_json::Error::custom("the slot has another type")
}

/// Decodes one value at the start of `text`; returns the number of bytes read.
fn decode_value<T: DeserializeOwned + 'static>(
    text: &str,
    slot: &mut dyn Any,
) -> Result<usize, serde_json::Error> {
    let slot = slot_as::<T>(slot).ok_or_else(slot_type_error)?;
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<T>();
    match values.next() {
        Some(value) => *slot = Some(value?),
        None => return Err(serde_json::Error::custom("expected a value")),
    }
    Ok(values.byte_offset())
}

/// Returns the value of `T` for an absent argument: a type that decodes from nothing is optional.
fn absent_value<T: DeserializeOwned>() -> Option<T> {
    T::deserialize(AbsentValue).ok()
}

/// A deserializer that yields "none" to a type that asks for an optional value, as serde does for
/// a missing field, and fails for any other type.
struct AbsentValue;

impl<'de> Deserializer<'de> for AbsentValue {
    type Error = AbsentError;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, AbsentError> {
        Err(AbsentError::custom("absent"))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, AbsentError> {
        visitor.visit_none()
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
    /// A parameter type that `range` can constrain.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` has no range", label = "not a number", note = "`range` bounds numbers"
    )]
    Ranged => [] i8, [] i16, [] i32, [] i64, [] i128, [] isize, [] u8, [] u16, [] u32, [] u64,
        [] u128, [] usize, [] f32, [] f64;
    /// A parameter type that `length` can constrain.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` has no length", label = "neither text nor a list",
        note = "`length` bounds strings, lists and maps"
    )]
    Lengthy => [] String, [] PathBuf, [T] Vec<T>, [T, S] HashSet<T, S>, [T] BTreeSet<T>,
        [K, V, S] HashMap<K, V, S>, [K, V] BTreeMap<K, V>;
    /// A parameter type that `pattern` and `choices` can constrain.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` is not text", label = "not text",
        note = "`pattern` and `choices` are for strings"
    )]
    Patterned => [] String, [] PathBuf;
}
