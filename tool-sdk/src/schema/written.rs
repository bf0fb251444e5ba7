//! The schema of an object, written straight from what is known of the types in it.
//!
//! What a type says in normal form is worked out once per type and then only copied, so
//! that a program with hundreds of tools lists them without building as many trees. It
//! deliberately knows no type that refers to others or that is a union: what such a type
//! says depends on what is said around it, and the long way takes it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use schemars::SchemaGenerator;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::assemble::{Property, constraints, type_schema};
use super::order::rank;
use super::{Schema, SchemaFn, contradictions, faults, normal, walk};

/// What a type says, in normal form; nothing where that depends on more than the type.
type Known = Option<Arc<Type>>;

struct Type {
    says: Map<String, Value>,
    plain: bool,
}

/// The schema of an object with these properties and no others, where each of them can be
/// written as it is.
pub(super) fn object(shown: &[Property<'_>], generator: fn() -> SchemaGenerator) -> Option<Schema> {
    let types: Vec<_> = shown
        .iter()
        .map(|property| of_type(property.schema, !property.required, generator))
        .collect::<Option<_>>()?;
    let properties: Vec<_> = shown
        .iter()
        .zip(&types)
        .map(|(property, ty)| (property.name, Entries::of(property, &ty.says)))
        .collect();
    let plain = shown.iter().zip(&types).all(|(property, ty)| ty.plain && keeps_all(property, ty));
    let required = shown.iter().filter(|property| property.required);
    let schema = Schema::new(&Root {
        ty: "object",
        properties: Entries(properties),
        required: required.map(|property| property.name).collect(),
        additional_properties: false,
    });
    Some(Schema { plain, ..schema })
}

/// Whether the type leaves every bound of a property as it was written.
fn keeps_all(property: &Property<'_>, ty: &Type) -> bool {
    property.keywords.is_empty()
        || constraints(&ty.says, property).len()
            == property.keywords.len()
                + usize::from(property.default.as_ref().is_some_and(|it| !it.is_null()))
}

/// Whether a type says only what every check understands, and something that a value can keep.
fn is_plain(schema: &Map<String, Value>) -> bool {
    faults(schema).is_empty() && contradictions(schema).is_empty() && has_plain_words(schema)
}

fn has_plain_words(schema: &Map<String, Value>) -> bool {
    let known = schema.keys().all(|keyword| {
        matches!(
            keyword.as_str(),
            "type"
                | "description"
                | "format"
                | "minimum"
                | "maximum"
                | "minLength"
                | "maxLength"
                | "minItems"
                | "maxItems"
                | "uniqueItems"
                | "enum"
                | "const"
                | "items"
                | "prefixItems"
                | "properties"
                | "required"
                | "additionalProperties"
                | "default"
        )
    });
    let mut inner_too = true;
    walk::each(schema, &mut |_, _, inner| {
        inner_too &= inner.as_object().is_none_or(has_plain_words);
    });
    known && inner_too
}

/// A function's address stands for the type: when two types share one, it is because the
/// same code says the same of both.
fn of_type(schema: SchemaFn, optional: bool, generator: fn() -> SchemaGenerator) -> Known {
    static KNOWN: RwLock<BTreeMap<(usize, bool), Known>> = RwLock::new(BTreeMap::new());

    let key = (schema as usize, optional);
    if let Some(known) = KNOWN.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return known.clone();
    }
    let found = settled(schema, optional, generator());
    KNOWN.write().unwrap_or_else(PoisonError::into_inner).insert(key, found.clone());
    found
}

fn settled(schema: SchemaFn, optional: bool, mut generator: SchemaGenerator) -> Known {
    let mut schema = type_schema(schema, &mut generator);
    let is_alone = schema
        .as_object()
        .is_none_or(|schema| !walk::has(schema, &["$ref", "$defs", "allOf", "anyOf", "oneOf"]));
    if !is_alone || !generator.definitions().is_empty() {
        return None;
    }
    normal::property(&mut schema, optional);
    match schema {
        Value::Object(says) => Some(Arc::new(Type { plain: is_plain(&says), says })),
        _ => None,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Root<'a> {
    #[serde(rename = "type")]
    ty: &'static str,
    properties: Entries<&'a str, Entries<Cow<'a, str>, Said<'a>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    required: Vec<&'a str>,
    additional_properties: bool,
}

/// A JSON object in the order in which its entries stand.
struct Entries<K, V>(Vec<(K, V)>);

impl<K: Serialize, V: Serialize> Serialize for Entries<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// The value of a keyword.
#[derive(Serialize)]
#[serde(untagged)]
enum Said<'a> {
    Text(&'a str),
    OfType(&'a Value),
    OfParameter(Value),
}

impl<'a> Entries<Cow<'a, str>, Said<'a>> {
    /// What the type says, with what the parameter says beyond that and instead of it.
    fn of(property: &'a Property<'_>, ty: &'a Map<String, Value>) -> Self {
        let mut entries: Vec<_> = ty
            .iter()
            .map(|(keyword, value)| (keyword.as_str().into(), Said::OfType(value)))
            .collect();
        let mut set = |keyword: Cow<'a, str>, said| match entries
            .iter_mut()
            .find(|(known, _)| *known == keyword)
        {
            Some((_, value)) => *value = said,
            None => entries.push((keyword, said)),
        };
        if !property.description.is_empty() {
            set("description".into(), Said::Text(property.description));
        }
        for (keyword, value) in constraints(ty, property) {
            set(keyword, Said::OfParameter(value));
        }
        entries.sort_by_key(|(keyword, _)| rank(keyword));
        Self(entries)
    }
}
