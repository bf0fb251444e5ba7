//! Generates schemas from Rust types: one schemars generator per tool, then normalization.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::transform::{ReplaceUnevaluatedProperties, Transform as _};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

use super::keyword_order::sort_keywords;
use super::{Schema, SchemaFn, normalize, walk};

/// One property of an object schema.
#[derive(Debug)]
pub(crate) struct SchemaProperty<'a> {
    /// The name.
    pub(crate) name: &'a str,
    /// The schema function of the type.
    pub(crate) schema: SchemaFn,
    /// The description; replaces the one of the type.
    pub(crate) description: &'a str,
    /// Whether the property is required.
    pub(crate) required: bool,
    /// Whether the property is left out of the schema.
    pub(crate) hidden: bool,
    /// The default value.
    pub(crate) default: Option<Value>,
    /// Keywords besides those of the type.
    pub(crate) keywords: Vec<(&'static str, Value)>,
}

impl SchemaProperty<'_> {
    /// Bounds the length in the unit of the type: characters, items or entries.
    pub(crate) fn set_length(&mut self, min: usize, max: usize) {
        if min > 0 {
            self.keywords.push(("minLength", min.into()));
        }
        if max < usize::MAX {
            self.keywords.push(("maxLength", max.into()));
        }
    }
}

/// Builds the schema of an object with these properties, in this order, and no others.
pub(crate) fn object_schema<'a>(properties: impl Iterator<Item = SchemaProperty<'a>>) -> Schema {
    let shown: Vec<_> = properties.filter(|property| !property.hidden).collect();
    let mut generator = generator_settings().into_generator();
    let mut schemas = Map::with_capacity(shown.len());
    for property in &shown {
        let mut schema = match type_schema(property.schema, &mut generator) {
            Value::Bool(true) => Value::Object(Map::new()),
            schema => schema,
        };
        if let Value::Object(schema) = &mut schema
            && !property.description.is_empty()
        {
            insert_description(schema, property.description);
        }
        schemas.insert(property.name.to_owned(), schema);
    }
    let required = shown.iter().filter(|property| property.required);
    let mut required: Vec<_> = required.map(|property| Value::from(property.name)).collect();
    required.shrink_to_fit();
    // `json!` would copy the values.
    let mut root = Map::with_capacity(4);
    root.insert("type".to_owned(), "object".into());
    root.insert("properties".to_owned(), Value::Object(schemas));
    root.insert("required".to_owned(), Value::Array(required));
    let mut root = normalize::normalize_root(Value::Object(root), generator.take_definitions(true));
    if let Some(Value::Object(schemas)) = walk::get_keyword_mut(&mut root, "properties") {
        for (schema, property) in schemas.values_mut().zip(&shown) {
            if let Value::Object(schema) = schema {
                for (keyword, value) in property_constraints(schema, property) {
                    schema.insert(keyword.into_owned(), value);
                }
                sort_keywords(schema);
            }
        }
    }
    Schema::generated(&root)
}

/// Inserts the description at its final position.
fn insert_description(schema: &mut Map<String, Value>, description: &str) {
    let typed = schema.keys().next().is_some_and(|keyword| keyword == "type");
    schema.shift_insert(usize::from(typed), "description".to_owned(), description.into());
}

/// What a property says beyond its type, in the words that fit the type.
fn property_constraints<'a>(
    ty: &Map<String, Value>,
    property: &SchemaProperty<'_>,
) -> Vec<(Cow<'a, str>, Value)> {
    let unit = match walk::get_keyword(ty, "type").and_then(Value::as_str) {
        Some("array") => "Items",
        Some("object") => "Properties",
        _ => "Length",
    };
    let own = |keyword| walk::get_keyword(ty, keyword);
    let said = property.keywords.iter().filter_map(|(keyword, value)| {
        let keyword = match *keyword {
            "minLength" => format!("min{unit}").into(),
            "maxLength" => format!("max{unit}").into(),
            // The narrower bound of the two wins.
            "minimum" if is_narrower(own("minimum"), value, |own, new| own > new) => return None,
            "maximum" if is_narrower(own("maximum"), value, |own, new| own < new) => return None,
            keyword => Cow::Borrowed(keyword),
        };
        Some((keyword, value.clone()))
    });
    let default = property.default.iter().filter(|default| !default.is_null());
    said.chain(default.map(|default| ("default".into(), default.clone()))).collect()
}

fn is_narrower(own: Option<&Value>, new: &Value, wins: fn(f64, f64) -> bool) -> bool {
    own.and_then(Value::as_f64).zip(new.as_f64()).is_some_and(|(own, new)| wins(own, new))
}

fn generator_settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
        // Applied to definitions; `type_schema` applies it to everything else.
        settings.transforms.push(Box::new(ReplaceUnevaluatedProperties::default()));
    })
}

/// The schema that schemars generates for a type, without `unevaluatedProperties`, which the
/// native validator does not have.
fn type_schema(schema: SchemaFn, generator: &mut SchemaGenerator) -> Value {
    let mut schema = schema(generator);
    ReplaceUnevaluatedProperties::default().transform(&mut schema);
    schema.to_value()
}

impl Schema {
    /// Generates the schema of the JSON that decodes into a `T`.
    ///
    /// # Examples
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    /// use tool_sdk::Schema;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Search {
    ///     /// What to look for.
    ///     query: String,
    ///     /// How many results at most.
    ///     limit: Option<u8>,
    /// }
    ///
    /// assert_eq!(
    ///     Schema::for_type::<Search>().to_value(),
    ///     serde_json::json!({
    ///         "type": "object",
    ///         "properties": {
    ///             "query": { "type": "string", "description": "What to look for." },
    ///             "limit": {
    ///                 "type": "integer",
    ///                 "description": "How many results at most.",
    ///                 "minimum": 0,
    ///                 "maximum": 255,
    ///             },
    ///         },
    ///         "required": ["query"],
    ///         "additionalProperties": false,
    ///     })
    /// );
    /// ```
    #[must_use]
    pub fn for_type<T: JsonSchema + ?Sized>() -> Self {
        Self::from_input_fn(|generator| generator.subschema_for::<T>())
    }

    /// Generates the schema of the JSON that a `T` serializes to.
    #[must_use]
    pub fn for_output<T: JsonSchema + ?Sized>() -> Self {
        Self::from_output_fn(|generator| generator.subschema_for::<T>())
    }

    /// Generates the schema of the JSON that decodes into the type of `schema`.
    pub(crate) fn from_input_fn(schema: SchemaFn) -> Self {
        Self::from_generator(schema, generator_settings().into_generator())
    }

    /// Generates the schema of the JSON that the type of `schema` serializes to.
    pub(crate) fn from_output_fn(schema: SchemaFn) -> Self {
        Self::from_generator(schema, generator_settings().for_serialize().into_generator())
    }

    fn from_generator(schema: SchemaFn, mut generator: SchemaGenerator) -> Self {
        let schema = type_schema(schema, &mut generator);
        Self::new(&normalize::normalize_root(schema, generator.take_definitions(true)))
    }
}
